//! How much of everything there is (clause 1.2).

use super::key::DistrictId;

/// Districts of a warehouse.
pub(super) const DISTRICTS: u8 = 10;

/// How much of everything there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    pub(super) warehouses: u16,
    pub(super) items: u32,
    /// In each district; as many orders are there at first.
    pub(super) customers: u32,
}

impl Scale {
    /// As the specification has it.
    pub(super) fn full(warehouses: u16) -> Scale {
        Scale {
            warehouses,
            items: 100_000,
            customers: 3000,
        }
    }

    /// A hundredth of that in each warehouse, for tests.
    pub(super) fn small(warehouses: u16) -> Scale {
        Scale {
            warehouses,
            items: 1000,
            customers: 30,
        }
    }

    /// The first order of each district that is not delivered: the last three tenths are not.
    pub(super) fn first_new_order(self) -> u32 {
        self.customers - self.customers * 3 / 10 + 1
    }

    /// The highest number that a last name is made from.
    pub(super) fn last_name_max(self) -> u32 {
        self.customers.min(1000) - 1
    }

    pub(super) fn districts(self) -> impl Iterator<Item = DistrictId> {
        (1..=self.warehouses).flat_map(|warehouse| {
            (1..=DISTRICTS).map(move |district| DistrictId {
                warehouse,
                district,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_hundred_orders_of_a_district_are_new() {
        let scale = Scale::full(4);
        assert_eq!(scale.first_new_order(), 2101);
        assert_eq!(scale.districts().count(), 40);
        assert_eq!(scale.last_name_max(), 999);
    }
}

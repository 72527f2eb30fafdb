//! Keys: numbers packed into eight bytes, big-endian, so that rows are ordered by them.
//!
//! | bits   | field                                     |
//! |--------|-------------------------------------------|
//! | 48..64 | warehouse                                 |
//! | 40..48 | district                                  |
//! | 8..40  | customer, order, item, or count           |
//! | 0..8   | order line                                |

/// Which district.
#[derive(longshore::Key, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct DistrictId {
    pub(super) warehouse: u16,
    pub(super) district: u8,
}

/// A key of the tables.
pub(super) type Key = [u8; 8];

fn pack(warehouse: u16, district: u8, number: u32, line: u8) -> Key {
    let (warehouse, district) = (u64::from(warehouse) << 48, u64::from(district) << 40);
    (warehouse | district | u64::from(number) << 8 | u64::from(line)).to_be_bytes()
}

pub(super) fn item(item: u32) -> Key {
    pack(0, 0, item, 0)
}

pub(super) fn warehouse(warehouse: u16) -> Key {
    pack(warehouse, 0, 0, 0)
}

pub(super) fn stock(warehouse: u16, item: u32) -> Key {
    pack(warehouse, 0, item, 0)
}

pub(super) fn district(at: DistrictId) -> Key {
    pack(at.warehouse, at.district, 0, 0)
}

pub(super) fn customer(at: DistrictId, customer: u32) -> Key {
    pack(at.warehouse, at.district, customer, 0)
}

/// Of the order, and of the new order.
pub(super) fn order(at: DistrictId, order: u32) -> Key {
    pack(at.warehouse, at.district, order, 0)
}

pub(super) fn order_line(at: DistrictId, order: u32, line: u8) -> Key {
    pack(at.warehouse, at.district, order, line)
}

/// The history has no primary key (clause 1.3): each client counts its payments.
pub(super) fn history(client: u32, payment: u32) -> Key {
    (u64::from(client) << 32 | u64::from(payment)).to_be_bytes()
}

/// The customer, order or item in a key.
pub(super) fn number(key: &[u8]) -> u32 {
    number_of(u64::from_be_bytes(
        key.try_into().expect("a key has eight bytes"),
    ))
}

/// The customer, order or item in a key taken as a number.
pub(super) fn number_of(key: u64) -> u32 {
    (key >> 8) as u32
}

/// The district in a key taken as a number.
pub(super) fn district_of(key: u64) -> DistrictId {
    DistrictId {
        warehouse: (key >> 48) as u16,
        district: (key >> 40) as u8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: DistrictId = DistrictId {
        warehouse: 2,
        district: 10,
    };

    #[test]
    fn keys_are_ordered_by_their_numbers() {
        let next = DistrictId {
            warehouse: 3,
            district: 1,
        };
        assert!(order_line(AT, 7, 15) < order_line(AT, 8, 1));
        assert!(order_line(AT, u32::MAX, 15) < order_line(next, 0, 0));
        assert!(stock(1, u32::MAX) < stock(2, 0));
        let line = order_line(AT, 4711, 3);
        assert_eq!(number(&line), 4711);
        assert_eq!(district_of(u64::from_be_bytes(line)), AT);
    }
}

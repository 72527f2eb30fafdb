//! The two indexes, which the engine keeps: customers by last name, then first name; orders by customer.

use super::key::{self, DistrictId};
use super::layout::{Layout, Row, Text};
use super::schema::{Customer, Order};
use super::tables::Relation;
use longshore::{Database, Index, IndexSpec, Result, TypedTable};

/// An index of the rows `R` of `N` bytes by keys `I`.
pub(super) type IndexOf<I, R, const N: usize> = Index<I, u64, Row<R, [u8; N]>>;

/// Customers of a district by last name, then first name.
pub(super) type CustomerByName =
    IndexOf<(DistrictId, Text<16>, Text<16>), Customer, { Customer::WIDTH }>;

/// Orders of a customer, the oldest first.
pub(super) type OrderByCustomer = IndexOf<(DistrictId, u32), Order, { Order::WIDTH }>;

pub(super) fn customer_by_name(
    db: &Database,
    customers: &Relation<Customer>,
) -> Result<CustomerByName> {
    let spec = IndexSpec::new(
        "by name",
        "district, last, first",
        |key: &u64, row: &Row<Customer, _>| {
            let at = key::district_of(*key);
            [(at, row.get(Customer::LAST), row.get(Customer::FIRST))]
        },
    );
    TypedTable::new(customers.table.clone()).create_index(db, spec)
}

pub(super) fn order_by_customer(
    db: &Database,
    orders: &Relation<Order>,
) -> Result<OrderByCustomer> {
    let spec = IndexSpec::new(
        "by customer",
        "district, customer",
        |key: &u64, row: &Row<Order, _>| [(key::district_of(*key), row.get(Order::CUSTOMER))],
    );
    TypedTable::new(orders.table.clone()).create_index(db, spec)
}

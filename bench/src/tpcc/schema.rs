//! The nine tables (clause 1.3). Amounts are in cents, rates in parts of ten thousand.

use super::layout::{Text, layout};

layout! {
    /// A warehouse.
    Warehouse in "warehouse" {
        NAME: Text<10>,
        STREET_1: Text<20>,
        STREET_2: Text<20>,
        CITY: Text<20>,
        STATE: [u8; 2],
        ZIP: [u8; 9],
        TAX: u16,
        YTD: i64,
    }
}

layout! {
    /// A sales district of a warehouse.
    District in "district" {
        NAME: Text<10>,
        STREET_1: Text<20>,
        STREET_2: Text<20>,
        CITY: Text<20>,
        STATE: [u8; 2],
        ZIP: [u8; 9],
        TAX: u16,
        YTD: i64,
        NEXT_ORDER: u32,
    }
}

layout! {
    /// A customer of a district.
    Customer in "customer" {
        FIRST: Text<16>,
        MIDDLE: [u8; 2],
        LAST: Text<16>,
        STREET_1: Text<20>,
        STREET_2: Text<20>,
        CITY: Text<20>,
        STATE: [u8; 2],
        ZIP: [u8; 9],
        PHONE: [u8; 16],
        SINCE: u64,
        CREDIT: [u8; 2],
        CREDIT_LIMIT: i64,
        DISCOUNT: u16,
        BALANCE: i64,
        YTD_PAYMENT: i64,
        PAYMENTS: u16,
        DELIVERIES: u16,
        DATA: Text<500>,
    }
}

layout! {
    /// A payment that was made.
    History in "history" {
        CUSTOMER: u32,
        CUSTOMER_DISTRICT: u8,
        CUSTOMER_WAREHOUSE: u16,
        DISTRICT: u8,
        WAREHOUSE: u16,
        DATE: u64,
        AMOUNT: i64,
        DATA: Text<24>,
    }
}

layout! {
    /// An order that is not delivered yet.
    NewOrder in "new_order" {}
}

layout! {
    /// An order.
    Order in "order" {
        CUSTOMER: u32,
        DATE: u64,
        CARRIER: u8,
        LINES: u8,
        ALL_LOCAL: u8,
    }
}

layout! {
    /// A line of an order.
    OrderLine in "order_line" {
        ITEM: u32,
        SUPPLY_WAREHOUSE: u16,
        DELIVERED: u64,
        QUANTITY: u8,
        AMOUNT: i64,
        DISTRICT_INFO: [u8; 24],
    }
}

layout! {
    /// An item that is sold.
    Item in "item" {
        IMAGE: u16,
        NAME: Text<24>,
        PRICE: i64,
        DATA: Text<50>,
    }
}

layout! {
    /// What a warehouse has of an item.
    Stock in "stock" {
        QUANTITY: i16,
        YTD: u32,
        ORDERS: u16,
        REMOTE: u16,
        DISTRICT_INFO: [u8; 240],
        DATA: Text<50>,
    }
}

/// A dollar, in cents.
pub(super) const DOLLAR: i64 = 100;

/// The carrier of an order that is not delivered.
pub(super) const NO_CARRIER: u8 = 0;

/// The date of a delivery that has not been.
pub(super) const NEVER: u64 = 0;

/// A credit that is good; `BC` is bad.
pub(super) const GOOD_CREDIT: [u8; 2] = *b"GC";

/// A credit that is bad.
pub(super) const BAD_CREDIT: [u8; 2] = *b"BC";

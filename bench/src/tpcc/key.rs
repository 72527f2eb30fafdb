//! Keys: numbers packed into eight bytes, big-endian, so that rows are ordered by them.
//!
//! | bits   | field                                     |
//! |--------|-------------------------------------------|
//! | 48..64 | warehouse                                 |
//! | 40..48 | district                                  |
//! | 8..40  | customer, order, item, or count           |
//! | 0..8   | order line                                |
//!
//! The two indexes have longer keys.

use super::layout::Text;

/// Which district.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    let key = key.first_chunk().expect("a key has eight bytes or more");
    (u64::from_be_bytes(*key) >> 8) as u32
}

/// Length of what the keys of one last name begin with.
const LAST_NAME_BYTES: usize = 3 + 16;

/// What the index keys of one last name begin with.
pub(super) fn last_name(at: DistrictId, last: &Text<16>) -> [u8; LAST_NAME_BYTES] {
    let mut key = [0; LAST_NAME_BYTES];
    key[..3].copy_from_slice(&district(at)[..3]);
    key[3..].copy_from_slice(last.padded());
    key
}

/// The index key of a customer.
pub(super) fn customer_by_name(
    at: DistrictId,
    last: &Text<16>,
    first: &Text<16>,
    customer: u32,
) -> [u8; LAST_NAME_BYTES + 16 + 4] {
    let mut key = [0; LAST_NAME_BYTES + 16 + 4];
    key[..LAST_NAME_BYTES].copy_from_slice(&last_name(at, last));
    key[LAST_NAME_BYTES..LAST_NAME_BYTES + 16].copy_from_slice(first.padded());
    key[LAST_NAME_BYTES + 16..].copy_from_slice(&customer.to_be_bytes());
    key
}

/// The index key of a customer's order; later ones are lower.
pub(super) fn order_by_customer(at: DistrictId, customer: u32, order: u32) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&self::customer(at, customer));
    key[8..].copy_from_slice(&(!order).to_be_bytes());
    key
}

/// The customer at the end of a key of the index by name.
pub(super) fn customer_of(key: &[u8]) -> u32 {
    tail(key)
}

/// The order at the end of a key of the index by customer.
pub(super) fn order_of(key: &[u8]) -> u32 {
    !tail(key)
}

fn tail(key: &[u8]) -> u32 {
    u32::from_be_bytes(*key.last_chunk().expect("index keys end with a number"))
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
        assert_eq!(number(&order_line(AT, 4711, 3)), 4711);
    }

    #[test]
    fn names_are_ordered_as_texts_and_orders_newest_first() {
        let key =
            |last: &[u8], first: &[u8]| customer_by_name(AT, &Text::of(last), &Text::of(first), 77);
        assert!(key(b"BAR", b"z") < key(b"BARBAR", b"a"));
        assert!(key(b"BAR", b"a") < key(b"BAR", b"aa"));
        assert!(key(b"BAR", b"a").starts_with(&last_name(AT, &Text::of(b"BAR"))));
        assert_eq!(customer_of(&key(b"BAR", b"a")), 77);
        assert!(order_by_customer(AT, 5, 9) < order_by_customer(AT, 5, 8));
        assert_eq!(order_of(&order_by_customer(AT, 5, 9)), 9);
    }
}

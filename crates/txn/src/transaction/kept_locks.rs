//! The locks that a prepared transaction keeps, as the log holds them.
//!
//! # What is kept
//! Everything that it holds, but for the locks on rows that its own records imply: key X on a row that it
//! has changed. What was changed is told by the images that it has captured. Where they may tell of
//! changes that are not in the log (a statement failed, or was taken back), or are not complete, those
//! locks are kept too. So a transaction that only writes adds its tables, and one that reads, or asks for
//! locks by name, what it asked for.
//!
//! # Format
//! Locks are sorted into groups of one store and one mode:
//!
//! | field | meaning |
//! |---|---|
//! | store | number; 0 is the database |
//! | mode | a byte, [`Mode::bits`] |
//! | rows | if it is a row's: the differences between the hashes of the keys, ascending, as numbers above zero; a zero ends them |
//!
//! A number has seven bits in each byte, the lowest first; all bytes but its last have the eighth bit set. Keys
//! that count up have hashes that count up, so a range costs a byte a row, and a row alone seven.
//!
//! They follow the gid in PREPARE. If they are more than [`PORTION_BYTES`], all but the last portion go into
//! records LOCKS before it, each a list of groups, all chained; only PREPARE makes them count. So there is no
//! limit of their own: they take less of the log than they take of the memory for locks (24 bytes each), which is
//! bounded. Trading them for locks on whole tables instead would keep more than was read from others, for as
//! long as the coordinator takes, and cannot be had when others are in the way.

use crate::lock::{LockName, Mode};
use longshore_base::StoreId;

/// Bytes of locks in one record; the shortest record that a log may be limited to is longer.
pub(super) const PORTION_BYTES: usize = 16 << 10;

/// A body that does not say what it must.
type Malformed = &'static str;

/// Locks as they stand in the log: a portion for each record, at least one.
pub(super) fn encode(mut locks: Vec<(LockName, Mode)>) -> Vec<Vec<u8>> {
    locks.sort_unstable_by_key(|(name, mode)| (name.store(), mode.bits(), name.key_hash()));
    locks.dedup();
    let mut portions = vec![Vec::new()];
    for group in locks.chunk_by(|a, b| (a.0.store(), a.1) == (b.0.store(), b.1)) {
        encode_group(group, &mut portions);
    }
    portions
}

fn encode_group(group: &[(LockName, Mode)], portions: &mut Vec<Vec<u8>>) {
    let mut rest = group;
    while let [(name, mode), ..] = rest {
        if portions
            .last()
            .is_none_or(|portion| portion.len() >= PORTION_BYTES)
        {
            portions.push(Vec::new());
        }
        let portion = portions.last_mut().expect("there is one");
        put_number(portion, u64::from(name.store().get()));
        portion.push(mode.bits());
        if name.is_table() {
            return;
        }
        rest = encode_rows(rest, portion);
    }
}

/// Encodes as many rows as the portion has room for; returns the others.
fn encode_rows<'a>(rows: &'a [(LockName, Mode)], portion: &mut Vec<u8>) -> &'a [(LockName, Mode)] {
    let mut before = None;
    let mut encoded = 0;
    for (name, _) in rows {
        let hash = name.key_hash();
        // The first hash may be zero.
        let difference = before.map_or(hash + 1, |before| hash - before);
        put_number(portion, difference);
        before = Some(hash);
        encoded += 1;
        if portion.len() >= PORTION_BYTES {
            break;
        }
    }
    put_number(portion, 0);
    &rows[encoded..]
}

fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Appends the locks of one portion to `locks`.
pub(super) fn decode(mut bytes: &[u8], locks: &mut Vec<(LockName, Mode)>) -> Result<(), Malformed> {
    while !bytes.is_empty() {
        let store =
            u32::try_from(take_number(&mut bytes)?).map_err(|_| "no store has this number")?;
        let store = StoreId::new(store);
        let (&mode, rest) = bytes.split_first().ok_or("it ends early")?;
        bytes = rest;
        let mode = Mode::of_bits(mode).ok_or("no lock has this mode")?;
        if mode.as_table().is_some() {
            locks.push((LockName::of_table(store), mode));
            continue;
        }
        let mut before: Option<u64> = None;
        loop {
            let difference = take_number(&mut bytes)?;
            if difference == 0 {
                break;
            }
            let from = before.map_or(Some(0), |before| before.checked_add(1));
            let hash = from.and_then(|from| from.checked_add(difference - 1));
            let hash = hash.ok_or("a hash is too large")?;
            locks.push((LockName::of_key_hash(store, hash), mode));
            before = Some(hash);
        }
    }
    Ok(())
}

fn take_number(bytes: &mut &[u8]) -> Result<u64, Malformed> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or("it ends early")?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if part << shift >> shift != part {
            break;
        }
        number |= part << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err("a number is too large")
}

/// The gid in the body of PREPARE, and the locks behind it.
pub(super) fn split(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = body.split_first()?;
    rest.split_at_checked(usize::from(length))
}

/// The name in the body of a PREPARE record; `None` if that is no such body.
pub fn gid_of(body: &[u8]) -> Option<&[u8]> {
    split(body).map(|(gid, _)| gid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::TableMode;
    use std::collections::HashSet;

    fn row(store: u32, key: u32) -> LockName {
        LockName::of_key(StoreId::new(store), &key.to_be_bytes())
    }

    fn decoded(portions: &[Vec<u8>]) -> HashSet<(LockName, u8)> {
        let mut locks = Vec::new();
        for portion in portions {
            decode(portion, &mut locks).unwrap();
        }
        locks
            .iter()
            .map(|(name, mode)| (*name, mode.bits()))
            .collect()
    }

    #[test]
    fn locks_are_what_they_were() {
        let mut locks = vec![
            (LockName::of_database(), Mode::INTENT_EXCLUSIVE),
            (LockName::of_table(StoreId::new(16)), Mode::INTENT_EXCLUSIVE),
            (
                LockName::of_table(StoreId::new(70_000)),
                Mode::table(TableMode::SharedIntentExclusive),
            ),
            (LockName::of_supremum(StoreId::new(16)), Mode::READ_GAP),
            (LockName::of_key_hash(StoreId::new(16), 0), Mode::READ),
            (
                LockName::of_key_hash(StoreId::new(16), u64::MAX),
                Mode::READ,
            ),
        ];
        locks.extend((0..20_000).map(|key| (row(16, key), Mode::READ_RANGE)));
        locks.extend((0..20_000).map(|key| (row(70_000, key * 7919), Mode::UPDATE)));
        let expected: HashSet<_> = locks.iter().map(|(n, mode)| (*n, mode.bits())).collect();
        let portions = encode(locks);
        assert!(portions.len() > 5);
        assert!(
            portions
                .iter()
                .all(|portion| portion.len() < PORTION_BYTES + 32)
        );
        assert_eq!(decoded(&portions), expected);
        assert_eq!(encode(Vec::new()), [[]]);
    }

    #[test]
    fn a_range_costs_little_more_than_a_byte_a_row() {
        let bytes = |key: fn(u32) -> u32| {
            let locks = (0..256).map(|n| (row(16, key(n)), Mode::READ_RANGE));
            encode(locks.collect())[0].len()
        };
        assert!(bytes(|n| n) < 270);
        assert!(bytes(|n| n * 1000) < 256 * 8);
    }

    #[test]
    fn the_layout_is_what_it_is() {
        let locks = vec![
            (LockName::of_key_hash(StoreId::new(300), 5), Mode::READ),
            (LockName::of_key_hash(StoreId::new(300), 205), Mode::READ),
            (LockName::of_table(StoreId::new(300)), Mode::INTENT_SHARED),
            (LockName::of_database(), Mode::INTENT_SHARED),
        ];
        let portion = [0, 17, 0xac, 2, 1, 6, 0xc8, 1, 0, 0xac, 2, 17];
        assert_eq!(encode(locks), [portion]);
        assert_eq!(split(b"\x02gid"), Some((&b"gi"[..], &b"d"[..])));
    }

    #[test]
    fn garbage_is_an_error_or_locks() {
        for byte in 0..=u8::MAX {
            for length in 0..24 {
                let mut locks = Vec::new();
                let _ = decode(&vec![byte; length], &mut locks);
            }
        }
        let locks = [(row(16, 1), Mode::READ), (row(17, 1), Mode::UPDATE)];
        let body = encode(locks.to_vec()).remove(0);
        let first = encode(locks[..1].to_vec())[0].len();
        for at in 0..body.len() {
            let is_cut = decode(&body[..at], &mut Vec::new()).is_err();
            assert_eq!(is_cut, at != 0 && at != first, "{at} of {}", body.len());
            for bit in 0..8 {
                let mut flipped = body.clone();
                flipped[at] ^= 1 << bit;
                let _ = decode(&flipped, &mut Vec::new());
            }
        }
        assert_eq!(gid_of(b""), None);
        assert_eq!(gid_of(b"\x04gid"), None);
    }
}

//! What is drawn at random (clauses 2.1.5, 2.1.6, 4.3.2).

use super::layout::Text;
use super::scale::Scale;
use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};

/// The constants C of [`nurand`]. Those of last names differ by 66 between load and run, as clause
/// 2.1.6.1 wants: from 65 to 119, and neither 96 nor 112.
const C_LAST_LOAD: u32 = 157;
const C_LAST_RUN: u32 = 223;
const C_CUSTOMER: u32 = 987;
const C_ITEM: u32 = 7911;

/// Number between `low` and `high`, some much likelier than others (clause 2.1.6).
fn nurand(random: &mut SmallRng, a: u32, c: u32, low: u32, high: u32) -> u32 {
    let skewed = random.random_range(0..=a) | random.random_range(low..=high);
    (skewed + c) % (high - low + 1) + low
}

pub(super) fn customer(random: &mut SmallRng, scale: Scale) -> u32 {
    nurand(random, 1023, C_CUSTOMER, 1, scale.customers)
}

pub(super) fn item(random: &mut SmallRng, scale: Scale) -> u32 {
    nurand(random, 8191, C_ITEM, 1, scale.items)
}

/// A last name that a customer is asked by.
pub(super) fn last_name(random: &mut SmallRng, scale: Scale) -> Text<16> {
    last_name_of(nurand(random, 255, C_LAST_RUN, 0, scale.last_name_max()))
}

/// A last name that a customer is given.
pub(super) fn last_name_to_load(random: &mut SmallRng, scale: Scale) -> Text<16> {
    last_name_of(nurand(random, 255, C_LAST_LOAD, 0, scale.last_name_max()))
}

/// The last name made of the three digits of a number (clause 4.3.2.3).
pub(super) fn last_name_of(number: u32) -> Text<16> {
    const SYLLABLES: [&[u8]; 10] = [
        b"BAR", b"OUGHT", b"ABLE", b"PRI", b"PRES", b"ESE", b"ANTI", b"CALLY", b"ATION", b"EING",
    ];
    let digit = |place: u32| SYLLABLES[(number / place % 10) as usize];
    Text::of(&[digit(100), digit(10), digit(1)].concat())
}

/// Whether something happens that happens `percent` times in a hundred.
pub(super) fn one_of_hundred(random: &mut SmallRng, percent: u32) -> bool {
    random.random_range(0..100) < percent
}

/// One of the `warehouses` that is not `home`; `home` if there is no other.
pub(super) fn other_warehouse(random: &mut SmallRng, home: u16, warehouses: u16) -> u16 {
    if warehouses == 1 {
        return home;
    }
    let other = random.random_range(1..warehouses);
    other + u16::from(other >= home)
}

/// The numbers for one row: the same whenever it is asked for.
pub(super) fn for_row(seed: u64, table: &str, key: u64) -> SmallRng {
    /// A prime for mixing.
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |sum: u64, part: u64| (sum ^ part).wrapping_mul(PRIME).rotate_left(29);
    let table = table.bytes().map(u64::from);
    SmallRng::seed_from_u64(table.chain([key]).fold(seed, mix))
}

/// Characters of a text; 64, so that six bits draw one.
const CHARACTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -";

/// Fills `bytes` with characters.
pub(super) fn fill(random: &mut SmallRng, bytes: &mut [u8]) {
    /// Characters drawn from one number.
    const DRAWN: usize = 10;
    for chunk in bytes.chunks_mut(DRAWN) {
        let mut bits = random.next_u64();
        for byte in chunk {
            *byte = CHARACTERS[(bits & 63) as usize];
            bits >>= 6;
        }
    }
}

/// A text of `least` to `N` characters.
pub(super) fn text<const N: usize>(random: &mut SmallRng, least: usize) -> Text<N> {
    let mut bytes = [0; N];
    let length = random.random_range(least..=N);
    fill(random, &mut bytes[..length]);
    Text::of(&bytes[..length])
}

/// A text for the data of items and stock: one in ten holds `ORIGINAL` (clause 4.3.3.1).
pub(super) fn data(random: &mut SmallRng) -> Text<50> {
    let text: Text<50> = text(random, 26);
    if !one_of_hundred(random, 10) {
        return text;
    }
    let mut bytes = text.as_bytes().to_vec();
    let at = random.random_range(0..=bytes.len() - ORIGINAL.len());
    bytes[at..at + ORIGINAL.len()].copy_from_slice(ORIGINAL);
    Text::of(&bytes)
}

/// What marks the goods of a brand.
pub(super) const ORIGINAL: &[u8] = b"ORIGINAL";

/// So many digits.
pub(super) fn digits<const N: usize>(random: &mut SmallRng) -> [u8; N] {
    std::array::from_fn(|_| b'0' + random.random_range(0..10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_made_of_syllables() {
        assert_eq!(last_name_of(371).as_bytes(), b"PRICALLYOUGHT");
        assert_eq!(last_name_of(40).as_bytes(), b"BARPRESBAR");
    }

    #[test]
    fn some_numbers_are_much_likelier() {
        let mut random = SmallRng::seed_from_u64(1);
        let scale = Scale::full(1);
        let mut counts = vec![0u32; scale.items as usize + 1];
        (0..1_000_000).for_each(|_| counts[item(&mut random, scale) as usize] += 1);
        assert_eq!(counts[0], 0);
        counts.sort_unstable();
        let top: u32 = counts.iter().rev().take(10_000).sum();
        assert!(top > 300_000, "a tenth of the items is drawn {top} times");
    }

    #[test]
    fn rows_are_drawn_alike_each_time() {
        let draw = |table, key| for_row(7, table, key).next_u64();
        assert_eq!(draw("stock", 3), draw("stock", 3));
        assert_ne!(draw("stock", 3), draw("stock", 4));
        assert_ne!(draw("stock", 3), draw("order", 3));
    }

    #[test]
    fn other_warehouses_are_all_but_the_own() {
        let mut random = SmallRng::seed_from_u64(2);
        let drawn: std::collections::BTreeSet<u16> = (0..200)
            .map(|_| other_warehouse(&mut random, 2, 4))
            .collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [1, 3, 4]);
        assert_eq!(other_warehouse(&mut random, 1, 1), 1);
    }

    #[test]
    fn texts_keep_to_their_lengths() {
        let mut random = SmallRng::seed_from_u64(3);
        for _ in 0..1000 {
            let length = text::<24>(&mut random, 14).as_bytes().len();
            assert!((14..=24).contains(&length), "{length}");
        }
        let original = (0..1000)
            .filter(|_| {
                let data = data(&mut random);
                data.as_bytes().windows(8).any(|part| part == ORIGINAL)
            })
            .count();
        assert!((60..=140).contains(&original), "{original}");
    }
}

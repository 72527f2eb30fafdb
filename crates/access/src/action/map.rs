//! The map of used pages, as bytes: one bit per page behind the page header.

use longshore_base::PageSize;
use longshore_base::page::header;
use longshore_pool::{PageMut, PageRef};

/// First byte of the bits in a map page.
pub const MAP_AT: usize = header::SIZE;
const WORD_BITS: u32 = 64;
const MAP_WORD: usize = MAP_AT / 8;

/// Bits in a map page.
pub const fn map_bits(page_size: PageSize) -> u64 {
    ((page_size.bytes() - MAP_AT) * 8) as u64
}

/// Whether `bit` of a map page is set.
pub fn map_is_used(page: PageRef<'_>, bit: u32) -> bool {
    page.word(MAP_WORD + (bit / WORD_BITS) as usize) >> (bit % WORD_BITS) & 1 == 1
}

/// Turns the bits from `first` on into `used`, if all of them are otherwise.
pub(super) fn set_bits(
    page: &mut PageMut<'_>,
    first: u32,
    count: u32,
    used: bool,
) -> Result<(), &'static str> {
    let end = u64::from(first) + u64::from(count);
    if end > ((page.len() - MAP_AT) * 8) as u64 {
        return Err("the bits lie beyond the map page");
    }
    for (index, mask) in masks(first, count) {
        let word = page.as_ref().word(index);
        if word & mask != if used { 0 } else { mask } {
            return Err(if used {
                "a page is given out twice"
            } else {
                "a page is freed twice"
            });
        }
    }
    for (index, mask) in masks(first, count) {
        page.set_word(index, page.as_ref().word(index) ^ mask);
    }
    Ok(())
}

/// Words of the page that hold the bits, each with the mask of those bits.
fn masks(first: u32, count: u32) -> impl Iterator<Item = (usize, u64)> {
    let end = first + count;
    let mut bit = first;
    std::iter::from_fn(move || {
        if bit == end {
            return None;
        }
        let inside = bit % WORD_BITS;
        let run = (WORD_BITS - inside).min(end - bit);
        let mask = (u64::MAX >> (WORD_BITS - run)) << inside;
        let index = MAP_WORD + (bit / WORD_BITS) as usize;
        bit += run;
        Some((index, mask))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_pool::PageBuffer;

    #[test]
    fn bits_flip_once_and_only_in_range() {
        let mut page = PageBuffer::zeroed(PageSize::MIN);
        let bits = map_bits(PageSize::MIN) as u32;
        set_bits(&mut page.as_mut(), 60, 70, true).unwrap();
        for bit in 0..200 {
            assert_eq!(
                map_is_used(page.as_ref(), bit),
                (60..130).contains(&bit),
                "{bit}"
            );
        }
        assert_eq!(
            set_bits(&mut page.as_mut(), 129, 2, true),
            Err("a page is given out twice")
        );
        assert_eq!(
            set_bits(&mut page.as_mut(), 129, 2, false),
            Err("a page is freed twice")
        );
        set_bits(&mut page.as_mut(), bits - 1, 1, true).unwrap();
        assert!(set_bits(&mut page.as_mut(), bits - 1, 2, false).is_err());
        assert!(set_bits(&mut page.as_mut(), u32::MAX, u32::MAX, true).is_err());
        set_bits(&mut page.as_mut(), 60, 70, false).unwrap();
        assert!((0..200).all(|bit| !map_is_used(page.as_ref(), bit)));
    }
}

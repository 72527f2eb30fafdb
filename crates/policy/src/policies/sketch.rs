//! A count-min sketch of 4-bit counters that age: how often pages were used lately, about.
//!
//! A page has four counters, one in each row, found by hashing its number; its count is the least of them, for others
//! can only add to a counter. After `SAMPLE` counted uses for each word of the sketch all counters are halved, so that
//! what was used long ago fades.
//!
//! The rows are interleaved: a block of eight words, as much as a cache line holds, has two words of each row, and a
//! page's counters are all in one block. A use touches one line of memory.
//!
//! # Source
//! G. Cormode, S. Muthukrishnan: An Improved Data Stream Summary: the Count-Min Sketch. Journal of Algorithms 55(1),
//! 2005. Ageing: G. Einziger, R. Friedman, B. Manes: TinyLFU, section 3.3 (see `w_tiny_lfu.rs`). We differ: blocks.

use longshore_base::PageId;

/// Uses counted for each word between two halvings.
const SAMPLE: u64 = 10;

const ROWS: u32 = 4;
const BLOCK: usize = 8;
const COUNTER_BITS: u32 = 4;
const COUNTER_MAX: u64 = (1 << COUNTER_BITS) - 1;
/// All bits of counters but their highest.
const HALF_MASK: u64 = 0x7777_7777_7777_7777;
const LOWEST_BITS: u64 = 0x1111_1111_1111_1111;

/// See the head of the file.
pub(crate) struct Sketch {
    /// Sixteen counters in a word; a power of two of blocks.
    blocks: Vec<[u64; BLOCK]>,
    /// Uses counted since the counters were halved, less what halving took from the count.
    counted: u64,
    counted_max: u64,
}

impl Sketch {
    /// For a pool of so many frames: a word for each at least.
    /// The most bytes for a frame, where there are some.
    pub(crate) const FRAME_BYTES: usize = 2 * size_of::<u64>();

    /// Memory held.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.blocks)
    }

    pub(crate) fn new(frames: u32) -> Sketch {
        let blocks = (frames as usize).div_ceil(BLOCK).next_power_of_two();
        Sketch {
            blocks: vec![[0; BLOCK]; blocks],
            counted: 0,
            counted_max: SAMPLE * (blocks * BLOCK) as u64,
        }
    }

    /// Counts a use of `page`.
    #[inline]
    pub(crate) fn count(&mut self, page: PageId) {
        let (block, hash) = self.place(page);
        let block = &mut self.blocks[block];
        let mut is_counted = false;
        for row in 0..ROWS {
            let (word, shift) = counter(row, hash);
            if (block[word] >> shift) & COUNTER_MAX < COUNTER_MAX {
                block[word] += 1 << shift;
                is_counted = true;
            }
        }
        self.counted += u64::from(is_counted);
        if self.counted >= self.counted_max {
            self.halve();
        }
    }

    /// About how often `page` was used lately; 15 at most.
    pub(crate) fn estimate(&self, page: PageId) -> u64 {
        let (block, hash) = self.place(page);
        let counts = (0..ROWS).map(|row| {
            let (word, shift) = counter(row, hash);
            (self.blocks[block][word] >> shift) & COUNTER_MAX
        });
        counts.min().unwrap_or(0)
    }

    /// The block of a page, and the bits that choose its counters there.
    fn place(&self, page: PageId) -> (usize, u32) {
        let hash = mix(page.get());
        (hash as usize & (self.blocks.len() - 1), (hash >> 32) as u32)
    }

    /// An odd counter loses half a use when it is halved, and a use is counted in four of them.
    fn halve(&mut self) {
        let mut odd = 0;
        for word in self.blocks.as_flattened_mut() {
            odd += u64::from((*word & LOWEST_BITS).count_ones());
            *word = (*word >> 1) & HALF_MASK;
        }
        self.counted = self.counted.saturating_sub(odd / u64::from(ROWS)) / 2;
    }
}

/// The word and the place in it of a row's counter: five bits of the hash choose one of 32.
#[inline]
fn counter(row: u32, hash: u32) -> (usize, u32) {
    let choice = hash >> (row * 8);
    let word = 2 * row + (choice & 1);
    (word as usize, ((choice >> 1) & 15) * COUNTER_BITS)
}

/// Spreads a page's number over all bits of a word (the end of Steele's SplitMix).
#[inline]
fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_never_low_and_mostly_right() {
        let mut sketch = Sketch::new(1000);
        let uses = |page: u64| page % 7;
        for page in 0..1000 {
            (0..uses(page)).for_each(|_| sketch.count(PageId::new(page)));
        }
        let estimates = (0..1000).map(|page| (uses(page), sketch.estimate(PageId::new(page))));
        let right = estimates.inspect(|&(uses, estimate)| assert!(estimate >= uses));
        let right = right.filter(|&(uses, estimate)| estimate == uses).count();
        assert!(right > 990, "{right}");
    }

    #[test]
    fn counters_stop_at_their_greatest_and_are_halved_after_a_sample() {
        let mut sketch = Sketch::new(16);
        let page = PageId::new(7);
        (0..20).for_each(|_| sketch.count(page));
        assert_eq!((sketch.estimate(page), sketch.counted), (15, 15));
        for other in 0..145 {
            sketch.count(PageId::new(1000 + other));
        }
        assert!(sketch.counted < 80, "{}", sketch.counted);
        assert_eq!(sketch.estimate(page), 7);
    }
}

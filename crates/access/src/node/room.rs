//! Room in a node: what fits, what must split, and where; and the limits on keys and values.

use longshore_base::PageSize;
use longshore_pool::PageRef;

use super::image::prefix_len;
use super::layout::{HEADER_BYTES, RECORD_HEADER, SLOT_WORD, WORD, padded, words};
use super::read::NodeRef;

/// What it takes to put a row into a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// It fits as things stand.
    Fits,
    /// It fits once the heap is compacted, which the change itself does.
    Compact,
    /// It fits only after a split.
    Split,
}

impl Room {
    /// Whether the change may go ahead without a split.
    pub fn is_there(self) -> bool {
        self != Room::Split
    }
}

/// The greatest keys and values of a page size.
///
/// Chosen so that any two rows fit into a node together with its fences, if the key of one is the
/// low fence: then a node that has no room for a row can always be split at one of its own keys,
/// until it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    page_bytes: usize,
}

impl Limits {
    /// The limits for pages of `page_size`.
    pub const fn new(page_size: PageSize) -> Limits {
        Limits {
            page_bytes: page_size.bytes(),
        }
    }

    /// The limits for pages of the size of `page`.
    pub(crate) fn of_page(page: PageRef<'_>) -> Limits {
        Limits {
            page_bytes: page.len(),
        }
    }

    /// Longest key in bytes: a quarter of the page.
    pub const fn key_max(self) -> usize {
        self.page_bytes / 4
    }

    /// Longest value, in bytes, that a leaf holds beside a key of `key_len` bytes: at most a
    /// quarter of the page, and less for keys longer than about an eighth.
    pub const fn inline_max(self, key_len: usize) -> usize {
        let quarter = self.page_bytes / 4;
        let left = self.row_max().saturating_sub(key_len);
        if left < quarter { left } else { quarter }
    }

    /// Greatest sum of key and inline value: two such rows and one greatest key fill a page.
    const fn row_max(self) -> usize {
        let slots_and_headers = 2 * (WORD + RECORD_HEADER);
        let padding = 4 * (WORD - 1);
        (self.page_bytes - HEADER_BYTES - self.key_max() - slots_and_headers - padding) / 2
    }
}

/// Bytes that a record takes in the heap.
pub(super) const fn record_bytes(suffix_len: usize, value_len: usize) -> usize {
    padded(RECORD_HEADER + suffix_len + value_len)
}

impl NodeRef<'_> {
    /// Bytes free for rows, slots and padding, fragments included.
    pub fn free_bytes(&self) -> usize {
        let taken = SLOT_WORD + self.count();
        let free = self.shape.heap_start as usize + self.shape.garbage as usize;
        free.saturating_sub(taken) * WORD
    }

    /// Bytes that rows, slots and fences take: what a merge must find room for.
    pub fn used_bytes(&self) -> usize {
        (self.page.len() - HEADER_BYTES).saturating_sub(self.free_bytes())
    }

    /// Bytes that one row with a key of `key_len` bytes takes in this node, its slot included.
    pub fn row_bytes(&self, key_len: usize, value_len: usize) -> usize {
        let suffix_len = key_len.saturating_sub(self.fences.prefix as usize);
        WORD + record_bytes(suffix_len, value_len)
    }

    /// Bytes that purging the ghosts would free.
    pub fn ghost_bytes(&self) -> usize {
        let ghosts = (0..self.count()).filter(|&slot| self.is_ghost(slot));
        ghosts
            .map(|slot| WORD + self.stored_words(slot) * WORD)
            .sum()
    }

    /// Whether this node has room for all that `right`, its right neighbour, holds.
    ///
    /// Exact: it counts what the rows of both take with the fences that the merged node has.
    pub fn can_absorb(&self, right: &NodeRef<'_>) -> bool {
        let (low, upper) = (self.low(), right.upper());
        let prefix = prefix_len(&low, upper.as_deref());
        let fences = padded(low.len()) + padded(upper.as_ref().map_or(0, Vec::len));
        let rows = self.bytes_with_prefix(prefix, true) + right.bytes_with_prefix(prefix, false);
        HEADER_BYTES + fences + rows <= self.page.len()
    }

    /// Bytes that the rows would take if records left out `prefix` bytes of their keys;
    /// `keep_low` says whether the low fence stays, so that a key equal to it is still not stored.
    fn bytes_with_prefix(&self, prefix: usize, keep_low: bool) -> usize {
        let own_prefix = self.fences.prefix as usize;
        let row = |index: usize| {
            let slot = self.slot(index);
            let key_len = own_prefix + self.suffix_span(slot).1;
            let stored = if slot.is_low() && keep_low {
                0
            } else {
                key_len.saturating_sub(prefix)
            };
            WORD + record_bytes(stored, self.record_header(slot).value_len as usize)
        };
        (0..self.count()).map(row).sum()
    }

    /// What it takes to insert a row.
    #[inline]
    pub fn room_for_insert(&self, key_len: usize, value_len: usize) -> Room {
        self.room_for(self.row_bytes(key_len, value_len), 0)
    }

    /// What it takes to give the row in `slot` a value of `value_len` bytes.
    #[inline]
    pub fn room_for_update(&self, slot: usize, value_len: usize) -> Room {
        let old = self.stored_words(slot) * WORD;
        let new = record_bytes(self.slot(slot).stored_len(), value_len);
        if new <= old {
            Room::Fits
        } else {
            self.room_for(new, old)
        }
    }

    /// What it takes to add an entry to a branch.
    #[inline]
    pub fn room_for_child(&self, key_len: usize) -> Room {
        self.room_for_insert(key_len, WORD)
    }

    /// The slot at which to split so that a row of `key_len` and `value_len` bytes may go before
    /// slot `position`, or where [`find`](Self::find) met it; the slot's key becomes the fence.
    ///
    /// At the end of the node the split is at the last slot, so that ascending loads leave full
    /// pages behind, and at its start behind the first, for descending ones. In the middle an ascending
    /// run goes on in a node that ends where the run is, and fills up. Elsewhere the split halves the
    /// bytes. One split need not be enough when rows differ much in size: ask again.
    ///
    /// Of several rows one at least stays. What goes then fits its page: the fence that the key of
    /// the split becomes may take up to 14 bytes more, padding included, than it saves in the
    /// record; the row that stays leaves 16 free.
    ///
    /// `None` when no slot can serve, because no key is above the low fence. By the
    /// [`Limits`], a row that obeys them then fits.
    pub fn split_slot(&self, position: usize, key_len: usize, value_len: usize) -> Option<usize> {
        let count = self.count();
        let first = usize::from(count > 0 && self.slot(0).is_low());
        if first >= count {
            return None;
        }
        if position >= count {
            return Some(count - 1);
        }
        if self.is_behind_run(position) {
            return Some(position);
        }
        let least = first.max(usize::from(count > 1));
        if position <= first && first == 0 {
            return Some(least);
        }
        let new_bytes = self.row_bytes(key_len, value_len);
        let row = |slot: usize| WORD + self.stored_words(slot) * WORD;
        let half = ((0..count).map(row).sum::<usize>() + new_bytes) / 2;
        let mut left = 0;
        for slot in 0..count {
            left += row(slot) + if slot == position { new_bytes } else { 0 };
            if left > half {
                return Some(slot.clamp(least, count - 1));
            }
        }
        Some(count - 1)
    }

    /// Whether the two rows before slot `position` are the newest of the node and came in that order,
    /// as their records' places tell. A hint: rebuilds put the last rows there.
    fn is_behind_run(&self, position: usize) -> bool {
        let newest = self.shape.heap_start as usize * WORD;
        position >= 2
            && self.slot(position - 1).record_at() == newest
            && self.slot(position - 2).record_at()
                == newest + self.stored_words(position - 1) * WORD
    }

    #[inline]
    fn room_for(&self, bytes: usize, freed: usize) -> Room {
        let free = self.free_bytes();
        let contiguous = free.saturating_sub(self.shape.garbage as usize * WORD);
        if bytes <= contiguous {
            Room::Fits
        } else if bytes <= free + freed {
            Room::Compact
        } else {
            Room::Split
        }
    }

    /// Words that the record in `slot` takes in the heap.
    #[inline]
    pub(super) fn stored_words(&self, slot: usize) -> usize {
        let slot = self.slot(slot);
        let value_len = self.record_header(slot).value_len as usize;
        words(record_bytes(slot.stored_len(), value_len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_two_rows_fit_beside_their_fences() {
        for bytes in [4096, 8192, 16384, 32768, 65536] {
            let limits = Limits::new(PageSize::new(bytes).unwrap());
            let room = bytes - HEADER_BYTES;
            for key in [0, 1, bytes / 8, limits.key_max()] {
                for other in [0, 1, bytes / 8, limits.key_max()] {
                    let first = WORD + record_bytes(0, limits.inline_max(key));
                    let second = WORD + record_bytes(other, limits.inline_max(other));
                    let fences = padded(key) + padded(limits.key_max());
                    assert!(first + second + fences <= room, "{bytes} {key} {other}");
                }
            }
            assert_eq!(limits.inline_max(8), bytes / 4);
            assert!(limits.inline_max(limits.key_max()) >= 64);
        }
    }
}

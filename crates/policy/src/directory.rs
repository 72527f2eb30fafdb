//! Where the ghosts are, by their pages: a hash table of numbers. The pages themselves are read where they are kept.
//!
//! Linear probing; at most half of the slots are used, so that probes are short and memory is known: at most 16 bytes for
//! each ghost that there was at a time. What is taken out leaves no mark: those behind it move up.

use longshore_base::PageId;

/// Numbers of ghosts, each under its page. Methods are told how to find a ghost's page.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// A power of two of them, or none.
    slots: Vec<u32>,
    len: usize,
}

const EMPTY: u32 = u32::MAX;
const SLOTS_MIN: usize = 16;

impl Directory {
    /// Bytes for each ghost, and for a table of few.
    pub(crate) const BYTES: usize = 4 * size_of::<u32>();

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of the slots.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u32>()
    }

    /// The ghost of `page`.
    pub(crate) fn find(&self, page: PageId, page_of: impl Fn(u32) -> PageId) -> Option<u32> {
        self.slot_of(page, page_of).map(|slot| self.slots[slot])
    }

    /// Files a ghost, whose page has none yet.
    pub(crate) fn insert(&mut self, ghost: u32, page_of: impl Fn(u32) -> PageId) {
        if 2 * (self.len + 1) > self.slots.len() {
            let doubled = (2 * self.slots.len()).max(SLOTS_MIN);
            let old = std::mem::replace(&mut self.slots, vec![EMPTY; doubled]);
            let used = old.into_iter().filter(|&ghost| ghost != EMPTY);
            used.for_each(|ghost| self.put(ghost, page_of(ghost)));
        }
        self.put(ghost, page_of(ghost));
        self.len += 1;
    }

    /// Drops the ghost of `page`, if there is one.
    pub(crate) fn remove(&mut self, page: PageId, page_of: impl Fn(u32) -> PageId) {
        let Some(mut hole) = self.slot_of(page, &page_of) else {
            return;
        };
        let mut at = self.behind(hole);
        while self.slots[at] != EMPTY {
            let home = self.home(page_of(self.slots[at]));
            // It may stand in the hole if that is no nearer to its home than it.
            if self.distance(home, at) >= self.distance(hole, at) {
                self.slots[hole] = self.slots[at];
                hole = at;
            }
            at = self.behind(at);
        }
        self.slots[hole] = EMPTY;
        self.len -= 1;
    }

    /// The ghosts, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.slots.iter().copied().filter(|&ghost| ghost != EMPTY)
    }

    fn slot_of(&self, page: PageId, page_of: impl Fn(u32) -> PageId) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let mut slot = self.home(page);
        while self.slots[slot] != EMPTY {
            if page_of(self.slots[slot]) == page {
                return Some(slot);
            }
            slot = self.behind(slot);
        }
        None
    }

    fn put(&mut self, ghost: u32, page: PageId) {
        let mut slot = self.home(page);
        while self.slots[slot] != EMPTY {
            slot = self.behind(slot);
        }
        self.slots[slot] = ghost;
    }

    fn home(&self, page: PageId) -> usize {
        hash(page.get()) as usize & (self.slots.len() - 1)
    }

    fn behind(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }

    /// Steps from one slot to another.
    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.slots.len() - 1)
    }
}

/// Hashes a page number: one multiplication, folded. Nobody chooses page numbers to harm us.
pub(crate) fn hash(page: u64) -> u64 {
    // 2^64 / golden ratio, an odd number whose bits follow no pattern.
    let product = u128::from(page) * 0x9e37_79b9_7f4a_7c15;
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_base::{Environment, SeededEnvironment};
    use std::collections::HashMap;

    #[test]
    fn it_is_a_map() {
        let seed = 20_261_122;
        println!("seed {seed}");
        let chance = SeededEnvironment::new(seed);
        // Ghost g is that of page `pages[g]`; few pages collide often.
        let mut pages = vec![PageId::NONE; 100];
        let mut model: HashMap<u64, u32> = HashMap::new();
        let mut directory = Directory::default();
        for _ in 0..100_000 {
            let page = chance.random() % 300;
            let ghost = (chance.random() % 100) as u32;
            let is_used = model.values().any(|&used| used == ghost);
            let found = directory.find(PageId::new(page), |ghost| pages[ghost as usize]);
            assert_eq!(found, model.get(&page).copied());
            if found.is_some() {
                directory.remove(PageId::new(page), |ghost| pages[ghost as usize]);
                model.remove(&page);
            } else if !is_used {
                pages[ghost as usize] = PageId::new(page);
                directory.insert(ghost, |ghost| pages[ghost as usize]);
                model.insert(page, ghost);
            }
            assert_eq!(directory.len(), model.len());
        }
        let mut filed: Vec<u32> = directory.iter().collect();
        let mut known: Vec<u32> = model.into_values().collect();
        filed.sort_unstable();
        known.sort_unstable();
        assert_eq!(filed, known);
        assert!(directory.bytes() <= 100 * Directory::BYTES);
    }
}

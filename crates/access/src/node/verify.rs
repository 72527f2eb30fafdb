//! The full check of one node: N1 to N7 of the module's header, by name.

use longshore_base::PageType;
use longshore_base::page::{FORMAT_VERSION, header};

use super::image::prefix_len;
use super::layout::{FOSTER_WORD, SLOT_WORD, WORD, first_word, words};
use super::read::NodeRef;

/// What is wrong with a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NodeDamage {
    /// The first invariant found broken, and where.
    pub reason: String,
}

impl NodeRef<'_> {
    /// Checks the whole node against every invariant that one page can show.
    ///
    /// Takes time in proportion to the page, on any content.
    ///
    /// # Errors
    /// [`NodeDamage`] with the first invariant found broken.
    pub fn verify(&self) -> Result<(), NodeDamage> {
        self.verify_header()?;
        self.verify_fences()?;
        self.verify_records()?;
        self.verify_keys()?;
        self.verify_level()
    }

    fn verify_header(&self) -> Result<(), NodeDamage> {
        check(self.page.page_type() == Some(PageType::Node), || {
            "it is not a node".into()
        })?;
        let format = self.page.u8(header::FORMAT);
        check(format == FORMAT_VERSION, || {
            format!("format version {format} is unknown")
        })?;
        let (count, all) = (self.shape.count as usize, self.count());
        check(count == all, || {
            format!("it claims {count} slots and has room for {all}")
        })?;
        let (slots_end, heap) = (SLOT_WORD + count, self.shape.heap_start as usize);
        check(slots_end <= heap, || {
            format!("slots end at word {slots_end}, heap starts at {heap}")
        })?;
        let fences = self.fences.bytes();
        let room = self.page.len() - slots_end * WORD;
        check(fences <= room, || {
            format!("fences of {fences} bytes overlap the slots")
        })?;
        check(heap * WORD <= self.low_at(), || {
            "N3: the heap starts inside the low fence".into()
        })?;
        let own = self.page.page_id().get();
        check(self.page.word(FOSTER_WORD) != own, || {
            "it is its own foster child".into()
        })
    }

    fn verify_fences(&self) -> Result<(), NodeDamage> {
        let (low, upper) = (self.low(), self.upper());
        check(upper.as_ref().is_none_or(|upper| *upper > low), || {
            "fences are out of order".into()
        })?;
        let (stored, longest) = (
            self.fences.prefix as usize,
            prefix_len(&low, upper.as_deref()),
        );
        check(stored <= longest, || {
            format!("N4: prefix of {stored} bytes, but the fences share {longest}")
        })?;
        let shared = self.heads().shared as usize;
        check((stored..=longest).contains(&shared), || {
            format!("N2: heads behind {shared} bytes, prefix of {stored}, fences share {longest}")
        })
    }

    fn verify_records(&self) -> Result<(), NodeDamage> {
        let end = self.low_at() / WORD;
        let mut spans: Vec<(usize, usize, usize)> = (0..self.count())
            .map(|index| {
                (
                    self.slot(index).record_at() / WORD,
                    self.stored_words(index),
                    index,
                )
            })
            .collect();
        let fence = self.fences.upper as usize;
        if fence > 0 {
            spans.push((self.upper_at() / WORD, words(fence), usize::MAX));
        }
        spans.sort_unstable();
        let mut free_from = self.shape.heap_start as usize;
        let mut live = 0;
        for (start, words, index) in spans {
            check(start >= free_from, || {
                format!("N3: the record of slot {index} overlaps another")
            })?;
            free_from = start + words;
            live += words;
            check(free_from <= end, || {
                format!("N3: the record of slot {index} leaves the heap")
            })?;
        }
        for index in 0..self.count() {
            let flags = self.record_header(self.slot(index)).flags;
            check(flags == flags.known(), || {
                format!("slot {index} has unknown flags")
            })?;
        }
        let (dead, garbage) = (
            end - self.shape.heap_start as usize - live,
            self.shape.garbage as usize,
        );
        check(dead == garbage, || {
            format!("N3: {dead} dead words, but {garbage} are counted")
        })
    }

    fn verify_keys(&self) -> Result<(), NodeDamage> {
        let (low, upper) = (self.low(), self.upper());
        let heads = self.heads();
        let mut previous: Option<Vec<u8>> = None;
        for index in 0..self.count() {
            let slot = self.slot(index);
            let key = self.key(index);
            let word = first_word(&key, heads.shared as usize);
            let (head, agrees) = match slot.is_low() {
                true => (0, true),
                false => (heads.head(word), heads.compare(word).is_eq()),
            };
            check(slot.head() == head && agrees, || {
                format!("N2: slot {index} has a wrong head")
            })?;
            check((key == low) == slot.is_low(), || {
                format!("N7: slot {index} stores its key wrongly")
            })?;
            check(key >= low, || {
                format!("N1: slot {index} is below the low fence")
            })?;
            let beyond = upper.as_ref().is_some_and(|upper| key >= *upper);
            check(!beyond, || {
                format!("N1: slot {index} is beyond the upper fence")
            })?;
            let in_order = previous.as_ref().is_none_or(|previous| *previous < key);
            check(in_order, || format!("N1: slot {index} is out of order"))?;
            previous = Some(key);
        }
        Ok(())
    }

    fn verify_level(&self) -> Result<(), NodeDamage> {
        if self.is_leaf() {
            return Ok(());
        }
        let starts_low = self.count() > 0 && self.slot(0).is_low();
        check(starts_low, || {
            "N6: the branch does not start at its low fence".into()
        })?;
        for slot in 0..self.count() {
            let len = self.value_len(slot);
            check(len == WORD, || {
                format!("N6: entry {slot} is {len} bytes, not a page id")
            })?;
            let plain = self.flags(slot).bits() == 0;
            check(plain, || format!("N6: entry {slot} of a branch has flags"))?;
        }
        Ok(())
    }
}

fn check(holds: bool, reason: impl FnOnce() -> String) -> Result<(), NodeDamage> {
    if holds {
        Ok(())
    } else {
        Err(NodeDamage { reason: reason() })
    }
}

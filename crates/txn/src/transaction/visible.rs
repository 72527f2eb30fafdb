//! The rows of one leaf as a snapshot sees them: those with a slot, and those that have none any more.
//!
//! # Protocol
//! Read the leaf, look each row up as the header of `version` says; among the slots, in the order of their
//! keys, the rows whose slots were purged (`version::removed`), which are asked for after the leaf was read.
//! Then make sure that the leaf has not changed.

use super::batch::{Batch, Direction};
use super::manager::Core;
use super::scan::{Range, Window};
use super::work::Work;
use crate::error::{Result, TxnError};
use crate::lock::{Dependency, LockName};
use crate::version::{ImageBuffer, Seen, Snapshot};
use longshore_access::{LeafRead, Patience, Slot, Tree};
use longshore_base::{StoreId, TxnId};
use std::ops::{Bound, ControlFlow};

/// Why the copying of a leaf has ended early.
enum Early {
    /// The batch is full.
    Full,
    Again,
    TooOld,
}

impl Work {
    /// Fills the batch; a large value's stub is left in `batch.large`.
    pub(super) fn visible_rows(
        &mut self,
        core: &Core,
        snapshot: &Snapshot,
        tree: Tree,
        range: Range<'_>,
        batch: &mut Batch,
    ) -> Result<()> {
        batch.clear();
        if range.is_empty() {
            return Ok(());
        }
        let mut patience = Patience::new();
        loop {
            let leaf = range.leaf(core, tree, &mut patience)?;
            batch.clear();
            let mut copying = Copying {
                core,
                snapshot,
                leaf: &leaf,
                store: tree.store,
                me: self.owner.txn(),
                image: &mut self.image,
                batch,
                dependency: Dependency::NONE,
            };
            let copied = copying.range(range, &mut self.key_buffer);
            let dependency = copying.dependency;
            if leaf.validate().is_err() {
                patience.lost();
                continue;
            }
            drop(leaf);
            match copied {
                ControlFlow::Continue(()) | ControlFlow::Break(Early::Full) => {}
                ControlFlow::Break(Early::Again) => {
                    patience.lost();
                    continue;
                }
                ControlFlow::Break(Early::TooOld) => return Err(TxnError::SnapshotTooOld),
            }
            core.check_snapshot(snapshot)?;
            self.owner.depend_on(dependency);
            return Ok(());
        }
    }
}

/// Copies rows of a leaf to a batch. They are of no use before the leaf is validated.
struct Copying<'a, 'l> {
    core: &'a Core,
    snapshot: &'a Snapshot,
    leaf: &'a LeafRead<'l>,
    store: StoreId,
    me: TxnId,
    image: &'a mut ImageBuffer,
    batch: &'a mut Batch,
    dependency: Dependency,
}

impl Copying<'_, '_> {
    /// Copies the rows in the leaf's part of the range.
    fn range(&mut self, range: Range<'_>, key: &mut Vec<u8>) -> ControlFlow<Early> {
        let window = range.window(self.leaf, key);
        if self.leaf.page_lsn() < self.snapshot.low {
            self.dependency = self.snapshot.covers;
            for at in window.slots(range.direction) {
                self.leaf.key_into(at, key);
                let is_large = self.batch.push_visible(self.leaf, at, key);
                self.go_on(is_large, key)?;
            }
        } else {
            let mut removed = self.removed(range, &window).into_iter().peekable();
            for at in window.slots(range.direction) {
                while let Some((_, gone)) = removed.next_if(|&(above, _)| match range.direction {
                    Direction::Forward => above <= at,
                    Direction::Reverse => above > at,
                }) {
                    self.row(None, &gone)?;
                }
                self.leaf.key_into(at, key);
                self.row(Some(at), key)?;
            }
            for (_, gone) in removed {
                self.row(None, &gone)?;
            }
        }
        self.batch.next = window.beyond(self.leaf, range.direction, key);
        ControlFlow::Continue(())
    }

    /// Copies the row of `key`, whose slot is `slot` if it has one.
    #[inline]
    fn row(&mut self, slot: Option<usize>, key: &[u8]) -> ControlFlow<Early> {
        let name = LockName::of_key(self.store, key);
        let (core, image) = (self.core, &mut *self.image);
        let seen = core
            .versions
            .look(&core.locks, self.snapshot, self.me, name, key, image);
        let is_large = match seen {
            Seen::InPage(own) => {
                self.dependency = self.dependency.and(own);
                slot.is_some_and(|at| self.batch.push_visible(self.leaf, at, key))
            }
            Seen::Image(own) => {
                self.dependency = self.dependency.and(own);
                self.batch.push_image(key, self.image)
            }
            Seen::Again => return ControlFlow::Break(Early::Again),
            Seen::TooOld => return ControlFlow::Break(Early::TooOld),
        };
        self.go_on(is_large, key)
    }

    /// Ends the batch behind `key` if it is full.
    fn go_on(&mut self, is_large: bool, key: &[u8]) -> ControlFlow<Early> {
        if is_large || self.batch.rows.len() >= self.batch.rows_max {
            self.batch.next = Some(Bound::Excluded(key.to_vec()));
            return ControlFlow::Break(Early::Full);
        }
        ControlFlow::Continue(())
    }

    /// The rows of the range without a slot, in the order of the scan, each with the slot above it.
    fn removed(&self, range: Range<'_>, window: &Window) -> Vec<(usize, Box<[u8]>)> {
        let list = &self.core.versions.past().removed;
        if !list.concerns(self.snapshot.at) {
            return Vec::new();
        }
        let (mut low, mut high) = (Vec::new(), Vec::new());
        let part = range.part_in(self.leaf, window, &mut low, &mut high);
        // A leaf that changes while it is read may say anything.
        if part.is_empty() {
            return Vec::new();
        }
        let keys = list.keys(self.store, part.low, part.high);
        let gone = keys
            .into_iter()
            .filter_map(|key| match self.leaf.find(&key) {
                Slot::Absent(above) => Some((above, key)),
                Slot::Present(_) | Slot::Ghost(_) => None,
            });
        let mut gone: Vec<_> = gone.collect();
        if range.direction == Direction::Reverse {
            gone.reverse();
        }
        gone
    }
}

impl Window {
    /// The slots of the window in the order of the scan.
    fn slots(&self, direction: Direction) -> impl Iterator<Item = usize> + use<> {
        let (start, end) = (self.start, self.end);
        (0..end - start).map(move |n| match direction {
            Direction::Forward => start + n,
            Direction::Reverse => end - 1 - n,
        })
    }
}

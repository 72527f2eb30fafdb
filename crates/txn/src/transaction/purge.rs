//! Purge rounds: giving back what committed deletes, drops and rollbacks have left.
//!
//! # Protocol
//! Transactions that have deleted rows leave hints, when they commit, about where ghosts are. A round
//! takes hints and asks the tree to purge there; the tree asks the lock manager about each ghost. The
//! hints are kept within bounds and lost at a crash: the tree also purges by itself when it needs
//! room, so a lost hint costs space until then, nothing else.
//!
//! Then the round looks through the GARBAGE tree, see `garbage`. One round runs at a time.

use super::manager::{Core, TransactionManager};
use crate::error::Result;
use longshore_access::{AccessError, Patience, Tree};
use longshore_base::sync::Mutex;
use std::collections::VecDeque;

/// Hints that wait for a round at most.
const HINTS_MAX: usize = 4096;
/// Hints that one transaction leaves at most.
const HINTS_OF_ONE_MAX: usize = 64;
/// Log space that a purge of one leaf, with its merges, claims.
const PURGE_BYTES: u64 = 4 << 10;
/// Leaves looked at for each step of a round.
const LEAVES_PER_STEP: usize = 8;

/// A range of keys among which ghosts may be that nobody needs any more.
#[derive(Clone, Debug)]
pub(crate) struct Hint {
    tree: Tree,
    low: Vec<u8>,
    high: Vec<u8>,
}

/// Notes that `key` has become a ghost. Keys that ascend share a hint.
pub(super) fn note_ghost(hints: &mut Vec<Hint>, tree: Tree, key: &[u8]) {
    let has_room = hints.len() < HINTS_OF_ONE_MAX;
    match hints.last_mut() {
        Some(last) if last.tree == tree && key >= last.low.as_slice() => last.reach(key),
        _ if has_room => hints.push(Hint {
            tree,
            low: key.to_vec(),
            high: key.to_vec(),
        }),
        Some(last) if last.tree == tree => last.low = key.to_vec(),
        _ => {}
    }
}

impl Hint {
    /// Moves the upper end up to `key` unless it is there already.
    fn reach(&mut self, key: &[u8]) {
        if key > self.high.as_slice() {
            self.high.clear();
            self.high.extend_from_slice(key);
        }
    }
}

/// The hints of all transactions that have ended.
#[derive(Debug, Default)]
pub(crate) struct GhostHints(Mutex<VecDeque<Hint>>);

impl GhostHints {
    /// Takes over the hints of a transaction; drops them when somebody else is at it, or too many wait.
    pub fn add(&self, hints: &mut Vec<Hint>) {
        if hints.is_empty() {
            return;
        }
        if let Some(mut queue) = self.0.try_lock() {
            let room = HINTS_MAX.saturating_sub(queue.len());
            queue.extend(hints.drain(..).take(room));
        }
    }

    fn next(&self) -> Option<Hint> {
        self.0.lock().pop_front()
    }

    fn put_back(&self, hint: Hint) {
        let mut queue = self.0.lock();
        if queue.len() < HINTS_MAX {
            queue.push_back(hint);
        }
    }

    fn len(&self) -> usize {
        self.0.lock().len()
    }
}

/// One round of at most `steps` steps; returns how many achieved something.
pub(super) fn round(manager: &TransactionManager, steps: usize) -> Result<usize> {
    let Some(_alone) = manager.core().purging.try_lock() else {
        return Ok(0);
    };
    let ghosts = purge_ghosts(manager.core(), steps)?;
    let garbage = super::garbage::collect(manager, steps.saturating_sub(ghosts))?;
    Ok(ghosts + garbage)
}

fn purge_ghosts(core: &Core, steps: usize) -> Result<usize> {
    let mut done = 0;
    let mut leaves = steps.saturating_mul(LEAVES_PER_STEP);
    // What must wait for a lock or a sync goes to the end of the queue; see each hint once a round.
    for _ in 0..core.ghosts.len() {
        if done >= steps || leaves == 0 {
            break;
        }
        let Some(mut hint) = core.ghosts.next() else {
            break;
        };
        match purge_range(core, &mut hint, steps - done, &mut leaves) {
            Ok(purged) => {
                done += purged.leaves;
                if !purged.is_finished {
                    core.ghosts.put_back(hint);
                }
            }
            // The tree was dropped and freed meanwhile: no ghosts are left.
            Err(AccessError::Corrupt(_)) => {}
            Err(AccessError::Pool(error)) if error.is_retryable() => {
                core.ghosts.put_back(hint);
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(done)
}

/// What became of a hint.
struct PurgedRange {
    /// Leaves from which something was purged.
    leaves: usize,
    /// Nothing is left that could be purged later.
    is_finished: bool,
}

/// Purges leaf after leaf of the hint's range. What is left of the range is left in the hint.
fn purge_range(
    core: &Core,
    hint: &mut Hint,
    steps: usize,
    leaves: &mut usize,
) -> std::result::Result<PurgedRange, AccessError> {
    let access = &core.access;
    let mut done = 0;
    let mut kept_at = None;
    while done < steps && *leaves > 0 {
        *leaves -= 1;
        let mut cx = access.system_context(PURGE_BYTES)?;
        let purged = hint.tree.purge(access, &mut cx, &hint.low)?;
        done += usize::from(purged.ghosts + purged.pages > 0);
        if purged.kept > 0 && kept_at.is_none() {
            kept_at = Some(hint.low.clone());
        }
        let next = upper_fence(core, hint.tree, &hint.low)?;
        match next.filter(|next| *next <= hint.high) {
            Some(next) => hint.low = next,
            None => {
                let is_finished = kept_at.is_none();
                hint.low = kept_at.unwrap_or_default();
                return Ok(PurgedRange {
                    leaves: done,
                    is_finished,
                });
            }
        }
    }
    if let Some(kept) = kept_at {
        hint.low = kept;
    }
    Ok(PurgedRange {
        leaves: done,
        is_finished: false,
    })
}

/// Where the leaf that owns `key` ends.
fn upper_fence(
    core: &Core,
    tree: Tree,
    key: &[u8],
) -> std::result::Result<Option<Vec<u8>>, AccessError> {
    let mut patience = Patience::new();
    let mut fence = Vec::new();
    loop {
        let leaf = tree.read_leaf_patiently(&core.access, key, &mut patience)?;
        let is_there = leaf.upper_fence_into(&mut fence);
        if leaf.validate().is_ok() {
            return Ok(is_there.then_some(fence));
        }
        patience.lost();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use longshore_base::{PageId, StoreId};

    #[test]
    fn ascending_ghosts_share_a_hint_and_hints_are_bounded() {
        let tree = |store| Tree {
            store: StoreId::new(store),
            root: PageId::new(9),
        };
        let mut hints = Vec::new();
        for key in 0..100u8 {
            note_ghost(&mut hints, tree(16), &[key]);
        }
        assert_eq!(hints.len(), 1);
        assert_eq!(
            (hints[0].low.as_slice(), hints[0].high.as_slice()),
            (&[0][..], &[99][..])
        );
        for key in (0..=255u8).rev() {
            note_ghost(&mut hints, tree(17), &[key]);
        }
        assert_eq!(hints.len(), HINTS_OF_ONE_MAX);
        assert_eq!(hints.last().unwrap().low, [0]);
        let queue = GhostHints::default();
        queue.add(&mut hints);
        assert_eq!(queue.len(), HINTS_OF_ONE_MAX);
    }
}

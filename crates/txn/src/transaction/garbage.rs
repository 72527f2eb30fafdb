//! The GARBAGE tree: chains and trees that no committed row refers to, until they are freed.
//!
//! # Protocol
//! Pages of a chain or tree are written by mini-transactions, which no rollback takes back. So that
//! none is ever lost, a row of the GARBAGE tree says what is to be freed:
//!
//! | event | rows of the GARBAGE tree |
//! |---|---|
//! | a chain or tree is to be made | `announce`: its row is inserted and *committed* on its own, before the first page; the user's transaction holds its lock |
//! | the user's row refers to it | `retract`: the row is deleted in the user's transaction |
//! | the user's row no longer refers to it | `enlist`: the row is inserted in the user's transaction |
//!
//! So whatever becomes of the user's transaction, the row is there exactly when nobody refers to the
//! pages. A purge round locks a row without waiting; if it is there then, it is committed. If a snapshot is
//! open that does not see that commit, it may need the pages, and the row is left to a later round. The
//! round frees page after page, each in one mini-transaction, and deletes the row last. After a crash in
//! between it begins again, and finds what is left by its identity: a chain has an id that no
//! other ever has, and a store is never used again.
//!
//! The tree is read without locks on gaps: a row that a round misses is found by the next.
//!
//! A key is `kind u8, store u32, page u64, born u64`, big-endian; values are empty.

use super::Transaction;
use super::manager::{Core, TransactionManager};
use super::statement::{Change, Stored};
use super::undo;
use super::work::Work;
use crate::error::{Result, TxnError};
use crate::lock::LockName;
use longshore_access::overflow::{self, ChainId};
use longshore_access::{
    AccessError, Corruption, Freeing, LogContext, PageSet, Patience, RowFlags, Tree,
    verify_dropped_chain,
};
use longshore_base::{Lsn, PageId, StoreId, crash_point};

/// Bytes of a key.
const KEY_BYTES: usize = 1 + 4 + 8 + 8;
const CHAIN: u8 = 1;
const TREE: u8 = 2;

/// Pages that one step frees.
const PAGES_PER_STEP: usize = 16;
/// Log space that a step claims ahead.
const STEP_BYTES: u64 = 2 << 10;

/// Something that takes up pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Item {
    Chain(StoreId, ChainId),
    Tree(Tree),
}

impl Item {
    fn key(self) -> [u8; KEY_BYTES] {
        let (kind, store, page, born) = match self {
            Item::Chain(store, chain) => (CHAIN, store, chain.first, chain.born),
            Item::Tree(tree) => (TREE, tree.store, tree.root, Lsn::ZERO),
        };
        let mut key = [0; KEY_BYTES];
        key[0] = kind;
        key[1..5].copy_from_slice(&store.get().to_be_bytes());
        key[5..13].copy_from_slice(&page.get().to_be_bytes());
        key[13..21].copy_from_slice(&born.get().to_be_bytes());
        key
    }

    fn of_key(key: &[u8]) -> Option<Item> {
        let key: &[u8; KEY_BYTES] = key.try_into().ok()?;
        let store = StoreId::new(u32::from_be_bytes(key[1..5].try_into().ok()?));
        let page = PageId::new(u64::from_be_bytes(key[5..13].try_into().ok()?));
        let born = Lsn::new(u64::from_be_bytes(key[13..21].try_into().ok()?));
        match key[0] {
            CHAIN => Some(Item::Chain(store, ChainId { first: page, born })),
            TREE => Some(Item::Tree(Tree { store, root: page })),
            _ => None,
        }
    }

    fn free_step(
        self,
        core: &Core,
        cx: &mut LogContext,
    ) -> std::result::Result<Freeing, AccessError> {
        match self {
            Item::Chain(store, chain) => {
                overflow::free_step(&core.access, cx, store, chain, PAGES_PER_STEP)
            }
            Item::Tree(tree) => tree.free_step(&core.access, cx, PAGES_PER_STEP),
        }
    }
}

const NOTHING: Stored<'static> = Stored {
    flags: RowFlags::NONE,
    bytes: &[],
};

impl Work {
    /// Creates a tree that is freed unless this transaction commits.
    pub fn create_tree(&mut self, core: &Core, store: StoreId) -> Result<Tree> {
        let mut cx = core.access.system_context(STEP_BYTES)?;
        let tree = Tree::create_announced(&core.access, &mut cx, store, |tree| {
            self.announce(core, Item::Tree(tree))
        })?;
        crash_point("tree.created");
        self.retract(core, Item::Tree(tree))?;
        Ok(tree)
    }

    /// Has the tree freed once this transaction has committed.
    pub fn drop_tree(&mut self, core: &Core, tree: Tree) -> Result<()> {
        self.enlist(core, Item::Tree(tree))
    }

    /// Lists `item`, of which no page exists yet, for good. The lock on the row stays with this
    /// transaction, so no purge round takes it for garbage before it is known whether it is.
    pub(super) fn announce(&mut self, core: &Core, item: Item) -> Result<()> {
        // Publishes this transaction's first position, which is at or below the records to come.
        self.context(core)?;
        let claim = core.log.claim(STEP_BYTES)?;
        let alone = LogContext::new(core.slots.next_id(self.slot), claim);
        let own = self.cx.replace(alone);
        let announced = self.announce_alone(core, item);
        self.cx = own;
        announced
    }

    /// Inserts the row and commits it, in a log context of its own.
    fn announce_alone(&mut self, core: &Core, item: Item) -> Result<()> {
        self.enlist(core, item)?;
        crash_point("garbage.announced");
        match self.log_commit(core) {
            Ok(_) => Ok(()),
            Err(error) => {
                let cx = self.cx.as_mut().expect("it has logged the row");
                undo::undo_all(core, cx, &mut self.ghosts)?;
                Err(error)
            }
        }
    }

    /// Lists `item` if this transaction commits.
    pub(super) fn enlist(&mut self, core: &Core, item: Item) -> Result<()> {
        self.store_row(
            core,
            core.options.garbage,
            &item.key(),
            NOTHING,
            Change::Put,
        )?;
        Ok(())
    }

    /// Takes `item` off the list if this transaction commits.
    pub(super) fn retract(&mut self, core: &Core, item: Item) -> Result<()> {
        self.delete(core, core.options.garbage, &item.key())?;
        Ok(())
    }
}

/// Adds the pages of all that is listed, committed or not, to `pages`; returns those that were there already, or
/// cannot be read. Nobody may change anything meanwhile.
pub(super) fn verify(core: &Core, pages: &mut PageSet) -> Result<Vec<Corruption>> {
    let mut problems = Vec::new();
    let mut from = Some(Vec::new());
    while let Some(low) = from {
        let listed = list(core, &low)?;
        for item in listed.keys.iter().filter_map(|key| Item::of_key(key)) {
            problems.append(&mut match item {
                Item::Chain(store, chain) => {
                    verify_dropped_chain(&core.access, store, chain, pages)?
                }
                Item::Tree(tree) => tree.verify_dropped(&core.access, pages)?,
            });
        }
        from = listed.next;
    }
    Ok(problems)
}

/// Frees what is listed, in at most `steps` steps; returns how many were taken.
pub(super) fn collect(manager: &TransactionManager, steps: usize) -> Result<usize> {
    let mut done = 0;
    let mut from = Some(Vec::new());
    while let Some(low) = from.filter(|_| done < steps) {
        let listed = list(manager.core(), &low)?;
        for key in listed.keys {
            if done < steps {
                done += free(manager, &key, steps - done)?;
            }
        }
        from = listed.next;
    }
    Ok(done)
}

/// What one leaf of the GARBAGE tree lists, committed or not.
struct Listed {
    keys: Vec<Vec<u8>>,
    /// Where the next leaf begins.
    next: Option<Vec<u8>>,
}

/// Reads the leaf that owns `low`.
fn list(core: &Core, low: &[u8]) -> Result<Listed> {
    let mut patience = Patience::new();
    loop {
        let tree = core.options.garbage;
        let leaf = tree.read_leaf_patiently(&core.access, low, &mut patience)?;
        let keys = (0..leaf.count())
            .filter(|&slot| !leaf.is_ghost(slot))
            .map(|slot| {
                let mut key = Vec::with_capacity(KEY_BYTES);
                leaf.key_into(slot, &mut key);
                key
            })
            .collect();
        let mut fence = Vec::new();
        let is_last = !leaf.upper_fence_into(&mut fence);
        if leaf.validate().is_ok() {
            let next = (!is_last).then_some(fence);
            return Ok(Listed { keys, next });
        }
        patience.lost();
    }
}

/// Frees what the row lists, if that is committed, in at most `steps` steps.
fn free(manager: &TransactionManager, key: &[u8], steps: usize) -> Result<usize> {
    let core = manager.core();
    if !is_unseen(core, key) {
        return Ok(0);
    }
    let mut txn = match manager.begin() {
        // There is no hurry.
        Err(TxnError::TooManyTransactions { .. }) => return Ok(0),
        begun => begun?,
    };
    let Some(item) = lock_row(&mut txn, core, key)? else {
        return Ok(0);
    };
    // Again: now it is known that whoever has listed it has committed.
    if !is_unseen(core, key) {
        return Ok(0);
    }
    let mut cx = core.access.system_context(STEP_BYTES)?;
    for step in 1..=steps {
        if item.free_step(core, &mut cx)? == Freeing::Done {
            crash_point("garbage.freed");
            txn.delete(core.options.garbage, key)?;
            let _ = txn.commit(longshore_log::Level::None)?;
            return Ok(step);
        }
    }
    txn.rollback()?;
    Ok(steps)
}

/// Whether no snapshot needs what the row lists: all see the commit that has listed it.
fn is_unseen(core: &Core, key: &[u8]) -> bool {
    let name = LockName::of_key(core.options.garbage.store, key);
    let listed = core.locks.key_writer(name).last_commit;
    core.versions.past().registry.all_see(listed.lsn())
}

/// Locks the row without waiting; what it lists if it is there.
fn lock_row(txn: &mut Transaction, core: &Core, key: &[u8]) -> Result<Option<Item>> {
    txn.set_lock_wait(std::time::Duration::ZERO);
    match txn.get_for_update(core.options.garbage, key) {
        Ok(found) => Ok(found.and_then(|_| Item::of_key(key))),
        // The transaction that listed it has not ended.
        Err(error) if error.ends_transaction() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_what_they_were_made_of() {
        let store = StoreId::new(17);
        let chain = ChainId {
            first: PageId::new(77),
            born: Lsn::new(640),
        };
        for item in [
            Item::Chain(store, chain),
            Item::Tree(Tree {
                store,
                root: PageId::new(5),
            }),
        ] {
            assert_eq!(Item::of_key(&item.key()), Some(item));
        }
        assert_eq!(Item::of_key(b"something else"), None);
    }
}

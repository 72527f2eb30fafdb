//! Loading many rows that come in key order.
//!
//! # Protocol
//! Rows gather in memory until a leaf is full. Then one mini-transaction writes the last leaf of the tree
//! whole, adds a new last leaf with the rows gathered behind it, and gives their parent its entry. The
//! tree is sound after each of them, and holds every row that it held before: rows that stood in the
//! last leaf when the load began may refer to chains, which would be lost with them.
//!
//! No row is logged by itself, and nothing is undone: the rows are there at once, for everybody. The
//! caller keeps others away (a table lock), and drops the tree if the load is not to be. Rows
//! that the tree has already must lie before the first row loaded.

use super::Tree;
use super::descent::Seek;
use crate::access::{Access, LogContext};
use crate::action::PageAction;
use crate::error::AccessError;
use crate::mtr::{MiniTransaction, Steps};
use crate::node::{ImageBuf, NodeBuilder, NodeRef, RowFlags};
use longshore_pool::ExclusiveGuard;

const LOAD: Steps = Steps::new("bulk_load.latched", "bulk_load.logged", "bulk_load.applied");

/// Percentage of a page that a load fills: a little is left for rows that come later.
const FILL: usize = 94;

/// What a load did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Rows added.
    pub rows: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
}

impl Tree {
    /// Adds rows whose keys ascend strictly and lie above all keys of the tree.
    ///
    /// Not undone by rollback: see the module's header for what the caller must see to.
    ///
    /// # Errors
    /// The first error of `rows`; [`AccessError::NotAscending`]; or when a row is too long, or space,
    /// log or a page cannot be had. The rows before it may be in the tree then.
    pub fn bulk_load<K, V, E>(
        &self,
        access: &Access,
        cx: &mut LogContext,
        rows: impl IntoIterator<Item = Result<(K, RowFlags, V), E>>,
    ) -> Result<Loaded, E>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
        E: From<AccessError>,
    {
        let mut load = Load::begin(self, access)?;
        for row in rows {
            let (key, flags, value) = row?;
            load.push(cx, key.as_ref(), flags, value.as_ref())?;
        }
        Ok(load.finish(cx)?)
    }
}

/// A load that is under way.
struct Load<'a> {
    tree: Tree,
    access: &'a Access,
    builder: NodeBuilder,
    /// What the last leaf held before, where it was fuller than a load leaves it.
    pending: Option<ImageBuf>,
    /// Low fence of the last leaf, by which it is found again.
    low: Vec<u8>,
    last_key: Option<Vec<u8>>,
    loaded: Loaded,
}

impl<'a> Load<'a> {
    /// Takes up the content of the last leaf.
    fn begin(tree: &Tree, access: &'a Access) -> Result<Load<'a>, AccessError> {
        let leaf = tree
            .descend_shared(access, Seek::Last, 0)?
            .expect("every tree has a level 0");
        let node = NodeRef::new(leaf.page());
        let low = node.low();
        let fill_bytes = access.page_size.bytes() * FILL / 100;
        let mut builder = NodeBuilder::new(tree.store, 0, access.page_size, fill_bytes, &low);
        let mut pending = None;
        for slot in 0..node.count() {
            let full = builder.push(&node.key(slot), node.flags(slot), &node.value(slot));
            pending = pending.or(full);
        }
        let last_key = node.count().checked_sub(1).map(|slot| node.key(slot));
        let loaded = Loaded::default();
        Ok(Load {
            tree: *tree,
            access,
            builder,
            pending,
            low,
            last_key,
            loaded,
        })
    }

    fn push(
        &mut self,
        cx: &mut LogContext,
        key: &[u8],
        flags: RowFlags,
        value: &[u8],
    ) -> Result<(), AccessError> {
        self.access.check_row(key.len(), value.len())?;
        let is_behind = match &self.last_key {
            Some(last) => last.as_slice() < key,
            None => self.low.as_slice() <= key,
        };
        if !is_behind {
            return Err(AccessError::NotAscending {
                row: self.loaded.rows,
            });
        }
        if let Some(full) = self.pending.take() {
            self.write_full(cx, &full, &self.builder.gathered())?;
        }
        if let Some(full) = self.builder.push(key, flags, value) {
            self.write_full(cx, &full, &self.builder.gathered())?;
        }
        let last = self.last_key.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        self.loaded.rows += 1;
        self.loaded.bytes += (key.len() + value.len()) as u64;
        Ok(())
    }

    fn finish(mut self, cx: &mut LogContext) -> Result<Loaded, AccessError> {
        if self.loaded.rows == 0 {
            return Ok(self.loaded);
        }
        let (tree, page_size) = (self.tree, self.access.page_size);
        let nothing = NodeBuilder::new(tree.store, 0, page_size, 0, &[]);
        match std::mem::replace(&mut self.builder, nothing).finish(None) {
            (full, Some(last)) => self.write_full(cx, &full, &last)?,
            (last, None) => self.write_last(cx, &last)?,
        }
        Ok(self.loaded)
    }

    /// Writes the last leaf whole, and puts a new one behind it, which their parent gets to know.
    fn write_full(
        &mut self,
        cx: &mut LogContext,
        full: &ImageBuf,
        behind: &ImageBuf,
    ) -> Result<(), AccessError> {
        let image = full.as_image();
        let upper = image
            .upper
            .expect("a full leaf ends where the next row begins");
        let reserved = self.access.reserve_page(self.tree.store)?;
        let (parent, leaf) = self.latch_parent_and_leaf(cx, upper.len())?;
        let mut mtr = MiniTransaction::begin(self.access);
        mtr.change(
            parent,
            PageAction::InsertChild {
                key: upper,
                child: reserved.page(),
            },
        );
        mtr.change(leaf, PageAction::FormatNode(image));
        mtr.allocate(reserved, PageAction::FormatNode(behind.as_image()))?;
        mtr.commit(cx, &LOAD)?;
        self.low = upper.to_vec();
        Ok(())
    }

    /// Latches the last leaf and its parent, once the parent knows it and has room for one child more.
    fn latch_parent_and_leaf(
        &self,
        cx: &mut LogContext,
        key_len: usize,
    ) -> Result<(ExclusiveGuard<'a>, ExclusiveGuard<'a>), AccessError> {
        let tree = &self.tree;
        loop {
            let Some(parent) = tree.descend_exclusive(self.access, &self.low, 1)? else {
                tree.grow_leaf_root(self.access, cx)?;
                continue;
            };
            let branch = NodeRef::new(parent.page());
            if !branch.room_for_child(key_len).is_there() {
                drop(parent);
                tree.split_above(self.access, cx, &self.low, 1, key_len)?;
                drop(tree.write_leaf(self.access, &self.low)?);
                continue;
            }
            let leaf = tree.latch_child(self.access, branch.child_for(&self.low), 0)?;
            if NodeRef::new(leaf.page()).is_unbounded() {
                return Ok((parent, leaf));
            }
            // A chain from before the load. A writer's descent has its parent adopt, as above.
            drop((parent, leaf));
            drop(tree.write_leaf(self.access, &self.low)?);
        }
    }

    fn write_last(&self, cx: &mut LogContext, last: &ImageBuf) -> Result<(), AccessError> {
        let leaf = self.tree.descend_exclusive(self.access, &self.low, 0)?;
        let mut mtr = MiniTransaction::begin(self.access);
        mtr.change(
            leaf.expect("every tree has a level 0"),
            PageAction::FormatNode(last.as_image()),
        );
        mtr.commit(cx, &LOAD)?;
        Ok(())
    }
}

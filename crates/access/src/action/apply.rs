//! Actions at work: what each one demands of the page, and what it makes of it.

use longshore_base::page::{FORMAT_VERSION, header};
use longshore_base::{PageId, PageType, StoreId};
use longshore_pool::PageMut;

use super::{META_AT, PageAction, map};
use crate::node::{Limits, NodeImage, NodeMut, NodeRef, Owns, RowFlags};
use crate::overflow;

/// A page is not in the state that a change of it presumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("page {page} is corrupt: {reason}; restore it from a backup, or salvage with `dump`")]
pub struct Corrupt {
    /// The page.
    pub page: PageId,
    /// What is wrong with it.
    pub reason: &'static str,
}

type Outcome = Result<(), &'static str>;

impl PageAction<'_> {
    /// Makes the change in page `id`.
    ///
    /// The page LSN stays as it is: the caller stamps it.
    ///
    /// # Errors
    /// [`Corrupt`] when the page is not as the action presumes; the page is then unchanged.
    pub fn apply(&self, id: PageId, page: &mut PageMut<'_>) -> Result<(), Corrupt> {
        self.make(id, page)
            .map_err(|reason| Corrupt { page: id, reason })
    }

    /// Like [`apply`](Self::apply), for a row action that the caller has found to fit, and of which it has
    /// just found the slot ([`NodeRef::find`], in either arm), under the latch that it still holds: saves
    /// the second look. Other actions take no notice of `slot`.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    #[inline]
    pub fn apply_at(
        &self,
        id: PageId,
        page: &mut PageMut<'_>,
        slot: Result<usize, usize>,
    ) -> Result<(), Corrupt> {
        let done = match *self {
            PageAction::InsertRow { key, .. }
            | PageAction::UpdateRow { key, .. }
            | PageAction::Ghost { key }
            | PageAction::Revive { key }
            | PageAction::Purge { key } => {
                let node = NodeRef::new(page.as_ref());
                debug_assert_eq!(
                    node.owns(key),
                    Owns::Own,
                    "action A1: the leaf owns the key"
                );
                debug_assert_eq!(node.find(key), slot, "action A1: the slot is the key's");
                NodeMut::new(page).and_then(|leaf| self.change_row(leaf, slot))
            }
            _ => self.make(id, page),
        };
        done.map_err(|reason| Corrupt { page: id, reason })
    }

    fn make(&self, id: PageId, page: &mut PageMut<'_>) -> Outcome {
        match *self {
            PageAction::FormatNode(ref image) => NodeMut::format(page, id, image),
            PageAction::InsertRow { key, .. }
            | PageAction::UpdateRow { key, .. }
            | PageAction::Ghost { key }
            | PageAction::Revive { key }
            | PageAction::Purge { key } => {
                let leaf = node_at(page, Kind::Leaf)?;
                let slot = own_slot(leaf.node(), key)?;
                self.check_row(leaf.node())?;
                self.change_row(leaf, slot)
            }
            PageAction::SplitOff { key, foster } => split_off(NodeMut::new(page)?, key, foster),
            PageAction::InsertChild { key, child } => {
                let mut branch = node_at(page, Kind::Branch)?;
                match own_slot(branch.node(), key)? {
                    Ok(_) => Err("the branch has an entry with that key"),
                    Err(slot) => {
                        branch.insert(slot, key, RowFlags::NONE, &child.get().to_le_bytes())
                    }
                }
            }
            PageAction::RemoveChild { key } => {
                let mut branch = node_at(page, Kind::Branch)?;
                match own_slot(branch.node(), key)? {
                    Ok(0) => Err("the first entry of a branch cannot be removed"),
                    Ok(slot) => {
                        branch.remove(slot);
                        Ok(())
                    }
                    Err(_) => Err("the branch has no entry with that key"),
                }
            }
            PageAction::SetFoster { foster } => set_foster(NodeMut::new(page)?, foster),
            PageAction::ClearFoster => clear_foster(NodeMut::new(page)?),
            PageAction::Absorb(ref image) => absorb(NodeMut::new(page)?, image),
            PageAction::FormatMap => {
                reset(page, id, PageType::SpaceMap, StoreId::NONE);
                Ok(())
            }
            PageAction::SetMapBits { first, count, used } => {
                demand(page, PageType::SpaceMap, "it is not a map of used pages")?;
                map::set_bits(page, first, count, used)
            }
            PageAction::FreePage => {
                reset(page, id, PageType::Blank, StoreId::NONE);
                Ok(())
            }
            PageAction::OverflowImage {
                store,
                chain,
                index,
                next,
                bytes,
            } => {
                overflow::check_len(page.len(), bytes.len())?;
                reset(page, id, PageType::Overflow, store);
                overflow::put(page, chain, index, next, bytes);
                Ok(())
            }
            PageAction::OverflowLink { next } => {
                demand(
                    page,
                    PageType::Overflow,
                    "it is not a link of an overflow chain",
                )?;
                overflow::put_next(page, next);
                Ok(())
            }
            PageAction::FormatMeta => {
                reset(page, id, PageType::Meta, StoreId::NONE);
                Ok(())
            }
            PageAction::MetaSet { at, bytes } => {
                demand(page, PageType::Meta, "it is not the meta page")?;
                if (at as usize) < META_AT || at as usize + bytes.len() > page.len() {
                    return Err("the bytes lie outside the meta page's content");
                }
                page.copy_in(at as usize, bytes);
                Ok(())
            }
        }
    }

    /// Refuses rows that are longer than rows may be.
    fn check_row(&self, node: NodeRef<'_>) -> Outcome {
        let (key, value_len) = match *self {
            PageAction::InsertRow { key, value, .. } => (key, value.len()),
            PageAction::UpdateRow {
                key, kept, middle, ..
            } => (key, kept.bytes() + middle.len()),
            _ => return Ok(()),
        };
        let limits = Limits::of_page(node.page());
        if key.len() > limits.key_max() || value_len > limits.inline_max(key.len()) {
            return Err("the row is longer than rows may be");
        }
        Ok(())
    }

    /// Makes a row action at the slot where its key is or would be.
    #[inline]
    fn change_row(&self, mut leaf: NodeMut<'_, '_>, slot: Result<usize, usize>) -> Outcome {
        match (*self, slot) {
            (PageAction::InsertRow { key, flags, value }, Err(slot)) => {
                leaf.insert(slot, key, flags, value)
            }
            (PageAction::InsertRow { .. }, Ok(_)) => Err("the row to insert is there already"),
            (
                PageAction::UpdateRow {
                    flags,
                    kept,
                    middle,
                    ..
                },
                Ok(slot),
            ) => leaf.update(slot, flags, kept, middle),
            (PageAction::Ghost { .. }, Ok(slot)) => {
                let flags = leaf.node().flags(slot);
                if flags.is_ghost() {
                    return Err("the row to delete is a ghost already");
                }
                leaf.set_flags(slot, flags.with_ghost());
                Ok(())
            }
            (PageAction::Revive { .. }, Ok(slot)) => {
                let flags = leaf.node().flags(slot);
                if !flags.is_ghost() {
                    return Err("the row to revive is no ghost");
                }
                leaf.set_flags(slot, flags.without_ghost());
                Ok(())
            }
            (PageAction::Purge { .. }, Ok(slot)) => {
                if !leaf.node().is_ghost(slot) {
                    return Err("the row to purge is no ghost");
                }
                leaf.remove(slot);
                Ok(())
            }
            _ => Err("the row to change is missing"),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Leaf,
    Branch,
}

fn node_at<'m, 'p>(page: &'m mut PageMut<'p>, kind: Kind) -> Result<NodeMut<'m, 'p>, &'static str> {
    let node = NodeMut::new(page)?;
    match (kind, node.node().is_leaf()) {
        (Kind::Leaf, false) => Err("it is a branch, where a leaf should be"),
        (Kind::Branch, true) => Err("it is a leaf, where a branch should be"),
        _ => Ok(node),
    }
}

/// The slot of `key`, which must lie between the node's fences.
fn own_slot(node: NodeRef<'_>, key: &[u8]) -> Result<Result<usize, usize>, &'static str> {
    match node.owns(key) {
        Owns::Own => Ok(node.find(key)),
        _ => Err("the key lies outside the node's fences"),
    }
}

fn split_off(mut node: NodeMut<'_, '_>, key: &[u8], foster: PageId) -> Outcome {
    if foster == PageId::NONE {
        return Err("the right half of a split has no page");
    }
    match own_slot(node.node(), key)? {
        Ok(slot) => node.split_off(slot, key, foster),
        Err(_) => Err("the key to split at is missing"),
    }
}

fn set_foster(mut node: NodeMut<'_, '_>, foster: PageId) -> Outcome {
    if node.node().foster().is_some() {
        return Err("the node has a foster child already");
    }
    if node.node().is_unbounded() {
        return Err("the node reaches up to infinity and can have no right neighbour");
    }
    node.set_foster(foster);
    Ok(())
}

fn clear_foster(mut node: NodeMut<'_, '_>) -> Outcome {
    if node.node().foster().is_none() {
        return Err("the node has no foster child to let go");
    }
    node.set_foster(PageId::NONE);
    Ok(())
}

fn absorb(mut node: NodeMut<'_, '_>, right: &NodeImage<'_>) -> Outcome {
    let left = node.node();
    if left.level() != right.level {
        return Err("the neighbour to take in is at another level");
    }
    if left.upper().as_deref() != Some(right.low) {
        return Err("the node to take in is not the right neighbour");
    }
    node.absorb(right)
}

fn demand(page: &PageMut<'_>, page_type: PageType, reason: &'static str) -> Outcome {
    if page.as_ref().page_type() == Some(page_type) {
        Ok(())
    } else {
        Err(reason)
    }
}

/// Clears the page, but for its LSN, and writes a header.
fn reset(page: &mut PageMut<'_>, id: PageId, page_type: PageType, store: StoreId) {
    page.fill(0, header::LSN, 0);
    page.fill(header::STORE, page.len() - header::STORE, 0);
    page.set_u8(header::FORMAT, FORMAT_VERSION);
    page.set_u8(header::TYPE, page_type as u8);
    page.set_u64(header::ID, id.get());
    page.set_u32(header::STORE, store.get());
}

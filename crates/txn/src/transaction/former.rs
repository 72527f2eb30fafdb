//! What a row was before a transaction of the last run changed it, told by its records.
//!
//! # Protocol
//! A record holds what it changed, not all that was there: an update the stretch of the value that it replaced,
//! a deletion nothing. So the records are followed backwards, the last one first, and what each takes back is
//! noted; then the row as it is now is read, and the notes are applied to it in that order. Nobody else may
//! have changed it meanwhile.

use super::manager::Core;
use crate::error::{Result, TxnError};
use longshore_access::{
    AccessError, Corruption, Kept, Patience, RowFlags, RowOp, RowRecord, Slot, Tree, ValueKind,
};
use longshore_base::PageId;

/// What there was in the place of a row before its records, as far as they have been followed.
pub(super) enum Former {
    /// Nothing.
    Nothing,
    /// What is there now, taken back by these steps, one after the other.
    Row(Vec<Step>),
}

/// What one record takes back.
pub(super) enum Step {
    Update(RowFlags, Kept, Vec<u8>),
    Ghost,
    Revive,
}

impl Former {
    /// What was before `record`, given what was after it; `None`: no later record tells.
    pub fn before(after: Option<Former>, record: &RowRecord<'_>) -> Former {
        let Former::Row(mut steps) = after.unwrap_or(Former::Row(Vec::new())) else {
            return Former::Nothing;
        };
        steps.push(match record.op {
            RowOp::Insert => return Former::Nothing,
            RowOp::Update => Step::Update(record.old_flags, record.kept, record.old_value.to_vec()),
            RowOp::Ghost => Step::Ghost,
            RowOp::Revive => Step::Revive,
        });
        Former::Row(steps)
    }

    /// The row's image, its value in `value`; `None` where there was no row, or a ghost.
    pub fn image(
        &self,
        core: &Core,
        tree: Tree,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<Option<ValueKind>> {
        value.clear();
        let Former::Row(steps) = self else {
            return Ok(None);
        };
        let mut patience = Patience::new();
        let leaf = tree.read_leaf_patiently(&core.access, key, &mut patience)?;
        // Nobody else is at work.
        let (Slot::Ghost(slot) | Slot::Present(slot)) = leaf.find(key) else {
            return Err(contradiction(tree, leaf.page_id()));
        };
        let mut kind = leaf.value_into(slot, value);
        let mut is_ghost = leaf.is_ghost(slot);
        for step in steps {
            match step {
                Step::Update(flags, kept, middle) => {
                    if !kept.replace(value, middle) {
                        return Err(contradiction(tree, leaf.page_id()));
                    }
                    is_ghost = flags.is_ghost();
                    kind = match flags.is_overflow() {
                        true => ValueKind::Overflow,
                        false => ValueKind::Inline,
                    };
                }
                Step::Ghost => is_ghost = false,
                Step::Revive => is_ghost = true,
            }
        }
        Ok((!is_ghost).then_some(kind))
    }
}

#[cold]
fn contradiction(tree: Tree, page: PageId) -> TxnError {
    AccessError::Corrupt(Box::new(Corruption {
        page,
        store: tree.store,
        expected: String::from("a row as a prepared transaction left it"),
        found: String::from("another"),
    }))
    .into()
}

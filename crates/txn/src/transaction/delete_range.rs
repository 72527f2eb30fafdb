//! Deleting a range: leaf after leaf, row by row.

use super::batch::{Batch, Direction};
use super::manager::Core;
use super::scan::{Intent, Range};
use super::snapshot::Reads;
use super::work::Work;
use crate::error::Result;
use longshore_access::Tree;
use std::ops::Bound;

/// Rows that are locked before they are deleted.
const ROWS: usize = 256;

impl Work {
    /// Deletes the rows of the range; keeps it locked as a scan does, if the transaction reads under locks.
    pub fn delete_range(
        &mut self,
        core: &Core,
        tree: Tree,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
    ) -> Result<u64> {
        let mut batch = Batch::new();
        batch.rows_max = ROWS;
        let mut low = low.map(<[u8]>::to_vec);
        let statement = self.begin_statement(core)?;
        let mut deleted = 0;
        loop {
            let range = Range {
                low: low.as_ref().map(Vec::as_slice),
                high,
                direction: Direction::Forward,
            };
            match self.reads {
                Reads::Locked => self.lock_leaf(core, tree, range, Intent::Change, &mut batch)?,
                Reads::Snapshot(_) | Reads::Statements => {
                    self.in_snapshot(core, statement, |work, snapshot| {
                        work.visible_rows(core, snapshot, tree, range, &mut batch)
                    })?;
                }
            }
            for (key, _) in batch.rows() {
                deleted += u64::from(self.delete(core, tree, key)?);
            }
            match batch.next() {
                Some(next) => low = next.map(<[u8]>::to_vec),
                None => break,
            }
        }
        if let Some(statement) = statement {
            self.end_statement(core, statement);
        }
        Ok(deleted)
    }
}

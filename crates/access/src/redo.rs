//! Redo: applying to a page what a log record says, if the page does not know it yet.
//!
//! # Protocol
//! The engine reads records in log order and hands each change to [`Access::redo_page`], in that order
//! for each page; different pages may be redone in any order and in parallel. A page whose LSN is not
//! below the record's has the change already. A change that [resets](PageChange::resets_page) its page is
//! made without reading it, and may set it back; the records that follow bring it forward again. Records
//! before the last reset of a page may be skipped, and must be if the page is no longer in the file.

use crate::access::Access;
use crate::action;
use crate::bytes::Malformed;
use crate::error::AccessError;
use crate::record::{self, PageChange};
use longshore_base::{Lsn, PageId, StoreId};
use longshore_log::Record;

impl Access {
    /// Whether records of this kind change pages: those of this crate.
    pub fn has_redo(kind: u8) -> bool {
        matches!(kind, record::ROW | record::CLR | record::SMO)
    }

    /// Brings every page that `record` changes, and that `is_wanted`, to the record's state.
    /// Returns the number of pages that were changed.
    ///
    /// # Errors
    /// As [`Access::redo_page`].
    pub fn redo(
        &self,
        record: &Record,
        mut is_wanted: impl FnMut(PageId) -> bool,
    ) -> Result<usize, AccessError> {
        let changes = record::changes(record.kind, &record.body)
            .map_err(|malformed| AccessError::malformed(record.lsn, malformed))?;
        let mut redone = 0;
        for change in changes.iter().filter(|change| is_wanted(change.page)) {
            redone += usize::from(self.redo_page(record.lsn, change)?);
        }
        Ok(redone)
    }

    /// Makes one change of the record at `lsn`, unless the page has it already; true if it was made.
    ///
    /// # Errors
    /// When the page cannot be had, the record cannot be read, or they contradict each other.
    pub fn redo_page(&self, lsn: Lsn, change: &PageChange<'_>) -> Result<bool, AccessError> {
        let malformed = |why: Malformed| AccessError::malformed(lsn, why);
        let mut guard = if change.resets_page().map_err(malformed)? {
            self.pool.fix_new(change.page)?
        } else {
            let guard = self.pool.fix_exclusive(change.page)?;
            if guard.page().page_lsn() >= lsn {
                return Ok(false);
            }
            guard
        };
        for action in change.actions() {
            let action = action.map_err(malformed)?;
            action
                .apply(change.page, &mut guard.page_mut())
                .map_err(|why| contradiction(lsn, &why))?;
        }
        guard.stamp(lsn);
        Ok(true)
    }
}

#[cold]
fn contradiction(lsn: Lsn, why: &action::Corrupt) -> AccessError {
    let expected = format!("the page as it was before log record {lsn}");
    AccessError::corrupt(why.page, StoreId::NONE, expected, why.reason)
}

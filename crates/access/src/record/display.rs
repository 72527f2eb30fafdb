//! Records as a person reads them, for the `log` command.

use std::fmt;

use super::{CLR, PageChange, ROW, RowOp, RowRecord, changes};
use crate::action::Shown;
use crate::bytes::Malformed;

/// A record of this crate, for human eyes: one line, and one more for each further page.
pub struct Readable<'a> {
    /// Kind of the record.
    pub kind: u8,
    /// Body of the record.
    pub body: &'a [u8],
}

impl fmt::Display for Readable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.write(f) {
            Ok(outcome) => outcome,
            Err(malformed) => write!(f, "{malformed}"),
        }
    }
}

impl Readable<'_> {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> Result<fmt::Result, Malformed> {
        Ok(match self.kind {
            ROW => write!(f, "row {}", RowRecord::decode(self.body)?),
            CLR => {
                let (undo_next, row) = RowRecord::decode_clr(self.body)?;
                write!(f, "undo {row}; next to undo {undo_next}")
            }
            _ => write_changes(f, &changes(self.kind, self.body)?),
        })
    }
}

fn write_changes(f: &mut fmt::Formatter<'_>, changes: &[PageChange<'_>]) -> fmt::Result {
    write!(f, "structure change of {} pages", changes.len())?;
    for change in changes {
        write!(f, "\n    page {}:", change.page)?;
        for action in change.actions() {
            match action {
                Ok(action) => write!(f, " {action};")?,
                Err(malformed) => write!(f, " {malformed}")?,
            }
        }
    }
    Ok(())
}

impl fmt::Display for RowRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "store {} page {}: {}",
            self.store,
            self.page,
            self.action()
        )?;
        if self.op == RowOp::Update {
            write!(f, " (was {}{})", Shown(self.old_value), self.old_flags)?;
        }
        Ok(())
    }
}

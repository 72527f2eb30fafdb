//! One line on standard error that says what is being measured, when a person is watching.

use std::io::{IsTerminal, Write, stderr};

/// Ends the line when dropped.
pub(crate) struct Progress {
    is_watched: bool,
}

impl Progress {
    /// Silent unless standard error is a terminal.
    pub(crate) fn new() -> Progress {
        Progress {
            is_watched: stderr().is_terminal(),
        }
    }

    /// Replaces the line.
    pub(crate) fn say(&self, what: std::fmt::Arguments<'_>) {
        if self.is_watched {
            // The line is a courtesy; whoever closed standard error does not want it.
            let _ = write!(stderr(), "\r\x1b[K{what} ...");
        }
    }

    /// Clears the line, so that a result can be printed.
    pub(crate) fn clear(&self) {
        if self.is_watched {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

//! The pool's view of the log: may this page be written yet?

use crate::ids::Lsn;
use std::sync::Arc;

/// Answers for the write-ahead rule. The log implements it; the pool waits on it.
pub trait Durability: Send + Sync {
    /// Whether the whole record that starts at `lsn` is safe. True for [`Lsn::ZERO`].
    fn is_durable(&self, lsn: Lsn) -> bool;

    /// Returns once the whole record that starts at `lsn` is safe.
    ///
    /// # Errors
    /// [`DurabilityLost`] when the log can promise nothing any more; it stays so until reopened.
    fn make_durable(&self, lsn: Lsn) -> Result<(), DurabilityLost>;
}

/// The log has failed; nothing that is not durable yet will ever be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log failed and takes no more records until the database is reopened: {cause}")]
pub struct DurabilityLost {
    /// The failure that came first.
    pub cause: Arc<str>,
}

//! Where typed calls run.

use crate::database::Database;
use crate::error::Result;
use crate::table::Table;
use crate::transaction::Transaction;

/// Where a call on a [`TypedTable`](crate::TypedTable) runs: in a [`Transaction`]; or in the [`Database`], which
/// means in a transaction of its own that is committed at once, and run again when it had to give way.
pub trait Context: sealed::Sealed {
    /// The value of `key`.
    #[doc(hidden)]
    fn get_bytes(&self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Runs `body` in the transaction, or in one of its own.
    #[doc(hidden)]
    fn run<T>(&self, body: impl FnMut(&Transaction) -> Result<T>) -> Result<T>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::transaction::Transaction {}
    impl Sealed for crate::database::Database {}
}

impl Context for Transaction {
    fn get_bytes(&self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get(table, key)
    }

    fn run<T>(&self, mut body: impl FnMut(&Transaction) -> Result<T>) -> Result<T> {
        body(self)
    }
}

impl Context for Database {
    fn get_bytes(&self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get(table, key)
    }

    fn run<T>(&self, body: impl FnMut(&Transaction) -> Result<T>) -> Result<T> {
        self.update(body)
    }
}

//! Identifiers: newtypes, so that a page number is never taken for a log position.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($int:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name($int);

        impl $name {
            /// Wraps a raw number.
            pub const fn new(raw: $int) -> Self {
                Self(raw)
            }

            /// The raw number.
            pub const fn get(self) -> $int {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id! {
    /// Names a page: its position in the data file, counted in pages.
    PageId(u64), "page "
}

id! {
    /// A position in the log: the byte offset, in the endless stream, at which a record *starts*.
    Lsn(u64), "lsn "
}

id! {
    /// Names a transaction. Never reused within the life of a database.
    TxnId(u64), "txn "
}

id! {
    /// Names a tree (a table, or one of the engine's own). Never reused.
    StoreId(u32), "store "
}

impl PageId {
    /// The page that describes the file.
    pub const META: PageId = PageId(0);
    /// No page at all.
    pub const NONE: PageId = PageId(u64::MAX);
}

impl Lsn {
    /// Before every record; a page never changed, a transaction that has logged nothing.
    pub const ZERO: Lsn = Lsn(0);

    /// The position `bytes` further on.
    pub const fn plus(self, bytes: u64) -> Lsn {
        Lsn(self.0 + bytes)
    }
}

impl TxnId {
    /// Mini-transactions, which belong to no user transaction.
    pub const SYSTEM: TxnId = TxnId(0);
}

impl StoreId {
    /// Pages that belong to no tree.
    pub const NONE: StoreId = StoreId(0);
    /// The table of tables.
    pub const CATALOG: StoreId = StoreId(1);
    /// Chains and trees that no committed row refers to any more.
    pub const GARBAGE: StoreId = StoreId(2);
    /// The first store that a user's table may get.
    pub const FIRST_USER: StoreId = StoreId(16);
}

//! The table of tables, itself a table.
//!
//! | key                  | value                                                              |
//! |----------------------|--------------------------------------------------------------------|
//! | 0                    | {format u8 = 2, next store u32}                                    |
//! | 1, name of the table | {format u8 = 2, store u32, root page u64}, its indexes             |
//! | 2, store u32         | the first part, for a tree that is being loaded, without a name yet |
//!
//! An index is {flags u8: 1 unique, 2 ready; store u32, root page u64; length u8, name; length u8,
//! definition}. Integers of values are little-endian.
//!
//! # Protocol
//! Creating, dropping and renaming a table are transactions of their own on these rows; a crash
//! leaves the whole of it or nothing. The rows are the truth. The map in memory only makes sure that
//! all handles of a table share one [`TableState`]; it is changed after the commit. Whoever reads a row
//! into the map notes the map's generation first, and reads again when a table was dropped or renamed
//! meanwhile, so opening a table never waits for `ddl`.
//!
//! A new tree is entered in the table of garbage before it is built and taken out by the transaction
//! that names it in the catalog; a dropped one is entered by the transaction that takes its name
//! away. So whatever is not in the catalog is in the garbage, and the purger frees it piecemeal.
//! A load takes long, and no transaction shall be open so long: its tree stands in the catalog
//! under its store until it is given a name, or is found there when the database is next opened.
//!
//! # Invariants
//! I1. The next store is above the store of every table there ever was: stores are never reused.
//! I2. Each table has one state in the map at most, and its root is that of the catalog row.
//!
//! # Order
//! `ddl` is held for a whole change; while it is held, the gate of a table may be waited for.

use crate::error::{Error, Result};
use crate::table::{Table, TableState};
use longshore_access::Tree;
use longshore_base::sync::{Mutex, MutexGuard};
use longshore_base::{PageId, StoreId};
use std::collections::HashMap;
use std::sync::Arc;

/// Longest name of a table in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// Key of the row that holds the next store.
pub(crate) const NEXT_STORE: &[u8] = &[0];
const NAME: u8 = 1;
const LOADING: u8 = 2;
const ROW_FORMAT: u8 = 2;

/// The catalog of an open database.
pub(crate) struct Catalog {
    pub(crate) tree: Tree,
    /// Held by whoever changes tables.
    ddl: Mutex<()>,
    known: Mutex<Known>,
}

/// The tables in use. Guarded by `Catalog::known`.
#[derive(Default)]
struct Known {
    tables: HashMap<String, Arc<TableState>>,
    /// Raised whenever a name ceases to mean what it meant.
    generation: u64,
}

impl Catalog {
    pub(crate) fn new(root: PageId) -> Catalog {
        Catalog {
            tree: Tree {
                store: StoreId::CATALOG,
                root,
            },
            ddl: Mutex::new(()),
            known: Mutex::default(),
        }
    }

    /// Keeps all others from changing tables.
    pub(crate) fn change(&self) -> MutexGuard<'_, ()> {
        self.ddl.lock()
    }

    /// The table of this name if it is in use already; else the generation to give to `learn`.
    pub(crate) fn known(&self, name: &str) -> std::result::Result<Table, u64> {
        let known = self.known.lock();
        match known.tables.get(name) {
            Some(state) => Ok(Table {
                state: Arc::clone(state),
            }),
            None => Err(known.generation),
        }
    }

    /// The name of the table in `store`, if it is in use.
    pub(crate) fn name_of(&self, store: StoreId) -> Option<String> {
        let known = self.known.lock();
        let mut tables = known.tables.iter();
        let (name, _) = tables.find(|(_, state)| state.tree().store == store)?;
        Some(name.clone())
    }

    /// Enters a table whose row was read in `generation`; `None` when the row may have changed since.
    pub(crate) fn learn(&self, generation: u64, name: &str, state: TableState) -> Option<Table> {
        let mut known = self.known.lock();
        if known.generation != generation {
            return None;
        }
        let state = known
            .tables
            .entry(name.to_owned())
            .or_insert_with(|| Arc::new(state));
        Some(Table {
            state: Arc::clone(state),
        })
    }

    /// Forgets a table that has been dropped; the caller holds `ddl`.
    pub(crate) fn forget(&self, name: &str) {
        let mut known = self.known.lock();
        known.generation += 1;
        known.tables.remove(name);
    }

    /// Gives a table its new name; the caller holds `ddl`.
    pub(crate) fn rename(&self, from: &str, to: &str) {
        let mut known = self.known.lock();
        known.generation += 1;
        if let Some(state) = known.tables.remove(from) {
            state.set_name(to);
            known.tables.insert(to.to_owned(), state);
        }
    }
}

/// The key of a table's row.
///
/// # Errors
/// [`Error::TableName`] when no table may have that name.
pub(crate) fn key_of(name: &str) -> Result<Vec<u8>> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(Error::TableName { length: name.len() });
    }
    let mut key = Vec::with_capacity(1 + name.len());
    key.push(NAME);
    key.extend_from_slice(name.as_bytes());
    Ok(key)
}

/// The key below the rows of all tables, and the one above them.
pub(crate) const NAMES: (&[u8], &[u8]) = (&[NAME], &[NAME + 1]);

/// The key of the row of a tree that is being loaded.
pub(crate) fn loading_key(store: StoreId) -> [u8; 5] {
    let mut key = [LOADING; 5];
    key[1..].copy_from_slice(&store.get().to_be_bytes());
    key
}

/// The key below the rows of all trees that are being loaded, and the one above them.
pub(crate) const LOADS: (&[u8], &[u8]) = (&[LOADING], &[LOADING + 1]);

/// The name in the key of a table's row.
pub(crate) fn name_in(key: &[u8]) -> Result<&str> {
    key.split_first()
        .filter(|(tag, _)| **tag == NAME)
        .and_then(|(_, name)| std::str::from_utf8(name).ok())
        .ok_or_else(|| damaged(format!("a key of {} bytes that is no name", key.len())))
}

/// Bytes of a tree in a row.
const TREE_BYTES: usize = 12;
const UNIQUE: u8 = 1;
const READY: u8 = 2;

/// The row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableRow {
    pub(crate) tree: Tree,
    pub(crate) indexes: Vec<IndexRow>,
}

/// What the row of a table says of one of its indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexRow {
    /// At most 255 bytes, as the definition.
    pub(crate) name: String,
    pub(crate) definition: String,
    pub(crate) is_unique: bool,
    pub(crate) is_ready: bool,
    pub(crate) tree: Tree,
}

impl TableRow {
    /// The row of a table without indexes.
    pub(crate) fn new(tree: Tree) -> TableRow {
        let indexes = Vec::new();
        TableRow { tree, indexes }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut row = encode_tree(self.tree).to_vec();
        for index in &self.indexes {
            let flag = |flag, is_set| if is_set { flag } else { 0 };
            row.push(flag(UNIQUE, index.is_unique) | flag(READY, index.is_ready));
            row.extend_from_slice(&encode_tree(index.tree)[1..]);
            for text in [&index.name, &index.definition] {
                row.push(u8::try_from(text.len()).expect("checked when the index was created"));
                row.extend_from_slice(text.as_bytes());
            }
        }
        row
    }

    pub(crate) fn decode(row: &[u8]) -> Result<TableRow> {
        let (tree, mut rest) = row
            .split_at_checked(1 + TREE_BYTES)
            .ok_or_else(|| damaged(format!("a row of {} bytes", row.len())))?;
        let mut table = TableRow::new(decode_tree(tree)?);
        while !rest.is_empty() {
            let index = take_index(&mut rest)
                .ok_or_else(|| damaged(format!("a row of {} bytes with a cut index", row.len())))?;
            table.indexes.push(index);
        }
        Ok(table)
    }
}

fn take_index(bytes: &mut &[u8]) -> Option<IndexRow> {
    let (head, rest) = bytes.split_at_checked(1 + TREE_BYTES)?;
    let (flags, tree) = head.split_first()?;
    *bytes = rest;
    let mut take_text = || {
        let (length, rest) = bytes.split_first()?;
        let (text, rest) = rest.split_at_checked(usize::from(*length))?;
        *bytes = rest;
        String::from_utf8(text.to_vec()).ok()
    };
    Some(IndexRow {
        name: take_text()?,
        definition: take_text()?,
        is_unique: flags & UNIQUE != 0,
        is_ready: flags & READY != 0,
        tree: tree_in(tree)?,
    })
}

/// The row of a tree.
pub(crate) fn encode_tree(tree: Tree) -> [u8; 1 + TREE_BYTES] {
    let mut row = [ROW_FORMAT; 1 + TREE_BYTES];
    row[1..5].copy_from_slice(&tree.store.get().to_le_bytes());
    row[5..].copy_from_slice(&tree.root.get().to_le_bytes());
    row
}

/// What the row of a tree says.
pub(crate) fn decode_tree(row: &[u8]) -> Result<Tree> {
    let tree = match row {
        [ROW_FORMAT, rest @ ..] => tree_in(rest),
        _ => None,
    };
    tree.ok_or_else(|| damaged(format!("a row of {} bytes", row.len())))
}

fn tree_in(bytes: &[u8]) -> Option<Tree> {
    let (store, root) = bytes.split_at_checked(4)?;
    Some(Tree {
        store: StoreId::new(u32::from_le_bytes(store.try_into().ok()?)),
        root: PageId::new(u64::from_le_bytes(root.try_into().ok()?)),
    })
}

/// The row that holds the next store.
pub(crate) fn encode_next(store: StoreId) -> [u8; 5] {
    let mut row = [ROW_FORMAT; 5];
    row[1..].copy_from_slice(&store.get().to_le_bytes());
    row
}

/// The next store: the first one where no table was ever created.
pub(crate) fn decode_next(row: Option<&[u8]>) -> Result<StoreId> {
    match row {
        None => Ok(StoreId::FIRST_USER),
        Some([ROW_FORMAT, store @ ..]) if store.len() == 4 => Ok(StoreId::new(u32::from_le_bytes(
            store.try_into().expect("four bytes"),
        ))),
        Some(row) => Err(damaged(format!("a row of {} bytes", row.len()))),
    }
}

fn damaged(what: String) -> Error {
    Error::corrupt("data", format!("the catalog holds {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_have_1_to_255_bytes() {
        assert!(key_of("").is_err());
        assert!(key_of(&"x".repeat(255)).is_ok());
        let refused = key_of(&"x".repeat(256)).unwrap_err().to_string();
        assert_eq!(
            refused,
            "a table's name has 1 to 255 bytes; this one has 256"
        );
    }

    #[test]
    fn name_keys_lie_between_their_bounds() {
        for name in ["\0", "a", "\u{10ffff}"] {
            let key = key_of(name).unwrap();
            assert!(key.as_slice() > NAMES.0 && key.as_slice() < NAMES.1);
            assert_eq!(name_in(&key).unwrap(), name);
        }
        assert!(NEXT_STORE < NAMES.0);
    }

    #[test]
    fn layout_of_a_row_with_an_index() {
        let tree = |store, root| Tree {
            store: StoreId::new(store),
            root: PageId::new(root),
        };
        let row = TableRow {
            tree: tree(16, 7),
            indexes: vec![IndexRow {
                name: "by_last".into(),
                definition: "v1".into(),
                is_unique: true,
                is_ready: true,
                tree: tree(17, 9),
            }],
        };
        let expected = [
            &[2, 16, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0][..],
            &[3, 17, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0],
            b"\x07by_last\x02v1",
        ]
        .concat();
        assert_eq!(row.encode(), expected);
        assert_eq!(TableRow::decode(&expected).unwrap(), row);
        for cut in 14..expected.len() {
            assert!(TableRow::decode(&expected[..cut]).is_err(), "cut at {cut}");
        }
    }

    proptest! {
        #[test]
        fn rows_come_back(store in any::<u32>(), root in any::<u64>()) {
            let tree = Tree { store: StoreId::new(store), root: PageId::new(root) };
            let back = decode_tree(&encode_tree(tree)).unwrap();
            prop_assert_eq!((back.store, back.root), (tree.store, tree.root));
            prop_assert_eq!(decode_next(Some(&encode_next(tree.store))).unwrap(), tree.store);
        }

        #[test]
        fn arbitrary_rows_are_damage_not_panics(row in proptest::collection::vec(prop_oneof![Just(2u8), any::<u8>()], 0..40)) {
            let _ = decode_tree(&row);
            let _ = TableRow::decode(&row);
            let _ = decode_next(Some(&row));
            let _ = name_in(&row);
        }
    }
}

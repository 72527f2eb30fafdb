//! Indexes over the workload's tables: what they are made of, and what the model knows of them.
//!
//! Keys and values of the workload are bare bytes. Two indexes may stand on a table: one in which a row has
//! up to two keys that many others have, and a unique one that some rows are in, so that now and then
//! two rows want the same key. After every cut `verify` compares each with its table.

use crate::model::Rows;
use longshore::{Database, DecodeError, Error, IndexSpec, Key, TypedTable, Value};

/// Bytes as they are, up to the end of what there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw(pub Vec<u8>);

impl Key for Raw {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn decode(bytes: &mut &[u8]) -> Result<Raw, DecodeError> {
        Ok(Raw(std::mem::take(bytes).to_vec()))
    }
}

impl Value for Raw {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn decode(bytes: &mut &[u8]) -> Result<Raw, DecodeError> {
        Ok(Raw(std::mem::take(bytes).to_vec()))
    }
}

/// The names of the indexes that a table may have.
pub const NAMES: [&str; 2] = ["by size", "unique"];

/// The key of a row in the unique index, if it is in it.
pub fn unique_key(value: &[u8]) -> Option<u8> {
    match value {
        [first, ..] if value.len() % 4 == 1 => Some(first % 64),
        _ => None,
    }
}

/// Whether two of these rows want the same key.
pub fn has_duplicates(rows: &Rows) -> bool {
    let mut keys: Vec<_> = rows
        .values()
        .filter_map(|value| unique_key(value))
        .collect();
    let all = keys.len();
    keys.sort_unstable();
    keys.dedup();
    keys.len() < all
}

/// Creates the index of that name.
///
/// # Errors
/// The database's own.
pub fn create(db: &Database, table: &str, name: &str) -> Result<(), Error> {
    let table: TypedTable<Raw, Raw> = TypedTable::open(db, table)?;
    match name {
        "unique" => table.create_index(db, unique()).map(drop),
        _ => table.create_index(db, by_size()).map(drop),
    }
}

/// Registers the indexes that there are.
///
/// # Errors
/// The database's own.
pub fn open_all(db: &Database) -> Result<(), Error> {
    for name in db.tables()? {
        let table: TypedTable<Raw, Raw> = TypedTable::open(db, &name)?;
        for index in table.table().indexes() {
            if !index.is_ready {
                return Err(Error::other(format!("{index:?} was not given up")));
            }
            match index.name.as_str() {
                "unique" => drop(table.open_index(db, unique())?),
                _ => drop(table.open_index(db, by_size())?),
            }
        }
    }
    Ok(())
}

fn unique() -> IndexSpec<u8, Raw, Raw> {
    IndexSpec::unique("unique", "first byte modulo 64", |_, value: &Raw| {
        unique_key(&value.0)
    })
}

fn by_size() -> IndexSpec<u8, Raw, Raw> {
    IndexSpec::new(
        "by size",
        "length modulo 5, first byte modulo 3",
        |_, value: &Raw| {
            let size = Some(value.0.len() as u8 % 5);
            let first = value.0.first().map(|first| 100 + first % 3);
            size.into_iter().chain(first).collect::<Vec<_>>()
        },
    )
}

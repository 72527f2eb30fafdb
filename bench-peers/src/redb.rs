//! redb: a copy-on-write B+tree in Rust, one writer at a time.
//!
//! It knows two levels. `none` and `os` are both its `Durability::None`, which keeps changes in its own
//! memory; so at `os` it promises less than the others.

use longshore_bench::{Engine, Level, Outcome, Settings, Store, key, value};
use redb::{Database, Durability, ReadableDatabase, TableDefinition};
use std::path::Path;

/// Makes redb databases.
pub struct RedbEngine;

impl Engine for RedbEngine {
    fn name(&self) -> &'static str {
        "redb"
    }

    fn create(
        &self,
        folder: &Path,
        settings: &Settings,
        clients: usize,
    ) -> Outcome<Box<dyn Store>> {
        let db = Database::builder()
            .set_cache_size(settings.pool_mib() << 20)
            .create(folder.join("redb"))?;
        let store = Redb {
            db,
            durability: match settings.durability {
                Level::None | Level::Os => Durability::None,
                Level::Sync => Durability::Immediate,
            },
            private: (0..clients)
                .map(|client| format!("private-{client}"))
                .collect(),
        };
        // Tables come to be when they are first opened.
        store.put_rows(SHARED, 0, 0)?;
        store
            .private
            .iter()
            .try_for_each(|name| store.put_rows(name, 0, 0))?;
        Ok(Box::new(store))
    }
}

const SHARED: &str = "shared";

fn table(name: &str) -> TableDefinition<'_, &'static [u8], &'static [u8]> {
    TableDefinition::new(name)
}

struct Redb {
    db: Database,
    durability: Durability,
    private: Vec<String>,
}

impl Redb {
    fn put(&self, name: &str, rows: impl IntoIterator<Item = (u64, u64)>) -> Outcome {
        let mut transaction = self.db.begin_write()?;
        transaction.set_durability(self.durability)?;
        {
            let mut table = transaction.open_table(table(name))?;
            for (row, stamp) in rows {
                table.insert(&key(row)[..], &value(row, stamp)[..])?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn put_rows(&self, name: &str, first: u64, count: u64) -> Outcome {
        self.put(name, (first..first + count).map(|row| (row, 0)))
    }
}

impl Store for Redb {
    fn load(&self, first: u64, count: u64) -> Outcome {
        self.put_rows(SHARED, first, count)
    }

    fn insert(&self, client: usize, first: u64, count: u64) -> Outcome {
        self.put_rows(&self.private[client], first, count)
    }

    fn read(&self, row: u64, value: &mut Vec<u8>) -> Outcome<bool> {
        let table = self.db.begin_read()?.open_table(table(SHARED))?;
        let Some(found) = table.get(&key(row)[..])? else {
            return Ok(false);
        };
        value.clear();
        value.extend_from_slice(found.value());
        Ok(true)
    }

    fn update(&self, row: u64, stamp: u64) -> Outcome<u64> {
        self.put(SHARED, [(row, stamp)])?;
        Ok(0)
    }
}

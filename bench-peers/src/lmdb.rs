//! LMDB, by the crate heed: a copy-on-write B+tree in a memory map, one writer at a time.
//!
//! | durability | flags                             | what a commit does                           |
//! |------------|-----------------------------------|----------------------------------------------|
//! | none       | WRITE_MAP, NO_SYNC, NO_META_SYNC  | changes the map                              |
//! | os         | NO_SYNC, NO_META_SYNC             | writes its pages                             |
//! | sync       | none                              | writes its pages and syncs                   |

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, WithTls};
use longshore_bench::{Engine, Level, Outcome, Settings, Store, key, value};
use std::path::Path;

/// Address space for the map; more than any run fills.
const MAP_BYTES: usize = 256 << 30;

/// Makes LMDB environments.
pub struct LmdbEngine;

impl Engine for LmdbEngine {
    fn name(&self) -> &'static str {
        "lmdb"
    }

    fn create(
        &self,
        folder: &Path,
        settings: &Settings,
        clients: usize,
    ) -> Outcome<Box<dyn Store>> {
        let mut options = EnvOpenOptions::new();
        options
            .map_size(MAP_BYTES)
            .max_dbs(clients as u32 + 1)
            .max_readers(1024);
        // SAFETY: the flags give up the promise that the file is sound after a crash of the machine,
        // and, with WRITE_MAP, that no stray pointer writes into it. The file is thrown away anyway.
        // The folder is new and nobody else's, so nobody changes the file below the map.
        let env = unsafe { options.flags(flags(settings.durability)).open(folder)? };
        let shared = create_table(&env, "shared")?;
        let private = (0..clients)
            .map(|client| create_table(&env, &format!("private-{client}")))
            .collect::<Result<Vec<Table>, heed::Error>>()?;
        Ok(Box::new(Lmdb {
            env,
            shared,
            private,
        }))
    }
}

fn flags(level: Level) -> EnvFlags {
    match level {
        Level::None => EnvFlags::WRITE_MAP | EnvFlags::NO_SYNC | EnvFlags::NO_META_SYNC,
        Level::Os => EnvFlags::NO_SYNC | EnvFlags::NO_META_SYNC,
        Level::Sync => EnvFlags::empty(),
    }
}

type Table = Database<'static, Bytes, Bytes>;

fn create_table(env: &Env<WithTls>, name: &str) -> Result<Table, heed::Error> {
    let created = env.create_databases_and_commit(env.write_txn()?, |opener, transaction| {
        let table = opener.create_database(transaction, Some(name))?;
        Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(table))
    })?;
    Ok(created.unwrap_commit())
}

struct Lmdb {
    env: Env<WithTls>,
    shared: Table,
    private: Vec<Table>,
}

impl Lmdb {
    fn put_rows(&self, table: &Table, first: u64, count: u64) -> Outcome {
        let mut transaction = self.env.write_txn()?;
        for row in first..first + count {
            table.put(&mut transaction, &key(row), &value(row, 0))?;
        }
        Ok(transaction.commit()?)
    }
}

impl Store for Lmdb {
    fn load(&self, first: u64, count: u64) -> Outcome {
        self.put_rows(&self.shared, first, count)
    }

    fn insert(&self, client: usize, first: u64, count: u64) -> Outcome {
        self.put_rows(&self.private[client], first, count)
    }

    fn read(&self, row: u64, value: &mut Vec<u8>) -> Outcome<bool> {
        let transaction = self.env.read_txn()?;
        let Some(found) = self.shared.get(&transaction, &key(row))? else {
            return Ok(false);
        };
        value.clear();
        value.extend_from_slice(found);
        Ok(true)
    }

    fn update(&self, row: u64, stamp: u64) -> Outcome<u64> {
        let mut transaction = self.env.write_txn()?;
        self.shared
            .put(&mut transaction, &key(row), &value(row, stamp))?;
        transaction.commit()?;
        Ok(0)
    }
}

//! RocksDB's `TransactionDB`: a log-structured merge tree with row locks, many writers at a time.
//!
//! | durability | options                    | what a commit does             |
//! |------------|----------------------------|--------------------------------|
//! | none       | log flushed by hand        | writes the log into a buffer   |
//! | os         | its default                | writes the log                 |
//! | sync       | sync                       | writes the log and syncs       |

use longshore_bench::{Engine, Level, Outcome, Settings, Store, key, value};
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, ErrorKind, Options, TransactionDB,
    TransactionDBOptions, TransactionOptions, WriteOptions,
};
use std::path::Path;

/// Makes RocksDB databases.
pub struct RocksdbEngine;

impl Engine for RocksdbEngine {
    fn name(&self) -> &'static str {
        "rocksdb"
    }

    fn create(
        &self,
        folder: &Path,
        settings: &Settings,
        clients: usize,
    ) -> Outcome<Box<dyn Store>> {
        let names: Vec<String> = (0..clients)
            .map(|client| format!("private-{client}"))
            .collect();
        let options = options(settings);
        let db: TransactionDB = TransactionDB::open_cf_descriptors(
            &options,
            &TransactionDBOptions::default(),
            folder,
            families(&names, &options),
        )?;
        Ok(Box::new(Rocksdb {
            db,
            private: names,
            level: settings.durability,
        }))
    }
}

/// The shared table is the default family.
fn families(names: &[String], options: &Options) -> Vec<ColumnFamilyDescriptor> {
    let all = names.iter().map(String::as_str).chain(["default"]);
    all.map(|name| ColumnFamilyDescriptor::new(name, options.clone()))
        .collect()
}

fn options(settings: &Settings) -> Options {
    let mut blocks = BlockBasedOptions::default();
    // Half of the memory for blocks, the other half for rows on their way to disk.
    blocks.set_block_cache(&Cache::new_lru_cache(settings.pool_mib() << 19));
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options.set_block_based_table_factory(&blocks);
    options.set_write_buffer_size(64 << 20);
    options.set_db_write_buffer_size(settings.pool_mib() << 19);
    options.increase_parallelism(2);
    options.set_manual_wal_flush(settings.durability == Level::None);
    options
}

struct Rocksdb {
    db: TransactionDB,
    private: Vec<String>,
    level: Level,
}

impl Rocksdb {
    fn write_options(&self) -> WriteOptions {
        let mut options = WriteOptions::default();
        options.set_sync(self.level == Level::Sync);
        options
    }

    fn try_update(&self, row: u64, stamp: u64) -> Result<(), rocksdb::Error> {
        let options = TransactionOptions::default();
        let transaction = self.db.transaction_opt(&self.write_options(), &options);
        transaction.put(key(row), value(row, stamp))?;
        transaction.commit()
    }
}

impl Store for Rocksdb {
    fn load(&self, first: u64, count: u64) -> Outcome {
        let options = TransactionOptions::default();
        let transaction = self.db.transaction_opt(&self.write_options(), &options);
        for row in first..first + count {
            transaction.put(key(row), value(row, 0))?;
        }
        Ok(transaction.commit()?)
    }

    fn insert(&self, client: usize, first: u64, count: u64) -> Outcome {
        let family = self
            .db
            .cf_handle(&self.private[client])
            .ok_or("no such column family")?;
        let options = TransactionOptions::default();
        let transaction = self.db.transaction_opt(&self.write_options(), &options);
        for row in first..first + count {
            transaction.put_cf(family, key(row), value(row, 0))?;
        }
        Ok(transaction.commit()?)
    }

    fn read(&self, row: u64, value: &mut Vec<u8>) -> Outcome<bool> {
        let Some(found) = self.db.get_pinned(key(row))? else {
            return Ok(false);
        };
        value.clear();
        value.extend_from_slice(&found);
        Ok(true)
    }

    fn update(&self, row: u64, stamp: u64) -> Outcome<u64> {
        let mut given_up = 0;
        loop {
            match self.try_update(row, stamp) {
                Ok(()) => return Ok(given_up),
                Err(error) if is_conflict(&error) => given_up += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn settle(&self) -> Outcome {
        Ok(self.db.flush()?)
    }
}

fn is_conflict(error: &rocksdb::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Busy | ErrorKind::TimedOut | ErrorKind::TryAgain
    )
}

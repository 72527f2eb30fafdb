//! The caches that are compared, behind one interface. All hash keys with foldhash, and hold numbers.

use clap::ValueEnum;
use foldhash::fast::RandomState;

/// Which cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// This repository's
    Longshore,
    /// moka: W-TinyLFU, its bookkeeping in batches
    Moka,
    /// quick_cache: a form of S3-FIFO in shards
    QuickCache,
    /// foyer with W-TinyLFU, in shards
    FoyerLfu,
    /// foyer with S3-FIFO, in shards
    FoyerS3Fifo,
}

/// What is asked of a cache.
pub trait Subject: Sync {
    /// Whether the key is there. Its value is read.
    fn get(&self, key: u64) -> bool;

    /// Puts the key in.
    fn put(&self, key: u64);

    /// Does what the cache has put off.
    fn settle(&self) {}
}

impl Kind {
    pub fn name(self) -> String {
        let value = self.to_possible_value().expect("no kind is hidden");
        value.get_name().to_string()
    }

    /// An empty one for so many entries.
    pub fn create(self, capacity: u64) -> Box<dyn Subject> {
        let entries = usize::try_from(capacity).expect("64 bits");
        let hasher = RandomState::default();
        let foyer = foyer_memory::CacheBuilder::new(entries).with_hash_builder(hasher.clone());
        match self {
            Kind::Longshore => {
                let builder = longshore_cache::CacheBuilder::new(capacity);
                Box::new(builder.hasher(hasher).build())
            }
            Kind::Moka => {
                let builder = moka::sync::Cache::builder().max_capacity(capacity);
                Box::new(builder.build_with_hasher(hasher))
            }
            Kind::QuickCache => Box::new(QuickCache::with(
                entries,
                capacity,
                Default::default(),
                hasher,
                Default::default(),
            )),
            Kind::FoyerLfu => {
                let lfu = foyer_memory::LfuConfig::default();
                Box::new(foyer.with_eviction_config(lfu).build::<Properties>())
            }
            Kind::FoyerS3Fifo => {
                let s3_fifo = foyer_memory::S3FifoConfig::default();
                Box::new(foyer.with_eviction_config(s3_fifo).build::<Properties>())
            }
        }
    }
}

type QuickCache = quick_cache::sync::Cache<u64, u64, quick_cache::UnitWeighter, RandomState>;
type Properties = foyer_memory::CacheProperties;

impl Subject for longshore_cache::Cache<u64, u64, RandomState> {
    fn get(&self, key: u64) -> bool {
        self.get(&key) == Some(key)
    }

    fn put(&self, key: u64) {
        self.insert(key, key);
    }
}

impl Subject for moka::sync::Cache<u64, u64, RandomState> {
    fn get(&self, key: u64) -> bool {
        self.get(&key) == Some(key)
    }

    fn put(&self, key: u64) {
        self.insert(key, key);
    }

    fn settle(&self) {
        self.run_pending_tasks();
    }
}

impl Subject for QuickCache {
    fn get(&self, key: u64) -> bool {
        self.get(&key) == Some(key)
    }

    fn put(&self, key: u64) {
        self.insert(key, key);
    }
}

impl Subject for foyer_memory::Cache<u64, u64, RandomState> {
    fn get(&self, key: u64) -> bool {
        self.get(&key).is_some_and(|entry| *entry.value() == key)
    }

    fn put(&self, key: u64) {
        self.insert(key, key);
    }
}

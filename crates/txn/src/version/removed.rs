//! Rows that snapshots may see and that have no slot in their leaf any more.
//!
//! # Protocol
//! A ghost is purged though a snapshot may see the row that it was: its image is kept ([`kept`](super::kept)),
//! so a read of that one row finds it. So that scans find it too, its key is listed here, under the latch of the
//! leaf and before the leaf changes. A scan reads its leaf, then this list, and then makes sure that the
//! leaf has not changed: a key listed that has a slot as well was inserted anew, or is about to go.
//!
//! A key stays as long as anything is kept of its row.
//!
//! # Order
//! Page latch → mutex of the list → mutex of a shard of kept versions.

use super::image::RowRef;
use crate::lock::LockName;
use longshore_base::sync::Mutex;
use longshore_base::sync::atomic::{AtomicU64, Ordering};
use longshore_base::{Lsn, StoreId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Memory that a key takes beside its bytes, about.
const OVERHEAD: usize = 48;

type Keys = BTreeSet<Box<[u8]>>;

#[derive(Debug, Default)]
pub(crate) struct Removed {
    stores: Mutex<BTreeMap<StoreId, Keys>>,
    /// At or above the commits that have deleted the rows listed; zero when there is none. Written under
    /// the mutex.
    newest: AtomicU64,
}

impl Removed {
    /// Lists a row whose deletion has committed at `commit` or before; returns the memory that it takes.
    pub fn add(&self, row: RowRef<'_>, commit: Lsn) -> usize {
        let mut stores = self.stores.lock();
        let is_new = stores.entry(row.store).or_default().insert(row.key.into());
        // Relaxed: published with the latch of the leaf.
        self.newest.fetch_max(commit.get(), Ordering::Relaxed);
        if is_new { memory(row.key) } else { 0 }
    }

    /// Whether a snapshot at `at` may see a row listed here. The caller has read the row's leaf before.
    #[inline]
    pub fn concerns(&self, at: Lsn) -> bool {
        // Relaxed: ordered by the read of the leaf.
        self.newest.load(Ordering::Relaxed) >= at.get()
    }

    /// Whether nothing is listed.
    pub fn is_empty(&self) -> bool {
        // Relaxed: a hint.
        self.newest.load(Ordering::Relaxed) == 0
    }

    /// The keys listed of a range of `store`, ascending. The range is not empty.
    pub fn keys(&self, store: StoreId, low: Bound<&[u8]>, high: Bound<&[u8]>) -> Vec<Box<[u8]>> {
        let stores = self.stores.lock();
        let keys = stores.get(&store).into_iter();
        keys.flat_map(|keys| keys.range::<[u8], _>((low, high)))
            .cloned()
            .collect()
    }

    /// Takes off the list what is not `needed`; returns the memory that it took.
    pub fn sweep(&self, needed: impl Fn(RowRef<'_>) -> bool) -> usize {
        let mut freed = 0;
        let mut stores = self.stores.lock();
        stores.retain(|&store, keys| {
            keys.retain(|key| {
                let is_needed = needed(RowRef::new(LockName::of_key(store, key), key));
                freed += if is_needed { 0 } else { memory(key) };
                is_needed
            });
            !keys.is_empty()
        });
        if stores.is_empty() {
            // Relaxed: nobody needs what was listed.
            self.newest.store(0, Ordering::Relaxed);
        }
        freed
    }
}

fn memory(key: &[u8]) -> usize {
    OVERHEAD + key.len()
}

//! Images of rows that open snapshots need, of transactions that have committed.
//!
//! # Protocol
//! A committing writer keeps the image of a row that it has changed when an open snapshot sees the row as
//! it was: between the newest commit already kept of that row and its own. So a row that changes a thousand
//! times while one snapshot is open is kept once. It does so before it lets go of its lock on the row, and
//! holds that lock exclusively, so the versions of a row stand in the order of their commits (V4).
//!
//! A snapshot reads the version with the smallest commit that it does not see; if there is none, nothing has
//! changed since (V5).
//!
//! A version that no snapshot needs is dropped when the table is swept: when it has doubled since the
//! last sweep, when the last snapshot closes, and by maintenance.

use super::arena::Entry;
use super::image::{Image, ImageBuffer, RowRef};
use super::registry::Open;
use crate::lock::Dependency;
use crossbeam_utils::CachePadded;
use longshore_base::sync::Mutex;
use longshore_base::sync::atomic::{AtomicUsize, Ordering};
use longshore_base::{Lsn, StoreId};
use smallvec::SmallVec;
use std::collections::{HashMap, hash_map};
use std::hash::{BuildHasherDefault, Hasher};

/// A power of two.
const SHARDS: usize = if cfg!(loom) { 1 } else { 64 };
/// Flags of a row that was not there.
const ABSENT: u16 = u16::MAX;
/// Rows of up to so many bytes lie in the table itself: those that were not there, mostly.
const INLINE: usize = 16;
/// Names that follow each other share a shard; of this many.
const RUN: u32 = 64;
/// Memory that a version takes beside its bytes, about: its place in the table, the allocator's part.
const OVERHEAD: usize = size_of::<Version>() + 48;

/// What a row was before the transaction that committed at `commit` changed it.
#[derive(Debug)]
struct Version {
    commit: Lsn,
    /// The newest commit that the image may come from.
    seen: Dependency,
    store: StoreId,
    key_len: u16,
    flags: u16,
    /// Key, then value.
    bytes: SmallVec<[u8; INLINE]>,
}

impl Version {
    fn is_of(&self, row: RowRef<'_>) -> bool {
        self.store == row.store && self.key() == row.key
    }

    fn key(&self) -> &[u8] {
        &self.bytes[..usize::from(self.key_len)]
    }

    fn image(&self) -> Image<'_> {
        Image::of_bits(self.flags, ABSENT, &self.bytes[usize::from(self.key_len)..])
    }

    fn memory(&self) -> usize {
        match self.bytes.spilled() {
            true => OVERHEAD + self.bytes.len(),
            false => OVERHEAD,
        }
    }
}

type Shard = HashMap<u64, SmallVec<[Version; 1]>, BuildHasherDefault<AsIs>>;

/// The versions kept, by the names of their rows.
#[derive(Debug)]
pub(crate) struct Kept {
    shards: Box<[CachePadded<Mutex<Shard>>]>,
    /// How many there are.
    count: CachePadded<AtomicUsize>,
    /// Swept when there are as many as this.
    sweep_at: AtomicUsize,
}

/// Fewer are not swept for their number.
const SWEEP_MIN: usize = 4096;

impl Kept {
    pub fn new() -> Kept {
        Kept {
            shards: (0..SHARDS).map(|_| CachePadded::default()).collect(),
            count: CachePadded::default(),
            sweep_at: AtomicUsize::new(SWEEP_MIN),
        }
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        &self.shards[shard_of(hash)]
    }

    /// Keeps the images of `entries` that snapshots need; returns the memory that they take. The caller
    /// holds the locks of the rows, has committed at `commit`, and has found out `open` afterwards.
    pub fn keep<'e>(
        &self,
        entries: impl Iterator<Item = Entry<'e>>,
        commit: Lsn,
        seen: Dependency,
        open: &Open,
    ) -> usize {
        let mut memory = 0;
        let mut entries = entries.peekable();
        while let Some(first) = entries.peek() {
            let at = shard_of(first.hash);
            // Rows written one after the other mostly lie in one shard.
            let mut shard = self.shards[at].lock();
            let mut count = 0;
            while let Some(entry) = entries.next_if(|entry| shard_of(entry.hash) == at) {
                let taken = keep_in(&mut shard, &entry, commit, seen, open);
                count += usize::from(taken > 0);
                memory += taken;
            }
            if count > 0 {
                // Relaxed: a count, for deciding when to sweep. Before a sweep can come to the shard.
                self.count.fetch_add(count, Ordering::Relaxed);
            }
        }
        memory
    }

    /// What the row was for a snapshot at `at`; false when it has not changed since.
    pub fn find(&self, row: RowRef<'_>, at: Lsn, image: &mut ImageBuffer) -> Option<Dependency> {
        let shard = self.shard(row.hash).lock();
        let versions = shard.get(&row.hash)?;
        let version = versions.iter().find(|v| v.commit >= at && v.is_of(row))?;
        image.set(version.image());
        Some(version.seen)
    }

    /// Whether the row has changed for a snapshot at `at`.
    pub fn has_changed(&self, row: RowRef<'_>, at: Lsn) -> bool {
        let shard = self.shard(row.hash).lock();
        shard
            .get(&row.hash)
            .is_some_and(|versions| versions.iter().any(|v| v.commit >= at && v.is_of(row)))
    }

    /// Whether anything is kept of the row.
    pub fn has_any(&self, row: RowRef<'_>) -> bool {
        self.has_changed(row, Lsn::ZERO)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        // Relaxed: a count.
        self.count.load(Ordering::Relaxed)
    }

    /// Whether the table has grown enough for a sweep.
    pub fn is_due(&self) -> bool {
        // Relaxed: a sweep too early or too late does no harm.
        self.count() >= self.sweep_at.load(Ordering::Relaxed)
    }

    /// Drops what no snapshot needs; returns the memory that it took.
    pub fn sweep(&self, open: &Open) -> usize {
        let mut freed = 0;
        for shard in &self.shards {
            freed += self.sweep_shard(&mut shard.lock(), open);
        }
        // Relaxed: see `is_due`.
        self.sweep_at
            .store((2 * self.count()).max(SWEEP_MIN), Ordering::Relaxed);
        freed
    }

    fn sweep_shard(&self, shard: &mut Shard, open: &Open) -> usize {
        let (mut freed, mut dropped) = (0, 0);
        shard.retain(|_, versions| {
            let mut at = 0;
            while at < versions.len() {
                let version = &versions[at];
                let mut before = versions[..at].iter().rev();
                let before = before
                    .find(|v| v.store == version.store && v.key() == version.key())
                    .map_or(Lsn::ZERO, |v| v.commit);
                if open.needs(before, version.commit) {
                    at += 1;
                } else {
                    freed += versions.remove(at).memory();
                    dropped += 1;
                }
            }
            !versions.is_empty()
        });
        if shard.capacity() > 64 && shard.len() * 8 < shard.capacity() {
            shard.shrink_to(2 * shard.len());
        }
        // Relaxed: a count.
        self.count.fetch_sub(dropped, Ordering::Relaxed);
        freed
    }
}

/// The shard of a name. Names of keys that count up count up, and stay together for a while.
fn shard_of(hash: u64) -> usize {
    let spread = (hash / u64::from(RUN)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    spread as usize & (SHARDS - 1)
}

/// Keeps an image if a snapshot needs it; returns the memory that it takes, zero for none.
fn keep_in(
    shard: &mut Shard,
    entry: &Entry<'_>,
    commit: Lsn,
    seen: Dependency,
    open: &Open,
) -> usize {
    let row = entry.row();
    let place = shard.entry(entry.hash);
    let newest = match &place {
        hash_map::Entry::Occupied(versions) => versions.get().iter().rfind(|v| v.is_of(row)),
        hash_map::Entry::Vacant(_) => None,
    };
    let before = newest.map_or(Lsn::ZERO, |version| version.commit);
    debug_assert!(before <= commit, "V4");
    if before == commit || !open.needs_now(before, commit) {
        return 0;
    }
    let version = version(row, commit, entry.image, seen);
    let memory = version.memory();
    place.or_default().push(version);
    memory
}

fn version(row: RowRef<'_>, commit: Lsn, image: Image<'_>, seen: Dependency) -> Version {
    let (flags, value) = match image {
        Image::Absent => (ABSENT, &[][..]),
        Image::Present { flags, value } => (flags.bits(), value),
    };
    let mut bytes = SmallVec::with_capacity(row.key.len() + value.len());
    bytes.extend_from_slice(row.key);
    bytes.extend_from_slice(value);
    Version {
        commit,
        seen,
        store: row.store,
        key_len: row.key.len() as u16,
        flags,
        bytes,
    }
}

/// Hashes of hashes.
#[derive(Debug, Default)]
pub(crate) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are words")
    }

    fn write_u64(&mut self, word: u64) {
        // The table looks at the low bits first, then at the uppermost seven, which in a name only tell
        // the store.
        self.0 = word ^ (word ^ word >> 40) << 57;
    }
}

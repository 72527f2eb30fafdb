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
//! Versions lie on a shelf in the order in which they came ([`shelf`](super::shelf)), a table of words finds the
//! newest of each row ([`rows`](super::rows)), and each version names the next older one: to keep an image
//! touches one line of memory where nothing lies yet, the row's in the table. A sweep makes shelf and table anew
//! with what is needed, if an eighth of what is there is not; so a part of the memory charged, an eighth at most, may
//! be of versions that nobody needs.
//!
//! The table is swept when it has doubled since the last sweep, when the last snapshot closes, and by
//! maintenance; but not for having doubled while all in it was kept for one snapshot that is still the oldest.

use super::arena::Entry;
use super::image::{ImageBuffer, RowRef};
use super::registry::Open;
use super::rows::Rows;
use super::shelf::{Place, Shelf, Version};
use crate::lock::Dependency;
use crossbeam_utils::CachePadded;
use longshore_base::Lsn;
use longshore_base::sync::Mutex;
use longshore_base::sync::atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering};

/// A power of two.
const SHARDS: usize = if cfg!(loom) { 1 } else { 64 };
/// Names that follow each other share a shard; of this many.
const RUN: u32 = 64;
/// Memory that a version takes beside its record, about: its word in the table.
const OVERHEAD: usize = 16;
/// A shard is made anew if this part of it is needed by nobody.
const WASTE: usize = 8;
/// Fewer are not swept for their number.
const SWEEP_MIN: usize = 4096;

/// Whom all versions were kept for that have come since the last sweep, and were left by it: a position, or one of
/// these.
const NOBODY: u64 = 0;
const SEVERAL: u64 = u64::MAX;

/// The versions kept, by the names of their rows.
#[derive(Debug)]
pub(crate) struct Kept {
    shards: Box<[CachePadded<Mutex<Shard>>]>,
    /// How many there are. Counted after they were put there, so a sweep may come first, and it is below zero for a
    /// moment.
    count: CachePadded<AtomicIsize>,
    /// Swept when there are as many as this.
    sweep_at: AtomicUsize,
    /// See [`NOBODY`]; a hint.
    kept_for: AtomicU64,
}

#[derive(Debug, Default)]
struct Shard {
    rows: Rows,
    shelf: Shelf,
}

/// What a shard has kept, or dropped.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    versions: usize,
    memory: usize,
}

impl Tally {
    fn add(&mut self, version: &Version<'_>) {
        self.versions += 1;
        self.memory += OVERHEAD + version.memory();
    }
}

/// What a sweep has come by.
#[derive(Clone, Copy, Debug, Default)]
struct Swept {
    dropped: Tally,
    left: Tally,
    /// How many of these the oldest snapshot needs.
    left_to_oldest: usize,
}

impl Swept {
    fn add(&mut self, other: Swept) {
        self.dropped.versions += other.dropped.versions;
        self.dropped.memory += other.dropped.memory;
        self.left.versions += other.left.versions;
        self.left_to_oldest += other.left_to_oldest;
    }
}

impl Kept {
    pub fn new() -> Kept {
        Kept {
            shards: (0..SHARDS).map(|_| CachePadded::default()).collect(),
            count: CachePadded::default(),
            sweep_at: AtomicUsize::new(SWEEP_MIN),
            kept_for: AtomicU64::new(NOBODY),
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
        let mut tally = Tally::default();
        let mut is_for_oldest = true;
        let mut entries = entries.peekable();
        while let Some(first) = entries.peek() {
            let at = shard_of(first.hash);
            // Rows written one after the other mostly lie in one shard.
            let mut shard = self.shards[at].lock();
            while let Some(entry) = entries.next_if(|entry| shard_of(entry.hash) == at) {
                let version = Version {
                    commit,
                    seen,
                    store: entry.store,
                    key: entry.key,
                    image: entry.image,
                };
                shard.add(entry.hash, &version, |before| {
                    let is_needed = before != commit && open.needs_now(before, commit);
                    if is_needed {
                        tally.add(&version);
                        is_for_oldest &= open.oldest_needs(before, commit);
                    }
                    is_needed
                });
            }
        }
        if tally.versions > 0 {
            // Relaxed: a count, for deciding when to sweep.
            self.count
                .fetch_add(tally.versions as isize, Ordering::Relaxed);
            self.note_kept_for(open.oldest().filter(|_| is_for_oldest));
        }
        tally.memory
    }

    fn note_kept_for(&self, snapshot: Option<Lsn>) {
        let snapshot = snapshot.map_or(SEVERAL, Lsn::get);
        // Relaxed: a hint.
        let kept_for = self.kept_for.load(Ordering::Relaxed);
        if kept_for != snapshot && kept_for != SEVERAL {
            let now = if kept_for == NOBODY {
                snapshot
            } else {
                SEVERAL
            };
            self.kept_for.store(now, Ordering::Relaxed);
        }
    }

    /// What the row was for a snapshot at `at`; `None` when it has not changed since.
    pub fn find(&self, row: RowRef<'_>, at: Lsn, image: &mut ImageBuffer) -> Option<Dependency> {
        let shard = self.shard(row.hash).lock();
        let newest = shard.newest(row).filter(|&v| shard.shelf.commit(v) >= at)?;
        let older = |&place: &Place| shard.shelf.older(place);
        let first = std::iter::successors(Some(newest), older)
            .take_while(|&place| shard.shelf.commit(place) >= at)
            .last()?;
        let version = shard.shelf.version(first);
        image.set(version.image);
        Some(version.seen)
    }

    /// Whether the row has changed for a snapshot at `at`.
    pub fn has_changed(&self, row: RowRef<'_>, at: Lsn) -> bool {
        let shard = self.shard(row.hash).lock();
        shard
            .newest(row)
            .is_some_and(|newest| shard.shelf.commit(newest) >= at)
    }

    /// Whether anything is kept of the row.
    pub fn has_any(&self, row: RowRef<'_>) -> bool {
        self.has_changed(row, Lsn::ZERO)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        // Relaxed: a count.
        self.count.load(Ordering::Relaxed).max(0) as usize
    }

    /// Whether the table has grown enough for a sweep.
    pub fn is_due(&self) -> bool {
        // Relaxed: a sweep too early or too late does no harm.
        self.count() >= self.sweep_at.load(Ordering::Relaxed)
    }

    /// Whether a sweep would find that all is needed: puts it off, then.
    pub fn put_off(&self, open: &Open) -> bool {
        // Relaxed: a hint; what it misses is dropped later.
        let kept_for = self.kept_for.load(Ordering::Relaxed);
        let is_needed = open.oldest().is_some_and(|at| at.get() == kept_for);
        if is_needed {
            self.note_swept();
        }
        is_needed
    }

    fn note_swept(&self) {
        // Relaxed: see `is_due`.
        self.sweep_at
            .store((2 * self.count()).max(SWEEP_MIN), Ordering::Relaxed);
    }

    /// Drops what no snapshot needs; returns the memory that it took.
    pub fn sweep(&self, open: &Open) -> usize {
        // Relaxed: a hint. What is kept from now on adds to it.
        self.kept_for.store(NOBODY, Ordering::Relaxed);
        let mut swept = Swept::default();
        for shard in &self.shards {
            swept.add(shard.lock().sweep(open));
        }
        // Relaxed: a count.
        self.count
            .fetch_sub(swept.dropped.versions as isize, Ordering::Relaxed);
        if swept.left.versions > 0 {
            let is_for_oldest = swept.left_to_oldest == swept.left.versions;
            self.note_kept_for(open.oldest().filter(|_| is_for_oldest));
        }
        self.note_swept();
        swept.dropped.memory
    }
}

impl Shard {
    fn newest(&self, row: RowRef<'_>) -> Option<Place> {
        self.rows
            .find(row.hash, |place| self.shelf.is_of(place, row))
    }

    /// Adds a version of a row if `is_needed`, which is told the newest commit that is kept of the row.
    fn add(&mut self, hash: u64, version: &Version<'_>, is_needed: impl FnOnce(Lsn) -> bool) {
        let Shard { rows, shelf } = self;
        let row = RowRef {
            hash,
            store: version.store,
            key: version.key,
        };
        let spot = rows.spot(hash, |place| shelf.is_of(place, row));
        let newest = rows.place(spot);
        let before = newest.map_or(Lsn::ZERO, |place| shelf.commit(place));
        debug_assert!(before <= version.commit, "V4");
        if is_needed(before) {
            rows.set(spot, shelf.push(version, newest));
        }
    }

    /// Drops what no snapshot needs, if that is enough.
    fn sweep(&mut self, open: &Open) -> Swept {
        let mut swept = Swept::default();
        for (before, version) in self.shelf.iter() {
            let is_needed = open.needs(before, version.commit);
            let tally = match is_needed {
                true => &mut swept.left,
                false => &mut swept.dropped,
            };
            tally.add(&version);
            swept.left_to_oldest += usize::from(open.oldest_needs(before, version.commit));
        }
        let all = swept.left.memory + swept.dropped.memory;
        if swept.dropped.memory * WASTE > all {
            self.drop_unneeded(open);
        } else {
            swept.left.versions += std::mem::take(&mut swept.dropped).versions;
        }
        swept
    }

    fn drop_unneeded(&mut self, open: &Open) {
        let old = std::mem::take(self);
        for (before, version) in old.shelf.iter() {
            if open.needs(before, version.commit) {
                self.add(version.row().hash, &version, |_| true);
            }
        }
    }
}

/// The shard of a name. Names of keys that count up count up, and stay together for a while.
fn shard_of(hash: u64) -> usize {
    let spread = (hash / u64::from(RUN)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    spread as usize & (SHARDS - 1)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::image::Image;
    use super::super::registry::Registry;
    use super::*;
    use crate::lock::LockName;
    use longshore_access::{RowFlags, ValueKind};
    use longshore_base::StoreId;

    struct World {
        registry: Registry,
        kept: Kept,
        keys: Vec<[u8; 8]>,
    }

    impl World {
        fn new() -> World {
            World {
                registry: Registry::new(8),
                kept: Kept::new(),
                keys: (0..300).map(u64::to_be_bytes).collect(),
            }
        }

        fn row(&self, n: usize) -> RowRef<'_> {
            let key = &self.keys[n];
            RowRef::new(LockName::of_key(StoreId::new(16), key), key)
        }

        /// Every row becomes something else at `commit`; what it was is `value`.
        fn change(&self, commit: u64, value: u8) -> usize {
            let open = self.registry.open_ones(|| Lsn::new(commit + 8));
            let value = [value; 100];
            let entries = (0..self.keys.len()).map(|n| {
                let row = self.row(n);
                let flags = RowFlags::NONE;
                Entry {
                    hash: row.hash,
                    store: row.store,
                    key: row.key,
                    image: Image::Present {
                        flags,
                        value: &value,
                    },
                }
            });
            let commit = Lsn::new(commit);
            self.kept.keep(entries, commit, Dependency::NONE, &open)
        }

        fn snapshot(&self, at: u64) -> usize {
            self.registry.open(|| Lsn::new(at)).unwrap().index
        }

        /// What every row is for a snapshot at `at`, if not what it is now.
        fn seen(&self, at: u64) -> Option<u8> {
            let mut image = ImageBuffer::default();
            let all = (0..self.keys.len()).map(|n| {
                self.kept.find(self.row(n), Lsn::new(at), &mut image)?;
                let (kind, value) = image.row().unwrap();
                assert_eq!((kind, value.len()), (ValueKind::Inline, 100));
                Some(value[0])
            });
            let mut all: Vec<_> = all.collect();
            all.dedup();
            assert_eq!(all.len(), 1, "all rows alike");
            all[0]
        }

        fn open_at(&self, tail: u64) -> Open {
            self.registry.open_ones(|| Lsn::new(tail))
        }
    }

    #[test]
    fn each_snapshot_has_its_versions_before_a_sweep_and_after_it() {
        let world = World::new();
        let old = world.snapshot(16);
        let mut memory = world.change(24, 1);
        let young = world.snapshot(32);
        memory += world.change(40, 2);
        assert_eq!(world.change(56, 3), 0, "nobody sees what was between");
        assert_eq!(world.kept.count(), 600);
        assert_eq!((world.seen(16), world.seen(32)), (Some(1), Some(2)));
        assert_eq!(world.seen(48), None);
        assert_eq!(world.kept.sweep(&world.open_at(64)), 0);

        world.registry.close(young);
        assert_eq!(world.kept.sweep(&world.open_at(64)), memory / 2);
        assert_eq!((world.seen(16), world.kept.count()), (Some(1), 300));
        world.registry.close(old);
        assert_eq!(world.kept.sweep(&world.open_at(64)), memory / 2);
        assert_eq!((world.seen(16), world.kept.count()), (None, 0));
    }

    #[test]
    fn rows_of_one_hash_are_told_apart_by_store_and_key() {
        let world = World::new();
        world.snapshot(16);
        let open = world.open_at(32);
        let rows = [(16, b"one"), (16, b"two"), (17, b"one")].map(|(store, key)| RowRef {
            hash: 42,
            store: StoreId::new(store),
            key,
        });
        for (row, value) in rows.iter().zip([[1], [2], [3]]) {
            let entry = Entry {
                hash: row.hash,
                store: row.store,
                key: row.key,
                image: Image::Present {
                    flags: RowFlags::NONE,
                    value: &value,
                },
            };
            let kept = &world.kept;
            let one = std::iter::once(entry);
            assert!(kept.keep(one, Lsn::new(24), Dependency::NONE, &open) > 0);
        }
        let mut image = ImageBuffer::default();
        for (row, value) in rows.into_iter().zip([[1], [2], [3]]) {
            world.kept.find(row, Lsn::new(16), &mut image).unwrap();
            assert_eq!(image.row().unwrap().1, value);
        }
    }

    #[test]
    fn a_sweep_is_put_off_while_all_is_for_the_oldest() {
        let world = World::new();
        assert!(!world.kept.put_off(&world.open_at(16)));
        let old = world.snapshot(16);
        world.change(24, 1);
        assert!(world.kept.put_off(&world.open_at(32)));
        let young = world.snapshot(32);
        world.change(40, 2);
        assert!(!world.kept.put_off(&world.open_at(48)));
        world.registry.close(young);
        assert!(!world.kept.put_off(&world.open_at(48)));
        world.kept.sweep(&world.open_at(48));
        assert!(world.kept.put_off(&world.open_at(48)));
        world.registry.close(old);
        assert!(!world.kept.put_off(&world.open_at(48)));
    }
}

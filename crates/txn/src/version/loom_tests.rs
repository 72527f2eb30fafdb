//! Every interleaving of one writer and one or two snapshots over one row.
//!
//! The page is a word with a number, under a mutex that stands for the latch; the log is its tail.

use super::read::Seen;
use super::{Image, ImageBuffer, Patience, RowRef, Snapshot, VersionOptions, Versions};
use crate::lock::{CommitLevel, Dependency, LockManager, LockName, LockOptions, Mode};
use longshore_access::ValueKind;
use longshore_base::sync::Mutex;
use longshore_base::sync::atomic::{AtomicU64, Ordering};
use longshore_base::{
    Durability, DurabilityLost, Environment, Lsn, SeededEnvironment, StoreId, TxnId,
};
use loom::thread;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

struct NoLog;

impl Durability for NoLog {
    fn is_durable(&self, _: Lsn) -> bool {
        true
    }

    fn make_durable(&self, _: Lsn) -> Result<(), DurabilityLost> {
        Ok(())
    }
}

struct World {
    locks: Arc<LockManager>,
    versions: Versions,
    tail: AtomicU64,
    /// How often it has changed, and what the row is.
    page: Mutex<(u64, u8)>,
}

const KEY: &[u8] = b"k";
const STORE: StoreId = StoreId::new(16);
const OLD: u8 = 1;
const NEW: u8 = 2;
/// The row is deleted; its slot is there, or purged.
const GHOST: u8 = 10;
const NO_SLOT: u8 = 11;

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Commit,
    Rollback,
}

fn name() -> LockName {
    LockName::of_key(STORE, KEY)
}

fn explore(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(test);
}

impl World {
    fn new() -> Arc<World> {
        let env: Arc<dyn Environment> = Arc::new(SeededEnvironment::new(1));
        let options = LockOptions {
            bytes_max: 1 << 20,
            owners_max: 2,
            search_interval: Duration::from_secs(1),
            ..LockOptions::default()
        };
        let locks = LockManager::new(options, Arc::new(NoLog), Arc::clone(&env));
        let versions = Versions::new(2, VersionOptions::default(), env);
        locks.keep_for(versions.past());
        Arc::new(World {
            locks,
            versions,
            tail: AtomicU64::new(64),
            page: Mutex::new((0, OLD)),
        })
    }

    fn tail(&self) -> Lsn {
        Lsn::new(self.tail.load(Ordering::SeqCst))
    }

    /// Changes the row and ends; where it has committed.
    fn write(&self, value: u8, number: u64, end: End) -> Lsn {
        let txn = TxnId::new(number);
        let mut owner = self.locks.register(0, txn);
        assert!(
            self.locks
                .try_lock(&mut owner, name(), Mode::WRITE)
                .unwrap()
        );
        let patience = Patience {
            limit: Duration::ZERO,
            tail: &|| self.tail(),
        };
        let _ = self.versions.make_room(0, txn, 64, &patience).unwrap();
        let before = {
            let mut page = self.page.lock();
            let image = Image::of_kind(ValueKind::Inline, std::slice::from_ref(&page.1));
            let row = RowRef::new(name(), KEY);
            self.versions.capture(0, row, image, Dependency::NONE);
            let before = page.1;
            *page = (page.0 + 1, value);
            before
        };
        let mut commit = Lsn::ZERO;
        if end == End::Commit {
            self.versions.begin_commit(0, CommitLevel::None);
            commit = Lsn::new(self.tail.fetch_add(8, Ordering::SeqCst));
            self.versions
                .committed(0, commit, CommitLevel::None, || self.tail());
        } else {
            let mut page = self.page.lock();
            *page = (page.0 + 1, before);
        }
        let dependency = Dependency::new(commit, CommitLevel::None);
        self.locks.release_all(&mut owner, dependency);
        self.versions.end(0, &|| self.tail());
        commit
    }

    fn open(&self) -> Snapshot {
        self.versions.open(|| self.tail()).unwrap()
    }

    /// The row as the snapshot sees it.
    fn read(&self, snapshot: &Snapshot) -> u8 {
        let mut image = ImageBuffer::default();
        loop {
            let before = *self.page.lock();
            let me = TxnId::new(77);
            let seen = self
                .versions
                .look(&self.locks, snapshot, me, name(), KEY, &mut image);
            if *self.page.lock() != before {
                continue;
            }
            match seen {
                Seen::InPage(_) => return before.1,
                Seen::Image(_) => return image.row().unwrap().1[0],
                Seen::Again => thread::yield_now(),
                Seen::TooOld => panic!("there is room"),
            }
        }
    }

    /// The row as a scan finds it, if there is one.
    fn scan(&self, snapshot: &Snapshot) -> Option<u8> {
        let removed = &self.versions.past().removed;
        loop {
            let before = *self.page.lock();
            let is_listed = removed.concerns(snapshot.at)
                && !removed
                    .keys(STORE, Bound::Unbounded, Bound::Unbounded)
                    .is_empty();
            if before.1 == NO_SLOT && !is_listed {
                return None;
            }
            let seen = self.read(snapshot);
            if *self.page.lock() == before {
                return Some(seen).filter(|&seen| seen != GHOST && seen != NO_SLOT);
            }
        }
    }

    fn close(&self, snapshot: Snapshot) {
        self.versions.close(snapshot, || self.tail());
    }
}

/// V2, V3: whatever the snapshot reads agrees with where the commit record lies.
#[test]
fn a_snapshot_and_a_commit_agree_on_who_came_first() {
    explore(3, || {
        let world = World::new();
        let theirs = Arc::clone(&world);
        let writer = thread::spawn(move || theirs.write(NEW, 5, End::Commit));
        let snapshot = world.open();
        let seen = world.read(&snapshot);
        let commit = writer.join().unwrap();
        let expected = if commit < snapshot.at { NEW } else { OLD };
        assert_eq!(seen, expected);
        assert_eq!(world.read(&snapshot), expected);
        world.close(snapshot);
        assert_eq!(world.versions.stats().kept, 0);
    });
}

#[test]
fn a_snapshot_does_not_see_what_is_taken_back() {
    explore(3, || {
        let world = World::new();
        let theirs = Arc::clone(&world);
        let writer = thread::spawn(move || theirs.write(NEW, 5, End::Rollback));
        let snapshot = world.open();
        assert_eq!(world.read(&snapshot), OLD);
        writer.join().unwrap();
        assert_eq!(world.read(&snapshot), OLD);
        world.close(snapshot);
    });
}

/// 6 of the header: the slot, and the row, change hands between two looks.
#[test]
fn a_slot_that_changes_hands_misleads_nobody() {
    explore(2, || {
        let world = World::new();
        let snapshot = world.open();
        let theirs = Arc::clone(&world);
        let writer = thread::spawn(move || {
            theirs.write(NEW, 5, End::Commit);
            theirs.write(NEW + 1, 6, End::Commit);
        });
        assert_eq!(world.read(&snapshot), OLD);
        writer.join().unwrap();
        assert_eq!(world.read(&snapshot), OLD);
        world.close(snapshot);
    });
}

/// V5: sweeps beside commits and other snapshots drop nothing that is needed.
#[test]
fn a_sweep_drops_nothing_that_a_snapshot_needs() {
    explore(2, || {
        let world = World::new();
        let old = world.open();
        let theirs = Arc::clone(&world);
        let writer = thread::spawn(move || theirs.write(NEW, 5, End::Commit));
        let young = world.open();
        world.versions.sweep(|| world.tail());
        let seen = world.read(&young);
        let commit = writer.join().unwrap();
        world.versions.sweep(|| world.tail());
        let expected = if commit < young.at { NEW } else { OLD };
        assert_eq!(
            (world.read(&old), seen, world.read(&young)),
            (OLD, expected, expected)
        );
        world.close(young);
        world.close(old);
        assert_eq!(world.versions.stats().kept, 0);
    });
}

/// A snapshot that opens, and a commit that keeps for it, between the two steps of a sweep.
#[test]
fn a_sweep_leaves_what_is_kept_for_those_who_open_meanwhile() {
    explore(2, || {
        let world = World::new();
        let theirs = Arc::clone(&world);
        let sweeper = thread::spawn(move || theirs.versions.sweep(|| theirs.tail()));
        let snapshot = world.open();
        let commit = world.write(NEW, 5, End::Commit);
        assert!(commit >= snapshot.at);
        sweeper.join().unwrap();
        assert_eq!(world.read(&snapshot), OLD);
        world.close(snapshot);
    });
}

/// A commit keeps for a snapshot that is just opening, and a sweep behind it finds that still without a position.
#[test]
fn a_sweep_leaves_what_is_kept_for_one_who_is_opening() {
    explore(2, || {
        let world = World::new();
        let theirs = Arc::clone(&world);
        let writer = thread::spawn(move || {
            let commit = theirs.write(NEW, 5, End::Commit);
            theirs.versions.sweep(|| theirs.tail());
            commit
        });
        let snapshot = world.open();
        let seen = world.read(&snapshot);
        let commit = writer.join().unwrap();
        let expected = if commit < snapshot.at { NEW } else { OLD };
        assert_eq!((seen, world.read(&snapshot)), (expected, expected));
        world.close(snapshot);
    });
}

/// V6: a ghost goes only if a scan finds the row, as its snapshot sees it, without a slot.
#[test]
fn a_scan_finds_a_row_whose_ghost_is_purged() {
    explore(3, || {
        let world = World::new();
        let theirs = Arc::clone(&world);
        let purger = thread::spawn(move || {
            let commit = theirs.write(GHOST, 5, End::Commit);
            let mut page = theirs.page.lock();
            if theirs.locks.is_free(name(), KEY) {
                *page = (page.0 + 1, NO_SLOT);
            }
            commit
        });
        let snapshot = world.open();
        let seen = world.scan(&snapshot);
        let commit = purger.join().unwrap();
        let expected = (commit >= snapshot.at).then_some(OLD);
        assert_eq!((seen, world.scan(&snapshot)), (expected, expected), "V6");
        world.close(snapshot);
        assert!(world.versions.past().is_empty());
    });
}

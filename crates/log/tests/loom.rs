//! Every interleaving of reservation, filling, publication, taking and releasing; and of entering and
//! leaving the roles.
//!
//! Run by `RUSTFLAGS="--cfg loom" cargo test -p longshore-log --test loom --release`.

#![cfg(loom)]

use longshore_base::sync::{Arc, Mutex, RwLock, thread};
use longshore_log::Record;
use longshore_log::group::{Goal, Group, Role};
use longshore_log::ring::{Ring, Taker};
use longshore_log::staging::Staging;

/// Bodies of the records found in `out`, which must be whole.
fn bodies(mut out: &[u8]) -> Vec<u64> {
    let mut bodies = Vec::new();
    while !out.is_empty() {
        let length = u32::from_le_bytes(out[..4].try_into().unwrap());
        assert_eq!(length, 40, "a record of the test");
        assert_eq!(out[8], 1, "its kind is there when it is published");
        let body = u64::from_le_bytes(out[32..40].try_into().unwrap());
        assert_ne!(body, 0, "its body is there when it is published");
        bodies.push(body);
        out = &out[40..];
    }
    bodies
}

fn take_some(ring: &Ring, taker: &mut Taker, out: &mut Vec<u8>) {
    let mut bytes = Vec::new();
    ring.take(taker, &mut bytes, usize::MAX);
    out.append(&mut bytes);
    ring.release(taker);
}

/// Explores with at most three preemptions: enough for every known bug, and it ends.
fn explore(test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(test);
}

fn take_until(ring: &Ring, taker: &mut Taker, bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while out.len() < bytes {
        let before = out.len();
        take_some(ring, taker, &mut out);
        if out.len() == before {
            thread::yield_now();
        }
    }
    out
}

/// Two appenders with room for both: the order is that of their reservations.
#[test]
fn records_are_taken_whole_once_and_in_order() {
    explore(|| {
        let (ring, mut taker) = Ring::new(128, 0);
        let ring = Arc::new(ring);
        let other = {
            let ring = ring.clone();
            thread::spawn(move || ring.append(&1_u64.to_le_bytes()))
        };
        let taking = {
            let ring = ring.clone();
            thread::spawn(move || take_until(&ring, &mut taker, 80))
        };
        let mine = ring.append(&2_u64.to_le_bytes());
        let mut expected = [(other.join().unwrap(), 1), (mine, 2)];
        expected.sort();
        assert_eq!(
            bodies(&taking.join().unwrap()),
            expected.map(|(_, body)| body)
        );
    });
}

/// A ring with room for one record and a half: the second lap waits for the first.
#[test]
fn a_full_ring_is_filled_again_only_when_taken_and_zeroed() {
    explore(|| {
        let (ring, mut taker) = Ring::new(64, 0);
        let ring = Arc::new(ring);
        let appender = {
            let ring = ring.clone();
            thread::spawn(move || {
                ring.append(&1_u64.to_le_bytes());
                ring.append(&2_u64.to_le_bytes());
            })
        };
        let out = take_until(&ring, &mut taker, 80);
        appender.join().unwrap();
        assert_eq!(bodies(&out), [1, 2]);
        assert_eq!(taker.position(), ring.tail());
    });
}

/// The bug put back: word 0 is stored before the others.
#[test]
#[should_panic(expected = "is there when it is published")]
fn publishing_before_filling_is_caught() {
    loom::model(|| {
        let (ring, mut taker) = Ring::new(64, 0);
        let ring = Arc::new(ring);
        let appender = {
            let ring = ring.clone();
            thread::spawn(move || ring.append_published_too_early(&7_u64.to_le_bytes()))
        };
        let mut out = Vec::new();
        take_some(&ring, &mut taker, &mut out);
        bodies(&out);
        appender.join().unwrap();
    });
}

/// The bug put back: the space is given back before it is zeroed.
#[test]
#[should_panic]
fn releasing_before_zeroing_is_caught() {
    loom::model(|| {
        let (ring, mut taker) = Ring::new(64, 0);
        let ring = Arc::new(ring);
        ring.append(&1_u64.to_le_bytes());
        let appender = {
            let ring = ring.clone();
            thread::spawn(move || ring.append(&2_u64.to_le_bytes()))
        };
        let mut out = Vec::new();
        ring.take_released_too_early(&mut taker, &mut out);
        appender.join().unwrap();
        take_some(&ring, &mut taker, &mut out);
        assert_eq!(bodies(&out), [1, 2]);
    });
}

/// Reads the record at 0 back, whose body is 1, while the writer takes it and its words are filled again.
fn read_back(find: fn(&Ring, &RwLock<Staging>, &Taker) -> Option<Record>) {
    explore(move || {
        let (ring, taker) = Ring::new(64, 0);
        let stale = taker.clone();
        let (ring, staging) = (Arc::new(ring), Arc::new(RwLock::new(Staging::new(taker))));
        ring.append(&1_u64.to_le_bytes());
        let appender = {
            let ring = ring.clone();
            thread::spawn(move || ring.append(&2_u64.to_le_bytes()))
        };
        let writer = {
            let (ring, staging) = (ring.clone(), staging.clone());
            thread::spawn(move || {
                let taken = staging.write().fill(&ring, 1);
                assert_eq!(taken.bytes, 40);
            })
        };
        let record = find(&ring, &staging, &stale).expect("it is in the ring or in the buffer");
        assert_eq!(
            record.body,
            1_u64.to_le_bytes(),
            "the record that was asked for"
        );
        appender.join().unwrap();
        writer.join().unwrap();
    });
}

/// A record that is being taken, while its words wait to be filled again, is found whole.
#[test]
fn a_record_is_read_back_whole_while_it_is_taken() {
    read_back(|ring, staging, _| staging.read().find(ring, 0));
}

/// The bug put back: the taker moves on while the record is copied.
#[test]
#[should_panic(expected = "the record that was asked for")]
fn reading_back_beside_the_taker_is_caught() {
    read_back(|ring, _, stale| ring.copy(stale, 0).or_else(|| ring.copy(stale, 0)));
}

/// A record that is being published is found whole, or not at all.
#[test]
fn a_record_is_read_back_only_when_published() {
    explore(|| {
        let (ring, taker) = Ring::new(64, 0);
        let ring = Arc::new(ring);
        let appender = {
            let ring = ring.clone();
            thread::spawn(move || ring.append(&7_u64.to_le_bytes()))
        };
        if let Some(record) = Staging::new(taker).find(&ring, 0) {
            assert_eq!(record.body, 7_u64.to_le_bytes());
        }
        appender.join().unwrap();
    });
}

/// What is written and synced, under the roles.
#[derive(Default)]
struct File {
    written: Mutex<u64>,
    synced: Mutex<u64>,
}

/// Follows the protocol of `Flusher::wait_for` on a log whose tail is at 2.
fn wait_for(group: &Group, file: &File, goal: Goal) {
    while let Some(mut role) = group.enter(goal) {
        if role.role() != Role::Syncer {
            let mut written = file.written.try_lock().expect("G1: one writer");
            // As little as possible, so that others' goals stay open.
            *written += 1;
            group.raise(Goal::Written(*written));
        }
        if role.role() != Role::Writer {
            let mut synced = file.synced.try_lock().expect("G1: one syncer");
            *synced = role.begin_syncing();
            let to = *synced;
            drop(synced);
            role.end_syncing(to);
        }
    }
}

fn waiters<const COUNT: usize>(goals: [Goal; COUNT]) {
    explore(move || {
        let shared = Arc::new((Group::new(0), File::default()));
        let others: Vec<_> = goals[1..]
            .iter()
            .map(|&goal| {
                let shared = shared.clone();
                thread::spawn(move || wait_for(&shared.0, &shared.1, goal))
            })
            .collect();
        wait_for(&shared.0, &shared.1, goals[0]);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert!(goals.iter().all(|goal| shared.0.is_reached(*goal)));
    });
}

#[test]
fn nobody_sleeps_while_a_role_is_free() {
    waiters([Goal::Synced(2), Goal::Synced(1)]);
    waiters([Goal::Written(2), Goal::Synced(1)]);
}

/// Two sleep while one leads: in one room, in the two rooms, in rooms of either kind.
#[test]
fn everybody_is_called_whatever_room_he_sleeps_in() {
    waiters([Goal::Synced(1), Goal::Synced(2), Goal::Synced(2)]);
    waiters([Goal::Synced(1), Goal::Synced(1), Goal::Synced(2)]);
    waiters([Goal::Written(1), Goal::Written(2), Goal::Synced(1)]);
}

/// A failure reaches a waiter whenever it comes.
#[test]
fn a_failure_wakes_whoever_waits() {
    let fail_if_leading = |group: &Group| {
        while let Some(role) = group.enter(Goal::Synced(1)) {
            group.fail("the disk broke");
            drop(role);
        }
    };
    loom::model(move || {
        let group = Arc::new(Group::new(0));
        let failing = {
            let group = group.clone();
            thread::spawn(move || fail_if_leading(&group))
        };
        fail_if_leading(&group);
        assert!(group.check().is_err());
        failing.join().unwrap();
    });
}

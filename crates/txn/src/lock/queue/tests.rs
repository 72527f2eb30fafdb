//! The queue alone, step by step: who is called, who passes whom, and for how long.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

fn name(n: u64) -> LockName {
    LockName::of_parts(n, 0)
}

fn queue() -> Queue {
    let mut queue = Queue::default();
    queue.0.reserve(64);
    queue
}

fn ask(queue: &mut Queue, owner: OwnerIndex, mode: Mode) -> Acquired {
    match queue.acquire(name(7), owner, mode) {
        Acquired::Blocked => queue.enqueue(name(7), owner, mode),
        done => done,
    }
}

/// Those whose turn it is.
fn serve(queue: &mut Queue, name: LockName) -> Vec<(OwnerIndex, Turn)> {
    let mut told = Vec::new();
    queue.serve(name, |owner, turn| told.push((owner, turn)));
    told
}

/// Releases, and has those come at once who are called; returns who got the lock.
fn end(queue: &mut Queue, owner: OwnerIndex) -> Vec<OwnerIndex> {
    queue.release(name(7), owner);
    let told = serve(queue, name(7));
    for (owner, _) in &told {
        assert_eq!(queue.claim(name(7), *owner), Claimed::Granted);
    }
    told.into_iter().map(|(owner, _)| owner).collect()
}

/// Releases, and those who are called sleep on.
fn leave(queue: &mut Queue, owner: OwnerIndex) -> Vec<(OwnerIndex, Turn)> {
    queue.release(name(7), owner);
    serve(queue, name(7))
}

#[test]
fn a_request_fits_four_to_a_cache_line() {
    assert_eq!(size_of::<Request>(), 16);
}

#[test]
fn readers_behind_a_waiting_writer_wait_too() {
    let mut q = queue();
    assert_eq!(ask(&mut q, 1, Mode::READ), Acquired::Granted);
    assert_eq!(ask(&mut q, 2, Mode::WRITE), Acquired::Blocked);
    assert_eq!(ask(&mut q, 3, Mode::READ), Acquired::Blocked);
    assert_eq!(end(&mut q, 1), [2]);
    assert_eq!(end(&mut q, 2), [3]);
}

#[test]
fn a_conversion_passes_new_waiters() {
    let mut q = queue();
    assert_eq!(ask(&mut q, 1, Mode::READ), Acquired::Granted);
    assert_eq!(ask(&mut q, 2, Mode::READ), Acquired::Granted);
    assert_eq!(ask(&mut q, 3, Mode::WRITE), Acquired::Blocked);
    assert_eq!(ask(&mut q, 1, Mode::WRITE), Acquired::Blocked);
    assert_eq!(end(&mut q, 2), [1]);
    assert_eq!(end(&mut q, 1), [3]);
}

/// Q3: readers without end, of whom some are there at any time, and none passes who waits.
#[test]
fn a_stream_of_readers_delays_neither_a_conversion_nor_a_new_waiter() {
    let mut q = queue();
    let mut stream = 10..50;
    let mut comes = |q: &mut Queue| ask(q, stream.next().unwrap(), Mode::READ);
    assert_eq!(ask(&mut q, 3, Mode::UPDATE), Acquired::Granted);
    for _ in 0..5 {
        assert_eq!(
            comes(&mut q),
            Acquired::Granted,
            "nobody wants to change it yet"
        );
    }
    assert_eq!(ask(&mut q, 4, Mode::WRITE), Acquired::Blocked);
    for _ in 0..5 {
        assert_eq!(comes(&mut q), Acquired::Blocked);
    }
    assert_eq!(ask(&mut q, 3, Mode::WRITE), Acquired::Blocked);
    for reader in 10..14 {
        assert_eq!(comes(&mut q), Acquired::Blocked);
        assert_eq!(end(&mut q, reader), []);
    }
    assert_eq!(
        end(&mut q, 14),
        [3],
        "the last reader that was there before"
    );
    assert_eq!(comes(&mut q), Acquired::Blocked);
    assert_eq!(end(&mut q, 3), [4]);
    assert_eq!(comes(&mut q), Acquired::Blocked);
    let waited: Vec<OwnerIndex> = (15..26).collect();
    assert_eq!(end(&mut q, 4), waited);
}

#[test]
fn a_conversion_does_not_pass_an_earlier_one() {
    let mut q = queue();
    assert_eq!(ask(&mut q, 1, Mode::READ), Acquired::Granted);
    assert_eq!(ask(&mut q, 2, Mode::READ), Acquired::Granted);
    assert_eq!(ask(&mut q, 1, Mode::WRITE), Acquired::Blocked);
    // It could go beside what 1 holds, and 1 would wait for it as well.
    assert_eq!(ask(&mut q, 2, Mode::UPDATE), Acquired::Blocked);
}

#[test]
fn a_conversion_that_gives_up_keeps_what_it_held() {
    let mut q = queue();
    assert_eq!(ask(&mut q, 1, Mode::READ), Acquired::Granted);
    assert_eq!(ask(&mut q, 2, Mode::READ), Acquired::Granted);
    assert_eq!(ask(&mut q, 1, Mode::WRITE), Acquired::Blocked);
    assert_eq!(q.withdraw(name(7), 1), Withdrawn::Yes);
    assert!(q.is_held_by(name(7), 1));
    assert_eq!(ask(&mut q, 2, Mode::WRITE), Acquired::Blocked);
    assert_eq!(end(&mut q, 1), [2]);
}

#[test]
fn a_compatible_request_does_not_wait_behind_strangers() {
    let mut q = queue();
    assert_eq!(ask(&mut q, 1, Mode::READ_GAP), Acquired::Granted);
    assert_eq!(ask(&mut q, 2, Mode::INSERT), Acquired::Blocked);
    // The key part has nothing to do with the gap that the two argue about.
    assert_eq!(ask(&mut q, 3, Mode::WRITE), Acquired::Granted);
}

#[test]
fn withdrawing_lets_the_next_pass() {
    let mut q = queue();
    assert_eq!(ask(&mut q, 1, Mode::READ), Acquired::Granted);
    assert_eq!(ask(&mut q, 2, Mode::WRITE), Acquired::Blocked);
    assert_eq!(ask(&mut q, 3, Mode::READ), Acquired::Blocked);
    assert_eq!(q.withdraw(name(7), 2), Withdrawn::Yes);
    assert_eq!(serve(&mut q, name(7)), [(3, Turn::Called)]);
    assert_eq!(q.withdraw(name(7), 3), Withdrawn::AlreadyGranted);
}

fn mode() -> impl Strategy<Value = Mode> {
    prop::sample::select(vec![
        Mode::READ,
        Mode::UPDATE,
        Mode::WRITE,
        Mode::READ_GAP,
        Mode::READ_RANGE,
        Mode::INSERT,
        Mode::WRITE_RANGE,
    ])
}

/// Newcomers come while a waiter that was called sleeps: so many pass, and not one more.
#[test]
fn a_waiter_is_passed_at_most_so_often() {
    let mut q = queue();
    assert_eq!(ask(&mut q, 1, Mode::WRITE), Acquired::Granted);
    assert_eq!(ask(&mut q, 2, Mode::WRITE), Acquired::Blocked);
    assert_eq!(leave(&mut q, 1), [(2, Turn::Called)]);
    for _ in 1..PATIENCE {
        assert_eq!(ask(&mut q, 3, Mode::WRITE), Acquired::Granted);
        assert_eq!(leave(&mut q, 3), [], "it is called only once");
    }
    assert_eq!(ask(&mut q, 3, Mode::WRITE), Acquired::Granted);
    assert_eq!(leave(&mut q, 3), [(2, Turn::Granted)]);
    assert_eq!(ask(&mut q, 3, Mode::WRITE), Acquired::Blocked);
    assert_eq!(q.claim(name(7), 2), Claimed::Granted);
}

/// Whenever it comes, somebody has the lock again; soon it is handed over.
#[test]
fn who_comes_in_vain_is_soon_granted_the_lock() {
    let mut q = queue();
    assert_eq!(ask(&mut q, 1, Mode::WRITE), Acquired::Granted);
    assert_eq!(ask(&mut q, 2, Mode::WRITE), Acquired::Blocked);
    for _ in 0..PATIENCE.div_ceil(VAIN + 1) {
        assert_eq!(leave(&mut q, 1), [(2, Turn::Called)]);
        assert_eq!(ask(&mut q, 1, Mode::WRITE), Acquired::Granted);
        assert_eq!(q.claim(name(7), 2), Claimed::Passed);
    }
    assert_eq!(leave(&mut q, 1), [(2, Turn::Granted)]);
}

/// Readers without end pass a writer that was called; as it has come, they wait for it.
#[test]
fn readers_pass_a_writer_only_while_it_sleeps() {
    let mut q = queue();
    assert_eq!(ask(&mut q, 1, Mode::WRITE), Acquired::Granted);
    assert_eq!(ask(&mut q, 2, Mode::WRITE), Acquired::Blocked);
    assert_eq!(leave(&mut q, 1), [(2, Turn::Called)]);
    assert_eq!(ask(&mut q, 3, Mode::READ), Acquired::Granted);
    assert_eq!(ask(&mut q, 4, Mode::READ), Acquired::Granted);
    assert_eq!(q.claim(name(7), 2), Claimed::Passed);
    assert_eq!(ask(&mut q, 5, Mode::READ), Acquired::Blocked);
    assert_eq!(leave(&mut q, 3), []);
    assert_eq!(leave(&mut q, 4), [(2, Turn::Called)]);
}

#[test]
fn nobody_passes_a_conversion() {
    let mut q = queue();
    assert_eq!(ask(&mut q, 1, Mode::UPDATE), Acquired::Granted);
    assert_eq!(ask(&mut q, 2, Mode::READ), Acquired::Granted);
    assert_eq!(ask(&mut q, 1, Mode::WRITE), Acquired::Blocked);
    assert_eq!(ask(&mut q, 3, Mode::READ), Acquired::Blocked);
    assert_eq!(leave(&mut q, 2), [(1, Turn::Granted)]);
    assert_eq!(ask(&mut q, 4, Mode::READ), Acquired::Blocked);
}

/// The one who was called gives up: the lock is its own if it is free, else the next one's turn comes.
#[test]
fn who_gives_up_as_it_is_called_keeps_nobody_waiting() {
    let mut q = queue();
    assert_eq!(ask(&mut q, 1, Mode::WRITE), Acquired::Granted);
    for owner in [2, 3] {
        assert_eq!(ask(&mut q, owner, Mode::WRITE), Acquired::Blocked);
    }
    assert_eq!(leave(&mut q, 1), [(2, Turn::Called)]);
    assert_eq!(ask(&mut q, 4, Mode::WRITE), Acquired::Granted);
    assert_eq!(q.withdraw(name(7), 2), Withdrawn::Yes);
    assert_eq!(serve(&mut q, name(7)), []);
    assert_eq!(leave(&mut q, 4), [(3, Turn::Called)]);
    assert_eq!(q.withdraw(name(7), 3), Withdrawn::AlreadyGranted);
    assert!(q.is_held_by(name(7), 3));
}

proptest! {
    /// Q1 to Q4 after every step of a random run.
    #[test]
    fn random_runs_keep_the_invariants(
        steps in prop::collection::vec((0u8..4, 0u32..8, 0u64..3, mode()), 1..120)
    ) {
        let mut q = queue();
        let mut passed = HashMap::new();
        for (what, owner, number, mode) in steps {
            // Two that differ by the word, two by the rest alone.
            let name = LockName::of_parts(number % 2, (number / 2) as u16);
            let waits = |r: &Request| r.owner() == owner && r.is_waiting();
            let awaited = q.iter().find(|r| waits(r)).map(Request::name);
            match (what, awaited) {
                (0, None) => lock_or_wait(&mut q, name, owner, mode, &mut passed),
                (1, Some(name)) => {
                    let _ = q.withdraw(name, owner);
                    let _ = serve(&mut q, name);
                }
                (2, None) => {
                    q.release(name, owner);
                    let _ = serve(&mut q, name);
                }
                (3, Some(name)) if q.of(name).any(|r| waits(r) && r.is_called) => {
                    let _ = q.claim(name, owner);
                }
                _ => {}
            }
            check(&q);
        }
    }
}

/// Counts in `passed` who passed whom.
fn lock_or_wait(
    q: &mut Queue,
    name: LockName,
    owner: OwnerIndex,
    mode: Mode,
    passed: &mut HashMap<OwnerIndex, u8>,
) {
    let in_the_way = |r: &&Request| r.is_waiting() && !r.wanted.is_compatible(mode);
    let first = q.of(name).find(in_the_way).copied();
    match (q.acquire(name, owner, mode), first) {
        (Acquired::Blocked, _) => {
            let _ = q.enqueue(name, owner, mode);
            passed.insert(owner, 0);
        }
        (Acquired::Granted, Some(first)) => {
            let count = passed.get_mut(&first.owner()).unwrap();
            *count += 1;
            assert!(*count <= PATIENCE, "Q3: {first:?}");
            assert!(!is_conversion(&first), "Q3: {first:?}");
        }
        _ => {}
    }
}

fn check(q: &Queue) {
    for (i, a) in q.iter().enumerate() {
        for b in q.iter().skip(i + 1).filter(|b| b.name() == a.name()) {
            assert_ne!(a.owner, b.owner, "Q4");
            assert!(a.held.is_compatible(b.held), "Q1: {a:?} {b:?}");
        }
        assert!(a.wanted.covers(a.held));
        if a.is_waiting() {
            let is_blocked = q.blockers(i).next().is_some();
            assert!(is_blocked || a.is_called, "Q2: {a:?} in {q:?}");
        }
    }
}

//! The requests of one bucket: a plain sequential structure, run under the bucket's latch.
//!
//! # Protocol
//! A request is *granted* when it holds what it wants, and *waits* otherwise; a waiting request that
//! holds something is a *conversion*. The requests for one name keep this order in the list, other
//! names in between:
//!
//! ```text
//!     granted, in any order | conversions, first come first | new waiters, first come first
//! ```
//!
//! A request is *blocked* by each other owner's request for its name that holds a mode incompatible
//! with the wanted one, and by each waiting request before it whose wanted mode is incompatible.
//!
//! # Invariants
//! Q1. The modes held on one name by different owners are pairwise compatible.
//! Q2. A request waits only if it is blocked: whoever removes or weakens a request runs `grant`.
//! Q3. Nobody starves: a request is never delayed by a new one that came after it, for that one is
//! granted only when compatible with it; conversions pass new waiters, but only holders convert, and
//! no incompatible holder comes in past a waiter.
//! Q4. An owner has at most one request for a name.

use super::mode::Mode;
use super::name::LockName;
use smallvec::SmallVec;

/// A transaction's number within the lock manager: the index of its slot.
pub(crate) type OwnerIndex = u32;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// The name's word, and what it leaves out.
    hash: u64,
    rest: u16,
    pub owner: OwnerIndex,
    pub held: Mode,
    /// Covers `held`; the two differ while the request waits.
    pub wanted: Mode,
}

impl Request {
    /// What it is for.
    pub fn name(&self) -> LockName {
        LockName::of_parts(self.hash, self.rest)
    }

    #[inline]
    fn is_for(&self, name: LockName) -> bool {
        self.hash == name.hash() && self.rest == name.rest()
    }

    fn is_waiting(&self) -> bool {
        self.held != self.wanted
    }
}

/// Requests that lie inside the bucket's own cache line.
const INLINE: usize = 2;

/// The requests of one bucket, in order.
#[derive(Debug, Default)]
pub(crate) struct Queue(SmallVec<[Request; INLINE]>);

/// What became of a request.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Acquired {
    /// The owner held enough already.
    Covered,
    /// The owner holds the mode now and had nothing on this name before.
    Granted,
    /// The owner's lock on this name was strengthened.
    Converted,
    /// Nothing has changed; others are in the way.
    Blocked,
    /// Nothing has changed; there is no room for one more request.
    Full,
}

/// What the end of a wait found.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Withdrawn {
    /// The request is gone, or back at the mode it held before.
    Yes,
    /// It had been granted in the meantime.
    AlreadyGranted,
}

impl Queue {
    /// Grants `mode` to `owner` if nobody is in the way.
    #[inline]
    pub fn acquire(&mut self, name: LockName, owner: OwnerIndex, mode: Mode) -> Acquired {
        let mut mine = None;
        let mut free = true;
        for (at, request) in self.0.iter().enumerate() {
            if !request.is_for(name) {
                continue;
            }
            if request.owner == owner {
                mine = Some(at);
            } else if !request.wanted.is_compatible(mode) {
                // Covers what is held as well as what a waiter before us wants.
                free = false;
            }
        }
        match mine {
            None if free => self.push(name, owner, mode, mode),
            None => Acquired::Blocked,
            Some(at) => self.convert(name, at, mode),
        }
    }

    /// Strengthens the granted request at `at` if no other holder and no earlier conversion objects.
    fn convert(&mut self, name: LockName, at: usize, mode: Mode) -> Acquired {
        let mine = self.0[at];
        let wanted = mine.held.supremum(mode);
        if wanted == mine.held {
            return Acquired::Covered;
        }
        let blocked = self.0.iter().any(|r| {
            r.is_for(name)
                && r.owner != mine.owner
                && (!r.held.is_compatible(wanted)
                    || is_conversion(r) && !r.wanted.is_compatible(wanted))
        });
        if blocked {
            return Acquired::Blocked;
        }
        self.0[at].held = wanted;
        self.0[at].wanted = wanted;
        Acquired::Converted
    }

    /// Lines up for `mode`. Only after `acquire` returned `Blocked` under the same latch.
    ///
    /// Returns false when there is no room.
    pub fn enqueue(&mut self, name: LockName, owner: OwnerIndex, mode: Mode) -> Acquired {
        let Some(at) = self.position(name, owner) else {
            return match self.push(name, owner, Mode::NONE, mode) {
                Acquired::Granted => Acquired::Blocked,
                other => other,
            };
        };
        let mut mine = self.remove(at);
        debug_assert!(!mine.is_waiting(), "an owner waits for one lock at a time");
        mine.wanted = mine.held.supremum(mode);
        let first_new = |r: &Request| r.is_for(name) && r.is_waiting() && !is_conversion(r);
        let before = self.0.iter().position(first_new).unwrap_or(self.0.len());
        self.0.insert(before, mine);
        Acquired::Blocked
    }

    /// Enters a request that is granted already; the owner has none for `name`.
    pub fn enter(&mut self, name: LockName, owner: OwnerIndex, mode: Mode) -> Acquired {
        debug_assert!(self.position(name, owner).is_none(), "Q4");
        self.push(name, owner, mode, mode)
    }

    /// Drops `owner`'s request for `name`; returns the mode it held, if there was one.
    #[inline]
    pub fn release(&mut self, name: LockName, owner: OwnerIndex) -> Option<Mode> {
        let at = self.position(name, owner)?;
        Some(self.remove(at).held)
    }

    /// Drops one of `owner`'s requests for names with the word `hash`; there is more than one only if
    /// two stores have one each.
    #[inline]
    pub fn release_any(&mut self, hash: u64, owner: OwnerIndex) -> Option<Request> {
        let is_mine = |r: &Request| r.hash == hash && r.owner == owner;
        let at = self.0.iter().position(is_mine)?;
        Some(self.remove(at))
    }

    /// Whether `owner` holds anything on `name`.
    pub fn is_held_by(&self, name: LockName, owner: OwnerIndex) -> bool {
        let mine = self.of(name).find(|r| r.owner == owner);
        mine.is_some_and(|r| r.held != Mode::NONE)
    }

    /// Ends `owner`'s wait for `name` unless it has been granted.
    pub fn withdraw(&mut self, name: LockName, owner: OwnerIndex) -> Withdrawn {
        match self.position(name, owner) {
            Some(at) if self.0[at].is_waiting() => {
                if is_conversion(&self.0[at]) {
                    self.0[at].wanted = self.0[at].held;
                } else {
                    self.remove(at);
                }
                Withdrawn::Yes
            }
            _ => Withdrawn::AlreadyGranted,
        }
    }

    /// Grants every waiting request for `name` that nothing blocks any more, in order.
    pub fn grant(&mut self, name: LockName, mut granted: impl FnMut(OwnerIndex)) {
        for at in 0..self.0.len() {
            let request = self.0[at];
            if request.is_for(name) && request.is_waiting() && self.blockers(at).next().is_none() {
                self.0[at].held = request.wanted;
                granted(request.owner);
            }
        }
    }

    /// Whether anybody waits for `name`.
    #[inline]
    pub fn has_waiters(&self, name: LockName) -> bool {
        self.0.iter().any(|r| r.is_waiting() && r.is_for(name))
    }

    /// The owners whom `owner`'s waiting request for `name` waits for; none when it does not wait.
    pub fn waits_for(&self, name: LockName, owner: OwnerIndex, out: &mut Vec<OwnerIndex>) {
        if let Some(at) = self.position(name, owner)
            && self.0[at].is_waiting()
        {
            out.extend(self.blockers(at).map(|r| r.owner));
        }
    }

    /// The requests for `name`.
    pub fn of(&self, name: LockName) -> impl Iterator<Item = &Request> {
        self.0.iter().filter(move |r| r.is_for(name))
    }

    /// All requests.
    pub fn iter(&self) -> impl Iterator<Item = &Request> {
        self.0.iter()
    }

    /// Whether there is memory beyond the bucket itself.
    #[inline]
    pub fn is_spilled(&self) -> bool {
        self.0.spilled()
    }

    /// Bytes of memory beyond the bucket itself.
    pub fn bytes_spilled(&self) -> usize {
        if self.0.spilled() {
            self.0.capacity() * size_of::<Request>()
        } else {
            0
        }
    }

    /// Whether the next new request needs more memory.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.0.len() == self.0.capacity()
    }

    /// Makes room for as many requests again.
    pub fn grow(&mut self) {
        let more = self.0.capacity();
        self.0.reserve_exact(more);
    }

    /// Gives back memory that a rush has left behind.
    pub fn shrink(&mut self) {
        if self.0.len() <= INLINE {
            self.0.shrink_to_fit();
        }
    }

    #[inline]
    fn remove(&mut self, at: usize) -> Request {
        // The last goes without the others having to move up.
        match at + 1 < self.0.len() {
            true => self.0.remove(at),
            false => self.0.pop().expect("the request at `at`"),
        }
    }

    #[inline]
    fn push(&mut self, name: LockName, owner: OwnerIndex, held: Mode, wanted: Mode) -> Acquired {
        if self.is_full() {
            return Acquired::Full;
        }
        self.0.push(Request {
            hash: name.hash(),
            rest: name.rest(),
            owner,
            held,
            wanted,
        });
        Acquired::Granted
    }

    #[inline]
    fn position(&self, name: LockName, owner: OwnerIndex) -> Option<usize> {
        self.0
            .iter()
            .position(|r| r.is_for(name) && r.owner == owner)
    }

    /// The requests that block the waiting one at `at`.
    fn blockers(&self, at: usize) -> impl Iterator<Item = &Request> {
        let mine = self.0[at];
        let name = mine.name();
        self.0.iter().enumerate().filter_map(move |(i, r)| {
            let holds = !r.held.is_compatible(mine.wanted);
            let is_ahead = i < at && r.is_waiting() && !r.wanted.is_compatible(mine.wanted);
            (r.is_for(name) && r.owner != mine.owner && (holds || is_ahead)).then_some(r)
        })
    }
}

/// Whether a request waits for more than it holds already.
fn is_conversion(request: &Request) -> bool {
    request.is_waiting() && request.held != Mode::NONE
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    fn end(queue: &mut Queue, owner: OwnerIndex) -> Vec<OwnerIndex> {
        queue.release(name(7), owner);
        let mut woken = Vec::new();
        queue.grant(name(7), |o| woken.push(o));
        woken
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
        let mut woken = Vec::new();
        q.grant(name(7), |o| woken.push(o));
        assert_eq!(woken, [3]);
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

    proptest! {
        /// Q1, Q2 and Q4 after every step of a random run, and nobody is left waiting at its end.
        #[test]
        fn random_runs_keep_the_invariants(
            steps in prop::collection::vec((0u8..3, 0u32..8, 0u64..3, mode()), 1..80)
        ) {
            let mut q = queue();
            q.0.reserve(64);
            for (what, owner, number, mode) in steps {
                // Two that differ by the word, two by the rest alone.
                let name = LockName::of_parts(number % 2, (number / 2) as u16);
                let waits = q.iter().any(|r| r.owner == owner && r.is_waiting());
                match what {
                    0 if !waits => lock_or_wait(&mut q, name, owner, mode),
                    1 if waits => {
                        let _ = q.withdraw(name, owner);
                        q.grant(name, |_| ());
                    }
                    2 if !waits => {
                        q.release(name, owner);
                        q.grant(name, |_| ());
                    }
                    _ => {}
                }
                check(&q);
            }
        }
    }

    fn lock_or_wait(q: &mut Queue, name: LockName, owner: OwnerIndex, mode: Mode) {
        if q.acquire(name, owner, mode) == Acquired::Blocked {
            let _ = q.enqueue(name, owner, mode);
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
                assert!(q.blockers(i).next().is_some(), "Q2: {a:?} in {q:?}");
            }
        }
    }
}

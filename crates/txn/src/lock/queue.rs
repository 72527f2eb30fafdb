//! The requests of one bucket: a plain sequential structure, run under the bucket's latch.
//!
//! # Protocol
//! A request is *granted* when it holds what it wants, and *waits* otherwise; a waiting request that
//! holds something is a *conversion*. The waiting requests for one name keep this order in the list,
//! those granted and those for other names anywhere between:
//!
//! ```text
//!     conversions, first come first | new waiters, first come first
//! ```
//!
//! A request is *blocked* by each other owner's request for its name that holds a mode incompatible
//! with the wanted one, and by each waiting request before it whose wanted mode is incompatible.
//!
//! When nothing blocks a request any more, it is the turn of its owner, who sleeps:
//!
//! | the request | its owner is | and then |
//! |---|---|---|
//! | has patience | *called*: the lock stays free until it comes | takes it (`claim`), or finds that somebody has it again, and sleeps on |
//! | has none left, or is a conversion | *granted* the lock by whoever let go of it | finds that it has it |
//!
//! A newcomer who is compatible with all that is held *passes* the waiters, if the first of those in
//! its way has been called and has patience left. Each time costs that waiter one of its patience, and to
//! have come in vain costs a quarter of it.
//!
//! # Why not always grant
//! A waiter who is granted the lock has it while it waits for a processor. With more threads than
//! processors that is long, all others come to wait for that lock too, and from then on each
//! acquisition costs two switches of threads: a convoy, which never ends by itself. A lock that is free
//! meanwhile can be had by those who run. That nobody is called twice before it comes spares wake-ups.
//!
//! # Invariants
//! Q1. The modes held on one name by different owners are pairwise compatible.
//! Q2. A request waits only if it is blocked, or its owner has been called: whoever removes or weakens a
//! request runs `serve`, and so does, by releasing later, whoever passed.
//! Q3. Nobody starves: a new waiter is passed by at most [`PATIENCE`] newcomers while it is the first in
//! their way, and each before it likewise; else a newcomer is granted only what is compatible with what
//! waiters want. A conversion is passed by nobody; conversions pass new waiters, but only holders convert.
//! Q4. An owner has at most one request for a name.
//!
//! # Source
//! Blasgen, Gray, Mitoma, Price, "The convoy phenomenon" (1979): who wakes a waiter does not give it the lock.
//! We differ: those who wait are served in their order, and their patience ends.

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
    /// The owner's index, which is below [`OWNERS_MAX`].
    owner: u16,
    pub held: Mode,
    /// Covers `held`; the two differ while the request waits.
    pub wanted: Mode,
    /// How many newcomers may still pass, while it waits.
    patience: u8,
    /// Its owner has been called and has not come yet.
    is_called: bool,
}

/// Owners that there can be.
pub(crate) const OWNERS_MAX: usize = 1 << u16::BITS;

/// How many newcomers a new waiter lets pass; a few in unit tests, one under the model checker.
const PATIENCE: u8 = match (cfg!(loom), cfg!(test)) {
    (false, false) => 200,
    (false, true) => 4,
    (true, _) => 1,
};
/// What it costs to come in vain: who does so four times is granted the lock when it is free again.
const VAIN: u8 = PATIENCE.div_ceil(4);

impl Request {
    /// What it is for.
    pub fn name(&self) -> LockName {
        LockName::of_parts(self.hash, self.rest)
    }

    /// Whose it is.
    #[inline]
    pub fn owner(&self) -> OwnerIndex {
        OwnerIndex::from(self.owner)
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

/// What an owner whose turn has come is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// To come for the lock, which is free.
    Called,
    /// That it has the lock.
    Granted,
}

/// What one who came for a lock found.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Claimed {
    /// It has the lock now.
    Granted,
    /// Somebody has it again.
    Passed,
}

/// What the end of a wait found.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Withdrawn {
    /// The request is gone, or back at the mode it held before.
    Yes,
    /// It had been granted in the meantime, or could be.
    AlreadyGranted,
}

impl Queue {
    /// Grants `mode` to `owner` if nobody is in the way, or only such as may be passed.
    #[inline]
    pub fn acquire(&mut self, name: LockName, owner: OwnerIndex, mode: Mode) -> Acquired {
        let mut mine = None;
        let mut free = true;
        for (at, request) in self.0.iter().enumerate() {
            if !request.is_for(name) {
                continue;
            }
            if request.owner() == owner {
                mine = Some(at);
            } else if !request.wanted.is_compatible(mode) {
                // Covers what is held as well as what a waiter before us wants.
                free = false;
            }
        }
        match mine {
            None if free => self.push(name, owner, mode, mode),
            None => self.pass(name, owner, mode),
            Some(at) => self.convert(name, at, mode),
        }
    }

    /// Grants `mode` to a newcomer, in whose way somebody is, if these are waiters who may be passed.
    #[cold]
    fn pass(&mut self, name: LockName, owner: OwnerIndex, mode: Mode) -> Acquired {
        if self.of(name).any(|r| !r.held.is_compatible(mode)) {
            return Acquired::Blocked;
        }
        let mut requests = self.0.iter();
        let first = requests.position(|r| r.is_for(name) && !r.wanted.is_compatible(mode));
        let first = first.expect("somebody is in the way");
        if !self.0[first].is_called || self.0[first].patience == 0 {
            return Acquired::Blocked;
        }
        let acquired = self.push(name, owner, mode, mode);
        if acquired == Acquired::Granted {
            self.0[first].patience -= 1;
        }
        acquired
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
        mine.patience = 0;
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
        let is_mine = |r: &Request| r.hash == hash && r.owner() == owner;
        let at = self.0.iter().position(is_mine)?;
        Some(self.remove(at))
    }

    /// Whether `owner` holds anything on `name`.
    pub fn is_held_by(&self, name: LockName, owner: OwnerIndex) -> bool {
        let mine = self.of(name).find(|r| r.owner() == owner);
        mine.is_some_and(|r| r.held != Mode::NONE)
    }

    /// Ends `owner`'s wait for `name`, unless it has the lock, or could have it.
    pub fn withdraw(&mut self, name: LockName, owner: OwnerIndex) -> Withdrawn {
        let Some(at) = self.position(name, owner) else {
            return Withdrawn::AlreadyGranted;
        };
        if self.take_if_free(at) {
            return Withdrawn::AlreadyGranted;
        }
        if is_conversion(&self.0[at]) {
            self.0[at].wanted = self.0[at].held;
        } else {
            self.remove(at);
        }
        Withdrawn::Yes
    }

    /// Sees to every waiting request for `name` that nothing blocks any more, in order; `tell` is to
    /// tell the owners whose turn has come.
    pub fn serve(&mut self, name: LockName, mut tell: impl FnMut(OwnerIndex, Turn)) {
        for at in 0..self.0.len() {
            let is_blocked = |queue: &Queue| queue.blockers(at).next().is_some();
            let request = self.0[at];
            if !request.is_for(name) || !request.is_waiting() || is_blocked(self) {
                continue;
            }
            let request = &mut self.0[at];
            if request.patience == 0 {
                request.held = request.wanted;
                tell(request.owner(), Turn::Granted);
            } else if !request.is_called {
                request.is_called = true;
                tell(request.owner(), Turn::Called);
            }
        }
    }

    /// `owner`, which waits for `name`, has come as it was called.
    pub fn claim(&mut self, name: LockName, owner: OwnerIndex) -> Claimed {
        let at = self.position(name, owner).expect("its owner waits");
        if self.take_if_free(at) {
            return Claimed::Granted;
        }
        let request = &mut self.0[at];
        request.is_called = false;
        request.patience = request.patience.saturating_sub(VAIN);
        Claimed::Passed
    }

    /// Grants the request at `at` unless it is blocked; whether it is granted now.
    fn take_if_free(&mut self, at: usize) -> bool {
        if self.blockers(at).next().is_none() {
            self.0[at].held = self.0[at].wanted;
        }
        !self.0[at].is_waiting()
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
            out.extend(self.blockers(at).map(|r| r.owner()));
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
            owner: owner as u16,
            held,
            wanted,
            patience: PATIENCE,
            is_called: false,
        });
        Acquired::Granted
    }

    #[inline]
    fn position(&self, name: LockName, owner: OwnerIndex) -> Option<usize> {
        self.0
            .iter()
            .position(|r| r.is_for(name) && r.owner() == owner)
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

#[cfg(all(test, not(loom)))]
mod tests;

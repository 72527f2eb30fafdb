//! The cache: ask, put, take out, make room.
//!
//! # Protocol
//! A hit is one look into the table, and at most one exchange on the slot's word. Who puts a value in counts its cost first,
//! makes room, takes a slot, puts the entry into the table, and looks again whether there is room: of several who
//! put at once, and find nobody to evict as none of them is in the table yet, the last one evicts.
//!
//! Whoever takes an entry out of the table (by putting another, by removing it, or because the hand met it without
//! weight) owns its slot and its cost, and gives both back. So the table alone decides who left, and a slot
//! that the hand reads while it changes hands misleads nobody: the table refuses to evict what is not in it.
//!
//! # Invariants
//! C1. The slot and the cost of an entry are given back once, by whoever took it out of the table.
//! C2. When nobody is putting anything in, what all entries cost is within the capacity.
//! C3. A value in the table is the one put last for its key; what was loaded counts as put when its loading began.
//!
//! # Failure
//! Keys, values, the weigher and loaders may panic: room and slot are given back by [`Place`], a loading by
//! `Reservation` (`load.rs`).
//!
//! # Source
//! Nb-GCLOCK (Yui et al., ICDE 2010), as in `longshore-pool`. We differ from the pool: an entry leaves the table first
//! and its slot second, since nobody holds a slot: the table's library keeps the value while it is read.

use crate::builder::{CacheBuilder, Weigher};
use crate::slots::{KeyHash, SlotId, Slots, Visit};
use crate::stats::{CacheStats, Counters};
use crate::table::{Entry, Resident, Seat, Table, Ticket};
use crossbeam_utils::CachePadded;
use longshore_base::hand::{ClockHand, HandKind};
use longshore_base::parking::ParkingLot;
use longshore_base::sync::atomic::{AtomicU64, Ordering, fence};
use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};

/// A concurrent cache of values by key.
///
/// Values are cloned out; put an `Arc` around what is expensive to clone, or use [`read`](Cache::read).
/// What was evicted, replaced or removed is dropped a little later, by some thread that uses the cache, when nobody can be
/// reading it; each thread may keep some dozens of such values back.
pub struct Cache<K, V, S = RandomState> {
    pub(crate) table: Table<K, V>,
    slots: Slots,
    hand: ClockHand,
    /// Where those sleep who wait for a loader, under the hash of the key.
    pub(crate) loaders: ParkingLot,
    /// What the entries cost, and those that are being put in.
    cost: CachePadded<AtomicU64>,
    capacity: u64,
    weigher: Option<Weigher<K, V>>,
    hasher: S,
    tickets: AtomicU64,
    /// Two KiB each: not for the stack.
    pub(crate) counters: Box<Counters>,
}

/// What came of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insertion {
    /// The key had no value.
    New,
    /// The key had another value.
    Replaced,
    /// The entry costs more than the cache may hold: it was not put in. If the key had a value, that is gone.
    TooHeavy,
}

impl<K: Hash + Eq, V: Clone> Cache<K, V> {
    /// A cache for `capacity` entries; [`CacheBuilder`] has more to choose.
    pub fn new(capacity: u64) -> Cache<K, V> {
        CacheBuilder::new(capacity).build()
    }
}

impl<K: Hash + Eq, V: Clone, S: BuildHasher> Cache<K, V, S> {
    pub(crate) fn from_builder(builder: CacheBuilder<K, V, S>) -> Cache<K, V, S> {
        Cache {
            table: Table::new(),
            slots: Slots::new(builder.weight_max),
            hand: ClockHand::new(HandKind::Batched),
            loaders: ParkingLot::new(),
            cost: CachePadded::new(AtomicU64::new(0)),
            capacity: builder.capacity,
            weigher: builder.weigher,
            hasher: builder.hasher,
            tickets: AtomicU64::new(0),
            counters: Box::default(),
        }
    }

    /// The value of `key`, cloned.
    #[inline]
    pub fn get<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.read(key, V::clone)
    }

    /// Looks at the value of `key` where it lies.
    ///
    /// While `see` runs nothing that leaves the cache is dropped: keep it short.
    #[inline]
    pub fn read<Q, R>(&self, key: &Q, see: impl FnOnce(&V) -> R) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let hash = self.hash(key);
        let seen = self.table.look(hash, key, |entry| match entry {
            Some(Entry::Resident(resident)) => Some(self.hit(hash, resident, see)),
            _ => None,
        });
        if seen.is_none() {
            self.counters.misses.add(1);
        }
        seen
    }

    #[inline]
    pub(crate) fn hit<R>(
        &self,
        hash: KeyHash,
        resident: &Resident<V>,
        see: impl FnOnce(&V) -> R,
    ) -> R {
        self.slots.touch(resident.seat.slot, hash);
        self.counters.hits.add(1);
        see(&resident.value)
    }

    /// Puts a value in, in the place of any other that the key has.
    pub fn insert(&self, key: K, value: V) -> Insertion {
        let hash = self.hash(&key);
        let cost = self.weigh(&key, &value);
        let Some(place) = self.make_place(hash, cost) else {
            self.remove(&key);
            return Insertion::TooHeavy;
        };
        let resident = Resident {
            value,
            seat: place.seat,
        };
        let outcome = self.table.put(hash, key, resident, |former| match former {
            Some(Entry::Resident(former)) => {
                self.slots.inherit(place.seat.slot, hash, former.seat.slot);
                self.counters.replaced.add(1);
                self.vacate(former.seat);
                Insertion::Replaced
            }
            Some(Entry::Loading(_)) => {
                self.loaders.unpark(hash.get());
                Insertion::New
            }
            None => Insertion::New,
        });
        place.keep();
        outcome
    }

    /// Takes the value of `key` out.
    ///
    /// A loader at work for that key goes on, but what it gives is not kept.
    pub fn remove<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let hash = self.hash(key);
        self.table.take(hash, key, |former| match former {
            Some(Entry::Resident(former)) => {
                self.counters.removed.add(1);
                self.vacate(former.seat);
                Some(former.value.clone())
            }
            Some(Entry::Loading(_)) => {
                self.loaders.unpark(hash.get());
                None
            }
            None => None,
        })
    }

    /// What the cache did and holds.
    pub fn stats(&self) -> CacheStats {
        self.counters.stats(self.cost())
    }

    /// What all entries may cost together.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(crate) fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> KeyHash {
        KeyHash::new(self.hasher.hash_one(key))
    }

    pub(crate) fn next_ticket(&self) -> Ticket {
        // Relaxed: that no two are equal is all there is to it.
        Ticket(self.tickets.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn weigh(&self, key: &K, value: &V) -> u64 {
        let cost = self.weigher.as_ref().map(|weigher| weigher(key, value));
        cost.unwrap_or(1).max(1)
    }

    /// Room and a slot for an entry; `None` if it is too heavy.
    pub(crate) fn make_place(&self, hash: KeyHash, cost: u64) -> Option<Place<'_, K, V, S>> {
        if cost > self.capacity {
            self.counters.too_heavy.add(1);
            return None;
        }
        // Relaxed: ordered by the fence in `make_room`.
        self.cost.fetch_add(cost, Ordering::Relaxed);
        self.make_room();
        let slot = self.slots.take(hash);
        let seat = Seat { slot, cost };
        Some(Place { cache: self, seat })
    }

    /// Evicts until the cost is within the capacity, or nobody is left.
    fn make_room(&self) {
        // SeqCst: store-then-load. Of two who put at once, both too much, each has counted its cost or put its entry
        // before this, and looks at the other's after it: the one who is last sees both.
        fence(Ordering::SeqCst);
        while self.cost() > self.capacity {
            if !self.sweep() {
                return;
            }
        }
    }

    /// Sweeps a stretch, and on until somebody has left; false if nobody did.
    fn sweep(&self) -> bool {
        let mut steps = 0;
        let mut evicted = 0;
        while evicted == 0 && steps < self.slots.steps_max() {
            // A stretch is swept to its end: what lies at the ends would live longer otherwise.
            for index in self.hand.advance(self.slots.len()) {
                steps += 1;
                evicted += u64::from(self.visit(index));
            }
        }
        self.counters.sweep_steps.add(steps);
        self.counters.evictions.add(evicted);
        evicted > 0
    }

    fn visit(&self, index: u32) -> bool {
        let Visit::Victim(hash) = self.slots.visit(index) else {
            return false;
        };
        let left = self.table.evict(hash, SlotId::new(index));
        left.inspect(|seat| self.vacate(*seat)).is_some()
    }

    /// Gives back what an entry occupied that we took out of the table.
    fn vacate(&self, seat: Seat) {
        self.slots.give(seat.slot);
        // Relaxed: whoever makes room and misses it evicts one more, or looks again.
        self.cost.fetch_sub(seat.cost, Ordering::Relaxed);
    }

    fn cost(&self) -> u64 {
        // Relaxed: see `make_room`.
        self.cost.load(Ordering::Relaxed)
    }
}

impl<K, V, S> fmt::Debug for Cache<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

/// Room and a slot for an entry; given back unless an entry of the table has them.
pub(crate) struct Place<'a, K: Hash + Eq, V: Clone, S: BuildHasher> {
    cache: &'a Cache<K, V, S>,
    pub(crate) seat: Seat,
}

impl<K: Hash + Eq, V: Clone, S: BuildHasher> Place<'_, K, V, S> {
    /// The entry is in the table.
    pub(crate) fn keep(self) {
        let cache = self.cache;
        std::mem::forget(self);
        cache.counters.inserts.add(1);
        cache.make_room();
    }
}

impl<K: Hash + Eq, V: Clone, S: BuildHasher> Drop for Place<'_, K, V, S> {
    fn drop(&mut self) {
        self.cache.vacate(self.seat);
    }
}

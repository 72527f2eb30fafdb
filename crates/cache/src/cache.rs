//! The cache: ask, put, take out.
//!
//! # Protocol
//! A hit is one look into the table, and at most one store to the weight beside the value. Who puts a value in counts its cost first,
//! makes room, takes a slot, puts the entry into the table, and looks again whether there is room: of several who
//! put at once, and find nobody to evict as none of them is in the table yet, the last one evicts.
//!
//! Whoever takes an entry out of the table (by putting another, by removing it, or because a hand met it without
//! weight: `replacement.rs`) owns its slot and its cost, and gives both back. So the table alone decides who left, and a slot
//! that a hand reads while it changes hands misleads nobody: the table refuses to evict what is not in it.
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
use crate::ghosts::Ghosts;
use crate::slots::{KeyHash, Slots, Standing};
use crate::stats::{CacheStats, Counters};
use crate::table::{Entry, Resident, Seat, Table, Ticket};
use crate::weight::WEIGHT_MAX;
use crossbeam_utils::CachePadded;
use longshore_base::hand::{ClockHand, HandKind};
use longshore_base::parking::ParkingLot;
use longshore_base::sync::atomic::{AtomicU64, Ordering};
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
    pub(crate) slots: Slots,
    pub(crate) ghosts: Ghosts,
    pub(crate) probation_hand: ClockHand,
    pub(crate) proven_hand: ClockHand,
    /// Where those sleep who wait for a loader, under the hash of the key.
    pub(crate) loaders: ParkingLot,
    /// What the entries cost, and those that are being put in.
    pub(crate) cost: CachePadded<AtomicU64>,
    pub(crate) capacity: u64,
    pub(crate) weight_max: u8,
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
            slots: Slots::default(),
            ghosts: Ghosts::default(),
            probation_hand: ClockHand::new(HandKind::Batched),
            proven_hand: ClockHand::new(HandKind::Batched),
            loaders: ParkingLot::new(),
            cost: CachePadded::new(AtomicU64::new(0)),
            capacity: builder.capacity,
            weight_max: builder.weight_max.clamp(1, WEIGHT_MAX),
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
            Some(Entry::Resident(resident)) => Some(self.hit(resident, see)),
            _ => None,
        });
        if seen.is_none() {
            self.counters.misses.add(1);
        }
        seen
    }

    #[inline]
    pub(crate) fn hit<R>(&self, resident: &Resident<V>, see: impl FnOnce(&V) -> R) -> R {
        resident.weight.raise(self.weight_max);
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
        let resident = Resident::new(value, place.seat);
        let outcome = self.table.put(hash, key, resident, |former| match former {
            Some(Entry::Resident(former)) => {
                self.succeed(hash, place.seat, former);
                self.counters.replaced.add(1);
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

    /// An entry is replaced by the one in a seat, which stands as it did, and has its weight and a hit.
    fn succeed(&self, hash: KeyHash, seat: Seat, former: &Resident<V>) {
        let (slot, weight_max) = (seat.slot, self.weight_max);
        self.table.inherit(hash, slot, &former.weight, weight_max);
        if self.vacate(former.seat) == Standing::Proven {
            self.slots.prove(slot, hash);
        }
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
        let (probation, proven) = self.slots.counts();
        self.counters.stats(self.cost(), probation, proven)
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
        let standing = match self.ghosts.recall(hash, self.slots.len()) {
            true => Standing::Proven,
            false => Standing::Probation,
        };
        let slot = self.slots.take(hash, standing);
        let seat = Seat { slot, cost };
        Some(Place { cache: self, seat })
    }

    pub(crate) fn cost(&self) -> u64 {
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

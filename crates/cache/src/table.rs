//! The table: which entry a key has, or who is loading it.
//!
//! ```text
//!            reserve                   publish
//!   Absent ---------> Loading(ticket) ---------> Resident
//!    ^  |                |    |                    |  ^ |
//!    |  |                |    +------- put --------+  +-+ put
//!    |  +----------------|------------ put --------^
//!    +---- cancel, take -+                         |
//!    +---------------------- take, evict ----------+
//! ```
//! Each is one step of the hash table, after which the entry that was there before is the caller's, with its
//! slot. A ticket names one loading: what was loaded is published only if nobody put another value, or took the key
//! out, since.
//!
//! # Source
//! The page table of `longshore-pool`, over the lock-free hash table of the crate papaya, which keeps what was taken out
//! until nobody can be reading it.

use crate::slots::{KeyHash, SlotId};
use crate::weight::Weight;
use papaya::{Compute, Equivalent, HashMap, Operation};
use std::borrow::Borrow;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// What a key has.
pub(crate) enum Entry<V> {
    Loading(Ticket),
    Resident(Resident<V>),
}

/// Names one loading of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(pub(crate) u64);

/// A value, how often it was hit, and what it occupies.
pub(crate) struct Resident<V> {
    pub(crate) value: V,
    pub(crate) weight: Weight,
    pub(crate) seat: Seat,
}

/// What became of an entry that a hand met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    /// It is the caller's now.
    Evicted(Seat),
    /// It stays where it is.
    Survives,
    /// It had left before.
    Gone,
}

/// What an entry occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    pub(crate) slot: SlotId,
    pub(crate) cost: u64,
}

pub(crate) struct Table<K, V> {
    map: HashMap<Keyed<K>, Entry<V>, BuildHasherDefault<Known>>,
    #[cfg(loom)]
    step: loom::sync::atomic::AtomicU64,
}

impl<K: Hash + Eq, V: Clone> Table<K, V> {
    pub(crate) fn new() -> Table<K, V> {
        Table {
            map: HashMap::default(),
            #[cfg(loom)]
            step: loom::sync::atomic::AtomicU64::new(0),
        }
    }

    /// Looks at what a key has.
    #[inline]
    pub(crate) fn look<Q, R>(
        &self,
        hash: KeyHash,
        key: &Q,
        see: impl FnOnce(Option<&Entry<V>>) -> R,
    ) -> R
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        self.step();
        see(self.map.pin().get(&Lookup { hash, key }))
    }

    /// Puts an entry, whatever the key had, which `see` is shown.
    pub(crate) fn put<R>(
        &self,
        hash: KeyHash,
        key: K,
        resident: Resident<V>,
        see: impl FnOnce(Option<&Entry<V>>) -> R,
    ) -> R {
        self.step();
        let keyed = Keyed { hash, key };
        see(self.map.pin().insert(keyed, Entry::Resident(resident)))
    }

    /// Takes out whatever the key has, which `see` is shown.
    pub(crate) fn take<Q, R>(
        &self,
        hash: KeyHash,
        key: &Q,
        see: impl FnOnce(Option<&Entry<V>>) -> R,
    ) -> R
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        self.step();
        see(self.map.pin().remove(&Lookup { hash, key }))
    }

    /// Marks a key as being loaded; false if it has anything.
    pub(crate) fn reserve(&self, hash: KeyHash, key: K, ticket: Ticket) -> bool {
        self.step();
        let keyed = Keyed { hash, key };
        let map = self.map.pin();
        map.try_insert(keyed, Entry::Loading(ticket)).is_ok()
    }

    /// Ends a loading without a value; false if that was done by others.
    pub(crate) fn cancel(&self, hash: KeyHash, key: &K, ticket: Ticket) -> bool {
        self.step();
        let map = self.map.pin();
        let removed = map.remove_if(&Lookup { hash, key }, |_, entry| entry.is_loading(ticket));
        matches!(removed, Ok(Some(_)))
    }

    /// Ends a loading with a value; false if it was ended by others.
    pub(crate) fn publish(
        &self,
        hash: KeyHash,
        key: K,
        ticket: Ticket,
        value: &V,
        seat: Seat,
    ) -> bool {
        self.step();
        let map = self.map.pin();
        let outcome = map.compute(Keyed { hash, key }, |entry| match entry {
            Some((_, entry)) if entry.is_loading(ticket) => {
                Operation::Insert(Entry::Resident(Resident::new(value.clone(), seat)))
            }
            _ => Operation::Abort(()),
        });
        matches!(outcome, Compute::Updated { .. })
    }

    /// Takes out the entry in this slot, whose key has this hash, unless its weight lets it survive.
    pub(crate) fn evict(
        &self,
        hash: KeyHash,
        slot: SlotId,
        survives: impl Fn(&Weight) -> bool,
    ) -> Met {
        self.step();
        let mut is_there = false;
        let map = self.map.pin();
        let removed = map.remove_if(&OfHash(hash), |_, entry| {
            let resident = entry.in_slot(slot);
            is_there = resident.is_some();
            resident.is_some_and(|resident| !survives(&resident.weight))
        });
        match removed {
            Ok(Some((_, Entry::Resident(resident)))) => Met::Evicted(resident.seat),
            Err(_) if is_there => Met::Survives,
            _ => Met::Gone,
        }
    }

    /// Gives the entry in this slot, whose key has this hash, the weight of one that it replaced, and a hit.
    pub(crate) fn inherit(&self, hash: KeyHash, slot: SlotId, former: &Weight, weight_max: u8) {
        self.step();
        let map = self.map.pin();
        let entry = map.get(&OfHash(hash));
        if let Some(resident) = entry.and_then(|entry| entry.in_slot(slot)) {
            resident.weight.inherit(former, weight_max);
        }
    }

    /// The hash table's own steps are hidden from the model checker: here it may switch.
    #[inline]
    fn step(&self) {
        #[cfg(loom)]
        self.step.fetch_add(1, loom::sync::atomic::Ordering::SeqCst);
    }
}

impl<V> Entry<V> {
    pub(crate) fn is_loading(&self, ticket: Ticket) -> bool {
        matches!(self, Entry::Loading(found) if *found == ticket)
    }

    fn in_slot(&self, slot: SlotId) -> Option<&Resident<V>> {
        match self {
            Entry::Resident(resident) if resident.seat.slot == slot => Some(resident),
            _ => None,
        }
    }
}

impl<V> Resident<V> {
    /// Without weight.
    pub(crate) fn new(value: V, seat: Seat) -> Resident<V> {
        Resident {
            value,
            weight: Weight::none(),
            seat,
        }
    }
}

/// A key with its hash, which is not computed again.
struct Keyed<K> {
    hash: KeyHash,
    key: K,
}

impl<K: Eq> Eq for Keyed<K> {}

impl<K: Eq> PartialEq for Keyed<K> {
    fn eq(&self, other: &Keyed<K>) -> bool {
        self.key == other.key
    }
}

impl<K> Hash for Keyed<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash.get());
    }
}

/// A key that is looked for.
struct Lookup<'a, Q: ?Sized> {
    hash: KeyHash,
    key: &'a Q,
}

impl<Q: ?Sized> Hash for Lookup<'_, Q> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash.get());
    }
}

impl<K: Borrow<Q>, Q: Eq + ?Sized> Equivalent<Keyed<K>> for Lookup<'_, Q> {
    fn equivalent(&self, keyed: &Keyed<K>) -> bool {
        self.key == keyed.key.borrow()
    }
}

/// Any key of this hash: the first there is. Should two share all 62 bits, the second is found, and can be
/// evicted, after the first has left.
struct OfHash(KeyHash);

impl Hash for OfHash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.get());
    }
}

impl<K> Equivalent<Keyed<K>> for OfHash {
    fn equivalent(&self, keyed: &Keyed<K>) -> bool {
        self.0 == keyed.hash
    }
}

/// The hasher of what is hashed already. The table takes the highest and the lowest bits for two numbers that have nothing to do with
/// each other; so the bits that are always zero go to the middle.
#[derive(Default)]
struct Known(u64);

impl Hasher for Known {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash.rotate_left(u32::BITS);
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys write their hash")
    }
}

//! Get or load: one loads, the others wait.
//!
//! # Protocol
//! Who finds nothing reserves the key under a ticket, and runs its loader with nothing held. The others sleep until the
//! key is no longer being loaded under that ticket, and look again. A value is published if the
//! reservation still stands. If it does not, since a value was put or the key removed meanwhile, the loader's caller has its
//! value all the same, and the cache keeps what is newer.
//!
//! # Failure
//! A loader that ends with an error, or panics, leaves no trace: its caller has the error or the panic, and of those who
//! waited one runs its own loader. A loader that asks the same cache for the same key waits for itself, for ever.
//!
//! # Source
//! The miss of `longshore-pool` (`page_in.rs`), with its tickets.

use crate::cache::Cache;
use crate::slots::KeyHash;
use crate::table::{Entry, Ticket};
use std::hash::{BuildHasher, Hash};
use std::time::Duration;

/// How long a waiter sleeps before it looks for itself, though it would be woken.
const SLICE: Duration = Duration::from_secs(1);

enum Found<V> {
    Value(V),
    Loading(Ticket),
    Nothing,
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher> Cache<K, V, S> {
    /// The value of `key`, cloned; if it has none, the one that `load` gives, which is kept.
    ///
    /// Of several that ask for the same absent key at a time one loads, and the others wait for it. A call counts as
    /// one question: a hit if it did not load, a miss if it did.
    ///
    /// # Errors
    /// That of `load`. Nobody else is told: those who waited try for themselves.
    pub fn get_or_load<E>(&self, key: &K, load: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        let hash = self.hash(key);
        loop {
            match self.find(hash, key) {
                Found::Value(value) => return Ok(value),
                Found::Loading(ticket) => self.wait(hash, key, ticket),
                Found::Nothing => {
                    if let Some(reservation) = self.reserve(hash, key) {
                        self.counters.misses.add(1);
                        return reservation.load(load);
                    }
                }
            }
        }
    }

    fn find(&self, hash: KeyHash, key: &K) -> Found<V> {
        self.table.look(hash, key, |entry| match entry {
            Some(Entry::Resident(resident)) => Found::Value(self.hit(resident, V::clone)),
            Some(Entry::Loading(ticket)) => Found::Loading(*ticket),
            None => Found::Nothing,
        })
    }

    fn wait(&self, hash: KeyHash, key: &K, ticket: Ticket) {
        let is_loading = |entry: Option<&Entry<V>>| entry.is_some_and(|it| it.is_loading(ticket));
        self.counters.load_waits.add(1);
        self.loaders
            .park(hash.get(), SLICE, || self.table.look(hash, key, is_loading));
    }

    fn reserve<'a>(&'a self, hash: KeyHash, key: &'a K) -> Option<Reservation<'a, K, V, S>> {
        let ticket = self.next_ticket();
        let is_ours = self.table.reserve(hash, key.clone(), ticket);
        is_ours.then_some(Reservation {
            cache: self,
            hash,
            key,
            ticket,
        })
    }
}

/// A key that is being loaded by the holder of this.
struct Reservation<'a, K: Hash + Eq + Clone, V: Clone, S: BuildHasher> {
    cache: &'a Cache<K, V, S>,
    hash: KeyHash,
    key: &'a K,
    ticket: Ticket,
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher> Reservation<'_, K, V, S> {
    fn load<E>(self, load: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        let value = load()?;
        self.cache.counters.loads.add(1);
        Ok(self.publish(value))
    }

    /// Keeps the value if there is room and nobody was quicker.
    fn publish(&self, value: V) -> V {
        let cost = self.cache.weigh(self.key, &value);
        let Some(place) = self.cache.make_place(self.hash, cost) else {
            return value;
        };
        let (table, key) = (&self.cache.table, self.key.clone());
        if table.publish(self.hash, key, self.ticket, &value, place.seat) {
            place.keep();
        } else {
            self.cache.counters.loads_overtaken.add(1);
        }
        value
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher> Drop for Reservation<'_, K, V, S> {
    /// Ends the loading if it has not ended with a value, and wakes who waited for it.
    fn drop(&mut self) {
        self.cache.table.cancel(self.hash, self.key, self.ticket);
        self.cache.loaders.unpark(self.hash.get());
    }
}

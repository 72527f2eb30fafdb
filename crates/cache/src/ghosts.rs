//! Ghosts: which keys left not long ago without having been hit.
//!
//! # Protocol
//! A place for each slot; the hash of a key says which, and a later one takes the place of an earlier. So about as many keys are remembered
//! as there are entries, the latest, and nothing has to be ordered. While slots are added places move, and
//! what was remembered is forgotten.
//!
//! # Ordering
//! Relaxed throughout: a ghost is a hint. One that is missed, or seen twice, misjudges one entry.

use crate::slots::KeyHash;
use crate::words::Words;
use longshore_base::sync::atomic::Ordering::Relaxed;

const NOBODY: u64 = 0;

#[derive(Default)]
pub(crate) struct Ghosts(Words);

impl Ghosts {
    /// Remembers a key, in one of so many places.
    pub(crate) fn remember(&self, hash: KeyHash, places: u32) {
        self.0.make(place(hash, places)).store(hash.get(), Relaxed);
    }

    /// Whether a key is remembered; if so it no longer is.
    pub(crate) fn recall(&self, hash: KeyHash, places: u32) -> bool {
        let Some(ghost) = self.0.try_get(place(hash, places)) else {
            return false;
        };
        let is_known = ghost.load(Relaxed) == hash.get();
        if is_known {
            ghost.store(NOBODY, Relaxed);
        }
        is_known
    }
}

/// The highest bits of the hash, scaled.
fn place(hash: KeyHash, places: u32) -> u32 {
    ((u128::from(hash.get()) * u128::from(places)) >> u64::BITS) as u32
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_ghost_is_seen_once_and_gives_way_to_a_later_one() {
        let ghosts = Ghosts::default();
        let of = |number: u64| KeyHash::new(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        assert!(!ghosts.recall(of(1), 0) && !ghosts.recall(of(1), 1000));
        (1..=1000).for_each(|key| ghosts.remember(of(key), 1000));
        let known = (1..=1000).filter(|key| ghosts.recall(of(*key), 1000));
        assert!((500..900).contains(&known.count()));
        ghosts.remember(of(1), 1);
        ghosts.remember(of(2), 1);
        assert!(!ghosts.recall(of(1), 1) && ghosts.recall(of(2), 1));
        assert!(!ghosts.recall(of(2), 1));
    }
}

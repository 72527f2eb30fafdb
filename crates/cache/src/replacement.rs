//! Who leaves: two hands over one ring of slots.
//!
//! # Protocol
//! ```text
//!             its key is a ghost                        hit: weight + 1, up to the cap
//!   new --------------------------------> proven ------ the hand: weight - 1
//!    |                                      ^   \
//!    +--> probation -- was hit: weight 0 ---+    `----- of no weight: evicted
//!             \
//!              `------ was not hit: evicted; its key is a ghost
//! ```
//! One hand looks for entries on probation, and passes the proven ones; the other the reverse, which is GCLOCK. While more than a tenth
//! of the entries are on probation the first hand moves, else the second. So what is asked for once, be it a
//! scan of any length, goes through a tenth of the cache and leaves the rest alone; and what comes back
//! soon after it left has shown that it needs more room than that.
//!
//! # Source
//! Nb-GCLOCK (Yui et al., ICDE 2010); probation and ghosts: S3-FIFO (Yang et al., SOSP 2023). We differ: a mark and a second hand in place
//! of a second queue, so that nobody moves; one hit is enough to be proven; ghosts in a table without order.

use crate::cache::Cache;
use crate::slots::{SlotId, Standing};
use crate::table::{Met, Seat};
use crate::weight::Weight;
use longshore_base::sync::atomic::{Ordering, fence};
use std::hash::{BuildHasher, Hash};

impl<K: Hash + Eq, V: Clone, S: BuildHasher> Cache<K, V, S> {
    /// Evicts until the cost is within the capacity, or nobody is left.
    pub(crate) fn make_room(&self) {
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
        while evicted == 0 && steps < self.steps_max() {
            let standing = self.standing_to_sweep(steps);
            let hand = match standing {
                Standing::Probation => &self.probation_hand,
                Standing::Proven => &self.proven_hand,
            };
            // A stretch is swept to its end: what lies at the ends would live longer otherwise.
            for index in hand.advance(self.slots.len()) {
                steps += 1;
                evicted += u64::from(self.visit(index, standing));
            }
        }
        self.counters.sweep_steps.add(steps);
        self.counters.evictions.add(evicted);
        evicted > 0
    }

    /// Whom to sweep, after so many steps in vain. In the first lap those who are due; but the counts that say so also count who is
    /// about to be in the table, or has just left it, so from then on it is each in turn.
    fn standing_to_sweep(&self, steps: u64) -> Standing {
        match steps / u64::from(self.slots.len()) {
            0 => self.slots.due(),
            lap if lap % 2 == 1 => Standing::Proven,
            _ => Standing::Probation,
        }
    }

    /// Steps after which both hands have met every entry without weight.
    fn steps_max(&self) -> u64 {
        let laps_each = u64::from(self.weight_max) + 2;
        u64::from(self.slots.len()) * (1 + 2 * laps_each)
    }

    /// What a hand does at one slot; true if somebody left.
    fn visit(&self, index: u32, standing: Standing) -> bool {
        let Some(hash) = self.slots.visit(index, standing) else {
            return false;
        };
        let slot = SlotId::new(index);
        let survives = match standing {
            Standing::Probation => Weight::spend_all,
            Standing::Proven => Weight::spend_one,
        };
        let met = self.table.evict(hash, slot, survives);
        match (met, standing) {
            (Met::Survives, Standing::Probation) => self.slots.prove(slot, hash),
            (Met::Evicted(_), Standing::Probation) => self.ghosts.remember(hash, self.slots.len()),
            _ => {}
        }
        match met {
            Met::Evicted(seat) => {
                self.vacate(seat);
                true
            }
            Met::Survives | Met::Gone => false,
        }
    }

    /// Gives back what an entry occupied that we took out of the table. Says how it stood.
    pub(crate) fn vacate(&self, seat: Seat) -> Standing {
        let standing = self.slots.give(seat.slot);
        // Relaxed: whoever makes room and misses it evicts one more, or looks again.
        self.cost.fetch_sub(seat.cost, Ordering::Relaxed);
        standing
    }
}

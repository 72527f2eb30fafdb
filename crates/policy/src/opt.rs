//! OPT: evicts the page whose next use lies farthest ahead, which no policy can beat. It reads the trace in advance.
//!
//! Every missed page is brought in, as a pool must (an optimum that may refuse pages misses less). What is resident is
//! kept as the set of positions in the trace at which residents are used next: a reference hits if its own position is
//! in the set, and the greatest position of the set belongs to the victim.
//!
//! Memory: 4 bytes a reference for the next uses, and a bit and a fraction for the set.
//!
//! # Source
//! L. A. Belady: A Study of Replacement Algorithms for a Virtual-Storage Computer. IBM Systems Journal 5(2), 1966.
//! R. L. Mattson et al.: Evaluation Techniques for Storage Hierarchies. IBM Systems Journal 9(2), 1970.

use crate::trace::Trace;

/// When each reference's page is used again: position by position, `u32::MAX` for never.
fn next_uses(trace: &Trace) -> Vec<u32> {
    let mut later = vec![u32::MAX; trace.pages().len()];
    let mut next = vec![u32::MAX; trace.refs().len()];
    for (at, &page) in trace.refs().iter().enumerate().rev() {
        next[at] = std::mem::replace(&mut later[page as usize], at as u32);
    }
    next
}

/// The misses of OPT with `capacity` frames, at least one. `progress` is told how many requests are done, now and then.
pub(crate) fn misses(trace: &Trace, capacity: u32, progress: &mut dyn FnMut(u64)) -> u64 {
    let next = next_uses(trace);
    let mut awaited = Positions::new(next.len());
    // Residents that are never used again, and those that are.
    let (mut dead, mut alive) = (0, 0);
    let mut misses = 0;
    for (at, &next) in next.iter().enumerate() {
        if at % PROGRESS == 0 {
            progress(at as u64);
        }
        if awaited.remove(at) {
            alive -= 1;
        } else {
            misses += 1;
            if dead + alive == capacity {
                if dead > 0 {
                    dead -= 1;
                } else {
                    awaited.remove_greatest();
                    alive -= 1;
                }
            }
        }
        if next == u32::MAX {
            dead += 1;
        } else {
            awaited.insert(next as usize);
            alive += 1;
        }
    }
    misses
}

/// Requests between two calls of `progress`.
pub(crate) const PROGRESS: usize = 1 << 16;

/// A set of numbers below a bound: bits, and above every 64 of them a bit that says whether one is set.
struct Positions {
    /// From the bits themselves to a single word.
    levels: Vec<Vec<u64>>,
}

impl Positions {
    fn new(bound: usize) -> Positions {
        let mut levels = Vec::new();
        let mut words = bound.div_ceil(64).max(1);
        loop {
            levels.push(vec![0; words]);
            if words == 1 {
                return Positions { levels };
            }
            words = words.div_ceil(64);
        }
    }

    fn insert(&mut self, mut at: usize) {
        for level in &mut self.levels {
            level[at / 64] |= 1 << (at % 64);
            at /= 64;
        }
    }

    /// Whether it was there.
    fn remove(&mut self, mut at: usize) -> bool {
        if self.levels[0][at / 64] & (1 << (at % 64)) == 0 {
            return false;
        }
        for level in &mut self.levels {
            level[at / 64] &= !(1 << (at % 64));
            if level[at / 64] != 0 {
                break;
            }
            at /= 64;
        }
        true
    }

    /// There must be one.
    fn remove_greatest(&mut self) {
        let mut at = 0;
        for level in self.levels.iter().rev() {
            at = at * 64 + level[at].ilog2() as usize;
        }
        self.remove(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, in quadratic time.
    fn by_definition(refs: &[u32], capacity: usize) -> u64 {
        let mut resident: Vec<u32> = Vec::new();
        let mut misses = 0;
        for (at, page) in refs.iter().enumerate() {
            if resident.contains(page) {
                continue;
            }
            misses += 1;
            if resident.len() == capacity {
                let next_use = |page: &u32| {
                    let ahead = &refs[at..];
                    ahead
                        .iter()
                        .position(|other| other == page)
                        .unwrap_or(usize::MAX)
                };
                let (victim, _) = (resident.iter().map(next_use).enumerate())
                    .max_by_key(|&(_, next)| next)
                    .unwrap();
                resident.swap_remove(victim);
            }
            resident.push(*page);
        }
        misses
    }

    #[test]
    fn misses_are_those_of_the_definition() {
        let mut word: u64 = 1;
        for round in 0..200 {
            let pages = 2 + round % 30;
            let draws = (0..300).map(|_| {
                word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (word >> 40) % pages
            });
            let trace: Trace = draws.collect();
            for capacity in [1, 2, 3, 7, 40] {
                assert_eq!(
                    misses(&trace, capacity, &mut |_| {}),
                    by_definition(trace.refs(), capacity as usize),
                    "round {round}, {capacity} frames"
                );
            }
        }
    }

    #[test]
    fn belady_s_loop_keeps_all_but_one() {
        // Five pages in turn, four frames: after the first round every fourth reference misses.
        let trace: Trace = (0..45).map(|at| at % 5).collect();
        assert_eq!(misses(&trace, 4, &mut |_| {}), 5 + 40 / 4);
    }

    #[test]
    fn positions_are_a_set() {
        let mut set = Positions::new(300_000);
        for at in [0, 63, 64, 4_095, 4_096, 262_144, 299_999] {
            set.insert(at);
        }
        assert!(set.remove(64) && !set.remove(64) && !set.remove(65));
        for greatest in [299_999, 262_144, 4_096, 4_095, 63, 0] {
            assert!(set.levels[0][greatest / 64] != 0);
            set.remove_greatest();
            assert!(!set.remove(greatest));
        }
        assert!(set.levels.iter().flatten().all(|&word| word == 0));
    }
}

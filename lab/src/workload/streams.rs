//! The workload of the Nb-GCLOCK paper in three readings: many threads, whose references come in turn.

use super::random::Random;
use super::zipf::Zipf;
use super::{Pages, Workload};
use crate::format::Access;

const THREADS: u64 = 64;
/// Keys of NBG, and the distance between their pages.
const KEYS: u64 = 50_000;
const KEY_PAGES: u64 = 80;
/// Draws of one thread, which it then repeats.
const CYCLE: usize = 15_625;
/// Pages of DB4M.
const DB4M_PAGES: u64 = 4_000_000;
const SCAN_LEN: u64 = 100;
/// A scan begins with this chance where none is on: a fifth of all references are then a scan's.
const SCAN_CHANCE: f64 = 0.2 / (0.8 * SCAN_LEN as f64);

/// NBG, or NBG-SCAN.
pub(super) fn nbg(values: &Workload, with_scans: bool) -> Pages {
    let zipf = Zipf::new(KEYS, values.get("alpha"));
    let threads = (0..THREADS).map(|thread| {
        let mut random = values.random(thread);
        let cycle: Vec<u32> = (0..CYCLE).map(|_| zipf.draw(&mut random) as u32).collect();
        let mut draws = cycle.into_iter().cycle();
        let mut scans = Scans::new(KEYS);
        move || {
            let scanned = if with_scans {
                scans.next(&mut random)
            } else {
                None
            };
            let key = scanned.or_else(|| draws.next().map(u64::from));
            key.unwrap_or(0) * KEY_PAGES
        }
    });
    in_turn(values, threads.collect())
}

/// DB4M.
pub(super) fn db4m(values: &Workload) -> Pages {
    let zipf = std::rc::Rc::new(Zipf::new(DB4M_PAGES, values.get("alpha")));
    let threads = (0..THREADS).map(|thread| {
        let (zipf, mut random) = (zipf.clone(), values.random(thread));
        let mut scans = Scans::new(DB4M_PAGES);
        move || {
            scans
                .next(&mut random)
                .unwrap_or_else(|| zipf.draw(&mut random))
        }
    });
    in_turn(values, threads.collect())
}

fn in_turn(values: &Workload, mut threads: Vec<impl FnMut() -> u64 + 'static>) -> Pages {
    Box::new((0..values.requests()).map(move |at| {
        let thread = at % THREADS;
        Access {
            thread: thread as u32,
            ..Access::read(threads[thread as usize]())
        }
    }))
}

/// Scans of one thread, one now and then.
struct Scans {
    /// How many pages, or keys, there are to scan.
    bound: u64,
    at: u64,
    left: u64,
}

impl Scans {
    fn new(bound: u64) -> Scans {
        Scans {
            bound,
            at: 0,
            left: 0,
        }
    }

    /// The next page of a scan, if one is on or begins.
    fn next(&mut self, random: &mut Random) -> Option<u64> {
        if self.left == 0 {
            if random.fraction() >= SCAN_CHANCE {
                return None;
            }
            (self.at, self.left) = (random.below(self.bound), SCAN_LEN);
        }
        self.left -= 1;
        let page = self.at % self.bound;
        self.at += 1;
        Some(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accesses(text: &str) -> Vec<Access> {
        text.parse::<Workload>().unwrap().accesses().collect()
    }

    #[test]
    fn threads_come_in_turn_and_repeat_their_draws() {
        let cycle = CYCLE * THREADS as usize;
        let drawn = accesses("nbg:requests=1001000");
        assert!((0..64).all(|thread| drawn[thread].thread == thread as u32));
        assert_eq!(drawn[..1000], drawn[cycle..cycle + 1000]);
        assert!(drawn.iter().all(|access| access.page % KEY_PAGES == 0));
        let distinct: std::collections::HashSet<_> =
            drawn.iter().map(|access| access.page).collect();
        assert!(
            (40_000..50_000).contains(&distinct.len()),
            "{}",
            distinct.len()
        );
    }

    #[test]
    fn a_fifth_of_the_references_are_scans() {
        for (text, step) in [
            ("nbg-scan:requests=640000", KEY_PAGES),
            ("db4m:requests=640000", 1),
        ] {
            let drawn = accesses(text);
            let follows = |at: &usize| drawn[*at].page == drawn[at - THREADS as usize].page + step;
            let following = (THREADS as usize..drawn.len()).filter(follows).count();
            let share = following as f64 / drawn.len() as f64;
            assert!((0.18..0.23).contains(&share), "{text}: {share}");
        }
    }
}

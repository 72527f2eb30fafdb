//! The clock hand: hands out stretches of frames to sweep.
//!
//! # Protocol
//! `advance` gives the next stretch; positions are taken modulo the number of frames. With
//! [`HandKind::Batched`] stretches never overlap within a lap, however many sweep at once.
//!
//! # Source
//! The paper advances a striped counter by the distance that a sweeper went, after the fact: with
//! three or more sweepers the deltas diverge and go negative, and overlapping sweeps age a page
//! twice. We differ: a stretch is taken first, by one addition, and swept then. The striped form, whose
//! stretches may still overlap, remains to be measured: `docs/decisions/0002-clock-hand.md`.

use crate::metrics::thread_number;
use crate::sync::atomic::{AtomicU64, Ordering};
use crossbeam_utils::CachePadded;

/// Frames in a stretch, in a large pool.
pub const STRETCH_MAX: usize = 8;
const STRIPES: usize = 8;

/// The implementations of the clock hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandKind {
    /// One counter; each sweeper takes a batch of frames from it.
    Batched,
    /// A counter in stripes whose sum is the position (the paper's): less contention, but sweepers may
    /// pass over the same frames.
    Striped,
}

/// Where the sweep is.
pub struct ClockHand(Position);

enum Position {
    Batched(CachePadded<AtomicU64>),
    Striped(Box<[CachePadded<AtomicU64>]>),
}

impl ClockHand {
    /// A hand at the first frame.
    pub fn new(kind: HandKind) -> ClockHand {
        ClockHand(match kind {
            HandKind::Batched => Position::Batched(CachePadded::new(AtomicU64::new(0))),
            HandKind::Striped => {
                let stripes = (0..STRIPES).map(|_| CachePadded::new(AtomicU64::new(0)));
                Position::Striped(stripes.collect())
            }
        })
    }

    /// The next stretch of `frames` frames to sweep.
    ///
    /// # Panics
    /// if there are none.
    #[inline]
    pub fn advance(&self, frames: u32) -> impl Iterator<Item = u32> + use<> {
        let frames = u64::from(frames);
        let stretch = (frames / 64).clamp(1, STRETCH_MAX as u64);
        let start = match &self.0 {
            // Relaxed: the position orders nothing; atomicity alone keeps stretches apart.
            Position::Batched(position) => position.fetch_add(stretch, Ordering::Relaxed),
            Position::Striped(stripes) => {
                // Relaxed: any sum that was true at some time will do.
                stripes[thread_number() % STRIPES].fetch_add(stretch, Ordering::Relaxed);
                let sum = |sum: u64, stripe: &CachePadded<AtomicU64>| {
                    sum.wrapping_add(stripe.load(Ordering::Relaxed))
                };
                stripes.iter().fold(0, sum).wrapping_sub(stretch)
            }
        };
        (0..stretch).map(move |step| (start.wrapping_add(step) % frames) as u32)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn batched_sweepers_visit_every_frame_equally_often() {
        let hand = ClockHand::new(HandKind::Batched);
        let frames = 512;
        let visits = std::sync::Mutex::new(BTreeMap::new());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let laps = if cfg!(miri) { 1 } else { 100 };
                    let mine: Vec<u32> =
                        (0..laps * 64).flat_map(|_| hand.advance(frames)).collect();
                    let mut visits = visits.lock().unwrap();
                    mine.iter()
                        .for_each(|frame| *visits.entry(*frame).or_insert(0) += 1);
                });
            }
        });
        let visits = visits.into_inner().unwrap();
        assert_eq!(visits.len(), 512);
        let most = *visits.values().max().unwrap();
        assert!(visits.values().all(|count| *count == most));
    }

    #[test]
    fn striped_hand_moves_on() {
        let hand = ClockHand::new(HandKind::Striped);
        let visited: Vec<u32> = (0..4).flat_map(|_| hand.advance(128)).collect();
        assert_eq!(visited, [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}

//! What stands under the policy's lock: the policy, and the bookkeeping that tells it the truth.
//!
//! A [`Hit`] is frame and page in one word; a frame's `tracked` word holds the same for the page that the policy knows to
//! be in it, so that one comparison tells whether a hit is stale (R3).

use crate::frame::{Frame, FrameId, Frames};
use longshore_base::PageId;
use longshore_base::bits::Field;
use longshore_base::sync::atomic::Ordering;
use longshore_policy::{Gone, Nodes, Placement, Policy, Spec, Take, residents};

const FRAME: Field = Field::new(0, 27);
const PAGE: Field = FRAME.then(36);
/// In a `tracked` word: the page was brought in ahead, and its first hit is still to come.
const AHEAD: Field = PAGE.then(1);
const _: () =
    assert!(FrameId::LIMIT as u64 == FRAME.max() && crate::table::PAGES_MAX - 1 == PAGE.max());

/// The use of a page in a frame. Never zero: it holds the frame's number plus one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit(u64);

impl Hit {
    #[inline]
    pub(super) fn new(frame: FrameId, page: PageId) -> Hit {
        Hit(u64::from(frame.get() + 1) + page.get() * PAGE.one())
    }

    pub(super) fn from_raw(raw: u64) -> Option<Hit> {
        (raw != 0).then_some(Hit(raw))
    }

    #[inline]
    pub(super) fn to_raw(self) -> u64 {
        self.0
    }

    #[inline]
    pub(super) fn frame(self) -> FrameId {
        FrameId::new(FRAME.get(self.0) as u32 - 1)
    }
}

/// Why a page comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It is wanted now.
    Wanted,
    /// It will be wanted.
    Ahead,
}

/// Hits told to the policy in one call.
const BATCH: usize = 64;

/// The policy, and what guards its invariants.
pub(super) struct Keeper {
    policy: Box<dyn Policy>,
}

/// What became of hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Replayed {
    /// Those that there were.
    pub(super) drained: u64,
    /// Those among them whose frame had another page by then, or none.
    pub(super) stale: u64,
}

impl Keeper {
    /// A keeper of the policy that `spec` names, for `frames` frames, at least one.
    pub(super) fn new(spec: &Spec, frames: u32) -> Keeper {
        Keeper {
            policy: spec.build(frames).expect("there is a frame"),
        }
    }

    /// Tells the policy of hits, in their order, but for the stale ones (R3).
    pub(super) fn replay(
        &mut self,
        frames: &Frames,
        hits: impl IntoIterator<Item = Hit>,
    ) -> Replayed {
        let (mut batch, mut len) = ([0; BATCH], 0);
        let mut replayed = Replayed::default();
        hits.into_iter().for_each(|hit| {
            replayed.drained += 1;
            // A place too many is written where the hit does not count, which is cheaper than to look first.
            batch[len % BATCH] = hit.frame().get();
            match judge(frames, hit) {
                Verdict::Counts => len += 1,
                Verdict::Arrived => {}
                Verdict::Stale => replayed.stale += 1,
            }
            if len == BATCH {
                frames
                    .young
                    .told(frames, &batch, self.policy.on_hits(&batch));
                len = 0;
            }
        });
        if len > 0 {
            let batch = &batch[..len];
            frames.young.told(frames, batch, self.policy.on_hits(batch));
        }
        replayed
    }

    /// Tells the policy of one hit.
    pub(super) fn tell(&mut self, frames: &Frames, hit: Hit) -> Replayed {
        let verdict = judge(frames, hit);
        if matches!(verdict, Verdict::Counts) {
            self.policy.on_hit(hit.frame().get());
        }
        Replayed {
            drained: 1,
            stale: u64::from(matches!(verdict, Verdict::Stale)),
        }
    }

    /// The fault of `page`: once, before a frame is chosen.
    pub(super) fn miss(&mut self, page: PageId) -> Placement {
        self.policy.on_miss(page)
    }

    /// Has the policy choose among its frames; `offer` claims the one that it accepts.
    pub(super) fn evict(
        &mut self,
        frames: &Frames,
        incoming: Option<(PageId, Placement)>,
        offer: &mut dyn FnMut(FrameId, PageId) -> Take,
    ) -> Option<FrameId> {
        let offer = &mut |frame, page| offer(FrameId::new(frame), page);
        let id = FrameId::new(self.policy.evict(incoming, offer)?);
        set_tracked(frames.header(id), 0);
        Some(id)
    }

    /// `page` is about to be in `id`, a frame of the caller's.
    pub(super) fn insert(
        &mut self,
        frames: &Frames,
        id: FrameId,
        (page, at): (PageId, Placement),
        arrival: Arrival,
    ) {
        let header = frames.header(id);
        assert_eq!(
            tracked(header),
            0,
            "R2: {id:?} was not taken from the policy"
        );
        self.policy.on_insert(id.get(), page, at);
        frames.young.came_in(header);
        let mark = match arrival {
            Arrival::Wanted => 0,
            Arrival::Ahead => AHEAD.mask(),
        };
        set_tracked(header, Hit::new(id, page).to_raw() | mark);
    }

    /// The page in `id`, a frame of the caller's, is gone, if there was one.
    pub(super) fn remove(&mut self, frames: &Frames, id: FrameId) {
        let header = frames.header(id);
        if tracked(header) != 0 {
            self.policy.on_remove(id.get(), Gone::Invalidated);
            set_tracked(header, 0);
        }
    }

    pub(super) fn set_capacity(&mut self, frames: u32) {
        self.policy.set_capacity(frames);
    }

    /// Up to `limit` frames that the policy would probably offer next.
    pub(super) fn likely_victims(&self, limit: usize) -> Vec<FrameId> {
        let mut likely = Vec::with_capacity(limit);
        self.policy.likely_victims(limit, &mut likely);
        likely.into_iter().map(FrameId::new).collect()
    }

    pub(super) fn nodes(&self) -> Nodes {
        self.policy.nodes()
    }

    /// Memory that the policy holds.
    #[cfg(all(test, not(loom)))]
    pub(super) fn bytes(&self) -> usize {
        self.policy.bytes()
    }

    /// Verifies the policy, and R1 for the pages that it has: their number.
    pub(super) fn verify(&self, frames: &Frames) -> Result<usize, String> {
        self.policy.check()?;
        let residents = residents(&*self.policy);
        for (frame, page) in &residents {
            let id = FrameId::new(*frame);
            let header = frames.header(id);
            let is_tracked = tracked(header) & !AHEAD.mask() == Hit::new(id, *page).to_raw();
            if !is_tracked || header.page() != *page {
                return Err(format!("R1: the policy has page {page} in {id:?}"));
            }
        }
        Ok(residents.len())
    }
}

enum Verdict {
    Counts,
    /// It is the first use of a page that was brought in ahead.
    Arrived,
    Stale,
}

#[inline(always)]
fn judge(frames: &Frames, hit: Hit) -> Verdict {
    let header = frames.header(hit.frame());
    let now = tracked(header);
    if now == hit.to_raw() {
        Verdict::Counts
    } else if now == hit.to_raw() | AHEAD.mask() {
        set_tracked(header, hit.to_raw());
        Verdict::Arrived
    } else {
        Verdict::Stale
    }
}

/// The page that the policy knows to be in a frame, as a [`Hit`], or 0.
fn tracked(header: &Frame) -> u64 {
    // Relaxed: guarded by the lock of the page's part. Another part may be looking for a page of its own, and finds
    // neither the old word nor the new to be that.
    header.tracked.load(Ordering::Relaxed)
}

fn set_tracked(header: &Frame, word: u64) {
    // Relaxed: see `tracked`.
    header.tracked.store(word, Ordering::Relaxed);
}

//! What the policies' step-by-step tests share: a tiny pool around a policy, whose state is dumped after each step.

use longshore_base::PageId;

use crate::inspect::dump;
use crate::policy::{Frame, Gone, Policy, Take};
use crate::spec::Spec;

/// A pool of a few frames. Pages are found by looking through them.
pub(crate) struct Bench {
    pub(crate) policy: Box<dyn Policy>,
    frames: Vec<Option<PageId>>,
    pinned: Vec<PageId>,
}

impl Bench {
    /// A pool of `capacity` frames under the policy that `spec` names.
    pub(crate) fn new(spec: &str, capacity: u32) -> Bench {
        let spec: Spec = spec.parse().unwrap();
        Bench {
            policy: spec.build(capacity).unwrap(),
            frames: vec![None; capacity as usize],
            pinned: Vec::new(),
        }
    }

    fn find(&self, page: PageId) -> Option<Frame> {
        let at = self.frames.iter().position(|&held| held == Some(page));
        at.map(|at| at as Frame)
    }

    /// Uses `page`, whether it is there or not; a victim leaves if it must. Returns the dump.
    pub(crate) fn use_page(&mut self, page: u64) -> String {
        let page = PageId::new(page);
        match self.find(page) {
            Some(frame) => self.policy.on_hit(frame),
            None => self.bring_in(page),
        }
        self.dump()
    }

    /// Uses pages one after the other. Returns the last dump.
    pub(crate) fn use_pages(&mut self, pages: impl IntoIterator<Item = u64>) -> String {
        pages.into_iter().for_each(|page| {
            self.use_page(page);
        });
        self.dump()
    }

    fn bring_in(&mut self, page: PageId) {
        let at = self.policy.on_miss(page);
        let free = self.frames.iter().position(Option::is_none);
        let frame = match free {
            Some(free) => free as Frame,
            None => {
                let pinned = &self.pinned;
                let mut take = |_, page| match pinned.contains(&page) {
                    true => Take::Busy,
                    false => Take::Taken,
                };
                let victim = self.policy.evict(Some((page, at)), &mut take);
                victim.expect("not all are pinned")
            }
        };
        self.frames[frame as usize] = Some(page);
        self.policy.on_insert(frame, page, at);
    }

    /// Nothing can evict `page` from now on.
    pub(crate) fn pin(&mut self, page: u64) {
        self.pinned.push(PageId::new(page));
    }

    /// Drops `page`, which is there.
    pub(crate) fn remove(&mut self, page: u64) -> String {
        let frame = self.find(PageId::new(page)).expect("resident");
        self.frames[frame as usize] = None;
        self.policy.on_remove(frame, Gone::Invalidated);
        self.dump()
    }

    /// Which pages would go next, as the policy guesses.
    pub(crate) fn likely(&self, limit: usize) -> Vec<u64> {
        let mut frames = Vec::new();
        self.policy.likely_victims(limit, &mut frames);
        let page = |frame: Frame| self.frames[frame as usize].unwrap().get();
        frames.into_iter().map(page).collect()
    }

    /// The policy's state, checked.
    pub(crate) fn dump(&self) -> String {
        let dump = dump(&*self.policy);
        if let Err(error) = self.policy.check() {
            panic!("{error}: {dump}");
        }
        dump
    }
}

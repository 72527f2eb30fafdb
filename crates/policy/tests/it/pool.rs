//! The model: a pool of frames that knows by itself what is resident, and asserts what a policy owes (see `policy.rs`).

use std::collections::{HashMap, HashSet};

use longshore_base::PageId;
use longshore_policy::{Frame, Gone, Placement, Policy, Spec, Take, dump, residents};

/// A pool around a policy.
pub struct Pool {
    pub policy: Box<dyn Policy>,
    name: String,
    spec: Spec,
    /// The most frames that there were at a time, which the policy has nodes for.
    frames_max: usize,
    /// Pages by frame; frames beyond the capacity go when they are empty.
    frames: Vec<Option<PageId>>,
    free: Vec<Frame>,
    pages: HashMap<PageId, Frame>,
    capacity: usize,
}

impl Pool {
    pub fn new(spec: &Spec, capacity: u32) -> Pool {
        Pool {
            policy: spec.build(capacity).expect("capacity is not zero"),
            name: spec.to_string(),
            spec: spec.clone(),
            frames_max: capacity as usize,
            frames: vec![None; capacity as usize],
            free: (0..capacity).rev().collect(),
            pages: HashMap::new(),
            capacity: capacity as usize,
        }
    }

    /// Frames not in use are handed out the other way round from now on.
    pub fn turn_free_frames(&mut self) {
        self.free.reverse();
    }

    pub fn len(&self) -> usize {
        self.pages.len()
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    pub fn frame_of(&self, page: u64) -> Option<Frame> {
        self.pages.get(&PageId::new(page)).copied()
    }

    pub fn page_in(&self, frame: Frame) -> Option<PageId> {
        self.frames[frame as usize]
    }

    /// Uses a page; nothing is pinned. True if it was there.
    pub fn use_page(&mut self, page: u64) -> bool {
        self.use_unless(page, |_, _| Take::Taken) == Some(true)
    }

    /// Uses a page, and asks `veto` what to answer to a victim. `None` if there was no frame for it.
    pub fn use_unless(
        &mut self,
        page: u64,
        mut veto: impl FnMut(Frame, PageId) -> Take,
    ) -> Option<bool> {
        let page = PageId::new(page);
        if let Some(&frame) = self.pages.get(&page) {
            self.policy.on_hit(frame);
            return Some(true);
        }
        let at = self.policy.on_miss(page);
        // After shrinking, victims may sit in frames that are no longer ours.
        while self.free.is_empty() {
            self.evict(Some((page, at)), &mut veto)?;
        }
        self.insert_freed(page, at);
        Some(false)
    }

    /// The end of a miss: the page gets a frame that is free.
    pub fn insert_freed(&mut self, page: PageId, at: Placement) {
        let frame = self.free.pop().expect("evicted");
        self.insert(frame, page, at);
    }

    fn insert(&mut self, frame: Frame, page: PageId, at: Placement) {
        assert_eq!(self.frames[frame as usize].replace(page), None);
        self.pages.insert(page, frame);
        self.policy.on_insert(frame, page, at);
    }

    /// Evicts a page; its frame becomes free.
    pub fn evict(
        &mut self,
        incoming: Option<(PageId, Placement)>,
        mut veto: impl FnMut(Frame, PageId) -> Take,
    ) -> Option<Frame> {
        let mut offers: HashMap<Frame, u32> = HashMap::new();
        let mut last = None;
        let (frames, name) = (&self.frames, &self.name);
        let victim = self.policy.evict(incoming, &mut |frame, page| {
            let over = matches!(last, Some((_, Take::Taken | Take::Enough)));
            assert!(!over, "{name}: P1: an offer after the end");
            assert_eq!(frames[frame as usize], Some(page), "{name}: P1: not there");
            let times = offers.entry(frame).or_default();
            *times += 1;
            assert!(*times <= 2, "{name}: P1: offered thrice");
            let answer = veto(frame, page);
            last = Some((frame, answer));
            answer
        });
        let taken = last.filter(|&(_, answer)| answer == Take::Taken);
        let taken = taken.map(|(frame, _)| frame);
        assert_eq!(victim, taken, "{name}: the victim is the frame taken");
        if last.is_none_or(|(_, answer)| answer != Take::Taken && answer != Take::Enough) {
            let (offered, there) = (offers.len(), self.pages.len());
            assert_eq!(offered, there, "{name}: gave up before all were offered");
        }
        self.empty(victim?);
        victim
    }

    /// Removes the page in a frame.
    pub fn remove(&mut self, frame: Frame, why: Gone) -> PageId {
        self.policy.on_remove(frame, why);
        self.empty(frame)
    }

    /// Moves a page to a frame that is free, as a pool that shrinks does. False if none is.
    pub fn relocate(&mut self, frame: Frame) -> bool {
        let Some(target) = self.free.pop() else {
            return false;
        };
        let page = self.remove(frame, Gone::Relocated);
        let at = self.policy.on_miss(page);
        self.insert(target, page, at);
        true
    }

    fn empty(&mut self, frame: Frame) -> PageId {
        let page = self.frames[frame as usize].take().expect("resident");
        assert_eq!(self.pages.remove(&page), Some(frame));
        if (frame as usize) < self.capacity {
            self.free.push(frame);
        }
        page
    }

    /// Changes the number of frames. Pages in frames beyond it stay, until `settle`.
    pub fn resize(&mut self, capacity: u32) {
        self.policy.set_capacity(capacity);
        self.capacity = capacity as usize;
        self.frames_max = self.frames_max.max(self.capacity);
        self.frames
            .resize(self.frames.len().max(self.capacity), None);
        let empty = |&frame: &Frame| self.frames[frame as usize].is_none();
        self.free = (0..capacity).rev().filter(empty).collect();
    }

    /// Removes what is beyond the capacity, by evicting, moving and dropping.
    pub fn settle(&mut self) {
        while self.len() > self.capacity {
            self.evict(None, |_, _| Take::Taken)
                .expect("nothing is pinned");
        }
        for frame in self.capacity..self.frames.len() {
            if self.frames[frame].is_some() {
                assert!(self.relocate(frame as Frame), "as many fit");
            }
        }
        self.frames.truncate(self.capacity);
    }

    /// The policy is sound, and knows exactly what is resident.
    pub fn check(&self) {
        if let Err(error) = self.policy.check() {
            panic!("{}: {error}: {}", self.name, self.picture());
        }
        let shown = residents(&*self.policy);
        assert_eq!(
            shown.len(),
            self.pages.len(),
            "{}: {}",
            self.name,
            self.picture()
        );
        for (frame, page) in shown {
            assert_eq!(
                self.pages.get(&page),
                Some(&frame),
                "{}: {}",
                self.name,
                self.picture()
            );
        }
        let frames = self.frames_max as u32;
        let (bytes, bytes_max) = (self.policy.bytes(), self.spec.bytes_max(frames, frames));
        assert!(bytes <= bytes_max, "{}: {bytes} bytes", self.name);
        let mut likely = Vec::new();
        self.policy.likely_victims(4, &mut likely);
        let distinct: HashSet<Frame> = likely.iter().copied().collect();
        assert!(
            distinct.len() == likely.len() && likely.len() <= 4,
            "{}: {likely:?}",
            self.name
        );
        let resident = |&frame: &Frame| self.frames[frame as usize].is_some();
        assert!(likely.iter().all(resident), "{}: {likely:?}", self.name);
    }

    fn picture(&self) -> String {
        dump(&*self.policy).chars().take(2_000).collect()
    }
}

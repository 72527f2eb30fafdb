//! Policies that keep all pages in one queue and remember none that left: FIFO, LRU, CLOCK, GCLOCK. A page comes in at
//! the back. What a use does, and who leaves, makes the difference: the [`Rule`].

use longshore_base::PageId;

use super::queues::{Queued, Queues};
use crate::catalogue::{About, Listed};
use crate::inspect::Inspector;
use crate::lists::Offered;
use crate::nodes::NodeId;
use crate::policy::{Frame, Gone, Incoming, Nodes, Placement, Policy, Taker};
use crate::spec::Values;

/// The number of the queue.
pub(crate) const ALL: u8 = 0;

/// What a rule is told of: the pages, the next victim in front.
pub(crate) type Pages<S> = Queues<S, 1>;

/// What makes a policy of a queue.
pub(crate) trait Rule: Send + 'static {
    /// What is kept of a page.
    type State: Queued + Send;

    /// The catalogue's entry.
    const ABOUT: About;

    /// What the queue is called where it is shown.
    const QUEUE: &'static str;

    fn new(values: &Values<'_>) -> Self;

    /// Whether a use does nothing, or puts the page at the back.
    const SETTLES: bool = false;

    /// A page was used.
    fn hit(&mut self, pages: &mut Pages<Self::State>, id: NodeId);

    /// Looks for a victim; by default from the front.
    fn offer(&mut self, pages: &mut Pages<Self::State>, take: Taker<'_>) -> Offered {
        pages.offer([ALL], take)
    }

    /// What a page must lose before it can leave.
    fn weight(_state: &Self::State) -> u32 {
        0
    }
}

/// The policy of a rule.
pub(crate) struct OneQueue<R: Rule> {
    pages: Pages<R::State>,
    rule: R,
}

impl<R: Rule> Listed for OneQueue<R> {
    const ABOUT: About = R::ABOUT;

    fn new(capacity: u32, values: &Values<'_>) -> Self {
        OneQueue {
            pages: Queues::new(capacity),
            rule: R::new(values),
        }
    }
}

impl<R: Rule> Policy for OneQueue<R> {
    #[inline]
    fn on_hit(&mut self, frame: Frame) {
        self.rule.hit(&mut self.pages, NodeId::of(frame));
    }

    fn is_settled(&self, _frame: Frame) -> bool {
        R::SETTLES
    }

    fn evict(&mut self, _incoming: Incoming, take: Taker<'_>) -> Option<Frame> {
        let frame = self.rule.offer(&mut self.pages, take).taken()?;
        self.pages.vacate(frame);
        Some(frame)
    }

    fn on_insert(&mut self, frame: Frame, page: PageId, _at: Placement) {
        self.pages.admit(frame, page, R::State::default(), ALL);
    }

    fn on_remove(&mut self, frame: Frame, _why: Gone) {
        self.pages.vacate(frame);
    }

    fn set_capacity(&mut self, frames: u32) {
        self.pages.nodes.reserve(frames);
    }

    fn bytes(&self) -> usize {
        self.pages.nodes.bytes()
    }

    fn nodes(&self) -> Nodes {
        self.pages.nodes.addresses()
    }

    fn likely_victims(&self, limit: usize, out: &mut Vec<Frame>) {
        self.pages.guess([ALL], R::weight, limit, out);
    }

    fn inspect(&self, out: &mut dyn Inspector) {
        self.pages.show([(ALL, R::QUEUE)], R::weight, out);
    }

    fn check(&self) -> Result<(), String> {
        self.pages.check(1)
    }
}

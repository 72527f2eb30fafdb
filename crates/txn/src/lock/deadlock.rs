//! Finds who waits for whom in a circle.
//!
//! # Protocol
//! The owner that begins a wait searches after it has lined up, so of several owners that close a
//! circle at once the last to line up sees it whole. It searches again at intervals while the wait
//! lasts, for circles that moved while they were looked at. A search walks the graph one bucket at
//! a time, never holding two latches; a circle that it finds is therefore confirmed: every edge is
//! read again, and then every owner must still be in the wait in which it was found. While an owner
//! waits it releases nothing, so edges seen between two sightings of the same waits existed together.
//!
//! # Victim
//! The youngest transaction of the circle, that is, the one with the greatest id: it has probably done
//! the least, and transactions that grow old are spared, so a retried one gets through in the end.
//! All who find the same circle choose the same victim.

use super::manager::LockManager;
use super::owner::Waiting;
use super::queue::OwnerIndex;
use smallvec::SmallVec;
use std::collections::HashSet;

/// Searches repeated when the circle moved under the search.
const ATTEMPTS: usize = 3;

/// One owner on the path of a search.
struct Step {
    owner: OwnerIndex,
    wait: Waiting,
    /// Whom it waits for and who has not been visited yet.
    next: Vec<OwnerIndex>,
}

impl LockManager {
    /// Condemns victims until `owner`, which has lined up, is in no circle; true if it is one itself.
    pub(super) fn break_deadlocks(&self, owner: OwnerIndex) -> bool {
        for _ in 0..ATTEMPTS {
            let Some(circle) = self.find_circle(owner) else {
                return false;
            };
            if !self.is_circle(&circle) {
                continue;
            }
            let youngest = circle
                .iter()
                .max_by_key(|(_, wait)| wait.txn)
                .expect("a circle has members");
            if youngest.0 == owner {
                return true;
            }
            self.slot(youngest.0).condemn(youngest.1.number);
        }
        false
    }

    /// Walks from `start` along the edges, depth first, until it meets `start` again.
    fn find_circle(&self, start: OwnerIndex) -> Option<SmallVec<[(OwnerIndex, Waiting); 4]>> {
        let mut visited = HashSet::from([start]);
        let mut path = vec![self.step(start)?];
        while let Some(step) = path.last_mut() {
            match step.next.pop() {
                None => {
                    path.pop();
                }
                Some(next) if next == start => {
                    return Some(path.iter().map(|s| (s.owner, s.wait)).collect());
                }
                Some(next) if visited.insert(next) => path.extend(self.step(next)),
                Some(_) => {}
            }
        }
        None
    }

    /// The wait that `owner` is in, and whom it waits for; nothing if it runs.
    fn step(&self, owner: OwnerIndex) -> Option<Step> {
        let wait = self.slot(owner).waiting()?;
        let next = self.edges(owner, &wait);
        Some(Step { owner, wait, next })
    }

    fn edges(&self, owner: OwnerIndex, wait: &Waiting) -> Vec<OwnerIndex> {
        let mut edges = Vec::new();
        let name = wait.name.hash();
        let (latched, _) = self.bucket(name).latch();
        latched.waits_for(name, owner, &mut edges);
        edges
    }

    /// Whether all edges of `circle` exist together.
    fn is_circle(&self, circle: &[(OwnerIndex, Waiting)]) -> bool {
        let successors = circle.iter().skip(1).chain(circle.first());
        let edges_stand = circle
            .iter()
            .zip(successors)
            .all(|((owner, wait), (next, _))| self.edges(*owner, wait).contains(next));
        edges_stand
            && circle.iter().all(|(owner, wait)| {
                let now = self.slot(*owner).waiting();
                now.is_some_and(|now| now.number == wait.number)
            })
    }
}

//! Finds who waits for whom in a circle.
//!
//! # Protocol
//! The owner that begins a wait searches after it has lined up, so of several owners that close a
//! circle at once the last to line up sees it whole, and need look no further than for circles through
//! itself. One search breaks them all, however many there are: a holder that wants more of a row may
//! close one with each reader of it.
//!
//! That is enough although newcomers pass waiters (`queue`). A waiter that is passed waits for somebody
//! new without a wait of its own beginning, but whoever passes runs, and waits for nobody: if a circle
//! closes through the two, it is when the one that passed lines up elsewhere, and then it searches. A
//! waiter that has been called and not come stands in its queue as before, in the same wait, so that
//! search finds it and whom it waits for.
//!
//! A search walks the graph depth first, one bucket at a time, never holding two latches, so what it
//! has seen may be over. A path that leads back to its start is therefore confirmed: every edge is read
//! again, and then every owner must still be in the wait in which it was found. While an owner waits it
//! releases nothing, so edges seen between two sightings of the same waits existed together.
//!
//! When a part of the path is over, be it that others moved or that a victim was condemned, the search
//! *retreats*: it keeps the path up to there and goes on with what it has not tried, and what it had
//! visited from there on is open to be visited again. A wait that is over needs no second look: the
//! next wait of that owner has its own search. So a search ends as soon as nothing changes under it,
//! and each change is somebody's progress.
//!
//! # Victim
//! The transaction of the circle with the greatest id, so all who find the same circle choose the same
//! victim. Ids come in small blocks, one for each slot of transactions (`transaction::slots`), so it is not
//! always the youngest: one that began earlier falls instead if its block was begun later. But of those that
//! begin after a transaction, only what is left of older blocks has smaller ids: it is spared once those
//! are used up, and a transaction that grows old gets through in the end.

use super::manager::LockManager;
use super::owner::Waiting;
use super::queue::OwnerIndex;
use std::collections::HashMap;

/// One owner on the path of a search.
struct Step {
    owner: OwnerIndex,
    wait: Waiting,
    /// How many had been visited before it.
    visited: usize,
    /// Whom it waits for and who has not been tried yet.
    next: Vec<OwnerIndex>,
}

/// What is over of a path that seemed to be a circle, by the number of the step.
enum Gone {
    /// The wait.
    Wait(usize),
    /// Only its being in the way of the one after.
    Edge(usize),
}

impl LockManager {
    /// Condemns victims until `start`, which has lined up, is in no circle; true if it is one itself.
    pub(super) fn break_deadlocks(&self, start: OwnerIndex) -> bool {
        let mut visited = HashMap::from([(start, 0)]);
        let mut path = Vec::from_iter(self.step(start, 0));
        while let Some(step) = path.last_mut() {
            let Some(next) = step.next.pop() else {
                path.pop();
                continue;
            };
            if next == start {
                let gone = match self.confirm(&path) {
                    Err(gone) => gone,
                    Ok(()) => match victim_of(&path) {
                        0 => return true,
                        victim => {
                            let Step { owner, wait, .. } = &path[victim];
                            self.slot(*owner).condemn(wait.number);
                            Gone::Wait(victim)
                        }
                    },
                };
                retreat(&mut path, &mut visited, gone);
            } else if !visited.contains_key(&next) {
                let before = visited.len();
                visited.insert(next, before);
                path.extend(self.step(next, before));
            }
        }
        false
    }

    /// The wait that `owner` is in, and whom it waits for; nothing if it runs.
    fn step(&self, owner: OwnerIndex, visited: usize) -> Option<Step> {
        let wait = self.slot(owner).waiting()?;
        let next = self.edges(owner, &wait);
        Some(Step {
            owner,
            wait,
            visited,
            next,
        })
    }

    fn edges(&self, owner: OwnerIndex, wait: &Waiting) -> Vec<OwnerIndex> {
        let mut edges = Vec::new();
        let latched = self.bucket(wait.name.hash()).latch();
        latched.waits_for(wait.name, owner, &mut edges);
        edges
    }

    /// Whether all waits of `path`, and all edges from each step to the next and from the last to the
    /// first, exist together.
    fn confirm(&self, path: &[Step]) -> Result<(), Gone> {
        let successors = path.iter().skip(1).chain(path.first());
        let edge = path.iter().zip(successors).position(|(step, next)| {
            let edges = self.edges(step.owner, &step.wait);
            !edges.contains(&next.owner)
        });
        // After the edges; see the header.
        let wait = path.iter().position(|step| {
            let now = self.slot(step.owner).waiting();
            now.is_none_or(|now| now.number != step.wait.number)
        });
        match (wait, edge) {
            (Some(at), _) => Err(Gone::Wait(at)),
            (None, Some(at)) => Err(Gone::Edge(at)),
            (None, None) => Ok(()),
        }
    }
}

/// The step of the transaction with the greatest id.
fn victim_of(path: &[Step]) -> usize {
    let steps = path.iter().enumerate();
    let greatest = steps.max_by_key(|(_, step)| step.wait.txn);
    greatest.expect("a circle has members").0
}

/// Keeps what is not over, and forgets who was visited by way of the rest.
fn retreat(path: &mut Vec<Step>, visited: &mut HashMap<OwnerIndex, usize>, gone: Gone) {
    let (at, kept) = match gone {
        Gone::Wait(at) => (at, at),
        Gone::Edge(at) => (at, at + 1),
    };
    let last = path[at].visited;
    visited.retain(|_, before| *before <= last);
    path.truncate(kept);
}

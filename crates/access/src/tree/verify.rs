//! Checking a whole tree, and collecting the pages that it consists of.
//!
//! # Protocol
//! The tree is walked from the root, one page latched shared at a time; nobody may change its structure
//! meanwhile, or problems are reported that are none. Each node is checked by itself
//! ([`NodeRef::verify`]) and against what its parent, or the node before it in the chain, says: store, level,
//! fences (T1). A page that cannot be read is a problem like others; the walk goes on beside it. The
//! chains of large values belong to the tree: their pages are collected, their lengths compared.
//!
//! What waits to be freed is walked for its pages alone: it may be half freed, and nobody reads it.

use super::Tree;
use crate::access::Access;
use crate::error::{AccessError, Corruption};
use crate::node::NodeRef;
use crate::overflow::{self, ChainId, Stub};
use longshore_base::{PageId, StoreId};
use longshore_pool::{PoolError, SharedGuard};
use std::collections::BTreeSet;

/// What is expected of each page that is walked over.
const READABLE: &str = "a readable page";
const IN_ONE_PLACE: &str = "a page that is in one place";

/// Pages, each at most once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageSet(BTreeSet<PageId>);

impl PageSet {
    /// The empty set.
    pub fn new() -> PageSet {
        PageSet::default()
    }

    /// Adds a page; false when it was there.
    pub fn insert(&mut self, page: PageId) -> bool {
        self.0.insert(page)
    }

    /// Takes a page out; false when it was not there.
    pub fn remove(&mut self, page: PageId) -> bool {
        self.0.remove(&page)
    }

    /// Whether the page is there.
    pub fn contains(&self, page: PageId) -> bool {
        self.0.contains(&page)
    }

    /// Number of pages.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The pages, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = PageId> + '_ {
        self.0.iter().copied()
    }
}

/// What a tree consists of, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeReport {
    /// Levels, leaves included.
    pub levels: u32,
    /// Pages with rows.
    pub leaves: u64,
    /// Pages above them.
    pub branches: u64,
    /// Nodes that their parent does not know yet.
    pub foster_children: u64,
    /// Rows that are not deleted.
    pub rows: u64,
    /// Deleted rows that still take space.
    pub ghosts: u64,
    /// Bytes in use in all leaves, headers and fences included.
    pub leaf_bytes_used: u64,
    /// Bytes that ghosts take.
    pub ghost_bytes: u64,
    /// Everything found wrong; empty in a sound tree.
    pub problems: Vec<Corruption>,
}

impl TreeReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}

/// A node to visit, and what is known about it.
struct Expected {
    page: PageId,
    level: Option<u8>,
    low: Vec<u8>,
    /// Upper bound of the node and its foster chain.
    chain_upper: Option<Vec<u8>>,
    is_foster: bool,
}

struct Walk<'w> {
    tree: Tree,
    access: &'w Access,
    pages: &'w mut PageSet,
    report: TreeReport,
    todo: Vec<Expected>,
}

impl Tree {
    /// Checks the tree, and adds its pages to `pages`, which must hold no page of another.
    ///
    /// # Errors
    /// When the check cannot be made; what the check finds is in the report.
    pub fn verify(&self, access: &Access, pages: &mut PageSet) -> Result<TreeReport, AccessError> {
        let root = Expected {
            page: self.root,
            level: None,
            low: Vec::new(),
            chain_upper: None,
            is_foster: false,
        };
        let report = TreeReport::default();
        let mut walk = Walk {
            tree: *self,
            access,
            pages,
            report,
            todo: vec![root],
        };
        while let Some(next) = walk.todo.pop() {
            walk.visit(next)?;
        }
        Ok(walk.report)
    }

    /// Adds what is left of a dropped tree to `pages`; returns those pages that were there already, or cannot be
    /// read.
    ///
    /// # Errors
    /// When the check cannot be made.
    pub fn verify_dropped(
        &self,
        access: &Access,
        pages: &mut PageSet,
    ) -> Result<Vec<Corruption>, AccessError> {
        let is_left = match access.pool.fix_shared(self.root) {
            Ok(root) => self.is_node(root.page(), None),
            Err(PoolError::Damaged { .. }) => true,
            Err(other) => return Err(other.into()),
        };
        if !is_left {
            return Ok(Vec::new());
        }
        let mut problems = self.verify(access, pages)?.problems;
        problems.retain(|problem| [READABLE, IN_ONE_PLACE].contains(&problem.expected.as_str()));
        Ok(problems)
    }
}

/// Adds what is left of a chain that no row refers to any more to `pages`; returns those pages that were there
/// already, or cannot be read.
///
/// # Errors
/// When the check cannot be made.
pub fn verify_dropped_chain(
    access: &Access,
    store: StoreId,
    chain: ChainId,
    pages: &mut PageSet,
) -> Result<Vec<Corruption>, AccessError> {
    let mut problems = Vec::new();
    add_links(access, store, chain, pages, &mut problems)?;
    Ok(problems)
}

/// Adds the links of a chain to `pages`; returns how many bytes they hold, if all can be read.
fn add_links(
    access: &Access,
    store: StoreId,
    chain: ChainId,
    pages: &mut PageSet,
    problems: &mut Vec<Corruption>,
) -> Result<Option<u64>, AccessError> {
    let walked = overflow::walk(access, store, chain, |page| {
        if !pages.insert(page) {
            problems.push(problem(page, store, IN_ONE_PLACE, "a page in two places"));
        }
    });
    match walked {
        Ok(len) => Ok(Some(len)),
        Err(AccessError::Corrupt(corruption)) => {
            problems.push(*corruption);
            Ok(None)
        }
        Err(AccessError::Pool(PoolError::Damaged { page, reason })) => {
            problems.push(problem(page, store, READABLE, &reason.to_string()));
            Ok(None)
        }
        Err(other) => Err(other),
    }
}

fn problem(page: PageId, store: StoreId, expected: &str, found: &str) -> Corruption {
    Corruption {
        page,
        store,
        expected: expected.to_owned(),
        found: found.to_owned(),
    }
}

impl Walk<'_> {
    fn visit(&mut self, expected: Expected) -> Result<(), AccessError> {
        if !self.pages.insert(expected.page) {
            self.problem(expected.page, IN_ONE_PLACE, "a page in two places");
            return Ok(());
        }
        let guard = match self.access.pool.fix_shared(expected.page) {
            Ok(guard) => guard,
            Err(damage @ PoolError::Damaged { .. }) => {
                self.problem(expected.page, READABLE, &damage.to_string());
                return Ok(());
            }
            Err(other) => return Err(other.into()),
        };
        if !self.tree.is_node(guard.page(), expected.level) {
            let error = self
                .tree
                .not_a_node(expected.page, guard.page(), expected.level);
            if let AccessError::Corrupt(corruption) = error {
                self.report.problems.push(*corruption);
            }
            return Ok(());
        }
        let node = NodeRef::new(guard.page());
        if let Err(damage) = node.verify() {
            self.problem(expected.page, "a sound node", &damage.reason);
            return Ok(());
        }
        self.check_fences(&guard, &expected);
        self.count(&node, &expected);
        if node.is_leaf() {
            self.check_chains(&node, expected.page)?;
        }
        self.go_on(&node, expected);
        Ok(())
    }

    /// Walks the chains of the leaf's large values. That of a ghost is garbage, and no part of the tree.
    fn check_chains(&mut self, node: &NodeRef<'_>, leaf: PageId) -> Result<(), AccessError> {
        for slot in 0..node.count() {
            if node.is_ghost(slot) || !node.flags(slot).is_overflow() {
                continue;
            }
            match Stub::from_bytes(&node.value(slot)) {
                Some(stub) => self.check_chain(stub, leaf)?,
                None => self.problem(leaf, "a reference to a large value", "something else"),
            }
        }
        Ok(())
    }

    fn check_chain(&mut self, stub: Stub, leaf: PageId) -> Result<(), AccessError> {
        let (store, problems) = (self.tree.store, &mut self.report.problems);
        let walked = add_links(self.access, store, stub.chain, self.pages, problems)?;
        if let Some(len) = walked.filter(|len| *len != stub.len) {
            let expected = format!("a large value of {} bytes", stub.len);
            self.problem(leaf, &expected, &format!("a chain of {len} bytes"));
        }
        Ok(())
    }

    fn check_fences(&mut self, guard: &SharedGuard<'_>, expected: &Expected) {
        let node = NodeRef::new(guard.page());
        if node.low() != expected.low {
            self.problem(
                expected.page,
                "T1: the low fence that is its place",
                "another low fence",
            );
        }
        let upper = node.upper();
        if node.foster().is_none() && upper != expected.chain_upper {
            self.problem(
                expected.page,
                "T1: the upper fence that is its place",
                "another upper fence",
            );
        }
        let is_beyond = match (&upper, &expected.chain_upper) {
            (Some(upper), Some(bound)) => upper > bound,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        if is_beyond {
            self.problem(
                expected.page,
                "T1: a node within its parent's range",
                "one that reaches beyond",
            );
        }
        if expected.level.is_none() && node.foster().is_some() {
            self.problem(
                expected.page,
                "T2: a root without a foster child",
                "one that has one",
            );
        }
    }

    fn count(&mut self, node: &NodeRef<'_>, expected: &Expected) {
        let report = &mut self.report;
        report.levels = report.levels.max(u32::from(node.level()) + 1);
        report.foster_children += u64::from(expected.is_foster);
        if node.is_leaf() {
            let ghosts = (0..node.count())
                .filter(|&slot| node.is_ghost(slot))
                .count();
            report.leaves += 1;
            report.rows += (node.count() - ghosts) as u64;
            report.ghosts += ghosts as u64;
            report.leaf_bytes_used += node.used_bytes() as u64;
            report.ghost_bytes += node.ghost_bytes() as u64;
        } else {
            report.branches += 1;
        }
    }

    /// Puts the node's children and its foster child on the list.
    fn go_on(&mut self, node: &NodeRef<'_>, expected: Expected) {
        let upper = node.upper();
        if let (Some(foster), Some(low)) = (node.foster(), upper.clone()) {
            self.todo.push(Expected {
                page: foster,
                level: Some(node.level()),
                low,
                chain_upper: expected.chain_upper,
                is_foster: true,
            });
        }
        if node.is_leaf() {
            return;
        }
        for slot in 0..node.count() {
            let next = if slot + 1 < node.count() {
                Some(node.key(slot + 1))
            } else {
                upper.clone()
            };
            self.todo.push(Expected {
                page: node.child(slot),
                level: Some(node.level() - 1),
                low: node.key(slot),
                chain_upper: next,
                is_foster: false,
            });
        }
    }

    fn problem(&mut self, page: PageId, expected: &str, found: &str) {
        let problem = problem(page, self.tree.store, expected, found);
        self.report.problems.push(problem);
    }
}

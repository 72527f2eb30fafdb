//! What a policy shows of itself: queues in order, and counters.

use std::fmt::Write;

use longshore_base::PageId;

use crate::policy::{Frame, Policy};

/// One place in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The page.
    pub page: PageId,
    /// Where it is resident; `None`: a ghost.
    pub frame: Option<Frame>,
    /// A reference bit, a weight, a count of hits; 0 where there is none.
    pub weight: u32,
    /// What kind of entry it is, where a queue mixes kinds (`hot`, `cold`); else empty.
    pub kind: &'static str,
}

/// Receives what [`Policy::inspect`] shows.
pub trait Inspector {
    /// A queue. The first entry is the first that the policy will look at (or forget, among ghosts).
    fn queue(&mut self, name: &'static str, entries: &mut dyn Iterator<Item = Entry>);

    /// A number that steers the policy: ARC's `p`, a length aimed at.
    fn counter(&mut self, name: &'static str, value: u64);
}

/// A policy's state on one line: `in: 4 5:1 | out: (2) (3) | p=3`. Weights follow a colon, kinds stand before the
/// page, ghosts are in parentheses; empty queues are shown as `-`.
pub fn dump<P: Policy + ?Sized>(policy: &P) -> String {
    let mut line = Line::default();
    policy.inspect(&mut line);
    line.0
}

#[derive(Default)]
struct Line(String);

impl Line {
    fn next_part(&mut self) {
        if !self.0.is_empty() {
            self.0.push_str(" | ");
        }
    }
}

impl Inspector for Line {
    fn queue(&mut self, name: &'static str, entries: &mut dyn Iterator<Item = Entry>) {
        self.next_part();
        self.0.push_str(name);
        self.0.push(':');
        let before = self.0.len();
        for entry in entries {
            self.0.push(' ');
            self.0.push_str(&text_of(&entry));
        }
        if self.0.len() == before {
            self.0.push_str(" -");
        }
    }

    fn counter(&mut self, name: &'static str, value: u64) {
        self.next_part();
        let _ = write!(self.0, "{name}={value}");
    }
}

fn text_of(entry: &Entry) -> String {
    let mut text = format!("{}{}", entry.kind, entry.page);
    if entry.weight > 0 {
        let _ = write!(text, ":{}", entry.weight);
    }
    match entry.frame {
        Some(_) => text,
        None => format!("({text})"),
    }
}

/// The resident frames and their pages, each once, roughly in the order in which they would leave. Another policy can
/// be filled with them.
pub fn residents<P: Policy + ?Sized>(policy: &P) -> Vec<(Frame, PageId)> {
    let mut found = Residents::default();
    policy.inspect(&mut found);
    found.pages
}

#[derive(Default)]
struct Residents {
    pages: Vec<(Frame, PageId)>,
    seen: std::collections::HashSet<Frame>,
}

impl Inspector for Residents {
    fn queue(&mut self, _name: &'static str, entries: &mut dyn Iterator<Item = Entry>) {
        for entry in entries {
            if let Some(frame) = entry.frame
                && self.seen.insert(frame)
            {
                self.pages.push((frame, entry.page));
            }
        }
    }

    fn counter(&mut self, _name: &'static str, _value: u64) {}
}

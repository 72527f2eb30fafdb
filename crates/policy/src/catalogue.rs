//! What there is: the policies with their parameters, and the way from a name to the concrete type.

use crate::policies;
use crate::policy::Policy;
use crate::spec::Values;

/// What a user is told about a policy.
#[derive(Debug)]
pub struct About {
    /// Name in specifications.
    pub name: &'static str,
    /// Who published it, and where.
    pub source: &'static str,
    /// When not to choose it, in one sentence.
    pub weakness: &'static str,
    /// The memory that it takes.
    pub memory: Memory,
    /// What can be set.
    pub parameters: &'static [Parameter],
}

/// The most memory that a policy takes, in bytes. [`Spec::bytes_max`](crate::Spec::bytes_max) adds it up.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// However large the pool.
    pub fixed: usize,
    /// For each frame.
    pub frame: usize,
    /// For each page remembered that left.
    pub ghost: usize,
    /// How many of these there are.
    pub ghosts: Ghosts,
}

/// How many pages are remembered that left.
#[derive(Clone, Copy, Debug)]
pub enum Ghosts {
    /// None.
    None,
    /// Up to so many in a hundred frames.
    Percent(f64),
    /// Up to so many in a hundred frames as this parameter says.
    Parameter(&'static str),
}

impl Memory {
    /// With so much more for each frame.
    pub(crate) const fn and_frame(self, bytes: usize) -> Memory {
        Memory {
            frame: self.frame + bytes,
            ..self
        }
    }

    /// With so much more for each page remembered.
    pub(crate) const fn and_ghost(self, bytes: usize) -> Memory {
        Memory {
            ghost: self.ghost + bytes,
            ..self
        }
    }

    /// With so much more.
    pub(crate) const fn and_fixed(self, bytes: usize) -> Memory {
        Memory {
            fixed: self.fixed + bytes,
            ..self
        }
    }

    /// With these ghosts.
    pub(crate) const fn and_ghosts(self, ghosts: Ghosts) -> Memory {
        Memory { ghosts, ..self }
    }
}

impl About {
    /// What is remembered of pages that left, in percent of the frames, where the parameters have these values.
    pub(crate) fn ghosts_percent(&self, values: &[f64]) -> f64 {
        match self.memory.ghosts {
            Ghosts::None => 0.0,
            Ghosts::Percent(percent) => percent,
            Ghosts::Parameter(name) => Values::new(self, values).percent(name),
        }
    }

    /// Bytes for each page of the pool, for the frame itself and for what is remembered of pages that left, at most, unless
    /// the parameters say otherwise.
    pub fn page_bytes(&self) -> (usize, usize) {
        let defaults = self.parameters.iter().map(|known| known.default);
        let percent = self.ghosts_percent(&defaults.collect::<Vec<_>>());
        let ghosts = self.memory.ghost as f64 * percent / 100.0;
        (self.memory.frame, ghosts.ceil() as usize)
    }
}

/// Something that can be set.
#[derive(Debug)]
pub struct Parameter {
    /// Name in specifications.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub meaning: &'static str,
    /// How it is written.
    pub unit: Unit,
    /// Its value unless set; the papers' default.
    pub default: f64,
    /// Least value allowed.
    pub min: f64,
    /// Greatest value allowed.
    pub max: f64,
}

/// How a parameter is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `3`
    Whole,
    /// `25%` of the pool's frames, fractions allowed.
    Percent,
}

/// All policies, by name, in the order of the table.
pub fn catalogue() -> impl Iterator<Item = &'static About> {
    policies::ABOUT.iter().copied()
}

/// Does something with a policy whose type is known while compiling, so that its calls can be inlined: what
/// [`Spec::visit`](crate::Spec::visit) calls.
pub trait Visitor {
    /// What comes of it.
    type Output;

    /// Does it.
    fn visit<P: Policy + 'static>(self, policy: P) -> Self::Output;
}

/// A policy that stands in the catalogue.
pub(crate) trait Listed: Policy + Sized + 'static {
    /// Its entry.
    const ABOUT: About;

    /// The policy for a pool of `capacity` frames, at least one, all of them empty.
    fn new(capacity: u32, values: &Values<'_>) -> Self;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Spec;

    #[test]
    fn the_readme_has_a_row_for_each_policy() {
        let readme = include_str!("../README.md");
        for about in catalogue() {
            let row = format!("| `{}` | {} |", about.name, about.source);
            let found = readme.lines().find(|line| line.starts_with(&row));
            let found = found.unwrap_or_else(|| panic!("README.md has no row {row}"));
            let memory = match about.page_bytes() {
                (frame, 0) => format!("| {frame} B |"),
                (frame, ghosts) => format!("| {frame} B + {ghosts} B |"),
            };
            assert!(found.contains(&memory), "{row} does not say {memory}");
        }
    }

    #[test]
    fn entries_are_sound_and_all_can_be_built() {
        let names: std::collections::HashSet<_> = catalogue().map(|about| about.name).collect();
        assert_eq!(names.len(), catalogue().count(), "names are unique");
        for about in catalogue() {
            for known in about.parameters {
                let range = known.min..=known.max;
                assert!(
                    range.contains(&known.default),
                    "{}: {}",
                    about.name,
                    known.name
                );
            }
            let spec: Spec = about.name.parse().unwrap();
            assert_eq!(spec.build(1).unwrap().check(), Ok(()));
        }
    }
}

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
    /// Memory for each page of the pool, histories included.
    pub memory: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
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
            assert!(readme.contains(&row), "README.md has no row {row}");
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

//! Every policy of the catalogue, through everything that a pool may do to it.

mod pool;
mod random_steps;
mod survival;

use longshore_policy::{Spec, catalogue};

/// All policies, as they are by default.
fn all() -> impl Iterator<Item = Spec> {
    catalogue().map(|about| about.name.parse().expect("the catalogue's own name"))
}

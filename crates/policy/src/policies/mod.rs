//! The policies. To add one: a file here, a line `mod`, and a line in `policies!`.

mod clock;
mod fifo;
mod gclock;
mod lru;
mod random;
mod s3_fifo;
mod sieve;
mod sweep;
mod two_queue;
mod two_queue_simple;

use crate::catalogue::{About, Listed, Visitor};
use crate::spec::Values;

/// Makes the catalogue of types, in the order of its table.
macro_rules! policies {
    ($($policy:ty,)*) => {
        /// What is told about each.
        pub(crate) static ABOUT: &[&About] = &[$(&<$policy as Listed>::ABOUT),*];

        /// Builds the policy called `name`, which must be there, and hands it to `visitor`.
        pub(crate) fn visit<V: Visitor>(
            name: &str,
            capacity: u32,
            values: &Values<'_>,
            visitor: V,
        ) -> V::Output {
            $(if name == <$policy as Listed>::ABOUT.name {
                return visitor.visit(<$policy as Listed>::new(capacity, values));
            })*
            unreachable!("specifications name policies of the catalogue only")
        }
    };
}

policies! {
    random::Random,
    fifo::Fifo,
    lru::Lru,
    clock::Clock,
    gclock::Gclock,
    two_queue_simple::TwoQueueSimple,
    two_queue::TwoQueue,
    sieve::Sieve,
    s3_fifo::S3Fifo,
}

#[cfg(test)]
mod testing;

//! The policies. To add one: a file here, a line `mod`, and a line in `policies!`.

mod adaptive;
mod arc;
mod car;
mod clock;
mod clock_pro;
mod fifo;
mod gclock;
mod lfu;
mod lirs;
mod lru;
mod lru_k;
mod mq;
mod one_queue;
mod queues;
mod random;
mod ranks;
mod s3_fifo;
mod segments;
mod seq;
mod sieve;
mod sketch;
mod slru;
mod sweep;
mod two_queue;
mod two_queue_simple;
mod w_tiny_lfu;

use self::one_queue::OneQueue;
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
    OneQueue<fifo::Fifo>,
    OneQueue<lru::Lru>,
    OneQueue<clock::Clock>,
    OneQueue<gclock::Gclock>,
    two_queue_simple::TwoQueueSimple,
    two_queue::TwoQueue,
    lru_k::LruK,
    mq::Mq,
    seq::Seq,
    lfu::Lfu<false>,
    lfu::Lfu<true>,
    slru::Slru,
    w_tiny_lfu::WTinyLfu,
    sieve::Sieve,
    s3_fifo::S3Fifo,
    lirs::Lirs,
    arc::Arc,
    car::Car,
    clock_pro::ClockPro<false>,
    clock_pro::ClockPro<true>,
}

#[cfg(test)]
mod testing;

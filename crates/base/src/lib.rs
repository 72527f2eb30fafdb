//! The words that every part of Longshore speaks.
//!
//! Nothing here reads a file or starts a thread. The crate holds the identifiers, the page header with
//! its checksum, the facade over atomics and locks that the model checker can take over, the traits
//! through which the storeys reach clock, randomness and the log's durability, and the named places
//! at which a simulated crash may strike.

#![forbid(unsafe_code)]

pub mod bits;
pub mod crash_point;
mod durability;
mod env;
pub mod hand;
mod ids;
pub mod metrics;
pub mod page;
pub mod parking;
pub mod sync;

pub use crash_point::crash_point;
pub use durability::{Durability, DurabilityLost};
pub use env::{Environment, SeededEnvironment, SystemEnvironment};
pub use ids::{Lsn, PageId, StoreId, TxnId};
pub use page::{PageSize, PageType};

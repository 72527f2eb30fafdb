//! Values in memory: a concurrent cache that replaces as the buffer pool does.
//!
//! A [`Cache`] keeps values by key, of any type, up to a sum of costs. A hit takes no lock, and writes nothing that others
//! read once an entry is known to be used often; what leaves is chosen by Nb-GCLOCK, behind a probation that keeps scans out. It has no
//! threads of its own.
//!
//! ```
//! use longshore_cache::{Cache, CacheBuilder, Insertion};
//! use std::sync::Arc;
//!
//! // As many entries as cost 1 MiB together, each the length of its text.
//! let pages: Cache<String, Arc<str>> = CacheBuilder::new(1 << 20)
//!     .weigher(|_, page: &Arc<str>| page.len() as u64)
//!     .build();
//!
//! assert_eq!(pages.insert("/".into(), "welcome".into()), Insertion::New);
//! assert_eq!(pages.get("/").as_deref(), Some("welcome"));
//!
//! // One of those who ask loads; the others wait for it.
//! let about = pages.get_or_load(&"/about".to_string(), || std::fs::read_to_string("about").map(Arc::from));
//! assert!(about.is_err() && pages.get("/about").is_none());
//!
//! assert_eq!(pages.remove("/").as_deref(), Some("welcome"));
//! assert_eq!((pages.stats().hits, pages.stats().cost), (1, 0));
//! ```
//!
//! The README of the crate has the picture, the invariants with the tests that guard them, and a reading order.

#![forbid(unsafe_code)]

mod builder;
mod cache;
mod ghosts;
mod load;
mod replacement;
mod slots;
mod stats;
mod table;
mod weight;
mod words;

pub use builder::CacheBuilder;
pub use cache::{Cache, Insertion};
pub use stats::CacheStats;

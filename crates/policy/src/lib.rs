//! Which page leaves memory when another wants in: replacement policies, one file each.
//!
//! A [`Policy`] knows frames by number and pages by id; it knows no threads, no I/O and no page's bytes. The same
//! code serves the buffer pool, under a lock of the pool's, and the [`simulator`], where nothing else runs.
//! [`Spec`] names a policy with its parameters; [`catalogue`] lists what there is.

#![forbid(unsafe_code)]

mod catalogue;
mod directory;
mod inspect;
mod lists;
mod nodes;
mod opt;
mod policies;
mod policy;
mod settings;
pub mod simulator;
mod spec;
mod stack;
mod trace;

pub use catalogue::{About, Ghosts, Memory, Parameter, Unit, Visitor, catalogue};
pub use inspect::{Entry, Inspector, dump, residents};
pub use policy::{Frame, Gone, Incoming, Nodes, Placement, Policy, Take, Taker};
pub use settings::{Settings, SettingsError, settings};
pub use spec::{Spec, SpecError};
pub use trace::{Trace, TraceTooLong};

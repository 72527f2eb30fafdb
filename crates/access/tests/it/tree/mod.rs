//! Trees on a pool and a log in memory.

mod adoption;
mod faults;
mod load;
mod model;
mod redo;
mod space;
mod stress;
pub(crate) mod support;
mod undo;

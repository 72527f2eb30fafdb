//! The commands, one file each.

pub(crate) mod check;
pub(crate) mod list;
pub(crate) mod trace;

//! The commands, one file each.

pub(crate) mod advise;
pub(crate) mod check;
pub(crate) mod experiment;
pub(crate) mod list;
pub(crate) mod mrc;
pub(crate) mod replay;
pub(crate) mod trace;

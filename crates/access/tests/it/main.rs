//! The access methods against their models.

mod chain;
mod node;
mod tree;

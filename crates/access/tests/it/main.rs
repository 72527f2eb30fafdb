//! The access methods against their models.

mod node;

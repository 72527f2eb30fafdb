//! The command, through the real binary on databases of its own.

mod bad_input;
mod bad_store;
mod harness;
mod kill;
mod lab;
mod lab_live;
mod load;
mod look;
mod names;
mod prepared;
mod rows;
mod scan;

//! What a cache does, alone and among many threads.

#![cfg(not(loom))]

mod behaviour;
mod load;
mod model;
mod replacement;
mod stress;

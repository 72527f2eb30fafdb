//! Tests of the pool as its users see it.

#![cfg(not(loom))]

mod checkpoint;
mod cleaner;
mod crash;
mod fix;
mod model;
mod races;
mod replacement;
mod resize;
mod stress;
mod support;
mod trace;

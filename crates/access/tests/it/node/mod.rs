//! The node and its actions against a map.

mod builder;
mod codec;
mod garbage;
mod model;
mod support;

//! The laboratory: readers against any bytes, and simulations against what others published.

mod experiments;
mod formats;
mod live;
mod record;
mod reference;
mod traces;
mod workloads;

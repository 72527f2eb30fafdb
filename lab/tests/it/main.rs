//! The laboratory: readers against any bytes, and simulations against what others published.

mod formats;
mod reference;
mod workloads;

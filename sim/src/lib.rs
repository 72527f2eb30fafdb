//! The whole engine on a simulated disk: crashes, faults and flipped bits, from seeds that reproduce.

#![forbid(unsafe_code)]

pub mod campaign;
pub mod faults;
pub mod fixed;
pub mod flip;
pub mod history;
pub mod indexes;
pub mod life;
pub mod model;
mod onlooker;
pub mod place;
pub mod points;
pub mod prepared;
pub mod required;
pub mod rng;
pub mod subject;
pub mod sweep;
mod tables;
pub mod trace;
pub mod workload;

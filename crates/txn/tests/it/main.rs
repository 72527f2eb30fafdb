//! The transaction crate from outside: locks, deadlocks, transactions against models.

mod actors;
mod deadlocks;
mod lock_cost;
mod locks;
mod scans;
mod transactions;
mod world;

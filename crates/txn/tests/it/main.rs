//! The transaction crate from outside: locks, deadlocks, transactions against models.

mod actors;
mod claims;
mod crowd;
mod deadlocks;
mod early_release;
mod escalation;
mod full;
mod gate_disk;
mod hierarchy;
mod hierarchy_model;
mod lock_cost;
mod locks;
mod model;
mod restarts;
mod scans;
mod serializable;
mod transactions;
mod versions;
mod versions_model;
mod world;

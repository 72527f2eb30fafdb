//! The database through its public door: behaviour, restart, concurrency, bad input.

mod bad_input;
mod bulk;
mod concurrency;
mod crash;
mod cursors;
mod ddl;
mod handles;
mod index_ddl;
mod indexes;
mod isolation;
mod large;
mod locks;
mod model;
mod people;
mod poisoned;
mod prepared;
mod prepared_ddl;
mod prepared_locks;
mod read_only;
mod redo;
mod reopen;
mod snapshots;
mod statements;
mod support;
mod time_limit;
mod typed;

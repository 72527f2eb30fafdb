//! Secondary indexes: other keys by which the rows of a table are found, kept by the engine.
//!
//! # Protocol
//! An index is a tree of entries. What a row is to be found by, the program says with a function, the
//! *extractor*, from key and value to any number of index keys `I`:
//!
//! | index | entry's key | entry's value |
//! |---|---|---|
//! | not unique | encoding of `I`, then of the row's key | nothing |
//! | unique | encoding of `I` | encoding of the row's key |
//!
//! Every change of a row of an indexed table passes [`change_row`] or [`change_found`]: they lock the row, ask the
//! extractor what the row was and will be found by, change the row, and then the entries that differ; all of it in
//! the transaction, and undone as one when any part fails. A change that leaves the index keys as they were, as most
//! do, costs the asking only. The entries are rows like others: their locks
//! and the gaps between them make what is read through an index as serializable as a scan.
//!
//! Name, uniqueness and *definition* of an index stand in the table's row of the catalog; the extractor is
//! code, and registered each time the index is opened. Until then nobody may change the table.
//!
//! ```text
//!              gate closed for a moment          all rows visited
//!   (nothing) ──────────────────────▶ building ──────────────────▶ ready ──drop──▶ (nothing)
//!                                        │ two rows, one key; a row that cannot be read
//!                                        ▼
//!                     failed, only while the gate cannot be closed ──drop, create──▶ (nothing)
//! ```
//!
//! From the moment on that an index is in the table's set, every writer keeps it. The builder walks through
//! the table behind that moment, a few rows in each transaction, and adds the entries that are not there.
//! A row is either changed after the moment, by one who keeps the index, or read by the builder as it was.
//! While the index is being built, an entry that is to go may not be there yet; nobody reads it.
//! A crash before it is ready leaves `building` in the catalog: the next opening drops it.
//!
//! # Invariants
//! N1. A ready index has exactly the entries that the extractor gives for the rows, in every state that a
//! transaction may see, whatever fails or crashes.
//! N2. The set of indexes changes behind the closed gate only: inside, it is one and the same.
//!
//! # Order
//! A row, then its entries. Who reads through an index locks in the opposite order, so the two may meet in a
//! deadlock, which one of them survives and the other repeats.

mod build;
mod cursor;
mod error;
mod extract;
mod handle;
mod maintain;
mod state;
mod verify;

pub(crate) use build::{drop, fill_loaded, give_up_interrupted_builds};
pub use cursor::IndexCursor;
pub use error::IndexError;
pub use handle::{Index, IndexSpec};
pub(crate) use maintain::{Failed, RowChange, change_found, change_row, delete_range};
pub use state::IndexInfo;
pub(crate) use state::{IndexSets, IndexState};
pub(crate) use verify::compare;

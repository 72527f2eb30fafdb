//! The node: one page of a tree, leaf or branch, as a slotted page.
//!
//! # Protocol
//! [`NodeRef`] reads a node through a [`PageRef`](longshore_pool::PageRef). The page may be
//! changing, or may be no node at all, while it is read: every answer is then garbage, but it
//! comes in bounded time and without a panic, and the caller finds out by validating the guard
//! *afterwards* and throws the answer away. Under a latch the answers are true.
//!
//! Changes go through [`PageAction::apply`](crate::action::PageAction::apply) alone, which is what
//! forward work and redo share; `NodeMut` is its hand and is private to the crate.
//!
//! # Keys and fences
//! A node owns the keys in `[low, upper)`. `upper` is absent (infinity), or the high fence, or,
//! while the node has a foster child, the key at which the foster child takes over: a foster
//! parent does not store the fence of the whole chain, which stands at the chain's end. Adoption
//! therefore changes one word. All keys of a node share what `low` and `upper` have in common;
//! records leave out a prefix of it. A rebuild takes the longest; a node that gave its last row away keeps
//! the one it had, so that an ascending load moves one row a split and leaves the others where they are.
//!
//! # Invariants
//! N1. Slots are in strictly ascending key order, and every key is in `[low, upper)`.
//! N2. A slot's head is the four bytes of its key that the heads word says. They start behind what the
//!     fences share, or before, and never before the prefix; bytes skipped beyond are equal in all
//!     stored keys and in the heads word. The head of a record that stores no key is zero.
//! N3. Records and the upper fence lie in `[heap_start, low fence)`, do not overlap, and `garbage`
//!     counts the words there that belong to none of them.
//! N4. `low` and `upper` share the prefix; it is empty without `upper`.
//! N5. Free space is a function of prefix, fences and rows alone, and images tell all three. Whether a change fits does not depend on
//!     the node's history, so redo fits whenever the original fitted.
//! N6. A branch has at least one entry; its first key is `low`; values are 8-byte page ids.
//! N7. A record stores no key if and only if its key is `low`.

mod build;
mod image;
mod kept;
mod layout;
mod read;
mod room;
mod search;
mod verify;
mod write;

pub use build::NodeBuilder;
pub use image::{ImageBuf, ImageEntry, NodeImage};
pub use kept::Kept;
pub use layout::RowFlags;
pub use read::{NodeRef, Owns};
pub use room::{Limits, Room};
pub use verify::NodeDamage;
pub(crate) use write::NodeMut;

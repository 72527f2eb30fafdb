//! Tables of Rust's own types: encodings of keys and values, typed handles, typed cursors.
//!
//! # Protocol
//! A [`TypedTable`] is a view of a byte [`Table`](crate::Table): it encodes what goes in and decodes what
//! comes out, and holds nothing else. The layouts are told at [`Key`] and [`Value`]; both are part of the
//! file format and pinned by `golden.rs`.
//!
//! # Invariants
//! T1. `encode(a) < encode(b)`, as bytes, exactly when `a < b`, for every [`Key`].
//! T2. No encoding of a key is a prefix of another of the same type, so encodings can follow each other
//! without marks between them; that is all that a tuple is.
//! T3. Decoding what was encoded gives it back; decoding anything else is an error or a value, never a
//! panic, and takes memory in proportion to the bytes that are there.

mod bytes;
mod composite;
mod context;
mod cursor;
mod decode;
#[cfg(test)]
mod golden;
mod key;
mod list;
mod number;
mod range;
mod table;
mod value;

pub use context::Context;
pub use cursor::TypedCursor;
pub use decode::DecodeError;
pub(crate) use key::key_bytes;
pub use key::{AsKey, AsPrefix, Key};
pub use range::TypedRange;
pub(crate) use range::{Bytes, of_prefix};
pub use table::TypedTable;
pub(crate) use table::{decode_key, decode_value};
pub use value::Value;

/// What the derived implementations call; no part of the interface.
#[doc(hidden)]
pub mod derived {
    pub use super::decode::{no_variant, take_tag};
}

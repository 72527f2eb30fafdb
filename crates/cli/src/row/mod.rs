//! How a record of a file becomes a row of a table, and back.
//!
//! # Value
//! A row's value is the record as one line of JSON text, an object with **all** columns in their
//! order, the key's too. It describes itself: any program can read it without asking us. Records
//! of CSV and TSV files have text in every column (`007` stays `007`); lines of JSON files are
//! kept byte for byte, so no number loses a digit.
//!
//! # Key
//! The chosen columns one after another, so that byte order is the order of the columns:
//!
//! | column | bytes |
//! |---|---|
//! | text, last of the key | the UTF-8 text as it is: a key of one text column is just that text |
//! | text, not last | the text with `00` written `00 ff`, then `00 01` |
//! | int | 8 bytes, big-endian, sign bit flipped |
//!
//! # Shape
//! Which columns form the key, their kinds, and all column names are kept in the table
//! `longshore.shapes`, one row per table, written in the transaction that makes the rows visible.
//! A table without a shape was filled by another program: its keys and values are shown as text.

mod fields;
mod key;
mod key_spec;
mod shape;

pub use fields::{Fields, text_of};
pub use key::{KeyField, KeyKind, Last, encode_key, encode_prefix};
pub use key_spec::KeySpec;
pub use shape::{KeyColumn, SHAPES_TABLE, Shape};

//! The rules, one file each; each returns what breaks it.

pub mod claims;
pub mod imports;
pub mod links;
pub mod readme;
pub mod size;
pub mod system;
pub mod unsafe_code;
pub mod words;

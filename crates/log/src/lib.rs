//! The write-ahead log: what happened, in order

//! An embedded transactional store with many concurrent writers

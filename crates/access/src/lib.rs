//! Ways to find bytes: mini-transactions, slotted pages, space, B+tree

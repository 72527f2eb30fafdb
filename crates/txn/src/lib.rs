//! Who may see and change what: transactions, locks, undo

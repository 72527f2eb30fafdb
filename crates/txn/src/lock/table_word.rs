//! What all threads read of a table before they take an intent on it, or read a row without a lock.
//!
//! Tables share these words by their numbers; that two do costs a closer look, never a wrong answer.

use super::dependency::Dependency;
use longshore_base::StoreId;
use longshore_base::sync::atomic::{AtomicU64, Ordering};

/// One word; it has a cache line, which is written only when somebody wants a whole table.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct TableWord {
    /// Requests for more than an intent that are held or awaited. Raised before the words of intents
    /// are looked through, lowered when the request has left the queue.
    strong: AtomicU64,
    /// The newest commit of one who might change all of a table. Only grows, but for the level.
    last_commit: AtomicU64,
    /// Tables with an escalation of their own; see `escalation`.
    pub(super) exceptions: AtomicU64,
}

/// How many words there are; a single one under the model checker.
const WORDS: usize = if cfg!(loom) { 1 } else { 128 };

/// The words of all tables.
#[derive(Debug)]
pub(super) struct TableWords(Box<[TableWord]>);

impl TableWords {
    pub fn new() -> TableWords {
        TableWords((0..WORDS).map(|_| TableWord::default()).collect())
    }

    #[inline]
    pub fn of(&self, store: StoreId) -> &TableWord {
        &self.0[store.get() as usize % WORDS]
    }

    pub const fn bytes() -> usize {
        WORDS * size_of::<TableWord>()
    }
}

impl TableWord {
    /// Makes all who come for an intent from now on ask the queue.
    pub fn raise(&self) {
        // SeqCst: raise, fence, look at the words of intents; against word, fence, look here (H2).
        self.strong.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes back one `raise`; the request is no longer in the queue.
    pub fn lower(&self) {
        // Release: pairs with the Acquire in `glance`; who sees it gone sees what was done under it.
        self.strong.fetch_sub(1, Ordering::Release);
    }

    /// Whether anybody has or wants more than an intent, and the commit left by those who had.
    #[inline]
    pub fn glance(&self) -> (bool, Dependency) {
        // Acquire: pairs with the Release in `lower`: whoever sees the request gone sees its commit.
        let strong = self.strong.load(Ordering::Acquire);
        // Relaxed: ordered by the load above; a newer value only makes the reader wait longer.
        let last_commit = self.last_commit.load(Ordering::Relaxed);
        (strong != 0, Dependency::from_word(last_commit))
    }

    /// Makes everyone who comes to the table from now on depend on what `merge` makes of the last.
    pub fn raise_last_commit(&self, merge: impl Fn(Dependency) -> Dependency) {
        let merged = |word| Some(merge(Dependency::from_word(word)).word());
        // Relaxed: ordered by `lower`, which comes after it.
        let _ = self
            .last_commit
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, merged);
    }
}

//! Which snapshots are open.
//!
//! # Protocol
//! A snapshot takes a slot by storing PENDING in its word, makes sure that the slot's bit in the map is
//! set, reads the log's tail, and stores what it read: its *position*. It gives the slot back by storing
//! zero. Bits stay set: they say that a slot was ever used, so that a committing writer looks at those
//! few only. Whoever finds PENDING takes it for any position.
//!
//! | word              | means                                             |
//! |-------------------|---------------------------------------------------|
//! | 0                 | free                                              |
//! | PENDING           | opening; its position may be any                  |
//! | position          | open                                              |
//! | position + DOOMED | ended by policy; protects nothing any more        |
//!
//! # Ordering
//! store PENDING, fence SeqCst, read the tail; against: move the tail (append COMMIT), fence SeqCst, look
//! at the words. So a writer that does not see a snapshot has a commit position below the snapshot's
//! (V2). A thread returns to the slots it used before, so opening and closing write no line that others
//! write.

use crossbeam_utils::CachePadded;
use longshore_base::metrics::thread_number;
use longshore_base::sync::Mutex;
use longshore_base::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use longshore_base::{Lsn, TxnId};
use smallvec::SmallVec;
use std::time::Duration;

const FREE: u64 = 0;
const PENDING: u64 = 1;
const DOOMED: u64 = 4;
/// Positions are multiples of eight.
const POSITION: u64 = !7;

/// Slots from one thread's first to the next thread's.
const THREAD_STRIDE: usize = if cfg!(loom) { 1 } else { 4 };

#[derive(Debug, Default)]
struct Slot {
    /// Changed by the holder, and by whoever dooms it.
    word: AtomicU64,
    /// Whose it is, for views. Written by the holder.
    txn: AtomicU64,
    /// When it was opened, in nanoseconds; zero when nobody asked. Written by the holder.
    since: AtomicU64,
    /// What the user calls it; of the transaction beside it.
    label: Mutex<(u64, &'static str)>,
}

/// All slots of snapshots.
#[derive(Debug)]
pub(crate) struct Registry {
    slots: Box<[CachePadded<Slot>]>,
    /// A bit for each slot that was ever used.
    used: Box<[AtomicU64]>,
    /// Words of `used` that are not zero lie below this.
    high: AtomicUsize,
}

/// A slot taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened {
    pub index: usize,
    /// Commits below this are visible.
    pub at: Lsn,
}

/// Who opens a snapshot, for views.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub txn: TxnId,
    pub since: Duration,
    pub label: &'static str,
}

/// The snapshots that were open at one moment: those that open later have positions from `tail` on.
#[derive(Debug)]
pub(crate) struct Open {
    /// Sorted.
    positions: SmallVec<[Lsn; 16]>,
    has_pending: bool,
    tail: Lsn,
}

impl Open {
    /// Whether a snapshot may see the state of a row from the commit at `from` until that at `until`.
    #[inline]
    pub fn needs(&self, from: Lsn, until: Lsn) -> bool {
        self.has_pending || until >= self.tail || self.needs_among_known(from, until)
    }

    /// The same for whoever looked after `until` was in the log.
    #[inline]
    pub fn needs_now(&self, from: Lsn, until: Lsn) -> bool {
        self.has_pending || self.needs_among_known(from, until)
    }

    fn needs_among_known(&self, from: Lsn, until: Lsn) -> bool {
        // A commit is visible to a snapshot above it: the state is seen from `from < at` to `at <= until`.
        let first = self.positions.partition_point(|&at| at <= from);
        self.positions.get(first).is_some_and(|&at| at <= until)
    }

    /// The position of the oldest that has one.
    pub fn oldest(&self) -> Option<Lsn> {
        self.positions.first().copied()
    }

    /// Whether the oldest is one that may see such a state.
    pub fn oldest_needs(&self, from: Lsn, until: Lsn) -> bool {
        self.oldest().is_some_and(|at| from < at && at <= until)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty() && !self.has_pending
    }
}

/// An open snapshot as views show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SnapshotView {
    /// The transaction that reads it.
    pub txn: TxnId,
    /// Commits below this position of the log are visible.
    pub position: Lsn,
    /// How long it has been open; zero for the snapshot of a single statement.
    pub age: Duration,
    /// What the user calls the transaction.
    pub label: &'static str,
}

impl Registry {
    pub fn new(count: usize) -> Registry {
        Registry {
            slots: (0..count).map(|_| CachePadded::default()).collect(),
            used: (0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            high: AtomicUsize::new(0),
        }
    }

    /// Opens a snapshot at the log's tail; `None` when no slot is free.
    #[inline]
    pub fn open(&self, tail: impl FnOnce() -> Lsn) -> Option<Opened> {
        let count = self.slots.len();
        let start = thread_number() * THREAD_STRIDE % count;
        let index = (start..count).chain(0..start).find(|&n| self.try_take(n))?;
        self.note_used(index);
        // SeqCst: PENDING, fence, tail; against tail, fence, words in `open_ones` and `lowest`.
        fence(Ordering::SeqCst);
        let at = tail();
        debug_assert_eq!(
            at.get() & !POSITION,
            0,
            "records start at multiples of eight"
        );
        // Relaxed: whoever still sees PENDING takes it for any position. Nobody dooms a pending one.
        self.slots[index].word.store(at.get(), Ordering::Relaxed);
        Some(Opened { index, at })
    }

    fn try_take(&self, index: usize) -> bool {
        let word = &self.slots[index].word;
        // Relaxed load: a hint. Acquire: pairs with the Release in `close`.
        word.load(Ordering::Relaxed) == FREE
            && word
                .compare_exchange(FREE, PENDING, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    #[inline]
    fn note_used(&self, index: usize) {
        let (at, bit) = (index / 64, 1 << (index % 64));
        // SeqCst: a bit that we see set was set before our fence, so who must see our word sees the bit.
        if self.used[at].load(Ordering::SeqCst) & bit == 0 {
            self.used[at].fetch_or(bit, Ordering::SeqCst);
            self.high.fetch_max(at + 1, Ordering::SeqCst);
        }
    }

    /// Says for views whose the snapshot is.
    pub fn describe(&self, index: usize, origin: Origin) {
        let slot = &self.slots[index];
        // Relaxed: shown in views only.
        slot.txn.store(origin.txn.get(), Ordering::Relaxed);
        let since = u64::try_from(origin.since.as_nanos()).unwrap_or(u64::MAX);
        slot.since.store(since, Ordering::Relaxed);
        if !origin.label.is_empty() {
            *slot.label.lock() = (origin.txn.get(), origin.label);
        }
    }

    /// Gives the slot back.
    #[inline]
    pub fn close(&self, index: usize) {
        // Release: pairs with the Acquire in `try_take`, and in `words`: what was read is done with.
        self.slots[index].word.store(FREE, Ordering::Release);
    }

    /// Whether the snapshot was ended by policy. To be asked after everything was looked up.
    #[inline]
    pub fn is_doomed(&self, index: usize) -> bool {
        // Acquire: whoever missed a version that was dropped because of the doom sees the doom: both are
        // ordered by the mutex of the version's shard, or by the latch of the page.
        self.slots[index].word.load(Ordering::Acquire) & DOOMED != 0
    }

    /// Ends the oldest snapshot by policy; false when there is none.
    pub fn doom_oldest(&self) -> bool {
        loop {
            let oldest = self
                .words()
                .filter(|&(_, word)| is_open(word) && word != PENDING);
            let Some((index, word)) = oldest.min_by_key(|&(_, word)| word) else {
                return false;
            };
            // Release: pairs with the Acquire in `is_doomed`.
            let doomed = self.slots[index].word.compare_exchange(
                word,
                word | DOOMED,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if doomed.is_ok() {
                return true;
            }
        }
    }

    /// Whether nobody has ever opened one.
    #[inline]
    pub fn was_never_used(&self) -> bool {
        // Relaxed: ordered by the fence of the caller.
        self.high.load(Ordering::Relaxed) == 0
    }

    /// The snapshots open now.
    pub fn open_ones(&self, tail: impl FnOnce() -> Lsn) -> Open {
        let tail = tail();
        // SeqCst: the other side of `open`. Who is not seen reads the tail after we have.
        fence(Ordering::SeqCst);
        let mut open = Open {
            positions: SmallVec::new(),
            has_pending: false,
            tail,
        };
        for (_, word) in self.words().filter(|&(_, word)| is_open(word)) {
            match word {
                PENDING => open.has_pending = true,
                at => open.positions.push(Lsn::new(at)),
            }
        }
        open.positions.sort_unstable();
        open
    }

    /// Whether every open snapshot, and every one to come, sees the commit at `commit`. The caller has
    /// seen that commit's effects.
    pub fn all_see(&self, commit: Lsn) -> bool {
        // SeqCst: the other side of `open`; the tail was moved beyond `commit` before.
        fence(Ordering::SeqCst);
        self.was_never_used()
            || self
                .words()
                .filter(|&(_, word)| is_open(word))
                .all(|(_, word)| word != PENDING && word > commit.get())
    }

    /// The open snapshots, oldest first.
    pub fn views(&self, now: Duration) -> Vec<SnapshotView> {
        let mut views: Vec<SnapshotView> = self
            .words()
            .filter(|&(_, word)| is_open(word) && word != PENDING)
            .map(|(index, word)| self.view(index, Lsn::new(word), now))
            .collect();
        views.sort_by_key(|view| view.position);
        views
    }

    fn view(&self, index: usize, position: Lsn, now: Duration) -> SnapshotView {
        let slot = &self.slots[index];
        // Relaxed: a view may be of two moments.
        let txn = slot.txn.load(Ordering::Relaxed);
        let since = slot.since.load(Ordering::Relaxed);
        let (of, label) = *slot.label.lock();
        SnapshotView {
            txn: TxnId::new(txn),
            position,
            age: match since {
                0 => Duration::ZERO,
                since => now.saturating_sub(Duration::from_nanos(since)),
            },
            label: if of == txn { label } else { "" },
        }
    }

    /// The words of the slots that were ever used.
    fn words(&self) -> impl Iterator<Item = (usize, u64)> {
        // SeqCst: see `note_used`.
        let high = self.high.load(Ordering::SeqCst);
        (0..high).flat_map(move |at| {
            let mut bits = self.used[at].load(Ordering::SeqCst);
            std::iter::from_fn(move || {
                (bits != 0).then(|| {
                    let index = at * 64 + bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    // Acquire: pairs with `close`.
                    (index, self.slots[index].word.load(Ordering::Acquire))
                })
            })
        })
    }
}

/// Whether somebody reads a snapshot of this word, or is about to.
fn is_open(word: u64) -> bool {
    word != FREE && word & DOOMED == 0
}

//! Frames: memory that can hold one page each, and the store in which they live.
//!
//! # Protocol
//! Frames are numbered from zero. The store grows by chunks, each a slice of headers and one of page
//! words; a chunk is made when its first frame is asked for, never moves, and is never unmapped while
//! the pool lives, so a frame found through a stale table entry is still a frame, merely not ours.
//! Chunk 0 holds the first `first` frames, chunk 1 as many again, and each further one as many as all
//! before it: address space doubles, memory is used only where frames are touched.
//!
//! # Invariants
//! F1. `page` changes only while the frame is Loading and owned by one thread.
//! F2. `rec_lsn` is stored only by the exclusive holder, before it marks the frame dirty.
//! F3. `next` belongs to the list of free frames, `tracked` and `young_until` to whoever holds the
//!     replacement policy's lock.

use crate::frame_word::FrameWord;
use crate::memory::{Memory, prefetch_address};
use crate::replacement::Young;
use longshore_base::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use longshore_base::{Lsn, PageId, PageSize};
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64 as PageWord;

/// Bytes of a frame's header.
pub(crate) const HEADER_BYTES: usize = 64;

/// A `rec_lsn` for a page whose changes are not logged: it holds back no checkpoint.
const UNLOGGED: Lsn = Lsn::new(u64::MAX);

/// Names a frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FrameId(u32);

impl FrameId {
    /// One more than the greatest number: what a table entry and a link of the free list can hold.
    pub(crate) const LIMIT: u32 = (1 << 27) - 1;

    pub(crate) fn new(raw: u32) -> FrameId {
        debug_assert!(raw < FrameId::LIMIT);
        FrameId(raw)
    }

    #[inline]
    pub(crate) fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for FrameId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frame {}", self.0)
    }
}

/// The header of a frame: one cache line.
#[repr(C, align(64))]
#[derive(Default)]
pub(crate) struct Frame {
    /// State, holders, version. Everybody, by its own transitions.
    pub(crate) word: FrameWord,
    /// The page in the frame (F1). Meaningful under a pin, or when the word proves unchanged.
    page: AtomicU64,
    /// The first change since the page was clean (F2). Meaningful while the word says dirty.
    rec_lsn: AtomicU64,
    /// The next free frame (F3).
    pub(crate) next: AtomicU64,
    /// The page that the replacement policy knows to be here (`replacement/keeper.rs`).
    pub(crate) tracked: AtomicU64,
    /// Until when hits of the page are not told to the replacement policy (`replacement/young.rs`).
    pub(crate) young_until: AtomicU32,
}

// One line: the word, the page id and what a miss needs come with a single memory access.
#[cfg(not(loom))]
const _: () = assert!(size_of::<Frame>() == HEADER_BYTES);

impl Frame {
    /// The page in the frame.
    #[inline]
    pub(crate) fn page(&self) -> PageId {
        // Relaxed: stored before `publish` (Release), loaded after `load` or a pin (Acquire); without a
        // pin the word's validation tells whether it may be believed.
        PageId::new(self.page.load(Ordering::Relaxed))
    }

    /// Names the page that is being brought in.
    pub(crate) fn set_page(&self, page: PageId) {
        // Relaxed: see `page`.
        self.page.store(page.get(), Ordering::Relaxed);
    }

    /// The first change since the page was clean.
    pub(crate) fn rec_lsn(&self) -> Lsn {
        // Relaxed: stored before `mark_dirty` (Release), loaded after a word that says dirty (Acquire).
        Lsn::new(self.rec_lsn.load(Ordering::Relaxed))
    }

    /// Notes a change at `lsn` by the exclusive holder; `None` for one that is not in the log.
    pub(crate) fn note_change(&self, lsn: Option<Lsn>) {
        let was_dirty = self.word.load().is_dirty();
        let known = was_dirty && self.rec_lsn() != UNLOGGED;
        if !known {
            let rec_lsn = lsn.unwrap_or(UNLOGGED);
            // Relaxed: see `rec_lsn`.
            self.rec_lsn.store(rec_lsn.get(), Ordering::Relaxed);
        }
        if !was_dirty {
            self.word.mark_dirty();
        }
    }
}

/// A frame: its name, its header, and the words of its page.
#[derive(Clone, Copy)]
pub(crate) struct FrameRef<'a> {
    pub(crate) id: FrameId,
    pub(crate) header: &'a Frame,
    pub(crate) words: &'a [PageWord],
}

/// All frames.
pub(crate) struct Frames {
    /// Which pages are so young that the replacement policy is not told of their hits.
    pub(crate) young: Young,
    /// log2 of the frames in chunk 0.
    first_log2: u32,
    words_per_page: usize,
    /// Present from the start, so that a small pool's frames are found with one load less.
    chunk0: Chunk,
    /// Chunk `i + 1`, once made.
    more: [OnceLock<Chunk>; CHUNKS],
}

const CHUNKS: usize = 27;

struct Chunk {
    headers: Memory<Frame>,
    words: Memory<PageWord>,
}

impl Chunk {
    fn new(frames: usize, words_per_page: usize) -> io::Result<Chunk> {
        Ok(Chunk {
            headers: Memory::zeroed(frames)?,
            words: Memory::zeroed(frames * words_per_page)?,
        })
    }

    /// Header and words of the frame at `index`, if there are so many.
    #[inline(always)]
    fn frame(&self, index: usize, words_per_page: usize) -> Option<(&Frame, &[PageWord])> {
        let header = self.headers.as_slice().get(index)?;
        let words = self.words.as_slice().get(index * words_per_page..)?;
        Some((header, words.get(..words_per_page)?))
    }
}

impl Frames {
    /// A store whose first chunk holds `first` frames.
    pub(crate) fn new(first: u32, page_size: PageSize) -> io::Result<Frames> {
        let first_log2 = first.next_power_of_two().trailing_zeros();
        let words_per_page = page_size.words();
        Ok(Frames {
            young: Young::default(),
            first_log2,
            words_per_page,
            chunk0: Chunk::new(1 << first_log2, words_per_page)?,
            more: [const { OnceLock::new() }; CHUNKS],
        })
    }

    /// Makes sure that all frames below `count` exist.
    pub(crate) fn reach(&self, count: u32) -> io::Result<()> {
        if count == 0 {
            return Ok(());
        }
        for chunk in 0..self.place(count - 1).0 {
            if self.more[chunk].get().is_none() {
                let frames = 1usize << (self.first_log2 as usize + chunk);
                let made = Chunk::new(frames, self.words_per_page)?;
                // Somebody else may have been faster; theirs serves.
                let _ = self.more[chunk].set(made);
            }
        }
        Ok(())
    }

    /// The frame `id`, which `reach` has made.
    #[inline]
    pub(crate) fn get(&self, id: FrameId) -> FrameRef<'_> {
        // Numbers below `first` are those of chunk 0.
        let found = self.chunk0.frame(id.get() as usize, self.words_per_page);
        let (header, words) = found.unwrap_or_else(|| self.frame_beyond(id));
        FrameRef { id, header, words }
    }

    #[inline(never)]
    fn frame_beyond(&self, id: FrameId) -> (&Frame, &[PageWord]) {
        let (chunk, index) = self.place(id.get());
        let found = self.chunk(chunk).frame(index, self.words_per_page);
        found.expect("frames in use are frames that were made")
    }

    /// The header of the frame `id`, which `reach` has made.
    #[inline]
    pub(crate) fn header(&self, id: FrameId) -> &Frame {
        match self.chunk0.headers.as_slice().get(id.get() as usize) {
            Some(header) => header,
            None => self.frame_beyond(id).0,
        }
    }

    /// The frame `id`, whose page header is on its way to the processor's cache.
    #[inline]
    pub(crate) fn get_and_prefetch(&self, id: FrameId) -> FrameRef<'_> {
        let frame = self.get(id);
        prefetch_address(frame.words.as_ptr().addr());
        frame
    }

    /// Brings in the memory of the pages in frames `from..to`, which `reach` has made.
    pub(crate) fn bring_in(&self, from: u32, to: u32) {
        self.each_run(from, to, Memory::bring_in);
    }

    /// Gives the memory of the pages in frames `from..to` back; their headers stay.
    pub(crate) fn forget(&self, from: u32, to: u32) {
        self.each_run(from, to, Memory::forget);
    }

    /// Does something with the words of frames `from..to`, chunk by chunk.
    fn each_run(&self, from: u32, to: u32, act: impl Fn(&Memory<PageWord>, Range<usize>)) {
        let mut at = from;
        while at < to {
            let (chunk, index) = self.place(at);
            let words = &self.chunk(chunk).words;
            let capacity = words.as_slice().len() / self.words_per_page;
            let end = capacity.min(index + (to - at) as usize);
            act(
                words,
                index * self.words_per_page..end * self.words_per_page,
            );
            at += (end - index) as u32;
        }
    }

    /// Chunk and place within it.
    #[inline]
    fn place(&self, id: u32) -> (usize, usize) {
        let over = id >> self.first_log2;
        if over == 0 {
            return (0, id as usize);
        }
        // Chunk c >= 1 starts at first * 2^(c-1).
        let above = over.ilog2();
        let start = 1u32 << (self.first_log2 + above);
        (above as usize + 1, (id - start) as usize)
    }

    #[inline]
    fn chunk(&self, number: usize) -> &Chunk {
        if number == 0 {
            return &self.chunk0;
        }
        self.more[number - 1]
            .get()
            .expect("frames in use are frames that were made")
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_frame_has_its_own_place() {
        let frames = Frames::new(3, PageSize::MIN).unwrap();
        frames.reach(70).unwrap();
        for id in 0..70 {
            let frame = frames.get(FrameId::new(id));
            frame.header.set_page(PageId::new(u64::from(id)));
            frame.words[511].store(u64::from(id), Ordering::Relaxed);
        }
        for id in 0..70 {
            let frame = frames.get(FrameId::new(id));
            assert_eq!(frame.header.page(), PageId::new(u64::from(id)));
            assert_eq!(frame.words[511].load(Ordering::Relaxed), u64::from(id));
            assert_eq!(frame.words.len(), 512);
        }
    }

    #[test]
    #[cfg(not(miri))]
    fn forgetting_crosses_chunks_and_spares_the_rest() {
        let frames = Frames::new(128, PageSize::MIN).unwrap();
        frames.reach(512).unwrap();
        let word = |id: u32| &frames.get(FrameId::new(id)).words[3];
        (0..512).for_each(|id| word(id).store(9, Ordering::Relaxed));
        frames.forget(100, 500);
        for id in 0..512 {
            let kept = if (100..500).contains(&id) { 0 } else { 9 };
            assert_eq!(word(id).load(Ordering::Relaxed), kept, "frame {id}");
        }
    }

    #[test]
    fn unlogged_changes_hold_back_no_checkpoint_and_logged_ones_do() {
        let frames = Frames::new(1, PageSize::MIN).unwrap();
        let frame = frames.get(FrameId::new(0)).header;
        assert!(frame.word.use_again());
        frame.word.begin_load();
        frame.word.publish(1);
        frame.note_change(None);
        assert_eq!(frame.rec_lsn(), UNLOGGED);
        frame.note_change(Some(Lsn::new(7)));
        frame.note_change(Some(Lsn::new(8)));
        assert_eq!(frame.rec_lsn(), Lsn::new(7));
    }
}

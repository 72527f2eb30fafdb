//! Every interleaving of the frame word's transitions with the bytes they guard, under loom.
//!
//! Here the page is two of the checker's atomics, so that it also tries every order in which their
//! stores may be seen.

use super::{Change, FrameWord, Hold, Written};
use longshore_base::sync::Arc;
use longshore_base::sync::atomic::{AtomicU64, Ordering::Relaxed};
use loom::thread;

#[derive(Default)]
struct Tiny {
    word: FrameWord,
    page: AtomicU64,
    bytes: [AtomicU64; 2],
}

impl Tiny {
    /// A frame with page 1, all of whose bytes are `value`.
    fn with(value: u64) -> Arc<Tiny> {
        let tiny = Tiny::default();
        assert!(tiny.word.use_again());
        tiny.bring_in(1, value);
        Arc::new(tiny)
    }

    fn bring_in(&self, page: u64, value: u64) {
        self.word.begin_load();
        self.page.store(page, Relaxed);
        self.store(value);
        self.word.publish(0);
        let _ = self.word.release_exclusive(Change::Unchanged);
    }

    fn store(&self, value: u64) {
        self.bytes[0].store(value, Relaxed);
        self.bytes[1].store(value, Relaxed);
    }

    fn load(&self) -> [u64; 2] {
        [self.bytes[0].load(Relaxed), self.bytes[1].load(Relaxed)]
    }

    /// Changes the page from what it is to `value`, if it is free to change.
    fn change(&self, value: u64) -> bool {
        let Hold::Held(_) = self.word.try_exclusive(0) else {
            return false;
        };
        self.store(value);
        self.word.mark_dirty();
        let _ = self.word.release_exclusive(Change::Changed);
        true
    }

    /// Reads without a latch, as `Pool::read` does: page and bytes, if they were valid.
    fn read(&self) -> Option<(u64, [u64; 2])> {
        let seen = self.word.load();
        if !seen.is_readable() {
            return None;
        }
        let read = (self.page.load(Relaxed), self.load());
        self.word.is_unchanged(seen).then_some(read)
    }
}

#[test]
fn reader_sees_all_of_a_change_or_nothing() {
    loom::model(|| {
        let tiny = Tiny::with(1);
        let writer = {
            let tiny = tiny.clone();
            thread::spawn(move || assert!(tiny.change(2)))
        };
        if let Some((_, bytes)) = tiny.read() {
            assert!(bytes == [1, 1] || bytes == [2, 2], "{bytes:?}");
        }
        writer.join().unwrap();
    });
}

#[test]
fn reader_never_takes_another_page_for_its_own() {
    loom::model(|| {
        let tiny = Tiny::with(1);
        let evictor = {
            let tiny = tiny.clone();
            thread::spawn(move || {
                if tiny.word.try_evict(tiny.word.load()) {
                    tiny.bring_in(2, 2);
                }
            })
        };
        if let Some((page, bytes)) = tiny.read() {
            assert_eq!(bytes, [page, page]);
        }
        evictor.join().unwrap();
    });
}

#[test]
fn pinned_page_stays_and_dead_frame_is_never_pinned() {
    loom::model(|| {
        let tiny = Tiny::with(1);
        let evictor = {
            let tiny = tiny.clone();
            thread::spawn(move || {
                if tiny.word.try_evict(tiny.word.load()) {
                    tiny.bring_in(2, 2);
                }
            })
        };
        if let Hold::Held(_) = tiny.word.try_pin(0) {
            let page = tiny.page.load(Relaxed);
            assert_eq!(tiny.load(), [page, page]);
            let _ = tiny.word.unpin();
        }
        evictor.join().unwrap();
    });
}

#[test]
fn two_exclusive_holders_never_meet() {
    loom::model(|| {
        let tiny = Tiny::with(0);
        let add = |tiny: &Tiny| {
            let Hold::Held(_) = tiny.word.try_exclusive(0) else {
                return 0;
            };
            let value = tiny.load();
            tiny.store(value[0] + 1);
            let _ = tiny.word.release_exclusive(Change::Changed);
            1
        };
        let other = {
            let tiny = tiny.clone();
            thread::spawn(move || add(&tiny))
        };
        let added = add(&tiny) + other.join().unwrap();
        assert!(added >= 1);
        assert_eq!(tiny.load(), [added, added]);
    });
}

#[test]
fn clean_page_is_on_disk_whatever_happened_while_it_was_written() {
    loom::model(|| {
        let tiny = Tiny::with(0);
        assert!(tiny.change(1));
        let writer = {
            let tiny = tiny.clone();
            thread::spawn(move || tiny.change(2))
        };
        // The cleaner: copy, write, mark.
        let copied = tiny.word.load();
        let mut disk = None;
        if copied.is_readable() && copied.is_dirty() {
            let bytes = tiny.load();
            if tiny.word.is_unchanged(copied) {
                assert_eq!(bytes[0], bytes[1], "a torn copy");
                disk = Some(bytes);
                let _ = tiny.word.mark_clean(copied);
            }
        }
        writer.join().unwrap();
        if !tiny.word.load().is_dirty() {
            assert_eq!(disk, Some(tiny.load()));
        }
    });
}

#[test]
fn victim_is_rescued_or_freed_and_never_both() {
    loom::model(|| {
        let tiny = Tiny::with(0);
        assert!(tiny.change(1));
        let copied = tiny.word.load();
        assert!(tiny.word.begin_evict(copied));
        let rescuer = {
            let tiny = tiny.clone();
            thread::spawn(move || {
                if let Hold::Held(_) = tiny.word.try_pin(0) {
                    let page = tiny.page.load(Relaxed);
                    assert_eq!(tiny.load(), [page, page], "reused under a pin");
                    let _ = tiny.word.unpin();
                    return true;
                }
                false
            })
        };
        let written = tiny.word.finish_evict(copied);
        if written == Written::Freed {
            tiny.bring_in(2, 2);
        }
        let rescued = rescuer.join().unwrap();
        assert!(written == Written::Freed || rescued);
    });
}

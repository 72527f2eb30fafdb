//! The memory under frames and tables: big zeroed slices of atomics. The only `unsafe` of the crate.
//!
//! # Protocol
//! [`Memory::zeroed`] gives a slice whose items are all zero. Small slices come from the heap (cheap to
//! make, and the allocator hands warm memory out again); large ones are anonymous mappings, which cost
//! address space until they are touched and for which huge pages are asked, at whose multiples they begin. A slice never moves and
//! lives as long as its `Memory`, so everybody may share it. [`Memory::bring_in`] asks for the physical
//! memory of a range ahead of its first touch, and [`Memory::forget`] gives it back to the system; the
//! range then reads as zeros.
//!
//! # Invariants
//! M1. Items are of a type for which every bit pattern, zeros included, is a value, which holds no
//!     pointer, needs no drop, and may be shared between threads (`Zeroed`).
//!
//! # Failure
//! A mapping that the system refuses is an error; nothing is left behind.

#[cfg(loom)]
pub(crate) use heap_only::Memory;
#[cfg(not(loom))]
pub(crate) use mapped::Memory;

use std::sync::atomic::AtomicU64;

/// Asks the processor to fetch the cache line of `word`, without waiting for it.
#[inline(always)]
pub(crate) fn prefetch(word: &AtomicU64) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: `_mm_prefetch` needs SSE, which every x86_64 target has; it reads nothing that the
        // program could observe, and may be given any address, here a valid one.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(word).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = word;
}

/// Asks the processor to fetch the cache line of `address`, without waiting for it. Any address will do.
#[inline(always)]
pub(crate) fn prefetch_address(address: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: as in `prefetch`; an address at which nothing is mapped is ignored by the processor.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(address)) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

#[cfg(not(loom))]
mod mapped {
    use crate::frame::Frame;
    use crate::replacement::Queue;
    use memmap2::{MmapOptions, MmapRaw};
    use std::alloc::Layout;
    use std::io;
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicU32, AtomicU64};

    /// Slices below this size come from the heap; all of them under Miri, which knows no such mappings.
    const HEAP_BYTES_MAX: usize = if cfg!(miri) { 1 << 40 } else { 512 << 10 };
    /// Mappings from this size on ask for huge pages.
    const HUGE_BYTES_MIN: usize = 4 << 20;
    /// A huge page begins at a multiple of this.
    const HUGE_ALIGN: usize = 2 << 20;

    /// Types whose zero bytes are a value (M1).
    ///
    /// # Safety
    /// All-zero memory must be a valid value; any bit pattern must be one; the type must not need to
    /// be dropped, and must be aligned to at most 4096 bytes.
    pub(crate) unsafe trait Zeroed: Sync + Send {}

    // SAFETY: an integer in an atomic: no padding, every bit pattern is a value, nothing to drop.
    unsafe impl Zeroed for AtomicU64 {}
    // SAFETY: as for `AtomicU64`.
    unsafe impl Zeroed for AtomicU32 {}
    // SAFETY: `repr(C, align(64))` and made of `AtomicU64`s only, each of which may be zero; what is
    // padding is never read.
    unsafe impl Zeroed for Frame {}
    // SAFETY: `repr(C, align(128))` and made of integers in atomics only; what is padding is never read.
    unsafe impl Zeroed for Queue {}

    /// A slice of `T`, zero at first, that never moves.
    pub(crate) struct Memory<T: Zeroed> {
        items: NonNull<T>,
        len: usize,
        owner: Owner,
    }

    enum Owner {
        /// Allocated under this layout; of size zero if there are no items.
        Heap(Layout),
        Mapping {
            map: MmapRaw,
            /// Where the items begin in it, in bytes.
            start: usize,
        },
    }

    // SAFETY: a `Memory` gives out only `&[T]`, and `T: Send + Sync` by `Zeroed`; the owner is touched
    // only when dropped.
    unsafe impl<T: Zeroed> Send for Memory<T> {}
    // SAFETY: as above.
    unsafe impl<T: Zeroed> Sync for Memory<T> {}

    impl<T: Zeroed> Memory<T> {
        /// A slice of `len` zeroed items.
        ///
        /// # Errors
        /// What the system says when it refuses the mapping.
        pub(crate) fn zeroed(len: usize) -> io::Result<Memory<T>> {
            let bytes = len
                .checked_mul(size_of::<T>())
                .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
            if bytes < HEAP_BYTES_MAX {
                Memory::on_heap(len)
            } else {
                Memory::mapped(len, bytes)
            }
        }

        fn on_heap(len: usize) -> io::Result<Memory<T>> {
            let no_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
            let layout = Layout::array::<T>(len).map_err(|_| no_memory())?;
            let items = if layout.size() == 0 {
                NonNull::dangling()
            } else {
                // SAFETY: the size of the layout is not zero.
                let items = unsafe { std::alloc::alloc_zeroed(layout) };
                NonNull::new(items.cast()).ok_or_else(no_memory)?
            };
            Ok(Memory {
                items,
                len,
                owner: Owner::Heap(layout),
            })
        }

        fn mapped(len: usize, bytes: usize) -> io::Result<Memory<T>> {
            let wants_huge = cfg!(target_os = "linux") && bytes >= HUGE_BYTES_MIN;
            let spare = if wants_huge { HUGE_ALIGN } else { 0 };
            let mapped_bytes = bytes
                .checked_add(spare)
                .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
            // No swap is reserved: address space costs nothing until it is touched.
            let map = MmapOptions::new()
                .len(mapped_bytes)
                .no_reserve_swap()
                .map_anon()?;
            #[cfg(target_os = "linux")]
            if wants_huge {
                // Advice: where it is refused, small pages serve as well, only slower.
                let _ = map.advise(memmap2::Advice::HugePage);
            }
            let map = MmapRaw::from(map);
            // The system starts a mapping at any small page; only whole huge ones can be backed by such.
            let start = match spare {
                0 => 0,
                _ => map.as_ptr().addr().wrapping_neg() % HUGE_ALIGN,
            };
            assert!(
                start + bytes <= mapped_bytes,
                "M1: items lie in the mapping"
            );
            let items = NonNull::new(map.as_mut_ptr().wrapping_add(start).cast::<T>())
                .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
            assert!(items.is_aligned(), "a mapping starts at a page of memory");
            Ok(Memory {
                items,
                len,
                owner: Owner::Mapping { map, start },
            })
        }

        /// The items.
        #[inline(always)]
        pub(crate) fn as_slice(&self) -> &[T] {
            // SAFETY: `items` points to `len` items, zeroed at first and thus values (M1), aligned (the
            // heap by its type, a mapping by the assertion above), owned by `self` and freed only
            // when it is dropped, so for the life of the borrow. Only `&[T]` is ever given out, so no
            // exclusive reference exists beside it.
            unsafe { std::slice::from_raw_parts(self.items.as_ptr(), self.len) }
        }

        /// Has the system give the physical memory of the items now, where it does on request, so that
        /// whoever touches them first does not wait for it.
        pub(crate) fn bring_in(&self, items: std::ops::Range<usize>) {
            #[cfg(target_os = "linux")]
            if let Owner::Mapping { map, start: first } = &self.owner {
                assert!(items.start <= items.end, "M1: a range of items");
                assert!(items.end <= self.len, "M1: items of this slice");
                let start = first + items.start * size_of::<T>();
                let end = first + items.end * size_of::<T>();
                if start < end {
                    // Advice: where it is refused, memory comes when it is touched.
                    let _ = map.advise_range(memmap2::Advice::PopulateWrite, start, end - start);
                }
            }
            #[cfg(not(target_os = "linux"))]
            let _ = items;
        }

        /// Gives the physical memory of the items back where whole pages of it can be: they become
        /// zero, or (on the heap) stay as they are.
        pub(crate) fn forget(&self, items: std::ops::Range<usize>) {
            #[cfg(target_os = "linux")]
            if let Owner::Mapping { map, start: first } = &self.owner {
                assert!(items.start <= items.end, "M1: a range of items");
                assert!(items.end <= self.len, "M1: items of this slice");
                let granule = 4096;
                // The items begin at a multiple of it.
                let start = first + (items.start * size_of::<T>()).next_multiple_of(granule);
                let end = first + items.end * size_of::<T>() / granule * granule;
                if start < end {
                    let advice = memmap2::UncheckedAdvice::DontNeed;
                    // SAFETY: the range lies inside the mapping (asserted). Its bytes become zero
                    // under shared references; the items are atomics in which every bit pattern is
                    // a value (M1), so that is one more store of another thread. Should the advice be
                    // refused, nothing has happened.
                    let _ = unsafe { map.unchecked_advise_range(advice, start, end - start) };
                }
            }
            #[cfg(not(target_os = "linux"))]
            let _ = items;
        }
    }

    impl<T: Zeroed> Drop for Memory<T> {
        fn drop(&mut self) {
            if let Owner::Heap(layout) = self.owner
                && layout.size() > 0
            {
                // SAFETY: allocated under this layout in `on_heap`, freed by nobody since, and no borrow
                // of `self` outlives this call. The items need no drop (M1).
                unsafe { std::alloc::dealloc(self.items.as_ptr().cast(), layout) };
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::sync::atomic::Ordering::Relaxed;

        fn keeps_what_is_stored(len: usize) {
            let memory = Memory::<AtomicU64>::zeroed(len).unwrap();
            let items = memory.as_slice();
            assert_eq!(items.len(), len);
            assert!(items.iter().all(|item| item.load(Relaxed) == 0));
            std::thread::scope(|scope| {
                for part in items.chunks(len / 3 + 1) {
                    scope.spawn(move || part.iter().for_each(|item| item.store(7, Relaxed)));
                }
            });
            memory.bring_in(0..len);
            assert!(items.iter().all(|item| item.load(Relaxed) == 7));
        }

        #[test]
        fn heap_and_mapping_keep_what_is_stored() {
            keeps_what_is_stored(100);
            if !cfg!(miri) {
                keeps_what_is_stored(HEAP_BYTES_MAX / 8);
                keeps_what_is_stored(HUGE_BYTES_MIN / 8);
            }
        }

        #[test]
        #[cfg(all(target_os = "linux", not(miri)))]
        fn forgotten_items_of_a_mapping_are_zero_and_their_neighbours_stay() {
            let memory = Memory::<AtomicU64>::zeroed(HEAP_BYTES_MAX / 8).unwrap();
            let items = memory.as_slice();
            items.iter().for_each(|item| item.store(7, Relaxed));
            memory.forget(100..2000);
            assert_eq!(items[511].load(Relaxed), 7);
            assert_eq!(items[512].load(Relaxed), 0);
            assert_eq!(items[1535].load(Relaxed), 0);
            assert_eq!(items[1536].load(Relaxed), 7);
        }

        #[test]
        #[cfg(all(target_os = "linux", not(miri)))]
        fn large_slices_begin_where_a_huge_page_can() {
            for bytes in [HUGE_BYTES_MIN, HUGE_BYTES_MIN + 4096] {
                let memory = Memory::<AtomicU32>::zeroed(bytes / 4).unwrap();
                let items = memory.as_slice();
                assert_eq!(items.as_ptr().addr() % HUGE_ALIGN, 0);
                items.iter().for_each(|item| item.store(1, Relaxed));
                memory.forget(0..items.len());
                assert!(items.iter().all(|item| item.load(Relaxed) == 0));
            }
        }

        #[test]
        fn empty_slices_are_no_trouble() {
            let memory = Memory::<AtomicU32>::zeroed(0).unwrap();
            assert!(memory.as_slice().is_empty());
            memory.forget(0..0);
        }

        #[test]
        #[cfg(not(miri))]
        fn impossible_sizes_are_errors() {
            assert!(Memory::<AtomicU64>::zeroed(usize::MAX / 4).is_err());
            assert!(Memory::<AtomicU64>::zeroed(1 << 58).is_err());
        }
    }
}

/// Under the model checker atomics are objects of the checker's: no memory can pretend to be them.
#[cfg(loom)]
mod heap_only {
    use std::io;

    pub(crate) trait Zeroed: Default {}
    impl<T: Default> Zeroed for T {}

    pub(crate) struct Memory<T>(Box<[T]>);

    impl<T: Zeroed> Memory<T> {
        pub(crate) fn zeroed(len: usize) -> io::Result<Memory<T>> {
            Ok(Memory((0..len).map(|_| T::default()).collect()))
        }

        pub(crate) fn as_slice(&self) -> &[T] {
            &self.0
        }

        pub(crate) fn bring_in(&self, _items: std::ops::Range<usize>) {}

        pub(crate) fn forget(&self, _items: std::ops::Range<usize>) {}
    }
}

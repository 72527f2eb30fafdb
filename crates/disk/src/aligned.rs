//! Memory that starts at a block border, as direct I/O demands.

use std::ops::{Deref, DerefMut};

/// The alignment that every device and file system in use accepts for direct I/O.
pub const BLOCK: usize = 4096;

/// Owned bytes whose first one lies at an address divisible by [`BLOCK`].
///
/// Reads and writes of whole blocks through such a buffer go to a direct file without a copy.
pub struct AlignedBuffer {
    /// Over-allocated by a block; never reallocated, so `start` stays right.
    storage: Box<[u8]>,
    start: usize,
    len: usize,
}

impl AlignedBuffer {
    /// Makes a buffer of `len` zeros.
    pub fn zeroed(len: usize) -> Self {
        let storage = vec![0; len + BLOCK].into_boxed_slice();
        let start = storage.as_ptr().align_offset(BLOCK);
        assert!(
            start < BLOCK,
            "an allocation can be aligned within one block"
        );
        Self {
            storage,
            start,
            len,
        }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.storage[self.start..][..self.len]
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..][..self.len]
    }
}

/// Whether a transfer can go to a direct file as it is.
pub(crate) fn is_aligned(bytes: &[u8], offset: u64) -> bool {
    is_whole(bytes.len(), offset) && (bytes.as_ptr() as usize).is_multiple_of(BLOCK)
}

/// Whether a transfer covers whole blocks.
pub(crate) fn is_whole(len: usize, offset: u64) -> bool {
    len.is_multiple_of(BLOCK) && offset.is_multiple_of(BLOCK as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_is_aligned_wherever_it_moves() {
        let buffers: Vec<AlignedBuffer> = (1..50)
            .map(|blocks| AlignedBuffer::zeroed(blocks * 1000))
            .collect();
        for buffer in &buffers {
            assert_eq!(buffer.as_ptr() as usize % BLOCK, 0);
            assert!(buffer.iter().all(|byte| *byte == 0));
        }
    }
}

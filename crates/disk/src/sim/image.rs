//! The bytes of one simulated file, in chunks that copies of the file share until one changes them.
//!
//! # Invariants
//! I5. Bytes at or beyond the length are zero, so growing needs no clearing.
//! I8. A copy never changes with its original: a chunk is written in place only by its one owner.

use std::sync::Arc;

/// Bytes per chunk: the granularity of space, and of what a system's page cache writes back.
pub(super) const CHUNK: usize = 4096;
/// Bytes that a device writes whole or not at all.
pub(super) const SECTOR: usize = 512;
/// Sectors per chunk; a set of them is one byte.
pub(super) const SECTORS: usize = CHUNK / SECTOR;
const _: () = assert!(SECTORS == u8::BITS as usize);

type Bytes = Arc<[u8; CHUNK]>;

/// One chunk's place in a file.
#[derive(Clone, Default)]
enum Slot {
    /// Reads as zeros, takes no space.
    #[default]
    Hole,
    /// Reads as zeros, its space is reserved.
    Reserved,
    /// Written; shared with other copies of the file until one of them writes.
    Written(Bytes),
}

/// A file's length and bytes.
#[derive(Clone, Default)]
pub(super) struct Image {
    len: u64,
    slots: Vec<Slot>,
}

/// The part of a range of bytes that lies in one chunk.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) chunk: usize,
    /// Where the piece starts inside its chunk.
    pub(super) at: usize,
    /// Where it starts inside the caller's bytes.
    pub(super) from: usize,
    pub(super) len: usize,
}

/// Splits a range of bytes at the borders of chunks.
pub(super) fn pieces(offset: u64, len: usize) -> impl Iterator<Item = Piece> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let position = offset + from as u64;
        let at = (position % CHUNK as u64) as usize;
        let piece_len = (CHUNK - at).min(len - from);
        let piece = Piece {
            chunk: chunk_of(position),
            at,
            from,
            len: piece_len,
        };
        from += piece_len;
        (piece_len > 0).then_some(piece)
    })
}

pub(super) fn chunk_of(offset: u64) -> usize {
    (offset / CHUNK as u64) as usize
}

/// How many chunks the first `len` bytes touch.
pub(super) fn chunks_below(len: u64) -> usize {
    len.div_ceil(CHUNK as u64) as usize
}

impl Image {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// One past the last chunk that was ever touched.
    pub(super) fn chunks_end(&self) -> usize {
        self.slots.len()
    }

    /// Counts the chunks that take space.
    pub(super) fn chunks_used(&self) -> u64 {
        self.slots
            .iter()
            .filter(|slot| !matches!(slot, Slot::Hole))
            .count() as u64
    }

    /// Counts the chunks of a range that take no space yet.
    pub(super) fn holes(&self, from: usize, to: usize) -> u64 {
        let known = self
            .slots
            .get(from.min(self.slots.len())..to.min(self.slots.len()));
        let beyond = to - from - known.map_or(0, <[Slot]>::len);
        let holes = known
            .into_iter()
            .flatten()
            .filter(|slot| matches!(slot, Slot::Hole))
            .count();
        (holes + beyond) as u64
    }

    pub(super) fn read(&self, target: &mut [u8], offset: u64) -> usize {
        let wanted = self.len.saturating_sub(offset).min(target.len() as u64) as usize;
        for piece in pieces(offset, wanted) {
            let target = &mut target[piece.from..][..piece.len];
            match self.slots.get(piece.chunk) {
                Some(Slot::Written(bytes)) => {
                    target.copy_from_slice(&bytes[piece.at..][..piece.len])
                }
                _ => target.fill(0),
            }
        }
        wanted
    }

    /// Writes inside one chunk without looking at the length.
    pub(super) fn put(&mut self, chunk: usize, at: usize, source: &[u8]) {
        let slot = self.slot(chunk);
        match slot {
            Slot::Written(bytes) => match Arc::get_mut(bytes) {
                Some(own) => own[at..][..source.len()].copy_from_slice(source),
                None if source.len() == CHUNK => *bytes = copied(source),
                None => Arc::make_mut(bytes)[at..][..source.len()].copy_from_slice(source),
            },
            _ if source.len() == CHUNK => *slot = Slot::Written(copied(source)),
            _ => {
                let mut bytes = [0; CHUNK];
                bytes[at..][..source.len()].copy_from_slice(source);
                *slot = Slot::Written(Arc::new(bytes));
            }
        }
    }

    /// Zeroes bytes inside one chunk; a hole stays a hole.
    pub(super) fn clear(&mut self, chunk: usize, at: usize, len: usize) {
        if let Some(Slot::Written(bytes)) = self.slots.get_mut(chunk) {
            Arc::make_mut(bytes)[at..][..len].fill(0);
        }
    }

    /// Inverts one bit, whoever shares the chunk keeps its own.
    pub(super) fn flip(&mut self, offset: u64, bit: u8) {
        let at = (offset % CHUNK as u64) as usize;
        let mut byte = [0];
        self.read(&mut byte, offset);
        self.put(chunk_of(offset), at, &[byte[0] ^ (1 << bit)]);
    }

    /// Cuts or grows; always clears what lies beyond `len`, whatever the length was (I5).
    pub(super) fn set_len(&mut self, len: u64) {
        let chunks = chunks_below(len);
        self.slots.truncate(chunks);
        let border = (len % CHUNK as u64) as usize;
        if border > 0 && self.slots.len() == chunks {
            self.clear(chunks - 1, border, CHUNK - border);
        }
        self.len = len;
    }

    pub(super) fn grow(&mut self, len: u64) {
        self.len = self.len.max(len);
    }

    /// Reserves the space of a range of chunks.
    pub(super) fn reserve(&mut self, from: usize, to: usize) {
        for chunk in from..to {
            let slot = self.slot(chunk);
            if matches!(slot, Slot::Hole) {
                *slot = Slot::Reserved;
            }
        }
    }

    /// Takes over one chunk of `other`, sharing its bytes.
    pub(super) fn share(&mut self, chunk: usize, other: &Image) {
        let shared = other.slots.get(chunk).cloned().unwrap_or_default();
        if chunk < self.slots.len() || !matches!(shared, Slot::Hole) {
            *self.slot(chunk) = shared;
        }
    }

    fn slot(&mut self, chunk: usize) -> &mut Slot {
        if chunk >= self.slots.len() {
            self.slots.resize(chunk + 1, Slot::Hole);
        }
        &mut self.slots[chunk]
    }
}

fn copied(source: &[u8]) -> Bytes {
    let bytes: Arc<[u8]> = source.into();
    bytes.try_into().expect("a whole chunk was passed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_does_not_change_with_its_original() {
        let mut original = Image::default();
        original.put(0, 0, &[1; CHUNK]);
        original.put(1, 10, &[2; 20]);
        original.grow(2 * CHUNK as u64);
        let copy = original.clone();
        original.put(0, 0, &[3; CHUNK]);
        original.put(1, 10, &[4; 1]);
        original.clear(1, 11, 5);
        original.flip(4096 + 29, 0);
        let mut bytes = vec![0; 2 * CHUNK];
        copy.read(&mut bytes, 0);
        assert!(bytes[..CHUNK].iter().all(|byte| *byte == 1));
        assert_eq!(bytes[CHUNK + 10..][..20], [2; 20]);
    }

    #[test]
    fn space_is_counted_by_chunks_that_are_reserved_or_written() {
        let mut image = Image::default();
        image.set_len(10 * CHUNK as u64);
        assert_eq!((image.chunks_used(), image.holes(0, 10)), (0, 10));
        image.reserve(2, 5);
        image.put(4, 0, &[1]);
        image.put(9, 0, &[1]);
        assert_eq!(
            (image.chunks_used(), image.holes(0, 10), image.holes(4, 12)),
            (4, 6, 6)
        );
        image.set_len(4 * CHUNK as u64);
        assert_eq!(image.chunks_used(), 2);
    }
}

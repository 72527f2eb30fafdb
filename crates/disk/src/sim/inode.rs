//! One simulated file: what readers see, what is safe, and the changes that lie between.
//!
//! # Protocol
//! Every change is made to `current` at once and remembered in `pending`. `sync` carries what is
//! pending over to `durable` and forgets it. A crash starts from `durable` and lets some of what is
//! pending through, as a device with a cache would:
//!
//! - *Sectors.* Each 512-byte sector ends in one of the states that it went through since the last
//!   sync: if a write of it got through, so did all earlier ones of the same sector, for the system
//!   writes whole sectors from its cache. Between sectors there is no order: a write is torn at their
//!   borders, a later write may survive an earlier one.
//! - *Length.* Changes of length are journalled by file systems: a prefix of them gets through,
//!   independently of the bytes. Bytes beyond the length that results are gone; bytes below it that
//!   did not get through read as they were, or as zeros.
//!
//! A failed sync leaves *orphans*: writes that the system believes done and will not try again. Later
//! syncs pass them by, unless a later write dirties the same chunk, which then goes out whole.
//!
//! # Invariants
//! I1. What was synced is there after any crash, until a later change to the same place.
//! I6. Each sector of a crash image is one of the states it went through since the last sync.

use super::image::{CHUNK, Image, SECTOR, SECTORS, chunks_below, pieces};
use super::style::Luck;

/// A file without its name.
#[derive(Default)]
pub(super) struct Inode {
    /// What readers see.
    pub(super) current: Image,
    /// What every crash leaves.
    durable: Image,
    /// What happened since the last sync, oldest first.
    pending: Vec<Change>,
    /// The bytes of pending writes, back to back.
    pending_bytes: Vec<u8>,
    writes: u32,
    /// Open handles.
    pub(super) handles: u32,
    /// Names in the current directory: one or none.
    pub(super) names: u32,
}

enum Change {
    Write(Write),
    /// The length became this, by a write beyond the end, a cut or a reservation.
    Length(u64),
    /// Space of a range of chunks was reserved; shares the fate of the length before it.
    Reserve {
        from: usize,
        to: usize,
    },
}

/// The part of a write that lies in one chunk.
struct Write {
    chunk: usize,
    at: u16,
    len: u16,
    /// Where its bytes start in `pending_bytes`.
    from: usize,
    /// Which call it belongs to.
    call: u32,
    /// A sync failed while this was pending.
    is_orphan: bool,
}

impl Inode {
    /// A file that is safe as it stands.
    pub(super) fn settled(image: Image) -> Self {
        Self {
            current: image.clone(),
            durable: image,
            names: 1,
            ..Self::default()
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) {
        self.writes = self.writes.wrapping_add(1);
        let base = self.pending_bytes.len();
        self.pending_bytes.extend_from_slice(bytes);
        for piece in pieces(offset, bytes.len()) {
            self.current
                .put(piece.chunk, piece.at, &bytes[piece.from..][..piece.len]);
            self.pending.push(Change::Write(Write {
                chunk: piece.chunk,
                at: piece.at as u16,
                len: piece.len as u16,
                from: base + piece.from,
                call: self.writes,
                is_orphan: false,
            }));
        }
        let end = offset + bytes.len() as u64;
        if !bytes.is_empty() && end > self.current.len() {
            self.current.grow(end);
            self.pending.push(Change::Length(end));
        }
    }

    pub(super) fn set_len(&mut self, len: u64) {
        if len != self.current.len() {
            self.current.set_len(len);
            self.pending.push(Change::Length(len));
        }
    }

    pub(super) fn allocate(&mut self, len: u64) {
        let len_after = len.max(self.current.len());
        self.set_len(len_after);
        self.current.reserve(0, chunks_below(len));
        self.pending.push(Change::Reserve {
            from: 0,
            to: chunks_below(len),
        });
    }

    /// Damages the medium: what readers see and what is safe alike.
    pub(super) fn flip_bit(&mut self, offset: u64, bit: u8) {
        self.current.flip(offset, bit);
        if offset < self.durable.len() {
            self.durable.flip(offset, bit);
        }
    }

    pub(super) fn sync(&mut self) {
        let mut orphans = Vec::new();
        let mut carried = Vec::new();
        for change in self.pending.drain(..) {
            match change {
                Change::Write(write) if write.is_orphan => orphans.push(write),
                Change::Write(write) => {
                    self.durable.share(write.chunk, &self.current);
                    carried.push(write.chunk);
                }
                // Growing must not touch the border chunk: it is shared, and would be copied.
                Change::Length(len) if len >= self.durable.len() => self.durable.grow(len),
                Change::Length(len) => self.durable.set_len(len),
                Change::Reserve { from, to } => self.durable.reserve(from, to),
            }
        }
        if orphans.is_empty() {
            self.pending_bytes.clear();
            return;
        }
        carried.sort_unstable();
        orphans.retain(|orphan| carried.binary_search(&orphan.chunk).is_err());
        self.pending.extend(orphans.into_iter().map(Change::Write));
    }

    /// Remembers that the system now takes every pending write for done.
    pub(super) fn fail_sync(&mut self) {
        for change in &mut self.pending {
            if let Change::Write(write) = change {
                write.is_orphan = true;
            }
        }
    }

    /// What a crash leaves of the file, as luck has it.
    pub(super) fn crash(&self, luck: &mut Luck) -> Image {
        let mut image = self.durable.clone();
        if self.pending.is_empty() {
            return image;
        }
        let lengths = self
            .pending
            .iter()
            .filter(|change| matches!(change, Change::Length(_)));
        let lengths_kept = luck.prefix(lengths.count());
        let survivors = self.choose_survivors(luck);
        self.replay(&mut image, &survivors, lengths_kept);
        image
    }

    /// Walks backwards, so that a sector that got through takes its whole past with it (I6).
    ///
    /// Returns, for each pending change, the sectors of it that survive: for a write those it put
    /// through, for a cut those that a later write carries with their zeroed state.
    fn choose_survivors(&self, luck: &mut Luck) -> Vec<Survivors> {
        let chunks = self.current.chunks_end().max(self.durable.chunks_end());
        let last_chunk = self
            .pending
            .iter()
            .map(Change::chunks_end)
            .max()
            .unwrap_or(0);
        let mut safe = vec![0u8; chunks.max(last_chunk)];
        let mut survivors = Vec::with_capacity(self.pending.len());
        let mut call = None;
        for change in self.pending.iter().rev() {
            survivors.push(match change {
                Change::Write(write) => {
                    if call != Some(write.call) {
                        call = Some(write.call);
                        luck.next_write();
                    }
                    let touched = write.sectors();
                    let kept = touched & (luck.sectors() | safe[write.chunk]);
                    safe[write.chunk] |= kept;
                    Survivors::Written(kept)
                }
                Change::Length(len) => Survivors::Cut(carried_beyond(*len, &safe)),
                Change::Reserve { .. } => Survivors::Written(0),
            });
        }
        survivors.reverse();
        survivors
    }

    fn replay(&self, image: &mut Image, survivors: &[Survivors], lengths_kept: usize) {
        let mut lengths = 0;
        for (change, survivors) in self.pending.iter().zip(survivors) {
            match (change, survivors) {
                (Change::Write(write), Survivors::Written(sectors)) => {
                    write.replay(*sectors, &self.pending_bytes, image);
                }
                (Change::Length(len), Survivors::Cut(carried)) => {
                    lengths += 1;
                    match lengths <= lengths_kept {
                        true => image.set_len(*len),
                        false => clear_carried(image, *len, carried),
                    }
                }
                (Change::Reserve { from, to }, _) if lengths <= lengths_kept => {
                    let to = (*to).min(chunks_below(image.len()));
                    image.reserve(*from, to.max(*from));
                }
                _ => {}
            }
        }
        image.set_len(image.len());
    }
}

enum Survivors {
    Written(u8),
    Cut(Vec<(usize, u8)>),
}

impl Change {
    fn chunks_end(&self) -> usize {
        match self {
            Self::Write(write) => write.chunk + 1,
            Self::Length(_) | Self::Reserve { .. } => 0,
        }
    }
}

impl Write {
    /// The sectors of its chunk that the write touches.
    fn sectors(&self) -> u8 {
        let first = self.at as usize / SECTOR;
        let end = (self.at as usize + self.len as usize).div_ceil(SECTOR);
        (((1u16 << end) - 1) & !((1u16 << first) - 1)) as u8
    }

    fn replay(&self, sectors: u8, pending_bytes: &[u8], image: &mut Image) {
        let (at, len) = (self.at as usize, self.len as usize);
        let bytes = &pending_bytes[self.from..][..len];
        if sectors == self.sectors() {
            return image.put(self.chunk, at, bytes);
        }
        for sector in (0..SECTORS).filter(|sector| sectors >> sector & 1 == 1) {
            let from = at.max(sector * SECTOR);
            let to = (at + len).min((sector + 1) * SECTOR);
            image.put(self.chunk, from, &bytes[from - at..to - at]);
        }
    }
}

/// The surviving sectors that reach beyond `len`.
fn carried_beyond(len: u64, safe: &[u8]) -> Vec<(usize, u8)> {
    let first = (len / CHUNK as u64).min(safe.len() as u64) as usize;
    let carried = safe
        .iter()
        .enumerate()
        .skip(first)
        .filter(|(_, sectors)| **sectors != 0);
    carried.map(|(chunk, sectors)| (chunk, *sectors)).collect()
}

/// Applies a cut that did not get through to the sectors that later writes brought through.
fn clear_carried(image: &mut Image, len: u64, carried: &[(usize, u8)]) {
    for (chunk, sectors) in carried {
        for sector in (0..SECTORS).filter(|sector| sectors >> sector & 1 == 1) {
            let start = (chunk * CHUNK + sector * SECTOR) as u64;
            let keep = len.saturating_sub(start).min(SECTOR as u64) as usize;
            image.clear(*chunk, sector * SECTOR + keep, SECTOR - keep);
        }
    }
}

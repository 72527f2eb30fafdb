//! Disk space for records to come: claimed ahead, so that running out is an error before a change is
//! made and never while it is undone.
//!
//! # Protocol
//! `demand` is the position that the tail would reach if every claim were used up. A claim raises it,
//! dropping one lowers it by the rest; an append moves bytes from its claim to the log and leaves
//! `demand` alone. So appends share nothing here, and claims, which come in chunks, one atomic.
//!
//! ```text
//!   oldest segment            tail          demand        prepared - reserve   prepared
//!        |---- written ---------|-- claimed ---|---- free -----------|--- reserve ---|
//! ```
//!
//! A claim is granted while `demand + bytes + reserve <= prepared`; otherwise segments are prepared, up
//! to the limit `bytes_max` of all files. The reserve is for those who must not fail: rollback
//! beyond its estimate, undo at restart, checkpoints, the log's own markers. They draw on it, and
//! beyond it on whatever the disk still has.
//!
//! Whoever begins, with nothing in the log yet, is granted a claim only while `headroom` more would be left: what is
//! freed goes to those at work first, who hold the log's oldest records, and they are not joined by others
//! meanwhile. So they end, one way or another, and never because somebody came after them.
//!
//! # Invariants
//! C1. Without draws on the reserve, `tail <= demand <= prepared - reserve`: every claimed byte has a
//! durable place (S1), so an append under a claim never lacks disk space.
//! C3. A claim of one who begins leaves `headroom` bytes that claims already granted can grow by.
//! C2. `prepared` is the end of the segment table, and never falls.
//!
//! # Order
//! `preparing` is taken first, the table's mutex inside it. I/O is done under `preparing`: who waits
//! there waits for a segment. The writer takes it only when the reserve is used up.
//!
//! # Ordering
//! `prepared` is stored with Release after the segment is in the table; who sees it with Acquire finds it. Under
//! `preparing`, which is held wherever it changes, it is loaded Relaxed. `demand` is a sum: all its accesses are
//! Relaxed, and what a claim may then use was ordered by the load of `prepared` before it.

use crate::group::Group;
use crate::segment::{self, PrepareError, Segment};
use crate::segments::Segments;
use crate::{FullCause, LogError};
use crossbeam_utils::CachePadded;
use longshore_base::Lsn;
use longshore_base::sync::Mutex;
use longshore_base::sync::atomic::{AtomicU64, Ordering};
use longshore_disk::{Disk, DiskError};
use std::sync::Arc;

/// Segments kept ready ahead of the demand when old ones come free; more are removed.
const SEGMENTS_AHEAD: u64 = 2;
/// What a claim grows by when it must, if there is room for that much.
const CLAIM_CHUNK: u64 = 16 << 10;
/// At most this much is kept for those who must not fail; and at most an eighth of the log, and two
/// segments.
const RESERVE_BYTES_MAX: u64 = 4 << 20;

/// At most this much is left by those who begin to those at work; and at most a sixteenth of the log, and a quarter of
/// a segment, which is prepared ahead anyhow.
const HEADROOM_BYTES_MAX: u64 = 1 << 20;

/// Who may use how much of the disk.
pub(crate) struct Space {
    demand: CachePadded<AtomicU64>,
    prepared: CachePadded<AtomicU64>,
    reserve: u64,
    headroom: u64,
    bytes_max: u64,
    /// Slice of a new segment.
    slice_bytes: u64,
    database: u64,
    is_read_only: bool,
    disk: Arc<dyn Disk>,
    preparing: Mutex<()>,
    pub(crate) segments: Segments,
    group: Arc<Group>,
}

/// What a space is made of.
pub(crate) struct SpaceParts {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) database: u64,
    pub(crate) segment_bytes: u64,
    pub(crate) bytes_max: u64,
    pub(crate) is_read_only: bool,
    pub(crate) segments: Segments,
    pub(crate) tail: u64,
    pub(crate) group: Arc<Group>,
}

/// How far preparing may go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    Kept,
    Ignored,
}

impl Space {
    pub(crate) fn new(parts: SpaceParts) -> Arc<Space> {
        let slice_bytes = parts.segment_bytes - segment::HEADER_BYTES;
        Arc::new(Space {
            demand: CachePadded::new(AtomicU64::new(parts.tail)),
            prepared: CachePadded::new(AtomicU64::new(parts.segments.end().unwrap_or(parts.tail))),
            reserve: RESERVE_BYTES_MAX
                .min(parts.bytes_max / 8)
                .min(2 * slice_bytes),
            headroom: HEADROOM_BYTES_MAX
                .min(parts.bytes_max / 16)
                .min(slice_bytes / 4),
            bytes_max: parts.bytes_max,
            slice_bytes,
            database: parts.database,
            is_read_only: parts.is_read_only,
            disk: parts.disk,
            preparing: Mutex::new(()),
            segments: parts.segments,
            group: parts.group,
        })
    }

    /// Bytes claimed, or drawn, and not appended yet.
    pub(crate) fn claimed(&self, tail: u64) -> u64 {
        self.demand().saturating_sub(tail)
    }

    /// Makes sure that the reserve is there, as far as the limit and the disk allow.
    pub(crate) fn fill_reserve(&self) -> Result<(), LogError> {
        match self.prepare_until(self.demand() + self.reserve, 0) {
            Err(error) if error.is_full() => Ok(()),
            other => other,
        }
    }

    /// Prepares the next segment before anybody must wait for it; for a background thread.
    pub(crate) fn prepare_ahead(&self) -> Result<(), LogError> {
        let ahead = self.slice_bytes / 2;
        match self.prepare_until(self.demand() + self.reserve + ahead, 0) {
            Err(error) if error.is_full() => Ok(()),
            other => other,
        }
    }

    /// Sets `bytes` aside, or more if a chunk is to be had; returns how many.
    fn take(&self, bytes: u64) -> Result<u64, LogError> {
        if bytes < CLAIM_CHUNK && self.try_take(CLAIM_CHUNK, 0) {
            return Ok(CLAIM_CHUNK);
        }
        self.take_exactly(bytes, 0)?;
        Ok(bytes)
    }

    /// Sets `bytes` aside where `left` more would be free then.
    fn take_exactly(&self, bytes: u64, left: u64) -> Result<(), LogError> {
        if self.is_read_only {
            return Err(LogError::ReadOnly);
        }
        while !self.try_take(bytes, left) {
            self.group.check()?;
            self.prepare_until(self.demand() + bytes + left + self.reserve, bytes)?;
        }
        Ok(())
    }

    /// Sets `bytes` aside if that needs no new segment, and leaves `left` bytes.
    pub(crate) fn try_take(&self, bytes: u64, left: u64) -> bool {
        // Acquire: pairs with `add`; the segments up to there are in the table.
        let prepared = self.prepared.load(Ordering::Acquire);
        // Relaxed: only the sum matters; the segments are ordered by `prepared`.
        let grant = |demand: u64| {
            (demand + bytes + left + self.reserve <= prepared).then(|| demand + bytes)
        };
        !self.is_read_only
            && self
                .demand
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, grant)
                .is_ok()
    }

    pub(crate) fn give_back(&self, bytes: u64) {
        // Relaxed: a sum.
        self.demand.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Uses the reserve, or more than that: never refused here.
    fn draw(&self, bytes: u64) {
        // Relaxed: a sum.
        self.demand.fetch_add(bytes, Ordering::Relaxed);
    }

    fn demand(&self) -> u64 {
        // Relaxed: a sum.
        self.demand.load(Ordering::Relaxed)
    }

    /// Prepares segments until the table reaches `end`. `asked` is for the error only.
    fn prepare_until(&self, end: u64, asked: u64) -> Result<(), LogError> {
        let _preparing = self.preparing.lock();
        // Relaxed: changed under `preparing` only.
        while self.prepared.load(Ordering::Relaxed) < end {
            self.prepare_next(Limit::Kept, asked)?;
        }
        Ok(())
    }

    /// Prepares one more segment whatever the limit says, because records are waiting to be written.
    pub(crate) fn prepare_for_writer(&self, position: u64) -> Result<(), LogError> {
        let _preparing = self.preparing.lock();
        // Relaxed: changed under `preparing` only.
        while self.prepared.load(Ordering::Relaxed) <= position {
            self.prepare_next(Limit::Ignored, 0)?;
        }
        Ok(())
    }

    /// Under `preparing`.
    fn prepare_next(&self, limit: Limit, asked: u64) -> Result<(), LogError> {
        let used = self.segments.file_bytes() + self.slice_bytes + segment::HEADER_BYTES;
        if limit == Limit::Kept && used > self.bytes_max {
            return Err(self.full(
                asked,
                FullCause::Limit {
                    used,
                    bytes_max: self.bytes_max,
                },
            ));
        }
        // Relaxed: changed under `preparing` only.
        let start = self.prepared.load(Ordering::Relaxed);
        let made = Segment::prepare(&*self.disk, self.database, start, self.slice_bytes);
        let made = made.map_err(|error| match error {
            PrepareError::Disk(error) if error.is_full() => {
                self.full(asked, FullCause::Disk(error))
            }
            other => self.failed(other),
        })?;
        self.add(made);
        Ok(())
    }

    fn add(&self, segment: Segment) {
        let end = segment.end();
        self.segments.push(segment);
        // Release: pairs with Acquire in `try_take`.
        self.prepared.store(end, Ordering::Release);
    }

    fn failed(&self, error: PrepareError) -> LogError {
        match error {
            PrepareError::Disk(error) => LogError::Disk(error),
            PrepareError::Sync(error) => self.group.fail(&error.to_string()),
        }
    }

    fn full(&self, asked: u64, cause: FullCause) -> LogError {
        let oldest = Lsn::new(self.segments.start().unwrap_or(0));
        LogError::Full {
            asked,
            cause,
            oldest,
        }
    }

    /// Gives up segments that lie wholly before `before`: the next ones are made of them, or they go.
    pub(crate) fn truncate(&self, before: u64) -> Result<(), LogError> {
        let _preparing = self.preparing.lock();
        while let Some(segment) = self.segments.pop_before(before) {
            self.reuse_or_remove(segment)?;
        }
        Ok(())
    }

    /// Under `preparing`. For segments that are not in the table, or not any more.
    fn reuse_or_remove(&self, segment: Arc<Segment>) -> Result<(), LogError> {
        // Relaxed: changed under `preparing` only.
        let prepared = self.prepared.load(Ordering::Relaxed);
        let wanted = self.demand() + self.reserve + SEGMENTS_AHEAD * self.slice_bytes;
        if segment.bytes != self.slice_bytes || prepared >= wanted {
            self.disk.remove(&segment.name)?;
            longshore_base::crash_point("log.segment.removed");
            return Ok(());
        }
        let next = segment.recycle(&*self.disk, self.database, prepared);
        self.add(next.map_err(|error| self.failed(error))?);
        Ok(())
    }

    pub(crate) fn disk_error(&self, error: &DiskError) -> LogError {
        self.group.fail(&error.to_string())
    }
}

/// Log space set aside for records to come. Whatever is left when it is dropped is free again.
///
/// Covers what is written forward *and* what undoing that may take: who claims estimates both.
pub struct Claim {
    space: Arc<Space>,
    remaining: u64,
    source: Source,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Granted ahead, refused when full.
    Granted,
    /// Drawn on the reserve record by record, never refused.
    Reserve,
}

impl Claim {
    pub(crate) fn granted(space: &Arc<Space>, bytes: u64) -> Result<Claim, LogError> {
        Claim::granted_beside(space, bytes, 0)
    }

    /// The claim of one who begins (C3).
    pub(crate) fn granted_to_begin(space: &Arc<Space>, bytes: u64) -> Result<Claim, LogError> {
        Claim::granted_beside(space, bytes, space.headroom)
    }

    fn granted_beside(space: &Arc<Space>, bytes: u64, left: u64) -> Result<Claim, LogError> {
        space.take_exactly(bytes, left)?;
        Ok(Claim {
            space: space.clone(),
            remaining: bytes,
            source: Source::Granted,
        })
    }

    pub(crate) fn reserve(space: &Arc<Space>) -> Claim {
        Claim {
            space: space.clone(),
            remaining: 0,
            source: Source::Reserve,
        }
    }

    /// Makes sure that at least `bytes` remain; grows in chunks, so this is usually free.
    ///
    /// # Errors
    /// [`LogError::Full`], which says what to do. The claim is then as it was.
    #[inline]
    pub fn ensure(&mut self, bytes: u64) -> Result<(), LogError> {
        match self.source {
            Source::Granted if self.remaining < bytes => self.grow(bytes - self.remaining),
            _ => Ok(()),
        }
    }

    #[cold]
    fn grow(&mut self, bytes: u64) -> Result<(), LogError> {
        self.remaining += self.space.take(bytes)?;
        Ok(())
    }

    /// Bytes that can still be appended under it for certain; without bound for the reserve.
    pub fn remaining(&self) -> u64 {
        match self.source {
            Source::Granted => self.remaining,
            Source::Reserve => u64::MAX,
        }
    }

    /// Takes the bytes of a record out of the claim, before they are reserved in the ring.
    #[inline]
    pub(crate) fn spend(&mut self, bytes: u64) -> Result<(), LogError> {
        match self.source {
            Source::Granted => {
                self.ensure(bytes)?;
                self.remaining -= bytes;
            }
            Source::Reserve if self.space.is_read_only => return Err(LogError::ReadOnly),
            Source::Reserve => self.space.draw(bytes),
        }
        Ok(())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.remaining > 0 {
            self.space.give_back(self.remaining);
        }
    }
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Claim({} bytes left)", self.remaining())
    }
}

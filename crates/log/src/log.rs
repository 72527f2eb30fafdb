//! The log: create, open, append, flush, read, truncate.

use crate::flush::Flusher;
use crate::group::{Goal, Group};
use crate::reader::read_one;
use crate::record::{Draft, Record, record_bytes};
use crate::recover::recover;
use crate::ring::Ring;
use crate::segment::{self, PrepareError, Segment};
use crate::segments::Segments;
use crate::space::{Claim, Space, SpaceParts};
use crate::stats::LogStats;
use crate::{Access, DurableHandle, Level, LogError, LogOptions, Scan, ScanFrom};
use longshore_base::sync::atomic::{AtomicBool, Ordering};
use longshore_base::{Durability, DurabilityLost, Environment, Lsn, TxnId};
use longshore_disk::Disk;
use std::sync::Arc;

/// The write-ahead log of one database.
///
/// Any number of threads append at once; each append is one atomic addition and a copy. Whoever needs a
/// record to be safe says so, and is served together with all others who do.
pub struct Log {
    pub(crate) flusher: Flusher,
    start: Lsn,
    is_read_only: bool,
    /// Every so many bytes appended, the flusher thread is told.
    nudge_shift: u32,
}

impl Log {
    /// Where the first record of every log starts; so [`Lsn::ZERO`] is before all of them.
    pub const FIRST: Lsn = Lsn::new(64);

    /// Bytes of log that a record with a body of `body` bytes takes: what to claim for it.
    #[inline]
    pub const fn record_bytes(body: usize) -> u64 {
        record_bytes(body)
    }

    /// Creates the log of a new database, in a directory that holds none.
    ///
    /// # Errors
    /// [`LogError::AlreadyExists`] if there are segments; [`Log::erase`] removes those of a creation
    /// that was interrupted. [`LogError::Full`] if not even the first segments fit on the disk.
    pub fn create(
        disk: Arc<dyn Disk>,
        options: LogOptions,
        database: u64,
        env: Arc<dyn Environment>,
    ) -> Result<Arc<Log>, LogError> {
        options.check()?;
        if let Some(segment) = segment_names(&*disk)?.pop() {
            return Err(LogError::AlreadyExists { segment });
        }
        let bytes = options.segment_bytes - segment::HEADER_BYTES;
        let first = Segment::prepare(&*disk, database, 0, bytes).map_err(|error| match error {
            PrepareError::Disk(error) | PrepareError::Sync(error) => LogError::Disk(error),
        })?;
        let segments = Segments::new(vec![first]);
        let log = Log::assemble(
            disk,
            options,
            database,
            Access::ReadWrite,
            env,
            segments,
            Log::FIRST,
        );
        log.flusher.space.fill_reserve()?;
        Ok(log)
    }

    /// Opens the log of a database and finds its end.
    ///
    /// `scan_from` is what a checkpoint remembers: nothing before it will be asked for, and everything
    /// before it is known to be durable. A torn end is normal; the log goes on from there.
    ///
    /// # Errors
    /// [`LogError::Damaged`] or [`LogError::Missing`] if bytes that were durable are not there any more;
    /// errors that name the file if a segment is another database's, another version's, or none.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: LogOptions,
        database: u64,
        scan_from: impl Into<ScanFrom>,
        access: Access,
        env: Arc<dyn Environment>,
    ) -> Result<Arc<Log>, LogError> {
        options.check()?;
        let found = recover(&*disk, database, scan_from.into(), access)?;
        let end = Lsn::new(found.end);
        let log = Log::assemble(disk, options, database, access, env, found.segments, end);
        if access == Access::ReadWrite {
            log.flusher.space.fill_reserve()?;
        }
        Ok(log)
    }

    /// Removes all segments: for a database whose creation was interrupted.
    pub fn erase(disk: &dyn Disk) -> Result<(), LogError> {
        for name in segment_names(disk)? {
            disk.remove(&name)?;
        }
        disk.sync_directory()?;
        Ok(())
    }

    fn assemble(
        disk: Arc<dyn Disk>,
        options: LogOptions,
        database: u64,
        access: Access,
        env: Arc<dyn Environment>,
        segments: Segments,
        end: Lsn,
    ) -> Arc<Log> {
        let group = Arc::new(Group::new(end.get()));
        let is_read_only = access == Access::ReadOnly;
        let space = Space::new(SpaceParts {
            disk,
            database,
            segment_bytes: options.segment_bytes,
            bytes_max: options.bytes_max,
            is_read_only,
            segments,
            tail: end.get(),
            group: group.clone(),
        });
        // Nothing is ever appended to a log that is only read.
        let buffer_bytes = if is_read_only {
            64
        } else {
            options.buffer_bytes
        };
        let ring = Ring::new(buffer_bytes, end.get());
        Arc::new(Log {
            flusher: Flusher::new(ring, group, space, env),
            start: end,
            is_read_only,
            nudge_shift: (buffer_bytes / 4).trailing_zeros(),
        })
    }

    /// Appends a record; its position is its place in history. Not durable yet.
    ///
    /// Its bytes come out of `claim`, which grows if it is too small. Waits only if the log buffer is
    /// full. `body` is the concatenation of the parts.
    ///
    /// # Errors
    /// [`LogError::Poisoned`] after a failure of the log; [`LogError::TooLarge`] for a record longer than
    /// the buffer; [`LogError::Full`] if the claim was too small and could not grow, never otherwise.
    /// [`LogError::ReadOnly`].
    #[inline]
    pub fn append(
        &self,
        claim: &mut Claim,
        kind: u8,
        txn: TxnId,
        prev: Lsn,
        body: &[&[u8]],
    ) -> Result<Lsn, LogError> {
        let Flusher { ring, group, .. } = &self.flusher;
        let draft = Draft::new(kind, txn, prev, body);
        let bytes = draft.bytes();
        if bytes > ring.capacity() {
            return Err(self.too_large(bytes));
        }
        group.check()?;
        claim.spend(bytes)?;
        let lsn = ring.reserve(bytes);
        let end = lsn + bytes;
        if !ring.has_room(end) {
            self.wait_for_room(end)?;
        }
        ring.fill(lsn, &draft);
        if lsn >> self.nudge_shift != end >> self.nudge_shift && group.has_flusher() {
            group.nudge();
        }
        Ok(Lsn::new(lsn))
    }

    #[cold]
    fn too_large(&self, bytes: u64) -> LogError {
        match self.is_read_only {
            true => LogError::ReadOnly,
            false => LogError::TooLarge {
                bytes,
                max: self.record_bytes_max(),
            },
        }
    }

    #[cold]
    fn wait_for_room(&self, end: u64) -> Result<(), LogError> {
        self.flusher.counters.waits_for_room.add(1);
        self.flusher
            .wait_for(Goal::Released(end - self.flusher.ring.capacity()))
    }

    /// The longest record possible, header and padding included.
    pub fn record_bytes_max(&self) -> u64 {
        self.flusher.ring.capacity()
    }

    /// Sets log space aside: for what is going to be written, and for undoing it.
    ///
    /// # Errors
    /// [`LogError::Full`], with the cause and the way out.
    pub fn claim(&self, bytes: u64) -> Result<Claim, LogError> {
        Claim::granted(&self.flusher.space, bytes)
    }

    /// [`claim`](Self::claim) for one who has nothing in the log yet, and holds up nobody by waiting: it leaves some
    /// room to those at work, whose claims must grow for them to end.
    ///
    /// # Errors
    /// Those of [`claim`](Self::claim), a little earlier.
    pub fn claim_to_begin(&self, bytes: u64) -> Result<Claim, LogError> {
        Claim::granted_to_begin(&self.flusher.space, bytes)
    }

    /// A claim on the emergency reserve, which never fails: for rollback, undo at restart, checkpoints.
    pub fn claim_reserve(&self) -> Claim {
        Claim::reserve(&self.flusher.space)
    }

    /// The position of the next record.
    ///
    /// A SeqCst load: whoever announces itself (SeqCst) before it appends is seen by whoever reads the
    /// tail before looking for announcements, or appends behind that tail.
    #[inline]
    pub fn tail(&self) -> Lsn {
        Lsn::new(self.flusher.ring.tail())
    }

    /// Everything before this is safe.
    #[inline]
    pub fn durable_lsn(&self) -> Lsn {
        Lsn::new(self.flusher.group.synced())
    }

    /// Everything before this is with the operating system.
    #[inline]
    pub fn written_lsn(&self) -> Lsn {
        Lsn::new(self.flusher.group.written())
    }

    /// The oldest position that can still be read.
    pub fn oldest_lsn(&self) -> Lsn {
        let start = Lsn::new(self.flusher.space.segments.start().unwrap_or(0));
        start.max(Log::FIRST)
    }

    /// Returns once the record that starts at `lsn` is as safe as `level` says.
    ///
    /// Returns at once if it is already, and for [`Lsn::ZERO`].
    /// # Errors
    /// [`LogError::Poisoned`]; [`LogError::BeyondEnd`] if no record has been appended there.
    #[inline]
    pub fn flush(&self, lsn: Lsn, level: Level) -> Result<(), LogError> {
        match level.goal(lsn) {
            Some(goal) if !self.flusher.group.is_reached(goal) => self.flush_slow(lsn, goal),
            _ => Ok(()),
        }
    }

    fn flush_slow(&self, lsn: Lsn, goal: Goal) -> Result<(), LogError> {
        self.check_within(lsn)?;
        self.flusher.counters.waits_for_durability.add(1);
        self.flusher.wait_for(goal)
    }

    /// Flushes everything appended so far.
    pub fn flush_all(&self, level: Level) -> Result<(), LogError> {
        // The goal of the last byte before the tail is that of the record it belongs to.
        match Lsn::new(self.tail().get() - 1) {
            last if last < self.start => Ok(()),
            last => self.flush(last, level),
        }
    }

    pub(crate) fn check_within(&self, lsn: Lsn) -> Result<(), LogError> {
        let end = self.tail();
        match lsn < end {
            true => Ok(()),
            false => Err(LogError::BeyondEnd { lsn, end }),
        }
    }

    /// A handle on the durability of the record at `lsn`, to be waited for later or elsewhere.
    pub fn durable(self: &Arc<Self>, lsn: Lsn, level: Level) -> DurableHandle {
        DurableHandle::new(self.clone(), lsn, level)
    }

    /// Reads the record that [`append`](Log::append) put at `lsn`: from memory until it is written, so that
    /// whoever undoes what he has just done waits for no disk; from the file after that.
    ///
    /// # Errors
    /// [`LogError::BeyondEnd`], [`LogError::Truncated`], [`LogError::Damaged`].
    pub fn read(&self, lsn: Lsn) -> Result<Record, LogError> {
        self.check_within(lsn)?;
        if let Some(record) = self.flusher.find_unwritten(lsn.get()) {
            return Ok(record);
        }
        // It is written, but for one whose append has not returned yet.
        self.flush(lsn, Level::Os)?;
        read_one(
            &self.flusher.space.segments,
            lsn.get(),
            self.written_lsn().get(),
        )
    }

    /// Walks the records from `from` ([`Lsn::ZERO`]: the oldest) to the present end.
    pub fn scan(&self, from: Lsn) -> Scan {
        let from = if from == Lsn::ZERO {
            self.oldest_lsn()
        } else {
            from
        };
        let tail = self.tail().get();
        let end = self.flush_all(Level::Os).map(|()| tail);
        Scan::new(self.flusher.space.clone(), from.get(), end)
    }

    /// Gives up the records before `before`, which the caller will never need again: segments wholly
    /// before it are recycled or removed. Records that are not durable are kept in any case.
    ///
    /// # Errors
    /// [`LogError::Disk`] if a file could not be removed or renamed; the log itself is unharmed.
    pub fn truncate(&self, before: Lsn) -> Result<(), LogError> {
        if self.is_read_only {
            return Err(LogError::ReadOnly);
        }
        self.flusher.group.check()?;
        self.flusher
            .space
            .truncate(before.min(self.durable_lsn()).get())
    }

    /// What the log has done since it was opened.
    pub fn stats(&self) -> LogStats {
        let Flusher {
            ring,
            group,
            space,
            counters,
            ..
        } = &self.flusher;
        // Relaxed: counts order nothing.
        let get =
            |counter: &longshore_base::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let tail = ring.tail();
        LogStats {
            bytes: tail - self.start.get(),
            records: get(&counters.records),
            groups: get(&counters.groups),
            syncs: get(&counters.syncs),
            sync_us: get(&counters.sync_us),
            markers: get(&counters.markers),
            waits_for_room: counters.waits_for_room.get(),
            waits_for_durability: counters.waits_for_durability.get(),
            waits_for_appender: get(&counters.waits_for_appender),
            role_taken: group.slept(),
            unwritten_bytes: tail.saturating_sub(group.written()),
            claimed_bytes: space.claimed(tail),
            segments: space.segments.count() as u64,
            disk_bytes: space.segments.file_bytes(),
        }
    }

    /// Fails when the log has; one load when it has not.
    ///
    /// # Errors
    /// [`LogError::Poisoned`].
    #[inline]
    pub fn check(&self) -> Result<(), LogError> {
        self.flusher.group.check()
    }

    /// The failure after which the log takes no more records, if there was one.
    pub fn poison_cause(&self) -> Option<Arc<str>> {
        self.flusher.group.cause()
    }

    /// Writes in the background until `stop`: set it, then call [`Log::nudge`].
    ///
    /// With such a thread, records that nobody waits for reach the operating system within about ten
    /// milliseconds, commit futures block nobody, and segments are prepared ahead.
    pub fn run_flusher(&self, stop: &AtomicBool) {
        self.flusher.run(stop);
    }

    /// Wakes the thread in [`Log::run_flusher`].
    pub fn nudge(&self) {
        self.flusher.group.nudge();
    }
}

fn segment_names(disk: &dyn Disk) -> Result<Vec<String>, LogError> {
    let mut names = disk.list()?;
    names.retain(|name| segment::start_of(name).is_some());
    Ok(names)
}

impl Durability for Log {
    fn is_durable(&self, lsn: Lsn) -> bool {
        Level::Sync
            .goal(lsn)
            .is_none_or(|goal| self.flusher.group.is_reached(goal))
    }

    fn make_durable(&self, lsn: Lsn) -> Result<(), DurabilityLost> {
        self.flush(lsn, Level::Sync).map_err(DurabilityLost::from)
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Log({} .. {})", self.oldest_lsn(), self.tail())
    }
}

//! From the ring to the disk: what the writer and the syncer do while they hold their roles.
//!
//! # Protocol
//! The writer takes published records out of the ring, gives the space back (the bytes are in its
//! staging buffer by then, `staging.rs`), and writes them to the segments; it goes on until its own goal is
//! reached.
//! Where the next record is not published yet it yields: its appender is filling it, or waits for room,
//! which has just been given back. It never meets a record of its own that is not published: an appender
//! that waits for room becomes the writer only until the room is there, and everything it waits for
//! was reserved before its own record (B3).
//!
//! The syncer syncs every segment written since the last sync, up to what was written when it began.
//!
//! Whoever waits for a sync gets both roles, one after the other, and only when no sync is on its way:
//! until then records gather in the ring, and one write takes them all (`group.rs`). Before that write
//! it yields the processor once. Those woken by the last sync, if they wait for a processor, append
//! first and come along; otherwise they would miss every other sync, and groups be half as large. With
//! processors to spare it costs a system call.
//!
//! A group that is going to be synced ends with a sync marker: a record that names the position durable
//! so far. It lets a later open tell damage from a torn end (`recover.rs`). It is left out when there is no
//! room for it at once: the writer must not wait for itself. Behind a small group zeros are written, so
//! that the syncs after it are cheaper (`segment.rs`).
//!
//! # Failure
//! A failed write or sync fails the group for ever (G4): what is lost was never acknowledged.

use crate::LogError;
use crate::group::{Goal, Group, Role, RoleGuard, Turn};
use crate::record::{Draft, KIND_SYNC_MARKER, Record};
use crate::ring::{Ring, Taker};
use crate::space::Space;
use crate::staging::Staging;
use longshore_base::metrics::Counter;
use longshore_base::sync::RwLock;
use longshore_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use longshore_base::sync::{hint, thread};
use longshore_base::{Environment, Lsn, TxnId, crash_point};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Bytes written at a time.
const STAGING_BYTES: usize = 1 << 20;
/// Groups up to this size are written with zeros behind them, if they are to be synced.
const SMALL_GROUP_BYTES: u64 = 32 << 10;
/// How often the flusher thread looks for records that nobody waits for.
const FLUSHER_INTERVAL: Duration = Duration::from_millis(10);
/// How often the writer looks again before it yields to the appender it waits for.
const SPINS: u32 = 64;

/// Ring, group and space, joined.
pub(crate) struct Flusher {
    pub(crate) ring: Ring,
    pub(crate) group: Arc<Group>,
    pub(crate) space: Arc<Space>,
    env: Arc<dyn Environment>,
    /// Changed by the one writer (G1) only.
    staging: RwLock<Staging>,
    /// The durable position that the last marker names; the writer's own.
    marked: AtomicU64,
    pub(crate) counters: Counters,
}

/// Counted by the writer and the syncer (plain words would do), and by those who wait.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) records: AtomicU64,
    pub(crate) groups: AtomicU64,
    pub(crate) syncs: AtomicU64,
    pub(crate) sync_us: AtomicU64,
    pub(crate) markers: AtomicU64,
    pub(crate) waits_for_appender: AtomicU64,
    pub(crate) waits_for_room: Counter,
    pub(crate) waits_for_durability: Counter,
}

impl Flusher {
    pub(crate) fn new(
        ring: (Ring, Taker),
        group: Arc<Group>,
        space: Arc<Space>,
        env: Arc<dyn Environment>,
    ) -> Flusher {
        let (ring, taker) = ring;
        // Everything up to here is durable, and nobody needs a marker to know.
        let marked = taker.position();
        Flusher {
            ring,
            group,
            space,
            env,
            staging: RwLock::new(Staging::new(taker)),
            marked: AtomicU64::new(marked),
            counters: Counters::default(),
        }
    }

    /// Blocks until `goal` is reached, doing the work if nobody else does it.
    pub(crate) fn wait_for(&self, goal: Goal) -> Result<(), LogError> {
        while let Some(role) = self.group.enter(goal) {
            self.lead(role, goal)?;
        }
        self.outcome(goal)
    }

    /// Asks for `goal` as a task: leaves the work to the flusher thread, or does it here without one.
    pub(crate) fn poll_for(&self, goal: Goal, cx: &Context<'_>) -> Poll<Result<(), LogError>> {
        loop {
            if !self.group.is_reached(goal) && self.group.enqueue(goal, cx.waker()) {
                return Poll::Pending;
            }
            match self.group.poll_enter(goal, cx.waker()) {
                Turn::Reached => return Poll::Ready(self.outcome(goal)),
                Turn::Lead(role) => {
                    if let Err(error) = self.lead(role, goal) {
                        return Poll::Ready(Err(error));
                    }
                }
                Turn::Wait => return Poll::Pending,
            }
        }
    }

    /// A goal reached before the failure is reached.
    fn outcome(&self, goal: Goal) -> Result<(), LogError> {
        match self.group.is_reached(goal) {
            true => Ok(()),
            false => self.group.check(),
        }
    }

    fn lead(&self, role: RoleGuard<'_>, goal: Goal) -> Result<(), LogError> {
        if role.role() == Role::Both {
            // Those whom the last sync woke may be about to append: see the header.
            thread::yield_now();
        }
        if role.role() != Role::Syncer {
            self.write(goal)?;
        }
        match role.role() {
            Role::Writer => Ok(()),
            Role::Syncer | Role::Both => self.sync(role),
        }
    }

    /// As the writer: until `goal` is as far as a writer can bring it.
    fn write(&self, goal: Goal) -> Result<(), LogError> {
        if matches!(goal, Goal::Synced(_)) {
            self.mark();
        }
        let mut spins = 0;
        while !self.is_written(goal) {
            self.group.check()?;
            if self.write_some(goal)? {
                spins = 0;
            } else {
                self.wait_for_appender(&mut spins);
            }
        }
        Ok(())
    }

    fn is_written(&self, goal: Goal) -> bool {
        match goal {
            Goal::Synced(to) => self.group.is_reached(Goal::Written(to)),
            other => self.group.is_reached(other),
        }
    }

    /// The next record is reserved but not published: its appender needs the processor.
    fn wait_for_appender(&self, spins: &mut u32) {
        *spins += 1;
        if *spins <= SPINS {
            hint::spin_loop();
        } else {
            // Relaxed: a count.
            self.counters
                .waits_for_appender
                .fetch_add(1, Ordering::Relaxed);
            thread::yield_now();
        }
    }

    /// Takes and writes what is published, up to the size of the staging buffer; false if nothing is.
    fn write_some(&self, goal: Goal) -> Result<bool, LogError> {
        let mut staging = self.staging.write();
        let taken = staging.fill(&self.ring, STAGING_BYTES);
        if taken.records == 0 {
            return Ok(false);
        }
        let to = staging.taken();
        if matches!(goal, Goal::Synced(_)) && taken.bytes <= SMALL_GROUP_BYTES {
            staging.add_zeros(self.space.segments.zeros_behind(to) as usize);
        }
        drop(staging);
        self.group.raise(Goal::Released(to));
        // Shared with those who read records back: they do not wait for this write.
        let staging = self.staging.read();
        let (from, bytes) = staging.content();
        self.write_out(from, bytes)?;
        drop(staging);
        crash_point("log.written");
        // Relaxed: counts.
        self.counters
            .records
            .fetch_add(taken.records, Ordering::Relaxed);
        self.counters.groups.fetch_add(1, Ordering::Relaxed);
        self.group.raise(Goal::Written(to));
        Ok(true)
    }

    /// The record at `lsn`, if it is not in the file yet.
    pub(crate) fn find_unwritten(&self, lsn: u64) -> Option<Record> {
        self.staging.read().find(&self.ring, lsn)
    }

    fn write_out(&self, from: u64, bytes: &[u8]) -> Result<(), LogError> {
        let segments = &self.space.segments;
        let mut done = 0;
        while done < bytes.len() {
            let at = from + done as u64;
            let written = segments.write(at, &bytes[done..]);
            done += written.map_err(|error| self.space.disk_error(&error))?;
            if done < bytes.len() {
                // The reserve has been used up; these records cannot be refused any more.
                let made = self.space.prepare_for_writer(from + done as u64);
                made.map_err(|error| self.group.fail(&error.to_string()))?;
            }
        }
        Ok(())
    }

    /// Appends a marker that names the durable position, if there is news and room.
    fn mark(&self) {
        let durable = self.group.synced();
        // Relaxed: read and written under the writer's role.
        if durable == self.marked.load(Ordering::Relaxed) {
            return;
        }
        let name = durable.to_le_bytes();
        let body = [&name[..]];
        let draft = Draft::new(KIND_SYNC_MARKER, TxnId::SYSTEM, Lsn::ZERO, &body);
        if !self.space.try_take(draft.bytes(), 0) {
            return;
        }
        match self.ring.try_reserve(draft.bytes()) {
            Some(lsn) => {
                self.ring.fill(lsn, &draft);
                // Relaxed: as above; and a count.
                self.marked.store(durable, Ordering::Relaxed);
                self.counters.markers.fetch_add(1, Ordering::Relaxed);
            }
            None => self.space.give_back(draft.bytes()),
        }
    }

    /// As the syncer: makes safe whatever is written by now.
    fn sync(&self, mut role: RoleGuard<'_>) -> Result<(), LogError> {
        let from = self.group.synced();
        let to = role.begin_syncing();
        let start = self.env.now();
        for segment in self.space.segments.overlapping(from, to) {
            segment
                .file
                .sync()
                .map_err(|error| self.space.disk_error(&error))?;
        }
        crash_point("log.synced");
        let took = self.env.now().saturating_sub(start).as_micros() as u64;
        // Relaxed: counts.
        self.counters.sync_us.fetch_add(took, Ordering::Relaxed);
        self.counters.syncs.fetch_add(1, Ordering::Relaxed);
        self.group.check()?;
        role.end_syncing(to);
        Ok(())
    }

    /// Serves tasks, and writes what nobody waits for, until `stop`.
    pub(crate) fn run(&self, stop: &AtomicBool) {
        let _attached = self.group.attach_flusher();
        // Relaxed: whoever sets it wakes this thread under the group's mutex.
        while !stop.load(Ordering::Relaxed) {
            let task = self.group.wait_for_work(FLUSHER_INTERVAL);
            let goal = task.unwrap_or(Goal::Written(self.ring.tail()));
            // Errors have been told to everybody who waits, and every later append is refused.
            let flushed = self.wait_for(goal);
            if flushed.is_ok() {
                let _ = self.space.prepare_ahead();
            }
        }
    }
}

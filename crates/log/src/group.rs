//! Who flushes, and who waits: one writer, one syncer, and everybody else asleep until told.
//!
//! # Protocol
//! Whoever needs the log to get somewhere states a [`Goal`] and enters:
//!
//! | answer | meaning |
//! |---|---|
//! | `Reached` | the goal is reached, or the log has failed (ask [`Group::check`]) |
//! | `Lead(Writer)` | the caller takes records from the ring and writes them, then leaves |
//! | `Lead(Syncer)` | the caller syncs what is written, then leaves |
//! | `Lead(Both)` | the caller writes, leaves the writer's role ([`RoleGuard::end_writing`]), syncs, leaves |
//! | `Wait` | the role is held; the caller is registered and will be woken |
//!
//! What a goal may get, by the roles that are free (`role_for`):
//!
//! | goal | both free | writer's free | syncer's free |
//! |---|---|---|---|
//! | released, written | Writer | Writer | wait |
//! | synced, not written yet | Both | wait | wait |
//! | synced, written | Syncer | wait | Syncer |
//!
//! So while a sync is on its way, records that are to be synced only gather in the ring; the next leader
//! writes all of them by one write and syncs them by one sync, and each of their owners slept once. The
//! roles are apart all the same: an appender that lacks room, or a flusher thread told that the ring
//! fills, writes beside the sync. No thread of the log's own is needed.
//!
//! ```text
//!   role free --enter: Lead--> held --leave--> free; then, in this order:
//!                                 a waiter that may have a free role -> the first *thread* is elected: woken
//!                                 waiters whose goal is reached      -> woken
//! ```
//!
//! The elected is woken first, so that the next sync begins before the last one's owners have been told.
//! Whoever enters earlier than the elected takes the role from it, and serves it too.
//!
//! A thread that is woken always enters again, so electing one is enough. A task may have been
//! dropped; if only tasks need a role, the flusher thread is told, or without one all of them are woken.
//!
//! # Invariants
//! G1. At most one writer and one syncer.
//! G2. While a role is free, nobody who may have it is asleep without an elected one being awake: every
//! leave settles all waiters, and whoever enters takes what it may have. An elected one that finds its
//! goal reached was overtaken by a leader, whose leave settles again.
//! G3. `released`, `written` and `synced` never fall; each is raised by the holder of the role only
//! (`written`, `released`: the writer; `synced`: the syncer), before it leaves.
//! G4. Failed once, failed for ever: `cause` is set once, and all waiters are woken.
//!
//! # Ordering
//! `written` and `synced` are stored with Release before the role is left and loaded with Acquire: who
//! sees a position reached may read the bytes before it. Registration is under the mutex that every
//! leave takes after raising its position, so a waiter either sees the position or is seen by the leave.
//!
//! # Source
//! Group commit by leader and followers; Shore-MT §6.2.2 (flush and wait as critical sections apart).

use crate::LogError;
use crate::wake::Waking;
use crossbeam_utils::CachePadded;
use longshore_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use longshore_base::sync::{Condvar, Mutex};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// What somebody waits for: that a position reaches at least this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The ring's space before it is given back.
    Released(u64),
    /// Everything before it is with the operating system.
    Written(u64),
    /// Everything before it is safe.
    Synced(u64),
}

/// What is to do next for a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Nothing,
    Write,
    Sync,
}

/// The two jobs that only one may do at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Takes records from the ring and writes them.
    Writer,
    /// Syncs what has been written.
    Syncer,
    /// Writes what is to be synced, then syncs it.
    Both,
}

/// What the one who entered is to do.
#[must_use]
pub enum Turn<'a> {
    /// Go on: the goal is reached, or never will be.
    Reached,
    /// Do the job, raise the position, drop the guard.
    Lead(RoleGuard<'a>),
    /// Sleep until woken, then enter again.
    Wait,
}

/// Positions, roles and waiters.
pub struct Group {
    /// Read by every append and every commit; written once per group.
    progress: CachePadded<Progress>,
    state: Mutex<State>,
    /// Where the flusher thread waits; guarded by `state`.
    work: Condvar,
}

struct Progress {
    released: AtomicU64,
    written: AtomicU64,
    synced: AtomicU64,
    failed: AtomicBool,
    /// Whether a thread runs `wait_for_work` in a loop.
    has_flusher: AtomicBool,
}

#[derive(Default)]
struct State {
    writing: bool,
    syncing: bool,
    nudged: bool,
    waiters: Vec<Waiter>,
    cause: Option<Arc<str>>,
}

struct Waiter {
    goal: Goal,
    wake: Waking,
}

impl Group {
    /// A group for a log whose records before `start` are all durable.
    pub fn new(start: u64) -> Group {
        Group {
            progress: CachePadded::new(Progress {
                released: AtomicU64::new(start),
                written: AtomicU64::new(start),
                synced: AtomicU64::new(start),
                failed: AtomicBool::new(false),
                has_flusher: AtomicBool::new(false),
            }),
            state: Mutex::new(State::default()),
            work: Condvar::new(),
        }
    }

    /// Everything before this is with the operating system.
    #[inline]
    pub fn written(&self) -> u64 {
        // Acquire: pairs with `raise`; the bytes before it can be read from the file.
        self.progress.written.load(Ordering::Acquire)
    }

    /// Everything before this is safe.
    #[inline]
    pub fn synced(&self) -> u64 {
        // Acquire: pairs with `raise`.
        self.progress.synced.load(Ordering::Acquire)
    }

    /// Whether the goal is reached.
    #[inline]
    pub fn is_reached(&self, goal: Goal) -> bool {
        self.need(goal) == Need::Nothing
    }

    /// Tells whether the log has failed.
    #[inline]
    pub fn check(&self) -> Result<(), LogError> {
        // Relaxed: a hint on the fast path; whoever waits is told under the mutex.
        match self.progress.failed.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(self.failure()),
        }
    }

    /// Why the log has failed, if it has.
    pub fn cause(&self) -> Option<Arc<str>> {
        self.state.lock().cause.clone()
    }

    #[cold]
    fn failure(&self) -> LogError {
        let cause = self.cause().unwrap_or_else(|| "unknown".into());
        LogError::Poisoned { cause }
    }

    /// Fails the log for ever and wakes everybody (G4). Returns the error to hand on.
    #[cold]
    pub fn fail(&self, cause: &str) -> LogError {
        let mut state = self.state.lock();
        if state.cause.is_none() {
            state.cause = Some(cause.into());
        }
        // Relaxed: under the mutex; the fast path may learn of it a little later.
        self.progress.failed.store(true, Ordering::Relaxed);
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        waiters.into_iter().for_each(|waiter| waiter.wake.wake());
        self.failure()
    }

    /// Finds out what to do for `goal`; registers what `waking` returns if that is to wait.
    pub fn enter(&self, goal: Goal, waking: impl FnOnce() -> Waking) -> Turn<'_> {
        if self.is_reached(goal) {
            return Turn::Reached;
        }
        let mut state = self.state.lock();
        if state.cause.is_some() {
            return Turn::Reached;
        }
        // Once more under the mutex: a role left in between has raised its position before.
        if self.is_reached(goal) {
            return Turn::Reached;
        }
        if let Some(role) = self.role_for(&state, goal) {
            state.hold(role, true);
            return Turn::Lead(RoleGuard { group: self, role });
        }
        state.register(Waiter {
            goal,
            wake: waking(),
        });
        Turn::Wait
    }

    /// Registers a task for `goal` and leaves the work to the flusher thread; false without one.
    pub fn enqueue(&self, goal: Goal, waker: &Waker) -> bool {
        if !self.has_flusher() {
            return false;
        }
        let mut state = self.state.lock();
        // Once more under the mutex: the flusher detaches under it, and wakes who is registered.
        if !self.has_flusher() || state.cause.is_some() || self.is_reached(goal) {
            return false;
        }
        state.register(Waiter {
            goal,
            wake: Waking::Task(waker.clone()),
        });
        state.nudged = true;
        self.work.notify_one();
        true
    }

    /// Raises a position, as the holder of its role, and wakes who waited for just that.
    pub fn raise(&self, goal: Goal) {
        self.store(goal);
        let mut state = self.state.lock();
        let woken = self.take_reached(&mut state);
        drop(state);
        woken.into_iter().for_each(Waking::wake);
    }

    fn store(&self, goal: Goal) {
        // Release: pairs with Acquire in `written` and `synced`.
        match goal {
            Goal::Released(to) => self.progress.released.store(to, Ordering::Release),
            Goal::Written(to) => self.progress.written.store(to, Ordering::Release),
            Goal::Synced(to) => self.progress.synced.store(to, Ordering::Release),
        }
    }

    fn leave(&self, role: Role) {
        let mut state = self.state.lock();
        state.hold(role, false);
        let reached = self.take_reached(&mut state);
        let elected = self.elect(&mut state);
        drop(state);
        elected.into_iter().chain(reached).for_each(Waking::wake);
    }

    fn take_reached(&self, state: &mut State) -> Vec<Waking> {
        let reached = state
            .waiters
            .extract_if(.., |waiter| self.is_reached(waiter.goal));
        reached.map(|waiter| waiter.wake).collect()
    }

    /// Removes from the waiters, for each role that some of them may have, one who will take it. A
    /// writer that nobody is going to sync for goes before one that syncs: appenders may hang on it.
    fn elect(&self, state: &mut State) -> Vec<Waking> {
        let mut elected = Vec::new();
        let mut is_writing = false;
        for role in [Role::Writer, Role::Syncer, Role::Both] {
            // Who is to have both waits until the writer elected before it leaves.
            let may = |state: &State, waiter: &Waiter| {
                self.role_for(state, waiter.goal) == Some(role)
                    && !(is_writing && role == Role::Both)
            };
            if !state.waiters.iter().any(|waiter| may(state, waiter)) {
                continue;
            }
            is_writing |= role == Role::Writer;
            let thread = state.waiters.iter().position(|waiter| {
                self.role_for(state, waiter.goal) == Some(role)
                    && matches!(waiter.wake, Waking::Thread(_))
            });
            if let Some(index) = thread {
                elected.push(state.waiters.remove(index).wake);
            } else if self.has_flusher() {
                state.nudged = true;
                self.work.notify_one();
            } else {
                let waiters = std::mem::take(&mut state.waiters);
                let (tasks, others): (Vec<Waiter>, _) = waiters
                    .into_iter()
                    .partition(|waiter| self.role_for(state, waiter.goal) == Some(role));
                state.waiters = others;
                elected.extend(tasks.into_iter().map(|waiter| waiter.wake));
            }
        }
        elected
    }

    /// What the goal, not reached, may get now: see the table in the header.
    fn role_for(&self, state: &State, goal: Goal) -> Option<Role> {
        match (self.need(goal), goal) {
            (Need::Sync, _) if !state.syncing => Some(Role::Syncer),
            (Need::Write, Goal::Synced(_)) if !state.syncing && !state.writing => Some(Role::Both),
            (Need::Write, Goal::Released(_) | Goal::Written(_)) if !state.writing => {
                Some(Role::Writer)
            }
            _ => None,
        }
    }

    #[inline]
    fn need(&self, goal: Goal) -> Need {
        // Acquire: pairs with `raise`.
        let is_released = |to| self.progress.released.load(Ordering::Acquire) >= to;
        match goal {
            Goal::Released(to) if is_released(to) => Need::Nothing,
            Goal::Written(to) if self.written() >= to => Need::Nothing,
            Goal::Synced(to) if self.synced() >= to => Need::Nothing,
            Goal::Synced(to) if self.written() >= to => Need::Sync,
            _ => Need::Write,
        }
    }

    #[inline]
    pub(crate) fn has_flusher(&self) -> bool {
        // Relaxed: a hint outside the mutex, exact inside.
        self.progress.has_flusher.load(Ordering::Relaxed)
    }

    /// Says that a thread will call [`Group::wait_for_work`] until the guard is dropped.
    pub fn attach_flusher(&self) -> FlusherGuard<'_> {
        let state = self.state.lock();
        self.progress.has_flusher.store(true, Ordering::Relaxed);
        drop(state);
        FlusherGuard { group: self }
    }

    /// Wakes the flusher thread.
    pub fn nudge(&self) {
        self.state.lock().nudged = true;
        self.work.notify_one();
    }

    /// As the flusher thread: sleeps until nudged, or for `limit`. Returns the farthest goal that
    /// a task waits for.
    pub fn wait_for_work(&self, limit: Duration) -> Option<Goal> {
        let mut state = self.state.lock();
        if !state.nudged {
            state = self.work.wait_timeout(state, limit).0;
        }
        state.nudged = false;
        let goals = state.waiters.iter().filter_map(|waiter| match waiter.wake {
            Waking::Task(_) => Some(waiter.goal),
            Waking::Thread(_) => None,
        });
        goals.max_by_key(|goal| match goal {
            Goal::Released(to) => (0, *to),
            Goal::Written(to) => (1, *to),
            Goal::Synced(to) => (2, *to),
        })
    }
}

impl State {
    fn hold(&mut self, role: Role, is_held: bool) {
        if role != Role::Syncer {
            self.writing = is_held;
        }
        if role != Role::Writer {
            self.syncing = is_held;
        }
    }

    /// Adds a waiter; a task that was polled again replaces itself.
    fn register(&mut self, new: Waiter) {
        let same = self.waiters.iter().any(|old| match (&old.wake, &new.wake) {
            (Waking::Task(a), Waking::Task(b)) => old.goal == new.goal && a.will_wake(b),
            _ => false,
        });
        if !same {
            self.waiters.push(new);
        }
    }
}

/// Held by the writer, or by the syncer. Dropping it leaves the role and settles the waiters (G2).
pub struct RoleGuard<'a> {
    group: &'a Group,
    role: Role,
}

impl RoleGuard<'_> {
    /// Which role it is.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Leaves the writer's role and keeps the syncer's, so that others may write beside the sync.
    pub fn end_writing(&mut self) {
        if self.role == Role::Both {
            self.role = Role::Syncer;
            self.group.leave(Role::Writer);
        }
    }

    /// Raises the synced position and leaves in one step, so that the next sync begins at once.
    pub fn end_syncing(self, to: u64) {
        // Before the role is left in `drop` (G3).
        self.group.store(Goal::Synced(to));
    }
}

impl Drop for RoleGuard<'_> {
    fn drop(&mut self) {
        self.group.leave(self.role);
    }
}

/// Held by the flusher thread.
pub struct FlusherGuard<'a> {
    group: &'a Group,
}

impl Drop for FlusherGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.group.state.lock();
        self.group
            .progress
            .has_flusher
            .store(false, Ordering::Relaxed);
        let tasks = state
            .waiters
            .extract_if(.., |waiter| matches!(waiter.wake, Waking::Task(_)));
        let tasks: Vec<_> = tasks.collect();
        drop(state);
        // They are polled again, and then find out that they must lead themselves.
        tasks.into_iter().for_each(|waiter| waiter.wake.wake());
    }
}

#[cfg(all(test, not(loom)))]
mod tests;

//! Who flushes, and who waits: one writer, one syncer, and everybody else asleep until told.
//!
//! # Protocol
//! Whoever needs the log to get somewhere states a [`Goal`] and enters. A thread sleeps in
//! [`Group::enter`] until its goal is reached, the log has failed (ask [`Group::check`]), or it is given
//! a role; a task asks [`Group::poll_enter`], which registers its waker instead of sleeping.
//!
//! | role | what its holder does |
//! |---|---|
//! | `Writer` | takes records from the ring and writes them, then leaves |
//! | `Syncer` | [`RoleGuard::begin_syncing`], syncs what is written, leaves |
//! | `Both` | writes, then goes on as the syncer: `begin_syncing` leaves the writer's role |
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
//! # Rooms
//! Threads sleep in rooms, so that a whole group is woken by one system call, during which the waker is
//! not pushed off its processor by those it wakes. Whoever waits for a sync sleeps in one of two: where
//! the running sync ends, or where the next group gathers. `begin_syncing` fixes how far the sync will
//! reach (`covered`) and swaps them:
//!
//! ```text
//!   goal > covered:   gathering room --begin_syncing--> running room --leave: all woken
//!   goal <= covered:                                    running room --leave: all woken
//! ```
//!
//! Whoever reserved too late for the group that it slept with enters again, and sleeps in the other.
//! A role that becomes free is settled (`elect`): of each room that it may serve, *one* is woken. The
//! next group's is woken before the group whose sync has ended, so that the next sync begins before its
//! owners have been told. Whoever enters earlier than the elected takes the role, and serves it too.
//!
//! A thread that is woken always looks again, so electing one is enough. A task may have been dropped;
//! the flusher thread is told of tasks that need a role, or without one all of them are woken.
//!
//! # Invariants
//! G1. At most one writer and one syncer.
//! G2. While a role is free, nobody who may have it is asleep without an elected one being awake: every
//! leave settles, and whoever enters takes what it may have. An elected one that finds its goal
//! reached was overtaken by a leader, whose leave settles again.
//! G3. `released`, `written` and `synced` never fall; each is raised by the holder of the role only
//! (`written`, `released`: the writer; `synced`: the syncer), before it leaves.
//! G4. Failed once, failed for ever: `cause` is set once, and all waiters are woken.
//! G5. Nobody asleep has reached its goal without a call on its way to the whole room: who sleeps in
//! the gathering room wants more than `covered`; the running room is woken when its sync ends, well or not.
//!
//! # Ordering
//! `written` and `synced` are stored with Release before the role is left and loaded with Acquire: who
//! sees a position reached may read the bytes before it. Going to sleep is under the mutex that every
//! leave takes after raising its position, so a waiter either sees the position or is seen by the leave.
//!
//! # Source
//! Group commit by leader and followers; Shore-MT §6.2.2 (flush and wait as critical sections apart).

use crate::LogError;
use crate::rooms::{Room, Rooms, Sleepers};
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

/// What a task is to do.
#[must_use]
pub enum Turn<'a> {
    /// Go on: the goal is reached, or never will be.
    Reached,
    /// Do the job, raise the position, drop the guard.
    Lead(RoleGuard<'a>),
    /// Ask again when woken.
    Wait,
}

/// Positions, roles and waiters.
pub struct Group {
    /// Read by every append and every commit; written once per group.
    progress: CachePadded<Progress>,
    state: Mutex<State>,
    rooms: Rooms,
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
    /// What the running sync will reach; what is synced, while none runs.
    covered: u64,
    sleepers: Sleepers,
    tasks: Vec<Task>,
    /// Times that a thread went to sleep.
    slept: u64,
    cause: Option<Arc<str>>,
}

struct Task {
    goal: Goal,
    waker: Waker,
}

/// Who is to be woken once the mutex is free.
#[must_use]
#[derive(Default)]
struct Wakes {
    rooms: [Option<Room>; 2],
    tasks: Vec<Waker>,
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
            state: Mutex::new(State {
                covered: start,
                ..State::default()
            }),
            rooms: Rooms::default(),
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
        state.sleepers = Sleepers::default();
        let tasks = std::mem::take(&mut state.tasks);
        drop(state);
        self.rooms.wake_everybody();
        tasks.into_iter().for_each(|task| task.waker.wake());
        self.failure()
    }

    /// As a thread: sleeps until the goal is reached or never will be (`None`), or a role is to be taken.
    pub fn enter(&self, goal: Goal) -> Option<RoleGuard<'_>> {
        if self.is_reached(goal) {
            return None;
        }
        let mut state = self.state.lock();
        loop {
            match self.turn(&mut state, goal) {
                Turn::Reached => return None,
                Turn::Lead(role) => return Some(role),
                Turn::Wait => {
                    state.slept += 1;
                    let room = state.room_for(goal);
                    state.sleepers.add(room);
                    state = self.rooms.sleep(room, state);
                }
            }
        }
    }

    /// As a task: finds out what to do for `goal`; registers the waker if that is to wait.
    pub fn poll_enter(&self, goal: Goal, waker: &Waker) -> Turn<'_> {
        let mut state = self.state.lock();
        let turn = self.turn(&mut state, goal);
        if matches!(turn, Turn::Wait) {
            state.register(goal, waker);
        }
        turn
    }

    /// Under the mutex: a role left before has raised its position before.
    fn turn(&self, state: &mut State, goal: Goal) -> Turn<'_> {
        if state.cause.is_some() || self.is_reached(goal) {
            return Turn::Reached;
        }
        match self.role_for(state, goal) {
            Some(role) => {
                state.hold(role, true);
                Turn::Lead(RoleGuard { group: self, role })
            }
            None => Turn::Wait,
        }
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
        state.register(goal, waker);
        state.nudged = true;
        self.work.notify_one();
        true
    }

    /// Raises a position, as the writer, and wakes who waited for just that.
    pub fn raise(&self, goal: Goal) {
        self.store(goal);
        let mut state = self.state.lock();
        let room = state.room_for(goal);
        let wakes = Wakes {
            rooms: [state.sleepers.take_all(room), None],
            tasks: self.take_reached(&mut state),
        };
        drop(state);
        self.wake(wakes);
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
        let mut wakes = self.elect(&mut state);
        if role != Role::Writer {
            state.covered = self.synced();
            let running = state.sleepers.running();
            wakes.rooms[1] = state.sleepers.take_all(running);
            wakes.tasks.extend(self.take_reached(&mut state));
        }
        drop(state);
        self.wake(wakes);
    }

    fn wake(&self, wakes: Wakes) {
        let rooms = wakes.rooms.into_iter().flatten();
        rooms.for_each(|room| self.rooms.wake_all(room));
        wakes.tasks.into_iter().for_each(Waker::wake);
    }

    fn take_reached(&self, state: &mut State) -> Vec<Waker> {
        let reached = state
            .tasks
            .extract_if(.., |task| self.is_reached(task.goal));
        reached.map(|task| task.waker).collect()
    }

    /// Settles the free roles: wakes those who will take them. Whoever does settles again as it leaves.
    fn elect(&self, state: &mut State) -> Wakes {
        let mut wakes = Wakes::default();
        let gathering = state.sleepers.gathering();
        if !state.writing {
            self.rooms.wake_one(&mut state.sleepers, Room::Released);
            self.rooms.wake_one(&mut state.sleepers, Room::Written);
        }
        match (state.writing, state.syncing) {
            (false, false) => self.rooms.wake_one(&mut state.sleepers, gathering),
            // Only those whose records are written may sync: let each of them look.
            (true, false) => wakes.rooms[0] = state.sleepers.take_all(gathering),
            (_, true) => {}
        }
        wakes.tasks = self.elect_tasks(state);
        wakes
    }

    fn elect_tasks(&self, state: &mut State) -> Vec<Waker> {
        let tasks = std::mem::take(&mut state.tasks);
        let (able, others): (Vec<Task>, _) = tasks
            .into_iter()
            .partition(|task| self.role_for(state, task.goal).is_some());
        state.tasks = others;
        if able.is_empty() || !self.has_flusher() {
            return able.into_iter().map(|task| task.waker).collect();
        }
        state.tasks.extend(able);
        state.nudged = true;
        self.work.notify_one();
        Vec::new()
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

    /// Times that a thread went to sleep.
    pub fn slept(&self) -> u64 {
        self.state.lock().slept
    }

    #[inline]
    pub(crate) fn has_flusher(&self) -> bool {
        // Relaxed: a hint outside the mutex, exact inside.
        self.progress.has_flusher.load(Ordering::Relaxed)
    }

    /// Says that a thread will call [`Group::wait_for_work`] until the guard is dropped.
    pub fn attach_flusher(&self) -> FlusherGuard<'_> {
        let state = self.state.lock();
        // Relaxed: ordered by the mutex; a hint for who looks without it.
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
        let goals = state.tasks.iter().map(|task| task.goal);
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

    /// Adds a task; one that was polled again replaces itself.
    fn register(&mut self, goal: Goal, waker: &Waker) {
        let is_same = |task: &Task| task.goal == goal && task.waker.will_wake(waker);
        if !self.tasks.iter().any(is_same) {
            let waker = waker.clone();
            self.tasks.push(Task { goal, waker });
        }
    }

    /// Where a thread with this goal sleeps.
    fn room_for(&self, goal: Goal) -> Room {
        match goal {
            Goal::Released(_) => Room::Released,
            Goal::Written(_) => Room::Written,
            Goal::Synced(to) if to <= self.covered => self.sleepers.running(),
            Goal::Synced(_) => self.sleepers.gathering(),
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

    /// Begins a sync, which will make safe whatever is written by now: leaves the writer's role, so
    /// that others may write beside the sync, and opens another room for the group after it. Returns
    /// how far the sync will reach.
    pub fn begin_syncing(&mut self) -> u64 {
        assert!(self.role != Role::Writer, "log G1");
        let group = self.group;
        let was = std::mem::replace(&mut self.role, Role::Syncer);
        let mut state = group.state.lock();
        let covered = group.written();
        state.covered = covered;
        state.sleepers.swap();
        if was == Role::Both {
            state.writing = false;
            let wakes = group.elect(&mut state);
            drop(state);
            group.wake(wakes);
        }
        covered
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
        // Relaxed: ordered by the mutex of `state`.
        self.group
            .progress
            .has_flusher
            .store(false, Ordering::Relaxed);
        let tasks = std::mem::take(&mut state.tasks);
        drop(state);
        // They are polled again, and then find out that they must lead themselves.
        tasks.into_iter().for_each(|task| task.waker.wake());
    }
}

#[cfg(all(test, not(loom)))]
mod tests;

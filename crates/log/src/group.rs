//! Who flushes, and who waits: one writer, one syncer, and everybody else asleep until told.
//!
//! # Protocol
//! Whoever needs the log to get somewhere states a [`Goal`] and enters:
//!
//! | answer | meaning |
//! |---|---|
//! | `Reached` | the goal is reached, or the log has failed (ask [`Group::check`]) |
//! | `Write` | the caller is now the writer: takes records from the ring and writes them, then leaves |
//! | `Sync` | the caller is now the syncer: syncs what is written, then leaves |
//! | `Wait` | somebody else has the role; the caller is registered and will be woken |
//!
//! The two roles are apart, so the ring drains while a sync is on its way, and a group forms behind
//! every sync. No thread of the log's own is needed: the first to arrive serves all who are there.
//!
//! ```text
//!   role free --enter: Write/Sync--> held --leave--> free, and for each waiter:
//!                                      goal reached      -> woken
//!                                      needs a free role -> the first *thread* of them is elected: woken
//! ```
//!
//! A thread that is woken always enters again, so electing one is enough. A task may have been
//! dropped; if only tasks need a role, the flusher thread is told, or without one all of them are woken.
//!
//! # Invariants
//! G1. At most one writer and one syncer.
//! G2. While a role is free, nobody who needs it is asleep without an elected one being awake: every
//! leave settles all waiters, and whoever enters a free role takes it.
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
        let role = match self.need(goal) {
            Need::Nothing => return Turn::Reached,
            Need::Write => Role::Writer,
            Need::Sync => Role::Syncer,
        };
        let held = state.held(role);
        if !*held {
            *held = true;
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
        // Release: pairs with Acquire in `written` and `synced`.
        match goal {
            Goal::Released(to) => self.progress.released.store(to, Ordering::Release),
            Goal::Written(to) => self.progress.written.store(to, Ordering::Release),
            Goal::Synced(to) => self.progress.synced.store(to, Ordering::Release),
        }
        let mut state = self.state.lock();
        let woken = self.take_reached(&mut state);
        drop(state);
        woken.into_iter().for_each(Waking::wake);
    }

    fn leave(&self, role: Role) {
        let mut state = self.state.lock();
        *state.held(role) = false;
        let mut woken = self.take_reached(&mut state);
        woken.extend(self.elect(&mut state));
        drop(state);
        woken.into_iter().for_each(Waking::wake);
    }

    fn take_reached(&self, state: &mut State) -> Vec<Waking> {
        let reached = state
            .waiters
            .extract_if(.., |waiter| self.is_reached(waiter.goal));
        reached.map(|waiter| waiter.wake).collect()
    }

    /// Removes from the waiters, for each free role that some of them need, one who will take it.
    fn elect(&self, state: &mut State) -> Vec<Waking> {
        let mut elected = Vec::new();
        for (need, role) in [(Need::Write, Role::Writer), (Need::Sync, Role::Syncer)] {
            let needs_it = |waiter: &Waiter| self.need(waiter.goal) == need;
            if *state.held(role) || !state.waiters.iter().any(needs_it) {
                continue;
            }
            let thread = state
                .waiters
                .iter()
                .position(|waiter| needs_it(waiter) && matches!(waiter.wake, Waking::Thread(_)));
            if let Some(index) = thread {
                elected.push(state.waiters.swap_remove(index).wake);
            } else if self.has_flusher() {
                state.nudged = true;
                self.work.notify_one();
            } else {
                let tasks = state
                    .waiters
                    .extract_if(.., |waiter| self.need(waiter.goal) == need);
                elected.extend(tasks.map(|waiter| waiter.wake));
            }
        }
        elected
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
    fn held(&mut self, role: Role) -> &mut bool {
        match role {
            Role::Writer => &mut self.writing,
            Role::Syncer => &mut self.syncing,
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
mod tests {
    use super::*;
    use crate::wake::Parker;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    struct Bell(AtomicUsize);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn thread() -> (Arc<Parker>, Waking) {
        let parker = Arc::new(Parker::default());
        (parker.clone(), Waking::Thread(parker))
    }

    fn is_woken(parker: &Parker) -> bool {
        parker.is_woken()
    }

    fn lead(group: &Group, goal: Goal) -> RoleGuard<'_> {
        match group.enter(goal, || unreachable!("the role is free")) {
            Turn::Lead(role) => role,
            _ => panic!("no role for {goal:?}"),
        }
    }

    #[test]
    fn syncer_and_writer_work_at_the_same_time() {
        let group = Group::new(64);
        let writer = lead(&group, Goal::Synced(100));
        assert_eq!(writer.role(), Role::Writer);
        group.raise(Goal::Written(100));
        drop(writer);
        let syncer = lead(&group, Goal::Synced(100));
        assert_eq!(syncer.role(), Role::Syncer);
        assert_eq!(lead(&group, Goal::Synced(200)).role(), Role::Writer);
    }

    #[test]
    fn leaving_wakes_the_reached_and_elects_one_of_the_others() {
        let group = Group::new(64);
        let writer = lead(&group, Goal::Written(100));
        let sleepers: Vec<_> = [100, 90, 200, 300]
            .into_iter()
            .map(|to| {
                let (parker, waking) = thread();
                assert!(matches!(
                    group.enter(Goal::Written(to), || waking),
                    Turn::Wait
                ));
                parker
            })
            .collect();
        group.raise(Goal::Written(100));
        drop(writer);
        let woken: Vec<_> = sleepers.iter().map(|parker| is_woken(parker)).collect();
        assert_eq!(
            woken,
            [true, true, true, false],
            "two reached, one of two elected"
        );
    }

    #[test]
    fn tasks_alone_are_all_woken_without_a_flusher() {
        let group = Group::new(64);
        let syncer_first = lead(&group, Goal::Written(100));
        let bell = Arc::new(Bell(AtomicUsize::new(0)));
        for to in [200, 300] {
            let waking = Waking::Task(bell.clone().into());
            assert!(matches!(
                group.enter(Goal::Synced(to), || waking),
                Turn::Wait
            ));
        }
        drop(syncer_first);
        assert_eq!(bell.0.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn flusher_learns_the_farthest_goal_of_tasks() {
        let group = Group::new(64);
        let bell: Waker = Arc::new(Bell(AtomicUsize::new(0))).into();
        assert!(
            !group.enqueue(Goal::Synced(100), &bell),
            "nobody would do it"
        );
        let flusher = group.attach_flusher();
        assert!(group.enqueue(Goal::Synced(100), &bell));
        assert!(group.enqueue(Goal::Written(500), &bell));
        assert_eq!(group.wait_for_work(Duration::ZERO), Some(Goal::Synced(100)));
        drop(flusher);
        assert_eq!(
            group.wait_for_work(Duration::ZERO),
            None,
            "tasks were sent away"
        );
    }

    #[test]
    fn failure_wakes_everybody_and_keeps_the_first_cause() {
        let group = Group::new(64);
        let writer = lead(&group, Goal::Written(100));
        let (parker, waking) = thread();
        assert!(matches!(
            group.enter(Goal::Synced(100), || waking),
            Turn::Wait
        ));
        group.fail("first");
        group.fail("second");
        assert!(is_woken(&parker));
        drop(writer);
        assert!(matches!(
            group.enter(Goal::Written(100), || unreachable!()),
            Turn::Reached
        ));
        assert_eq!(&*group.cause().unwrap(), "first");
        assert!(group.check().unwrap_err().is_poisoned());
    }
}

//! Who becomes what, and who is woken.

use super::*;
use crate::rooms::Turns;
use std::sync::atomic::AtomicUsize;
use std::task::Wake;
use std::thread::JoinHandle;

struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Takes a role that is free.
fn lead(group: &Group, goal: Goal) -> RoleGuard<'_> {
    group.enter(goal).expect("a goal that is not reached")
}

/// Spawns a thread that sleeps until `goal` is reached, or leads once; tells whether it led. Returns
/// when it sleeps.
fn sleeper(group: &Arc<Group>, goal: Goal) -> JoinHandle<bool> {
    let slept = group.slept();
    let thread = {
        let group = group.clone();
        std::thread::spawn(move || group.enter(goal).is_some())
    };
    while group.slept() == slept {
        std::thread::yield_now();
    }
    thread
}

#[test]
fn syncer_and_writer_work_at_the_same_time() {
    let group = Group::new(64);
    let mut leader = lead(&group, Goal::Synced(100));
    assert_eq!(leader.role(), Role::Both);
    group.raise(Goal::Written(100));
    assert_eq!(leader.begin_syncing(), 100);
    assert_eq!(leader.role(), Role::Syncer);
    let writer = lead(&group, Goal::Written(200));
    assert_eq!(writer.role(), Role::Writer);
    group.raise(Goal::Written(200));
    leader.end_syncing(100);
    assert_eq!(lead(&group, Goal::Synced(200)).role(), Role::Syncer);
}

#[test]
fn who_is_to_be_synced_gathers_behind_a_sync() {
    let group = Arc::new(Group::new(64));
    let mut leader = lead(&group, Goal::Synced(100));
    let early = sleeper(&group, Goal::Synced(90));
    group.raise(Goal::Written(100));
    let covered = leader.begin_syncing();
    let late = [100, 200, 300].map(|to| sleeper(&group, Goal::Synced(to)));
    let count = |turn| group.state.lock().sleepers.count(Room::Synced(turn));
    assert_eq!(count(Turns::Odd), 2, "the early one, and the covered");
    assert_eq!(
        count(Turns::Even),
        2,
        "who wants more than this sync brings"
    );
    leader.end_syncing(covered);
    assert!(!early.join().unwrap());
    let [covered, gathered, other] = late.map(|thread| thread.join().unwrap());
    assert!(!covered);
    // One is elected; its leaving elects the other, for nothing has been written.
    assert!(gathered && other);
}

#[test]
fn every_goal_finds_one_row_of_the_table() {
    let goals = [
        Goal::Released(200),
        Goal::Written(200),
        Goal::Synced(200),
        Goal::Synced(100),
    ];
    let rows = [
        (
            false,
            false,
            [
                Some(Role::Writer),
                Some(Role::Writer),
                Some(Role::Both),
                Some(Role::Syncer),
            ],
        ),
        (
            false,
            true,
            [Some(Role::Writer), Some(Role::Writer), None, None],
        ),
        (true, false, [None, None, None, Some(Role::Syncer)]),
        (true, true, [None; 4]),
    ];
    let group = Group::new(64);
    group.raise(Goal::Written(100));
    for (writing, syncing, expected) in rows {
        let state = State {
            writing,
            syncing,
            ..State::default()
        };
        let found = goals.map(|goal| group.role_for(&state, goal));
        assert_eq!(found, expected, "writing {writing}, syncing {syncing}");
    }
}

#[test]
fn leaving_wakes_the_reached_and_elects_one_of_the_others() {
    let group = Arc::new(Group::new(64));
    let writer = lead(&group, Goal::Written(100));
    let reached = [100, 90].map(|to| sleeper(&group, Goal::Written(to)));
    group.raise(Goal::Written(100));
    assert_eq!(reached.map(|thread| thread.join().unwrap()), [false; 2]);
    let others = [200, 300].map(|to| sleeper(&group, Goal::Written(to)));
    drop(writer);
    assert_eq!(others.map(|thread| thread.join().unwrap()), [true; 2]);
}

#[test]
fn a_sync_given_up_wakes_those_it_was_for() {
    let group = Arc::new(Group::new(64));
    let mut leader = lead(&group, Goal::Synced(100));
    group.raise(Goal::Written(100));
    let _ = leader.begin_syncing();
    let covered = sleeper(&group, Goal::Synced(100));
    drop(leader);
    assert!(covered.join().unwrap(), "it takes over");
    let _ = lead(&group, Goal::Synced(100));
}

#[test]
fn tasks_alone_are_all_woken_without_a_flusher() {
    let group = Group::new(64);
    let syncer_first = lead(&group, Goal::Written(100));
    let bell = Arc::new(Bell(AtomicUsize::new(0)));
    for to in [200, 300] {
        let waker = bell.clone().into();
        let turn = group.poll_enter(Goal::Synced(to), &waker);
        assert!(matches!(turn, Turn::Wait));
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
    let group = Arc::new(Group::new(64));
    let writer = lead(&group, Goal::Written(100));
    let goals = [Goal::Synced(100), Goal::Written(100), Goal::Released(100)];
    let sleepers = goals.map(|goal| sleeper(&group, goal));
    group.fail("first");
    group.fail("second");
    let led = sleepers.map(|thread| thread.join().unwrap());
    assert_eq!(led, [false; 3]);
    drop(writer);
    assert!(group.enter(Goal::Written(100)).is_none());
    assert_eq!(&*group.cause().unwrap(), "first");
    assert!(group.check().unwrap_err().is_poisoned());
}

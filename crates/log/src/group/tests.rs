//! Who becomes what, and who is woken.

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
    let mut leader = lead(&group, Goal::Synced(100));
    assert_eq!(leader.role(), Role::Both);
    group.raise(Goal::Written(100));
    leader.end_writing();
    assert_eq!(leader.role(), Role::Syncer);
    let writer = lead(&group, Goal::Written(200));
    assert_eq!(writer.role(), Role::Writer);
    group.raise(Goal::Written(200));
    leader.end_syncing(100);
    assert_eq!(lead(&group, Goal::Synced(200)).role(), Role::Syncer);
}

#[test]
fn who_is_to_be_synced_gathers_behind_a_sync() {
    let group = Group::new(64);
    let mut leader = lead(&group, Goal::Synced(100));
    group.raise(Goal::Written(100));
    leader.end_writing();
    let sleepers: Vec<_> = [100, 200, 300]
        .into_iter()
        .map(|to| {
            let (parker, waking) = thread();
            let turn = group.enter(Goal::Synced(to), || waking);
            assert!(matches!(turn, Turn::Wait), "nobody writes for {to} alone");
            parker
        })
        .collect();
    leader.end_syncing(100);
    let woken: Vec<_> = sleepers.iter().map(|parker| is_woken(parker)).collect();
    assert_eq!(woken, [true, true, false], "one reached, one elected");
    assert_eq!(lead(&group, Goal::Synced(200)).role(), Role::Both);
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

//! Early lock release: nobody waits for another's sync to go on, and nobody is answered before it.

use crate::gate_disk::{GateDisk, Syncs};
use crate::scans;
use crate::world::{World, WorldOptions};
use longshore_access::Boundaries;
use longshore_log::Level;
use longshore_txn::{Begin, CommitHandle, TableMode, TxnError};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Long enough for a thread to come out of a wait that it should not be in.
const MOMENT: Duration = Duration::from_millis(40);
const LONG: Duration = Duration::from_secs(20);

fn world() -> (Arc<GateDisk>, Arc<World>) {
    let disk = GateDisk::new();
    let world = World::on(disk.clone(), WorldOptions::default());
    (disk, Arc::new(world))
}

/// Changes one row; the handle's wait is for the caller to do.
fn write(world: &World, key: &[u8], value: &[u8], level: Level) -> CommitHandle {
    let mut txn = world.begin();
    txn.put(world.tables[0], key, value).unwrap();
    txn.commit(level).unwrap().handle
}

/// Reads one row in a transaction of its own; the value, and the handle of the answer.
fn read(world: &World, key: &[u8]) -> (Option<Vec<u8>>, CommitHandle) {
    let mut txn = world.begin();
    let value = txn.get(world.tables[0], key).unwrap();
    (value, txn.commit(Level::Sync).unwrap().handle)
}

/// Does `wait` in a thread of its own.
fn aside<T: Send + 'static>(wait: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(wait()));
    receiver
}

fn still_waits<T>(receiver: &Receiver<T>) {
    let outcome = receiver.recv_timeout(MOMENT);
    assert!(
        matches!(outcome, Err(RecvTimeoutError::Timeout)),
        "it was answered too early"
    );
}

#[test]
fn case_1_locks_are_free_before_the_sync_ends() {
    let (disk, world) = world();
    disk.set(Syncs::Wait);
    let writer = write(&world, b"k", b"1", Level::Sync);
    let waits = aside(move || writer.wait());
    still_waits(&waits);
    let (value, _) = read(&world, b"k");
    assert_eq!(value.unwrap(), b"1");
    disk.set(Syncs::Pass);
    waits.recv_timeout(LONG).unwrap().unwrap();
}

#[test]
fn case_2_a_reader_is_not_answered_before_the_writer_it_saw() {
    let (disk, world) = world();
    disk.set(Syncs::Wait);
    let writer = write(&world, b"k", b"1", Level::Sync);
    let (_, reader) = read(&world, b"k");
    assert!(!reader.is_done() && !writer.is_done());
    let waits = aside(move || reader.wait());
    still_waits(&waits);
    disk.set(Syncs::Pass);
    waits.recv_timeout(LONG).unwrap().unwrap();
    assert!(writer.is_done());
}

#[test]
fn case_3_a_reader_of_something_else_waits_for_nobody() {
    let (disk, world) = world();
    write(&world, b"other", b"1", Level::Sync).wait().unwrap();
    disk.set(Syncs::Wait);
    let _writer = write(&world, b"k", b"1", Level::Sync);
    let (value, reader) = read(&world, b"other");
    assert_eq!(value.unwrap(), b"1");
    assert!(reader.is_done());
    reader.wait().unwrap();
    assert_eq!(
        world
            .manager
            .get(world.tables[0], b"other")
            .unwrap()
            .unwrap(),
        b"1"
    );
    disk.set(Syncs::Pass);
}

#[test]
fn case_4_a_single_read_waits_as_well() {
    let (disk, world) = world();
    disk.set(Syncs::Wait);
    let _writer = write(&world, b"k", b"1", Level::Sync);
    let single = {
        let world = Arc::clone(&world);
        aside(move || world.manager.get(world.tables[0], b"k"))
    };
    still_waits(&single);
    disk.set(Syncs::Pass);
    let value = single.recv_timeout(LONG).unwrap().unwrap();
    assert_eq!(value.unwrap(), b"1");
    assert_eq!(world.manager.stats().read_blocked, 0, "it took no lock");
}

#[test]
fn case_5_a_reader_depends_on_the_last_of_several_writers() {
    let (disk, world) = world();
    disk.set(Syncs::Wait);
    let writers: Vec<_> = (0..4u8)
        .map(|n| write(&world, b"k", &[n], Level::Sync))
        .collect();
    let (value, reader) = read(&world, b"k");
    assert_eq!(value.unwrap(), [3]);
    let waits = aside(move || reader.wait());
    still_waits(&waits);
    disk.set(Syncs::Pass);
    waits.recv_timeout(LONG).unwrap().unwrap();
    assert!(writers.iter().all(CommitHandle::is_done));
}

#[test]
fn case_6_several_readers_are_answered_by_one_sync() {
    let (disk, world) = world();
    disk.set(Syncs::Wait);
    let _writer = write(&world, b"k", b"1", Level::Sync);
    let waits: Vec<_> = (0..4)
        .map(|_| {
            let (_, reader) = read(&world, b"k");
            aside(move || reader.wait())
        })
        .collect();
    waits.iter().for_each(still_waits);
    disk.set(Syncs::Pass);
    for wait in waits {
        wait.recv_timeout(LONG).unwrap().unwrap();
    }
}

#[test]
fn case_7_a_writer_over_a_writer_is_answered_after_it() {
    let (disk, world) = world();
    disk.set(Syncs::Wait);
    let first = write(&world, b"k", b"1", Level::Sync);
    // The second asked for no safety, but it has seen the first.
    let second = write(&world, b"k", b"2", Level::None);
    let waits = aside(move || second.wait());
    still_waits(&waits);
    disk.set(Syncs::Pass);
    waits.recv_timeout(LONG).unwrap().unwrap();
    assert!(first.is_done());
}

#[test]
fn case_8_a_writer_that_asked_for_no_safety_makes_nobody_wait() {
    let (disk, world) = world();
    disk.set(Syncs::Wait);
    let writer = write(&world, b"k", b"1", Level::None);
    assert!(writer.is_done());
    let (value, reader) = read(&world, b"k");
    assert_eq!(value.unwrap(), b"1");
    assert!(reader.is_done());
    // Nor does one that asked for the operating system only make anybody wait for a sync.
    let lax = write(&world, b"k", b"2", Level::Os);
    lax.wait().unwrap();
    read(&world, b"k").1.wait().unwrap();
    world.manager.get(world.tables[0], b"k").unwrap();
    disk.set(Syncs::Pass);
}

/// The ghost of the row deleted is what leads the scan to the bucket that tells of the commit.
#[test]
fn case_9_a_scan_over_a_row_deleted_by_a_commit_not_yet_safe() {
    let (disk, world) = world();
    let [table, _] = world.tables;
    write(&world, b"k", b"1", Level::Sync).wait().unwrap();
    disk.set(Syncs::Wait);
    let mut txn = world.begin();
    assert!(txn.delete(table, b"k").unwrap());
    let _writer = txn.commit(Level::Sync).unwrap();
    assert!(!world.locks().may_remove(table.store, b"k"));
    assert_eq!(world.manager.purge(100).unwrap(), 0, "the ghost must stay");
    let mut txn = world.begin();
    assert!(scans::all(&mut txn, table).is_empty());
    let reader = txn.commit(Level::Sync).unwrap().handle;
    let waits = aside(move || reader.wait());
    still_waits(&waits);
    disk.set(Syncs::Pass);
    waits.recv_timeout(LONG).unwrap().unwrap();
    assert_eq!(world.manager.purge(100).unwrap(), 1);
}

/// A lock on all of the table, or of the database, spares the locks on its rows; those who held it so
/// were once answered before the writers of the rows.
#[test]
fn a_reader_under_a_lock_on_the_table_or_the_database_waits_as_well() {
    let (disk, world) = world();
    disk.set(Syncs::Wait);
    let _rows = write(&world, b"k", b"1", Level::Sync);
    let mut all_rows = world.begin();
    all_rows
        .lock_table(world.tables[1], TableMode::Exclusive)
        .unwrap();
    all_rows.put(world.tables[1], b"k", b"1").unwrap();
    let _table = all_rows.commit(Level::Sync).unwrap();
    for (table, is_database) in [(0, false), (0, true), (1, false), (1, true)] {
        let mut reader = world.begin();
        match is_database {
            true => reader.lock_database(TableMode::Shared).unwrap(),
            false => reader
                .lock_table(world.tables[table], TableMode::Shared)
                .unwrap(),
        }
        let value = reader.get(world.tables[table], b"k").unwrap();
        assert_eq!(value.unwrap(), b"1");
        let handle = reader.commit(Level::Sync).unwrap().handle;
        assert!(!handle.is_done(), "table {table}, database {is_database}");
    }
    disk.set(Syncs::Pass);
}

/// Who sees what a row was before somebody changed it waits for the writer of that: whether the change is under
/// way or has committed, and whether the row was looked for or scanned.
#[test]
fn a_reader_of_a_former_state_waits_for_the_writer_of_that_state() {
    for is_committed in [false, true] {
        let (disk, world) = world();
        let [table, _] = world.tables;
        disk.set(Syncs::Wait);
        let seen = write(&world, b"k", b"1", Level::Sync);
        let snapshot = || Begin {
            is_read_only: true,
            ..Begin::default()
        };
        let [mut gets, mut scans] = [(); 2].map(|()| world.manager.begin_with(snapshot()).unwrap());
        let mut change = world.begin();
        change.put(table, b"k", b"2").unwrap();
        let under_way = match is_committed {
            true => {
                let _ = change.commit(Level::None).unwrap();
                None
            }
            false => Some(change),
        };
        assert_eq!(gets.get(table, b"k").unwrap().unwrap(), b"1");
        assert_eq!(scans::all(&mut scans, table)[&b"k"[..]], b"1");
        let answers = [gets, scans].map(|reader| reader.commit(Level::Sync).unwrap().handle);
        assert!(answers.iter().all(|answer| !answer.is_done()));
        disk.set(Syncs::Pass);
        answers.iter().for_each(|answer| answer.wait().unwrap());
        assert!(seen.is_done());
        drop(under_way);
    }
}

#[test]
fn case_10_when_the_sync_fails_nobody_who_saw_the_change_is_answered() {
    let (disk, world) = world();
    write(&world, b"other", b"1", Level::Sync).wait().unwrap();
    disk.set(Syncs::Wait);
    let writer = write(&world, b"k", b"1", Level::Sync);
    let (value, reader) = read(&world, b"k");
    assert_eq!(value.unwrap(), b"1");
    let mut open = world.begin();
    open.put(world.tables[0], b"open", b"1").unwrap();
    let single = {
        let world = Arc::clone(&world);
        aside(move || world.manager.get(world.tables[0], b"k"))
    };
    let waits = [writer, reader].map(|handle| aside(move || handle.wait()));
    waits.iter().for_each(still_waits);
    still_waits(&single);
    disk.set(Syncs::Fail);
    for wait in waits {
        let error = wait.recv_timeout(LONG).unwrap().unwrap_err();
        assert!(error.to_string().contains("the plug was pulled"), "{error}");
    }
    single.recv_timeout(LONG).unwrap().unwrap_err();

    // Nothing later succeeds, though the disk has recovered.
    disk.set(Syncs::Pass);
    let refused = |error: TxnError| {
        assert!(error.is_final() && !error.is_retryable(), "{error}");
        assert!(error.to_string().contains("the plug was pulled"), "{error}");
    };
    refused(open.put(world.tables[0], b"more", b"1").unwrap_err());
    refused(open.commit(Level::None).unwrap_err());
    refused(world.manager.begin().unwrap_err());
    refused(world.manager.get(world.tables[0], b"other").unwrap_err());
    refused(world.manager.purge(1).unwrap_err());
}

/// A rollback needs what it logged, and finds it in memory: whether the log has begun to write it or not.
#[test]
fn a_rollback_waits_for_no_disk() {
    let (disk, world) = world();
    let rows = || (0..100_u8).map(|row| [row]);
    let mut first = world.begin();
    rows().for_each(|row| first.put(world.tables[0], &row, b"before").unwrap());
    first.commit(Level::Sync).unwrap().handle.wait().unwrap();
    disk.set(Syncs::AllWait);
    let mut begun = world.begin();
    rows().for_each(|row| begun.put(world.tables[0], &row, b"after").unwrap());
    let stalled = write(&world, b"k", b"1", Level::Sync);
    let stalled = aside(move || stalled.wait());
    still_waits(&stalled);
    let mut late = world.begin();
    rows().for_each(|row| late.put(world.tables[1], &row, b"new").unwrap());
    let rolled_back = aside(move || {
        begun.rollback().unwrap();
        late.rollback().unwrap();
    });
    rolled_back
        .recv_timeout(LONG)
        .expect("it waits for the disk");
    for row in rows() {
        let mut txn = world.begin();
        assert_eq!(txn.get(world.tables[0], &row).unwrap().unwrap(), b"before");
        assert_eq!(txn.get(world.tables[1], &row).unwrap(), None);
        txn.rollback().unwrap();
    }
    disk.set(Syncs::Pass);
    stalled.recv_timeout(LONG).unwrap().unwrap();
}

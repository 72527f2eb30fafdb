//! What a prepared transaction has read, or locked by name, stays so until it is resolved, whatever restarts come
//! between.

use crate::prepared::{WAYS, interrupted, is_locked};
use crate::support::{crash, open, open_with, put, sim, small};
use longshore::{
    Database, Error, Isolation, LockEscalation, Prepared, Table, TableLock, Transaction,
    TransactionOptions,
};
use longshore_disk::CrashStyle;
use std::sync::Arc;

/// A table with the rows 10, 20, ... 90.
fn tens(db: &Database, name: &str) -> Table {
    let table = db.create_table(name).unwrap();
    (1..10u32).for_each(|n| put(db, &table, &(10 * n).to_string(), "old"));
    table
}

/// Whether the key can be given a value, or be inserted, by somebody else.
fn is_free(db: &Database, table: &Table, key: &str) -> bool {
    let tx = db.begin().unwrap();
    match tx.put(table, key, "other") {
        Ok(()) => true,
        refused => {
            assert!(is_locked(refused));
            false
        }
    }
}

#[test]
fn what_was_read_stays_locked_until_it_is_resolved() {
    for (seed, between) in (1..).zip(WAYS) {
        let disk = Arc::new(sim(seed));
        let db = open(&disk, seed).unwrap();
        let (table, other) = (tens(&db, "t"), tens(&db, "other"));
        let tx = db.begin().unwrap();
        assert!(tx.get(&table, "20").unwrap().is_some());
        assert_eq!(tx.get(&table, "25").unwrap(), None);
        let rows = tx.scan(&table, "40".."60").unwrap();
        assert_eq!(rows.count(), 2);
        assert!(tx.get_for_update(&table, "70").unwrap().is_some());
        assert!(!tx.delete(&table, "75").unwrap(), "there is none");
        let before = tx.savepoint().unwrap();
        tx.put(&table, "80", "taken back").unwrap();
        tx.rollback_to(&before).unwrap();
        assert_eq!(tx.scan(&other, "91"..).unwrap().count(), 0);
        tx.put(&table, "written", "by it").unwrap();
        drop(tx.prepare(b"g").unwrap());
        drop((table, other));

        let (_disk, db) = interrupted(disk, db, &between, seed);
        let (table, other) = (db.table("t").unwrap(), db.table("other").unwrap());
        for key in [
            "20", "25", "40", "41", "50", "55", "70", "75", "80", "written",
        ] {
            assert!(!is_free(&db, &table, key), "{key}");
        }
        for key in ["10", "15", "30", "35", "60", "65", "85", "90"] {
            assert!(is_free(&db, &table, key), "{key}");
        }
        assert!(!is_free(&db, &other, "99"), "the gap up to the end");
        assert!(is_free(&db, &other, "10"));
        // Others may read it as well, but not to change it.
        let reads = db.begin().unwrap();
        for key in ["20", "25", "50"] {
            reads.get(&table, key).unwrap();
        }
        assert!(is_locked(reads.get_for_update(&table, "70")));
        drop(reads);
        for name in ["t", "other"] {
            let refused = db.drop_table(name);
            assert!(
                matches!(refused, Err(Error::TablePrepared { .. })),
                "{name}"
            );
        }
        db.commit_prepared(b"g").unwrap();
        for key in ["20", "25", "41", "70", "75", "80", "written"] {
            assert!(is_free(&db, &table, key), "{key}");
        }
        assert!(db.locks(10).is_empty());
    }
}

#[test]
fn locks_on_tables_stay() {
    for (seed, between) in (10..).zip(WAYS) {
        let disk = Arc::new(sim(seed));
        let options = || small().lock_escalation(LockEscalation::At(4));
        let db = open_with(&disk, seed, options()).unwrap();
        let tables = ["read", "changed", "asked", "intent"].map(|name| tens(&db, name));
        let tx = db.begin().unwrap();
        assert_eq!(tx.scan(&tables[0], ..).unwrap().count(), 9);
        tx.delete_range(&tables[1], ..).unwrap();
        tx.lock_table(&tables[2], TableLock::SharedIntentExclusive)
            .unwrap();
        tx.lock_table(&tables[3], TableLock::IntentShared).unwrap();
        drop(tx.prepare(b"g").unwrap());
        drop(tables);

        let (_disk, db) = interrupted(disk, db, &between, seed);
        let tables = ["read", "changed", "asked", "intent"].map(|name| db.table(name).unwrap());
        assert!(!is_free(&db, &tables[0], "10"));
        assert!(!is_free(&db, &tables[1], "11"));
        assert!(!is_free(&db, &tables[2], "10"));
        assert!(is_free(&db, &tables[3], "10"));
        assert!(is_locked(db.begin().unwrap().get(&tables[1], "10")));
        let tx = db.begin().unwrap();
        assert!(tx.get(&tables[2], "10").unwrap().is_some());
        assert!(is_locked(tx.lock_table(&tables[3], TableLock::Exclusive)));
        drop(tx);
        db.rollback_prepared(b"g").unwrap();
        assert!(tables.iter().all(|table| is_free(&db, table, "10")));
    }
}

#[test]
fn more_locks_than_a_record_holds_stay() {
    let disk = Arc::new(sim(3));
    let options = || {
        let never = small().lock_escalation(LockEscalation::Never);
        never.lock_bytes_max(4 << 20)
    };
    let db = open_with(&disk, 3, options()).unwrap();
    let table = db.create_table("t").unwrap();
    let key = |n: u32| (n.wrapping_mul(2_654_435_761)).to_be_bytes();
    let tx = db.begin().unwrap();
    for n in 0..5_000 {
        assert_eq!(tx.get(&table, key(n)).unwrap(), None);
    }
    tx.put(&table, "written", "v").unwrap();
    drop(tx.prepare(b"g").unwrap());
    let entries = db.log_entries(None).unwrap().map(Result::unwrap);
    let locks = entries.filter(|entry| entry.kind == "locks").count();
    assert!(locks > 0, "they fit one record");
    let disk = crash(&disk, 3);
    let db = open_with(&disk, 3, options()).unwrap();
    let table = db.table("t").unwrap();
    for n in (0..5_000).step_by(7) {
        let tx = db.begin().unwrap();
        assert!(is_locked(tx.insert(&table, key(n), "other")), "{n}");
    }
    db.rollback_prepared(b"g").unwrap();
    for n in 0..5_000 {
        db.update(|tx| tx.insert(&table, key(n), "other")).unwrap();
    }
}

/// A cut at every I/O while a transaction is prepared whose locks take several records: it is prepared with all of
/// them, or it is undone and none is left.
#[test]
fn a_crash_between_locks_and_prepare_leaves_all_or_nothing() {
    let options = || {
        let never = small().lock_escalation(LockEscalation::Never);
        never.lock_bytes_max(4 << 20)
    };
    let end = |db: &Database| {
        let entries = db.log_entries(None).unwrap();
        entries.last().unwrap().unwrap().lsn.get()
    };
    let mut undone_behind_locks = 0;
    for ios in 0.. {
        let disk = Arc::new(sim(ios));
        let db = open_with(&disk, ios, options()).unwrap();
        let table = tens(&db, "t");
        let tx = db.begin().unwrap();
        // More than the log's buffer holds.
        let key = |n: u32| n.wrapping_mul(2_654_435_761).to_be_bytes();
        for n in 0..20_000 {
            assert_eq!(tx.get(&table, key(n)).unwrap(), None);
        }
        tx.put(&table, "10", "new").unwrap();
        let before = end(&db);
        disk.crash_after(ios);
        let is_prepared = tx.prepare(b"g").is_ok();
        disk.crash_now();
        drop((table, db));
        let styles = [CrashStyle::KeepAll, CrashStyle::LoseAll, CrashStyle::Tear];
        for style in styles {
            let disk = Arc::new(disk.crash_image_in_style(style, ios));
            let db = open_with(&disk, ios, options()).unwrap();
            let table = db.table("t").unwrap();
            let is_listed = !db.prepared().is_empty();
            assert!(is_listed || !is_prepared, "{ios} I/Os: it is lost");
            for n in (0..20_000).step_by(997) {
                let tx = db.begin().unwrap();
                let is_refused = is_locked(tx.insert(&table, key(n), "other"));
                assert_eq!(is_refused, is_listed, "{ios} I/Os");
            }
            assert_eq!(is_free(&db, &table, "10"), !is_listed, "{ios} I/Os");
            // What the restart itself logs is less.
            undone_behind_locks += u64::from(!is_listed && end(&db) - before > 32 << 10);
        }
        if is_prepared {
            break;
        }
    }
    assert!(undone_behind_locks > 0);
}

/// Its own space in the log is set aside again, whatever others take of it afterwards.
#[test]
fn log_space_to_end_is_claimed_again() {
    for commits in [true, false] {
        let disk = Arc::new(sim(6));
        let db = open(&disk, 6).unwrap();
        let table = tens(&db, "t");
        let tx = db.begin().unwrap();
        for n in 0..100 {
            let value = format!("{n:0>1000}");
            tx.put(&table, n.to_string(), value).unwrap();
        }
        for n in 0..100 {
            tx.delete(&table, n.to_string()).unwrap();
            tx.insert(&table, n.to_string(), "").unwrap();
        }
        drop(tx.prepare(b"g").unwrap());
        drop(table);
        let disk = crash(&disk, 6);
        let db = open(&disk, 6).unwrap();
        let claimed = db.stats().log.claimed_bytes;
        assert!(claimed > 10_000, "{claimed} bytes claimed");
        let table = db.create_table("fills").unwrap();
        let fills = db.begin().unwrap();
        let full = (0u32..).find_map(|n| fills.put(&table, n.to_be_bytes(), [7; 500]).err());
        assert!(matches!(full, Some(Error::LogFull { .. })), "{full:?}");
        match commits {
            true => db.commit_prepared(b"g").unwrap(),
            false => db.rollback_prepared(b"g").unwrap(),
        }
        drop(fills);
        assert_eq!(db.stats().log.claimed_bytes, 0);
        let rows = db.view(|tx| Ok(tx.scan(&db.table("t")?, ..)?.count()));
        assert_eq!(rows.unwrap(), [9, 100][usize::from(commits)]);
    }
}

/// The bytes of PREPARE, less its header, the gid and the padding.
fn bytes_kept(isolation: Isolation, work: impl Fn(&Database, &Transaction)) -> usize {
    let disk = Arc::new(sim(4));
    let db = open(&disk, 4).unwrap();
    tens(&db, "t");
    let options = TransactionOptions::new().isolation(isolation);
    let tx = db.begin_with(options).unwrap();
    work(&db, &tx);
    drop(tx.prepare(b"g").unwrap());
    let entries = db.log_entries(None).unwrap().map(Result::unwrap);
    let prepare = entries.last().unwrap();
    assert_eq!((prepare.kind, &prepare.text[..]), ("prepare", "as \"g\""));
    prepare.bytes - 2
}

#[test]
fn who_only_writes_adds_its_tables() {
    let write = |db: &Database, tx: &Transaction| {
        let table = db.table("t").unwrap();
        tx.put(&table, "10", "new").unwrap();
        tx.delete(&table, "20").unwrap();
        tx.insert(&table, "25", "new").unwrap();
    };
    let levels = [
        Isolation::Serializable,
        Isolation::Snapshot,
        Isolation::ReadCommitted,
    ];
    for level in levels {
        assert_eq!(bytes_kept(level, write), 4, "{level:?}");
        let kept = bytes_kept(level, |db, tx| {
            write(db, tx);
            let table = db.table("t").unwrap();
            assert_eq!(tx.scan(&table, ..).unwrap().count(), 9);
        });
        assert_eq!(kept > 4, level == Isolation::Serializable, "{level:?}");
    }
}

/// A transaction that has read the `n`th five thousand keys, which takes 40 KiB to say.
fn reader(db: &Database, table: &Table, n: u32) -> Transaction {
    let tx = db.begin().unwrap();
    for key in 0..5_000 {
        let key = (n * 5_000 + key).wrapping_mul(2_654_435_761);
        assert_eq!(tx.get(table, key.to_be_bytes()).unwrap(), None);
    }
    tx
}

#[test]
fn a_full_log_is_relieved_for_who_prepares() {
    let disk = Arc::new(sim(5));
    let options = small().lock_escalation(LockEscalation::Never);
    let db = open_with(&disk, 5, options.lock_bytes_max(4 << 20)).unwrap();
    let table = tens(&db, "t");
    for n in 0..60 {
        let tx = reader(&db, &table, n);
        tx.put(&table, "10", n.to_string()).unwrap();
        tx.prepare(b"g").unwrap().commit().unwrap();
    }
    assert!(db.stats().log_relieved > 0, "the log was never full");
    // What cannot fit is refused, and leaves nothing.
    let keeps = db.begin().unwrap();
    keeps.put(&table, "20", "keeps the log").unwrap();
    let keeps = keeps.prepare(b"keeps").unwrap();
    let refused = (0..60).find_map(|n| {
        let prepared = reader(&db, &table, n).prepare(b"g");
        prepared.and_then(Prepared::commit).err()
    });
    assert!(
        matches!(refused, Some(Error::LogFull { .. })),
        "{refused:?}"
    );
    assert_eq!(db.prepared().len(), 1);
    keeps.commit().unwrap();
    put(&db, &table, "10", "free");
}

//! Crashes at every I/O of small workloads; the simulation does this at length.

use crate::support::{assert_sound, crash, get, open, open_with, put, rows, sim, small};
use longshore::{Database, Durability, Error};
use std::sync::Arc;

/// Runs `work` on fresh disks that crash after 0, 1, 2, … changes, until one does not crash; hands
/// each crash image to `check`, with what `work` had acknowledged.
fn at_every_change<A: Default>(
    mut work: impl FnMut(&Database, &mut A) -> longshore::Result<()>,
    mut check: impl FnMut(&Database, A),
) {
    for cut in 0.. {
        let disk = Arc::new(sim(cut));
        let mut acknowledged = A::default();
        let db = open(&disk, 1).unwrap();
        db.create_table("t").unwrap();
        disk.crash_after_changes(cut);
        let outcome = work(&db, &mut acknowledged);
        let is_over = !disk.is_crashed();
        assert!(outcome.is_ok() || !is_over, "{outcome:?}");
        disk.crash_now();
        drop(db);
        let image = crash(&disk, cut);
        let db = open(&image, 2).unwrap_or_else(|error| panic!("cut {cut}: {error}"));
        assert_sound(&db);
        check(&db, acknowledged);
        if is_over {
            assert!(cut > 3, "the workload changed nothing");
            return;
        }
    }
}

#[test]
fn acknowledged_commits_survive_and_nothing_else_does() {
    at_every_change(
        |db, acknowledged: &mut Vec<u32>| {
            let table = db.table("t")?;
            for n in 0..30u32 {
                db.update(|tx| {
                    // Two rows, so that half a transaction would be seen.
                    tx.put(
                        &table,
                        [b"a", &n.to_be_bytes()[..]].concat(),
                        [n as u8; 200],
                    )?;
                    tx.put(
                        &table,
                        [b"b", &n.to_be_bytes()[..]].concat(),
                        [n as u8; 200],
                    )
                })?;
                acknowledged.push(n);
                let tx = db.begin()?;
                tx.put(&table, "never", "committed")?;
                tx.delete(&table, [b"a", &0u32.to_be_bytes()[..]].concat())?;
                drop(tx);
                if n % 10 == 9 {
                    db.checkpoint()?;
                }
            }
            Ok(())
        },
        |db, acknowledged| {
            let rows = rows(db, &db.table("t").unwrap());
            let (a, b): (Vec<_>, Vec<_>) = rows.iter().partition(|(key, _)| key[0] == b'a');
            assert_eq!(a.len(), b.len());
            assert!(a.len() == acknowledged.len() || a.len() == acknowledged.len() + 1);
            for n in acknowledged {
                assert_eq!(&a[n as usize].0[1..], n.to_be_bytes());
            }
        },
    );
}

#[test]
fn tables_are_created_renamed_and_dropped_as_a_whole() {
    at_every_change(
        |db, done: &mut Vec<&'static str>| {
            let table = db.table("t")?;
            db.update(|tx| (0..100u8).try_for_each(|n| tx.put(&table, [n], [n; 100])))?;
            done.push("filled");
            db.rename_table("t", "renamed")?;
            done.push("renamed");
            db.create_table("another")?;
            done.push("created");
            db.drop_table("renamed")?;
            done.push("dropped");
            while !db.maintain()?.is_idle() {}
            Ok(())
        },
        |db, done| {
            let tables = db.tables().unwrap();
            let expected: [&[&str]; 4] =
                [&["t"], &["renamed"], &["another", "renamed"], &["another"]];
            let at = done.len().saturating_sub(1);
            let allowed = [expected[at.min(3)], expected[(at + 1).min(3)]];
            assert!(
                allowed.iter().any(|names| tables == *names),
                "{done:?}: {tables:?}"
            );
            let Some(name) = tables.iter().find(|name| *name != "another") else {
                return;
            };
            let count = rows(db, &db.table(name).unwrap()).len();
            assert!(
                count == 100 || (done.is_empty() && count == 0),
                "{done:?}: {count}"
            );
            let created = db.create_table("fresh").unwrap();
            put(db, &created, "k", "v");
        },
    );
}

#[test]
fn file_that_is_being_cut_off_is_never_taken_for_truncated() {
    at_every_change(
        |db, _: &mut ()| {
            let rows = (0..400u32).map(|n| Ok((n.to_be_bytes(), [1; 900])));
            db.bulk_load(&db.create_table("gone")?, rows)?;
            db.update(|tx| tx.put(&db.table("t")?, "k", "v"))?;
            db.drop_table("gone")?;
            while !db.maintain()?.is_idle() {}
            db.checkpoint()?;
            assert_eq!(db.stats().truncations, 1);
            db.update(|tx| tx.put(&db.table("t")?, "l", vec![1; 100_000]))?;
            db.checkpoint()
        },
        |db, ()| while !db.maintain().unwrap().is_idle() {},
    );
}

#[test]
fn bulk_load_is_there_as_a_whole_or_not_at_all() {
    at_every_change(
        |db, done: &mut bool| {
            let rows = (0..300u32)
                .map(|n| Ok((n.to_be_bytes(), vec![1; if n == 77 { 9000 } else { 50 }])));
            db.bulk_load(&db.table("t")?, rows)?;
            *done = true;
            Ok(())
        },
        |db, done| {
            let count = rows(db, &db.table("t").unwrap()).len();
            assert!(count == 300 || (!done && count == 0), "{done}: {count}");
            while !db.maintain().unwrap().is_idle() {}
            assert_sound(db);
        },
    );
}

#[test]
fn creation_is_there_as_a_whole_or_can_be_started_again() {
    for cut in 0.. {
        let disk = Arc::new(sim(cut));
        disk.crash_after_changes(cut);
        let outcome = open(&disk, 1).and_then(|db| db.close());
        let is_over = !disk.is_crashed();
        assert_eq!(outcome.is_ok(), is_over);
        let image = crash(&disk, cut);
        let db = open(&image, 2).unwrap_or_else(|error| panic!("cut {cut}: {error}"));
        let table = db.create_table("t").unwrap();
        put(&db, &table, "k", "v");
        assert_sound(&db);
        if is_over {
            return;
        }
    }
}

#[test]
fn crash_within_recovery_is_harmless() {
    for cut in 0..200 {
        let disk = Arc::new(sim(cut));
        let db = open(&disk, 1).unwrap();
        let table = db.create_table("t").unwrap();
        for n in 0..40u32 {
            db.update(|tx| tx.put(&table, n.to_be_bytes(), [1; 300]))
                .unwrap();
        }
        let loser = db.begin().unwrap();
        for n in 0..40u32 {
            loser.put(&table, n.to_be_bytes(), [2; 310]).unwrap();
        }
        // A commit behind it makes the loser's records durable.
        let other = db.create_table("other").unwrap();
        put(&db, &other, "k", "v");
        disk.crash_now();
        drop((loser, db));

        let second = crash(&disk, cut);
        second.crash_after_changes(cut);
        let outcome = open(&second, 2);
        let is_over = outcome.is_ok() && !second.is_crashed();
        second.crash_now();
        drop(outcome);
        let db = open(&crash(&second, cut + 1), 3).unwrap();
        let found = rows(&db, &db.table("t").unwrap());
        assert_eq!(found.len(), 40);
        assert!(
            found.iter().all(|(_, value)| value == &[1; 300]),
            "cut {cut}"
        );
        assert_sound(&db);
        if is_over {
            assert!(cut > 5);
            return;
        }
    }
    panic!("recovery has more than 200 changes");
}

#[test]
fn relaxed_commits_may_be_lost_but_only_from_the_end() {
    for seed in 0..30 {
        let disk = Arc::new(sim(seed));
        let options = small().durability(Durability::None);
        let db = open_with(&disk, 1, options).unwrap();
        let table = db.create_table("t").unwrap();
        for n in 0..200u32 {
            db.update(|tx| tx.put(&table, n.to_be_bytes(), [1; 100]))
                .unwrap();
        }
        disk.crash_now();
        drop(db);
        let db = open(&crash(&disk, seed), 2).unwrap();
        let Ok(table) = db.table("t") else { continue };
        for (n, (key, _)) in rows(&db, &table).into_iter().enumerate() {
            assert_eq!(
                key,
                (n as u32).to_be_bytes(),
                "a hole before a later commit"
            );
        }
    }
}

#[test]
fn a_crashed_disk_is_an_error_for_every_call() {
    let disk = Arc::new(sim(1));
    let db = open(&disk, 1).unwrap();
    let table = db.create_table("t").unwrap();
    disk.crash_now();
    let failed = db.update(|tx| tx.put(&table, "k", "v")).unwrap_err();
    assert!(matches!(failed, Error::Poisoned { .. }), "{failed}");
    assert!(db.begin().is_err());
    drop(db);
    let db = open(&crash(&disk, 1), 2).unwrap();
    assert_eq!(get(&db, &db.table("t").unwrap(), "k"), None);
}

#[test]
fn much_log_is_redone_by_several_threads() {
    let disk = Arc::new(sim(1));
    let options = || {
        small()
            .durability(Durability::Os)
            .pool_bytes(64 << 20)
            .log_segment_bytes(4 << 20)
            .log_bytes_max(256 << 20)
            .log_buffer_bytes(1 << 20)
            .lock_bytes_max(64 << 20)
    };
    let db = open_with(&disk, 1, options()).unwrap();
    let table = db.create_table("t").unwrap();
    for block in 0..60u32 {
        db.update(|tx| {
            (0..500u32).try_for_each(|n| {
                // Scattered, so that every worker has splits and rows of many pages to redo.
                let key = (block * 500 + n).wrapping_mul(2_654_435_761).to_be_bytes();
                tx.put(&table, key, [block as u8; 300])
            })
        })
        .unwrap();
    }
    put(&db, &table, "synced", "all before it is durable too");
    let tx = db.begin().unwrap();
    tx.put(&table, "last", "v").unwrap();
    tx.commit_with(Durability::Sync).unwrap().wait().unwrap();
    assert!(
        db.stats().recovery_bytes > 8 << 20,
        "{}",
        db.stats().recovery_bytes
    );
    disk.crash_now();
    drop((db, table));
    let db = open_with(&crash(&disk, 1), 2, options()).unwrap();
    assert_eq!(rows(&db, &db.table("t").unwrap()).len(), 30_002);
    assert_sound(&db);
}

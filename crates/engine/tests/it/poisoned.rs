//! After a failed sync nothing is promised any more, until the database is reopened.

use crate::support::{assert_sound, get, open, put, sim};
use longshore::Error;
use longshore_disk::{Fault, FaultError, FaultOn, FaultRepeat};
use std::sync::Arc;

#[test]
fn a_failed_sync_stops_everything_until_reopened() {
    let disk = Arc::new(sim(1));
    let db = open(&disk, 1).unwrap();
    let table = db.create_table("t").unwrap();
    put(&db, &table, "before", "kept");
    disk.fail_at(
        1,
        Fault {
            error: FaultError::Io,
            repeat: FaultRepeat::Once,
            on: FaultOn::Sync,
        },
    );
    let failed = db
        .update(|tx| tx.put(&table, "during", "unknown"))
        .unwrap_err();
    let Error::Poisoned { cause } = &failed else {
        panic!("{failed}")
    };
    // The disk works again, the database does not: what the failed sync lost is not known.
    let calls: [(&str, longshore::Result<()>); 6] = [
        ("begin", db.begin().map(drop)),
        ("get", db.get(&table, "before").map(drop)),
        ("update", db.update(|tx| tx.put(&table, "after", "no"))),
        ("checkpoint", db.checkpoint()),
        ("create_table", db.create_table("u").map(drop)),
        ("close", db.close()),
    ];
    for (call, outcome) in calls {
        match outcome {
            Err(Error::Poisoned { cause: told }) => assert_eq!(told, *cause, "{call}"),
            other => panic!("{call}: {other:?}"),
        }
    }
    drop((db, table));
    let db = open(&disk, 2).unwrap();
    let table = db.table("t").unwrap();
    assert_eq!(get(&db, &table, "before").as_deref(), Some("kept"));
    assert_eq!(get(&db, &table, "after"), None);
    put(&db, &table, "after", "yes");
    assert_sound(&db);
}

#[test]
fn every_failing_call_is_an_error_or_harmless() {
    for repeat in [FaultRepeat::Once, FaultRepeat::ForEver] {
        for n in 1.. {
            let disk = Arc::new(sim(n));
            let db = open(&disk, 1).unwrap();
            let table = db.create_table("t").unwrap();
            put(&db, &table, "before", "kept");
            disk.fail_at(
                n,
                Fault {
                    error: FaultError::Io,
                    repeat,
                    on: FaultOn::Any,
                },
            );
            let mut acknowledged = Vec::new();
            for key in ["1", "2", "3", "4"] {
                if db
                    .update(|tx| tx.put(&table, key, vec![b'x'; 5000]))
                    .is_ok()
                {
                    acknowledged.push(key);
                }
                let _ = db.checkpoint();
            }
            let _ = db.create_table("second");
            let _ = db.close();
            let was_hit = disk.faults_hit() > 0;
            disk.clear_faults();
            drop((db, table));
            let db = open(&disk, 2).unwrap_or_else(|error| panic!("fault {n}: {error}"));
            let table = db.table("t").unwrap();
            assert_eq!(
                get(&db, &table, "before").as_deref(),
                Some("kept"),
                "fault {n}"
            );
            for key in acknowledged {
                assert!(
                    get(&db, &table, key).is_some(),
                    "fault {n}: {key} was acknowledged"
                );
            }
            assert_sound(&db);
            if !was_hit {
                assert!(n > 10);
                break;
            }
        }
    }
}

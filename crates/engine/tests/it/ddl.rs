//! Tables come, go and are renamed while others use them.

use crate::support::{assert_sound, get, in_memory, open, put, rows, sim};
use longshore::{Error, Options};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn a_name_means_one_table_at_a_time() {
    let db = in_memory();
    let first = db.create_table("t").unwrap();
    put(&db, &first, "k", "first");
    db.rename_table("t", "old").unwrap();
    assert_eq!(first.name(), "old");
    let second = db.create_table("t").unwrap();
    assert_ne!(first.id(), second.id());
    assert_eq!(get(&db, &first, "k").as_deref(), Some("first"));
    assert_eq!(get(&db, &second, "k"), None);
    assert!(matches!(
        db.rename_table("old", "t"),
        Err(Error::TableExists { .. })
    ));
    assert!(matches!(
        db.rename_table("none", "x"),
        Err(Error::TableMissing { .. })
    ));
    db.rename_table("t", "t").unwrap();
    assert_eq!(db.tables().unwrap(), ["old", "t"]);
    assert_eq!(db.table_or_create("old").unwrap().id(), first.id());
}

#[test]
fn names_may_be_any_text_up_to_255_bytes() {
    let db = in_memory();
    let names = [
        "a".repeat(255),
        "\0".into(),
        "größe".into(),
        " ".into(),
        "表".into(),
    ];
    for name in &names {
        db.create_table(name).unwrap();
    }
    let mut sorted = names.to_vec();
    sorted.sort();
    assert_eq!(db.tables().unwrap(), sorted);
    assert!(matches!(
        db.create_table(&"a".repeat(256)),
        Err(Error::TableName { length: 256 })
    ));
}

#[test]
fn handles_of_a_dropped_table_say_so() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    put(&db, &table, "k", "v");
    db.drop_table("t").unwrap();
    assert!(matches!(
        db.get(&table, "k"),
        Err(Error::TableDropped { .. })
    ));
    let refused = db.update(|tx| tx.put(&table, "k", "v")).unwrap_err();
    assert!(matches!(refused, Error::TableDropped { .. }), "{refused}");
    let again = db.create_table("t").unwrap();
    assert_eq!(rows(&db, &again), []);
    assert!(matches!(
        db.get(&table, "k"),
        Err(Error::TableDropped { .. })
    ));
}

#[test]
fn dropping_waits_for_users_and_gives_up_in_time() {
    let db = Options::new()
        .lock_wait(Duration::from_millis(20))
        .in_memory()
        .unwrap();
    let table = db.create_table("t").unwrap();
    let tx = db.begin().unwrap();
    tx.put(&table, "k", "v").unwrap();
    let busy = db.drop_table("t").unwrap_err();
    assert!(
        matches!(
            busy,
            Error::TableBusy {
                transactions: 1,
                ..
            }
        ),
        "{busy}"
    );
    tx.commit().unwrap();
    assert_eq!(get(&db, &table, "k").as_deref(), Some("v"));
    db.drop_table("t").unwrap();
}

#[test]
fn pages_of_dropped_tables_are_used_again() {
    let db = in_memory();
    let mut bytes = Vec::new();
    for round in 0..6 {
        let table = db.create_table("t").unwrap();
        for n in 0..2000u32 {
            db.update(|tx| tx.put(&table, n.to_be_bytes(), [round; 200]))
                .unwrap();
        }
        db.drop_table("t").unwrap();
        while !db.maintain().unwrap().is_idle() {}
        bytes.push(db.stats().data_bytes);
    }
    assert!(bytes[5] <= bytes[1] + bytes[1] / 4, "{bytes:?}");
    assert_sound(&db);
}

#[test]
fn many_threads_create_and_drop() {
    let db = in_memory();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let db = &db;
            scope.spawn(move || {
                for round in 0..15 {
                    let shared = db.table_or_create("shared").unwrap();
                    let own = format!("own {thread}");
                    let table = db.create_table(&own).unwrap();
                    put(db, &table, "k", "v");
                    match db.update(|tx| tx.put(&shared, [thread], [round])) {
                        Ok(()) | Err(Error::TableDropped { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                    db.drop_table(&own).unwrap();
                    if round % 5 == thread {
                        match db.drop_table("shared") {
                            Ok(()) | Err(Error::TableMissing { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            });
        }
    });
    while !db.maintain().unwrap().is_idle() {}
    assert_sound(&db);
}

#[test]
fn file_shrinks_when_its_end_is_free() {
    let disk = Arc::new(sim(1));
    let db = open(&disk, 1).unwrap();
    let small = db.create_table("small").unwrap();
    put(&db, &small, "k", "v");
    let table = db.create_table("large").unwrap();
    for n in 0..2000u32 {
        db.update(|tx| tx.put(&table, n.to_be_bytes(), [1; 500]))
            .unwrap();
    }
    let full = db.stats().data_bytes;
    db.drop_table("large").unwrap();
    while !db.maintain().unwrap().is_idle() {}
    db.checkpoint().unwrap();
    assert_eq!(db.stats().truncations, 1);
    assert!(
        db.stats().data_bytes < full / 4,
        "{} of {full}",
        db.stats().data_bytes
    );
    assert_eq!(
        disk.contents("data").unwrap().len() as u64,
        db.stats().data_bytes
    );
    drop((db, table, small));
    let db = open(&disk, 1).unwrap();
    assert_eq!(
        get(&db, &db.table("small").unwrap(), "k").as_deref(),
        Some("v")
    );
    assert_sound(&db);
}

//! Sorted loading.

use crate::support::{assert_sound, in_memory, put, rows};
use longshore::Error;

#[test]
fn loads_and_is_an_ordinary_table_afterwards() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    let other_handle = db.table("t").unwrap();
    let input = (0..20_000u32).map(|n| Ok((n.to_be_bytes(), format!("value {n}"))));
    assert_eq!(db.bulk_load(&table, input).unwrap(), 20_000);
    assert_eq!(
        db.get(&other_handle, 77u32.to_be_bytes()).unwrap().unwrap(),
        b"value 77"
    );
    put(&db, &table, "zzzzz", "behind");
    db.update(|tx| tx.delete(&other_handle, 3u32.to_be_bytes()))
        .unwrap();
    assert_eq!(rows(&db, &table).len(), 20_000);
    assert_sound(&db);
}

#[test]
fn large_values_among_small_ones() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    let value = |n: u32| vec![n as u8; if n % 50 == 3 { 30_000 } else { 20 }];
    db.bulk_load(&table, (0..500u32).map(|n| Ok((n.to_be_bytes(), value(n)))))
        .unwrap();
    for n in 0..500u32 {
        assert_eq!(db.get(&table, n.to_be_bytes()).unwrap(), Some(value(n)));
    }
    assert_sound(&db);
}

#[test]
fn refuses_what_is_unsorted_too_long_or_not_empty_and_leaves_nothing() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    let unsorted = db.bulk_load(&table, [Ok(("b", "1")), Ok(("c", "2")), Ok(("a", "3"))]);
    assert!(
        matches!(unsorted, Err(Error::Unsorted { row: 3 })),
        "{unsorted:?}"
    );
    let twice = db.bulk_load(&table, [Ok(("b", "1")), Ok(("b", "2"))]);
    assert!(
        matches!(twice, Err(Error::Unsorted { row: 2 })),
        "{twice:?}"
    );
    let long = "x".repeat(9000);
    let long = db.bulk_load(&table, [Ok(("b", "1")), Ok((long.as_str(), "2"))]);
    assert!(
        matches!(
            long,
            Err(Error::KeyTooLong {
                key_bytes: 9000,
                ..
            })
        ),
        "{long:?}"
    );
    let failing = db.bulk_load(
        &table,
        [Ok(("b", "1")), Err(Error::other("line 2 is no row"))],
    );
    assert_eq!(failing.unwrap_err().to_string(), "line 2 is no row");
    assert_eq!(rows(&db, &table), []);

    put(&db, &table, "k", "v");
    let occupied = db.bulk_load(&table, [Ok(("a", "1"))]);
    assert!(
        matches!(occupied, Err(Error::TableNotEmpty { .. })),
        "{occupied:?}"
    );
    while !db.maintain().unwrap().is_idle() {}
    assert_sound(&db);
}

#[test]
fn pages_of_a_failed_load_serve_the_next_one() {
    // A tree that nobody gave up is in the catalog until the next opening, and nobody else's fault: only space tells.
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    let mut after_first = 0;
    for round in 0..6 {
        let rows = (0..20_000u32).map(|n| Ok((n.to_be_bytes(), [7; 100])));
        let failing = rows.chain([Err(Error::other("the last line is no row"))]);
        db.bulk_load(&table, failing).unwrap_err();
        while !db.maintain().unwrap().is_idle() {}
        db.checkpoint().unwrap();
        assert_sound(&db);
        let bytes = db.stats().data_bytes;
        match round {
            0 => after_first = bytes,
            _ => assert!(bytes <= 2 * after_first, "{round}: {bytes}, {after_first}"),
        }
    }
}

#[test]
fn empty_input_is_fine() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    assert_eq!(db.bulk_load::<&str, &str>(&table, []).unwrap(), 0);
    put(&db, &table, "k", "v");
    assert_eq!(rows(&db, &table).len(), 1);
}

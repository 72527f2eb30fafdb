//! Values larger than a page.

use crate::support::{assert_sound, in_memory, open, rows, sim};
use longshore::Error;
use std::io::{self, Read};
use std::sync::Arc;

/// Bytes that depend on their position.
struct Pattern {
    at: u64,
    end: u64,
}

impl Read for Pattern {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = (bytes.len() as u64).min(self.end - self.at) as usize;
        for byte in &mut bytes[..count] {
            *byte = (self.at % 251) as u8;
            self.at += 1;
        }
        Ok(count)
    }
}

fn pattern(len: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    Pattern { at: 0, end: len }.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn values_of_all_lengths_come_back() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    for len in [0, 1, 2000, 2047, 2048, 2049, 8191, 8192, 8193, 100_000] {
        db.update(|tx| tx.put(&table, "k", pattern(len))).unwrap();
        assert_eq!(db.get(&table, "k").unwrap().unwrap(), pattern(len));
        let tx = db.begin().unwrap();
        let mut reader = tx.get_stream(&table, "k").unwrap().unwrap();
        assert_eq!(reader.len(), len);
        let mut streamed = Vec::new();
        reader.read_to_end(&mut streamed).unwrap();
        assert_eq!(streamed, pattern(len));
    }
    while !db.maintain().unwrap().is_idle() {}
    assert_sound(&db);
}

#[test]
fn a_value_larger_than_pool_and_log_is_streamed_in_and_out() {
    let db = longshore::Options::new()
        .durability(longshore::Durability::None)
        .pool_bytes(2 << 20)
        .log_segment_bytes(1 << 20)
        .log_bytes_max(4 << 20)
        .in_memory()
        .unwrap();
    let table = db.create_table("t").unwrap();
    let end = 20 << 20;
    db.update(|tx| tx.put_stream(&table, "film", Pattern { at: 0, end }))
        .unwrap();
    let tx = db.begin().unwrap();
    let mut reader = tx.get_stream(&table, "film").unwrap().unwrap();
    let mut expected = Pattern { at: 0, end };
    let (mut found, mut wanted) = (vec![0; 65536], vec![0; 65536]);
    loop {
        let count = reader.read(&mut found).unwrap();
        if count == 0 {
            break;
        }
        expected.read_exact(&mut wanted[..count]).unwrap();
        assert!(found[..count] == wanted[..count]);
    }
    assert_eq!(expected.at, end);
}

#[test]
fn a_failing_source_leaves_nothing() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the line was cut"))
        }
    }
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    let source = || Pattern { at: 0, end: 50_000 }.chain(Failing);
    let error = db
        .update(|tx| tx.put_stream(&table, "k", source()))
        .unwrap_err();
    assert!(matches!(error, Error::Source { .. }), "{error}");
    assert!(error.to_string().contains("the line was cut"));
    assert_eq!(rows(&db, &table), []);
    while !db.maintain().unwrap().is_idle() {}
    assert_sound(&db);
}

#[test]
fn space_of_replaced_deleted_and_rolled_back_values_is_used_again() {
    let disk = Arc::new(sim(1));
    let db = open(&disk, 1).unwrap();
    let table = db.create_table("t").unwrap();
    let mut bytes = Vec::new();
    for round in 0..20u8 {
        db.update(|tx| tx.put(&table, "k", vec![round; 100_000]))
            .unwrap();
        let tx = db.begin().unwrap();
        tx.put(&table, "other", vec![round; 100_000]).unwrap();
        tx.rollback().unwrap();
        if round % 3 == 0 {
            db.update(|tx| tx.delete(&table, "k")).unwrap();
        }
        while !db.maintain().unwrap().is_idle() {}
        assert_sound(&db);
        bytes.push(db.stats().data_bytes);
    }
    assert!(bytes[19] <= 2 * bytes[2], "{bytes:?}");
}

#[test]
fn a_reader_ends_with_its_transaction() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    db.update(|tx| tx.put(&table, "k", vec![1; 100_000]))
        .unwrap();
    let tx = db.begin().unwrap();
    let mut reader = tx.get_stream(&table, "k").unwrap().unwrap();
    let mut some = [0; 10];
    reader.read_exact(&mut some).unwrap();
    drop(tx);
    assert!(reader.read_to_end(&mut Vec::new()).is_err());
}

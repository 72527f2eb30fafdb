//! What redo relies on: resets of pages, and the order of the log.

use crate::support::{assert_sound, crash, open_with, put, rows, sim, small};
use longshore::{Database, DoubleWrite, Durability, Table};
use std::sync::Arc;

const PAGE_BYTES: u64 = 4096;

/// A page that left one table for another needs nothing of what it held before: older changes are not to
/// be tried on it, for its old bytes may be damaged, or may be gone with the end of the file.
#[test]
fn reset_page_is_redone_whatever_its_old_bytes_are() {
    let disk = Arc::new(sim(1));
    // Otherwise the damaged page would be restored before redo sees it.
    let options = || {
        small()
            .log_bytes_max(8 << 20)
            .double_write(DoubleWrite::Off)
    };
    let db = open_with(&disk, 1, options()).unwrap();
    let old = db.create_table("old").unwrap();
    put(&db, &old, "k", "on disk after the checkpoint");
    db.checkpoint().unwrap();
    put(&db, &old, "l", "only in the log");
    let page = page_of_last_row(&db);
    db.drop_table("old").unwrap();
    assert_sound(&db);
    let count = fill_until_taken(&db, page);
    let image = crash(&disk, 1);
    drop((db, old));

    image.flip_bit("data", page * PAGE_BYTES + 100, 3);
    let db = open_with(&image, 2, options()).unwrap();
    let found = rows(&db, &db.table("taker").unwrap());
    assert_eq!(found.len() as u32, count);
    assert_sound(&db);
}

fn page_of_last_row(db: &Database) -> u64 {
    let entries = db.log_entries(None).unwrap().map(Result::unwrap);
    let texts =
        entries.filter(|entry| entry.kind == "row" && entry.text.contains("only in the log"));
    let text = texts.last().unwrap().text;
    let (_, rest) = text.split_once("page ").unwrap();
    rest.split_once(':').unwrap().0.parse().unwrap()
}

/// Adds rows to a new table until it has taken `page`; returns their number.
fn fill_until_taken(db: &Database, page: u64) -> u32 {
    let table = db.create_table("taker").unwrap();
    let taken = format!("page {page}: format node");
    let times = |db: &Database| {
        let entries = db.log_entries(None).unwrap().map(Result::unwrap);
        entries.filter(|entry| entry.text.contains(&taken)).count()
    };
    let before = times(db);
    for count in (0..1000u32).step_by(20) {
        let mut numbers = count..count + 20;
        db.update(|tx| numbers.try_for_each(|n| tx.put(&table, n.to_be_bytes(), [7; 900])))
            .unwrap();
        if times(db) > before {
            return count + 20;
        }
    }
    panic!("the table never took page {page}");
}

const ROWS: u32 = 200;
const ROUNDS: u32 = 8;
/// Changes of a row in its round, so that a round is more log than a batch.
const PASSES: u32 = 40;

/// Less than several threads are worth, but more than one batch. Every page is changed in every batch, no
/// change comes again later, and no page is written meanwhile: a batch out of its turn is a loss.
#[test]
fn log_of_many_batches_is_redone_in_order() {
    let disk = Arc::new(sim(1));
    let options = || small().log_bytes_max(8 << 20).durability(Durability::Os);
    let db = open_with(&disk, 1, options()).unwrap();
    let table = db.create_table("t").unwrap();
    db.update(|tx| (0..ROWS).try_for_each(|row| tx.put(&table, row.to_be_bytes(), value_of(0, 0))))
        .unwrap();
    db.checkpoint().unwrap();
    let written = db.stats().pool.page_writes;
    for round in 0..ROUNDS {
        let before = db.stats().recovery_bytes;
        change_rows_of(&db, &table, round);
        // A batch is an eighth of the pool.
        let bytes = db.stats().recovery_bytes - before;
        assert!(bytes > (512 << 10) / 8, "{bytes} bytes in round {round}");
    }
    sync(&db, &table);
    assert_eq!(db.stats().pool.page_writes, written);
    // Before the drop, which would close the database.
    let image = crash(&disk, 1);
    drop((db, table));
    let db = open_with(&image, 2, options()).unwrap();
    let found = rows(&db, &db.table("t").unwrap());
    for row in 0..ROWS {
        let expected = (row.to_be_bytes().to_vec(), value_of(row % ROUNDS, PASSES));
        assert_eq!(found[row as usize], expected, "row {row}");
    }
    assert_eq!(found.len() as u32, ROWS + 1);
    assert_sound(&db);
}

/// The rows of a round are some of every page.
fn change_rows_of(db: &Database, table: &Table, round: u32) {
    for pass in 1..=PASSES {
        let mut numbers = (round..ROWS).step_by(ROUNDS as usize);
        db.update(|tx| {
            numbers.try_for_each(|row| tx.put(table, row.to_be_bytes(), value_of(round, pass)))
        })
        .unwrap();
    }
}

fn value_of(round: u32, pass: u32) -> Vec<u8> {
    [[round as u8; 100], [pass as u8; 100]].concat()
}

/// A commit behind it makes all that is in the log durable.
fn sync(db: &Database, table: &Table) {
    let tx = db.begin().unwrap();
    tx.put(table, "zlast", "v").unwrap();
    tx.commit_with(Durability::Sync).unwrap().wait().unwrap();
}

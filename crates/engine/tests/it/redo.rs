//! What redo relies on: resets of pages.

use crate::support::{assert_sound, crash, open_with, put, rows, sim, small};
use longshore::{Database, DoubleWrite};
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

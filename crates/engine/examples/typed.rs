//! Keys and values of one's own types: derives, ranges, leading fields, indexes.
//!
//! Run with `cargo run --release -p longshore --example typed`.

use longshore::{Database, IndexSpec, Key, Result, TypedTable, Value};
use std::cmp::Reverse;

/// Keys are ordered by their fields, one after the other.
#[derive(Key, Debug)]
struct Call {
    harbour: String,
    /// The latest first.
    day: Reverse<u32>,
    ship: u64,
}

#[derive(Value, Debug)]
struct Visit {
    cargo: Cargo,
    pilot: Option<String>,
}

#[derive(Value, Debug)]
enum Cargo {
    Empty,
    Bulk { goods: String, tons: u32 },
    Containers(Vec<u64>),
}

fn main() -> Result<()> {
    let db = Database::in_memory()?;
    let calls: TypedTable<Call, Visit> = TypedTable::create(&db, "calls")?;

    db.update(|tx| {
        for (harbour, day, ship, cargo) in log_book() {
            let key = Call {
                harbour: harbour.to_owned(),
                day: Reverse(day),
                ship,
            };
            calls.insert(tx, key, &Visit { cargo, pilot: None })?;
        }
        Ok(())
    })?;

    // All keys with the same leading fields, in order: the latest call comes first.
    let tx = db.begin()?;
    println!("Calls at Gdansk:");
    for row in calls.prefix(&tx, ("Gdansk".to_owned(),))? {
        let (call, visit) = row?;
        println!(
            "  day {}, ship {}: {}",
            call.day.0,
            call.ship,
            words(&visit.cargo)
        );
    }
    tx.commit()?;

    // One row, changed where it is, in a transaction of its own.
    let last = Call {
        harbour: "Gdansk".to_owned(),
        day: Reverse(9),
        ship: 7,
    };
    calls.modify(&db, &last, |visit| {
        visit.pilot = Some("Ada".to_owned());
        Ok(())
    })?;
    let visit = calls.get(&db, &last)?.expect("ship 7 came on day 9");
    println!(
        "Its pilot on day 9 was {}.",
        visit.pilot.as_deref().unwrap_or("nobody")
    );

    // Another way to find the rows: built from those that are there, and kept from now on.
    let by_ship = calls.create_index(
        &db,
        IndexSpec::new("by ship", "ship, day", |call: &Call, _| {
            [(call.ship, call.day.0)]
        }),
    )?;
    let tx = db.begin()?;
    println!("Calls of ship 7:");
    for row in by_ship.prefix(&tx, (7,))? {
        let ((_, day), call, visit) = row?;
        println!("  day {day}, {}: {}", call.harbour, words(&visit.cargo));
    }
    tx.commit()?;

    // Rows that were written as one type are never taken for another.
    let wrong: TypedTable<Call, bool> = TypedTable::open(&db, "calls")?;
    println!("Read as a bool: {}.", wrong.get(&db, &last).unwrap_err());
    db.close()
}

fn log_book() -> [(&'static str, u32, u64, Cargo); 4] {
    let ore = || Cargo::Bulk {
        goods: "ore".to_owned(),
        tons: 40_000,
    };
    [
        ("Gdansk", 3, 12, ore()),
        ("Gdansk", 9, 7, Cargo::Containers(vec![4711, 4712])),
        ("Gdansk", 5, 7, Cargo::Empty),
        ("Gdynia", 4, 12, ore()),
    ]
}

fn words(cargo: &Cargo) -> String {
    match cargo {
        Cargo::Empty => "empty".to_owned(),
        Cargo::Bulk { goods, tons } => format!("{tons} tons of {goods}"),
        Cargo::Containers(numbers) => format!("{} containers", numbers.len()),
    }
}

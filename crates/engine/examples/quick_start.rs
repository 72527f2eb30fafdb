//! Creates a database, writes, reads, closes, reopens.
//!
//! Run with `cargo run --release -p longshore --example quick_start`.

use longshore::{Database, Error, Result};

fn main() -> Result<()> {
    let path = std::env::temp_dir().join(format!("longshore-quick-start-{}", std::process::id()));
    let db = Database::create(&path)?;
    let harbours = db.create_table("harbours")?;

    // Many changes, one transaction: all of them or none.
    db.update(|tx| {
        for (name, country) in HARBOURS {
            tx.insert(&harbours, name, country)?;
        }
        Ok(())
    })?;

    // One row, without a transaction.
    let country = db.get(&harbours, "Gdansk")?.expect("it was inserted");
    println!("Gdansk lies in {}.", text(&country));

    // Ranges come in the order of their keys, from either end.
    let tx = db.begin()?;
    println!("Harbours from M to S:");
    for row in tx.scan(&harbours, "M".."S")? {
        let (name, country) = row?;
        println!("  {} ({})", text(&name), text(&country));
    }
    let last = tx.scan(&harbours, ..)?.next_back().transpose()?;
    println!(
        "The last one of all is {}.",
        text(&last.expect("there are some").0)
    );
    tx.commit()?;

    // An error of our own takes everything back.
    let refused: Result<()> = db.update(|tx| {
        tx.delete_range(&harbours, ..)?;
        Err(Error::other("on second thoughts, no"))
    });
    println!("Deleting all of them: {}.", refused.unwrap_err());

    db.close()?;
    let db = Database::open(&path)?;
    let harbours = db.table("harbours")?;
    let count = db.begin()?.scan(&harbours, ..)?.count();
    println!("After reopening, {count} harbours are there.");
    db.close()?;
    std::fs::remove_dir_all(&path)?;
    Ok(())
}

const HARBOURS: [(&str, &str); 7] = [
    ("Antwerp", "Belgium"),
    ("Gdansk", "Poland"),
    ("Marseille", "France"),
    ("Piraeus", "Greece"),
    ("Rotterdam", "Netherlands"),
    ("Santos", "Brazil"),
    ("Valparaiso", "Chile"),
];

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

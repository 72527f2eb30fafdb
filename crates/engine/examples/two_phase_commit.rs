//! One commit in two databases: both or neither, although the coordinator dies between its two phases.
//!
//! 1. Each database *prepares* its part under the name of the whole. From then on it can do either.
//! 2. The coordinator writes down what it has decided, then tells both.
//!
//! If it dies before it has written that down, nothing is decided, and whoever takes over rolls back what he
//! finds prepared. If it dies afterwards, he commits it.
//!
//! Run with `cargo run --release -p longshore --example two_phase_commit`.

use longshore::{Database, Error, Result, Table};
use std::path::Path;

/// Where the coordinator dies.
#[derive(Clone, Copy, PartialEq)]
enum Dies {
    BeforeItDecides,
    AfterItHasDecided,
}

fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("longshore-two-phase-{}", std::process::id()));
    let outcome = run(&folder);
    std::fs::remove_dir_all(&folder).ok();
    outcome
}

fn run(folder: &Path) -> Result<()> {
    for (name, ada) in [("here", "100"), ("there", "0")] {
        let db = Database::create(folder.join(name))?;
        let accounts = db.create_table("accounts")?;
        db.update(|tx| tx.insert(&accounts, "ada", ada))?;
        db.close()?;
    }
    transfer(folder, "transfer 1", 30, Dies::BeforeItDecides)?;
    resolve(folder)?;
    assert_eq!(balances(folder)?, [100, 0]);

    transfer(folder, "transfer 2", 30, Dies::AfterItHasDecided)?;
    resolve(folder)?;
    assert_eq!(balances(folder)?, [70, 30]);
    Ok(())
}

/// The databases, and the decisions: a table in the first, which the coordinator might have anywhere.
struct Bank {
    dbs: [Database; 2],
    accounts: [Table; 2],
    decisions: Table,
}

impl Bank {
    fn open(folder: &Path) -> Result<Bank> {
        let dbs = [
            Database::open(folder.join("here"))?,
            Database::open(folder.join("there"))?,
        ];
        Ok(Bank {
            accounts: [dbs[0].table("accounts")?, dbs[1].table("accounts")?],
            decisions: dbs[0].table_or_create("decisions")?,
            dbs,
        })
    }
}

/// Moves an amount from the first database to the second, but does not live to see it.
fn transfer(folder: &Path, gid: &str, amount: i64, dies: Dies) -> Result<()> {
    let bank = Bank::open(folder)?;
    for ((db, accounts), change) in bank.dbs.iter().zip(&bank.accounts).zip([-amount, amount]) {
        let tx = db.begin()?;
        let balance = tx.get_for_update(accounts, "ada")?;
        let balance = number(&balance.expect("she has an account"))? + change;
        tx.put(accounts, "ada", balance.to_string())?;
        // Who cannot promise says so here: then all others are rolled back. Letting go of the answer decides nothing.
        let prepared = tx.prepare(gid.as_bytes())?;
        println!("{gid}: one is prepared as transaction {}", prepared.id());
    }
    if dies == Dies::AfterItHasDecided {
        // Durable before anybody is told.
        bank.dbs[0].update(|tx| tx.insert(&bank.decisions, gid, "commit"))?;
    }
    println!("{gid}: the coordinator dies");
    Ok(())
}

/// Finds what waits for a decision, and does what was decided.
fn resolve(folder: &Path) -> Result<()> {
    let bank = Bank::open(folder)?;
    for (db, accounts) in bank.dbs.iter().zip(&bank.accounts) {
        for waiting in db.prepared() {
            let gid = waiting.gid.as_slice();
            // Nobody waits to read what was before. Whoever wants to change it has to.
            assert!(db.get(accounts, "ada")?.is_some());
            let is_decided = bank.dbs[0].get(&bank.decisions, gid)?.is_some();
            match is_decided {
                true => db.commit_prepared(gid)?,
                false => db.rollback_prepared(gid)?,
            }
            let what = ["rolled back", "committed"][usize::from(is_decided)];
            println!("{}: {what}", gid.escape_ascii());
        }
        assert!(db.verify()?.is_sound());
    }
    // All have been told: the decisions are not needed any more.
    bank.dbs[0].update(|tx| tx.delete_range(&bank.decisions, ..))?;
    bank.dbs.into_iter().try_for_each(|db| db.close())
}

fn balances(folder: &Path) -> Result<[i64; 2]> {
    let bank = Bank::open(folder)?;
    let of = |n: usize| {
        let balance = bank.dbs[n].get(&bank.accounts[n], "ada")?;
        number(&balance.expect("she has an account"))
    };
    let balances = [of(0)?, of(1)?];
    println!("Ada has {} here and {} there.\n", balances[0], balances[1]);
    Ok(balances)
}

fn number(text: &[u8]) -> Result<i64> {
    let number = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok());
    number.ok_or_else(|| Error::other("a balance is no number"))
}

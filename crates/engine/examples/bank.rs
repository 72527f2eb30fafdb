//! Many tellers move money between accounts at once; not a cent appears or is lost.
//!
//! Run with `cargo run --release -p longshore --example bank`.

use longshore::{Database, Durability, Options, Result, Table, Transaction};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const ACCOUNTS: u64 = 100;
const OPENING_BALANCE: u64 = 1_000;
const TELLERS: u64 = 8;
const WORKING_DAY: Duration = Duration::from_secs(2);

fn main() -> Result<()> {
    let db = Options::new().durability(Durability::Os).in_memory()?;
    let accounts = db.create_table("accounts")?;
    db.update(|tx| (0..ACCOUNTS).try_for_each(|a| set_balance(tx, &accounts, a, OPENING_BALANCE)))?;
    println!("{ACCOUNTS} accounts, {OPENING_BALANCE} each; {TELLERS} tellers at work ...");

    let (moved, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let end = Instant::now() + WORKING_DAY;
    let outcome: Result<()> = std::thread::scope(|scope| {
        let tellers: Vec<_> = (0..TELLERS)
            .map(|number| {
                let (db, accounts) = (db.clone(), accounts.clone());
                let (moved, refused) = (&moved, &refused);
                scope.spawn(move || -> Result<()> {
                    let mut dice = Dice(number + 1);
                    while Instant::now() < end {
                        let (from, to) = (dice.roll(ACCOUNTS), dice.roll(ACCOUNTS));
                        let amount = dice.roll(200);
                        match transfer(&db, &accounts, from, to, amount)? {
                            true => moved.fetch_add(1, Ordering::Relaxed),
                            false => refused.fetch_add(1, Ordering::Relaxed),
                        };
                    }
                    Ok(())
                })
            })
            .collect();
        // While they work, an auditor counts: every count must come out the same.
        let mut audits = 0;
        while Instant::now() < end {
            assert_eq!(total(&db, &accounts)?, ACCOUNTS * OPENING_BALANCE);
            audits += 1;
            std::thread::sleep(Duration::from_millis(100));
        }
        println!("{audits} audits during the day, all of them right");
        tellers
            .into_iter()
            .try_for_each(|teller| teller.join().expect("a teller panicked"))
    });
    outcome?;

    println!(
        "{} transfers made, {} refused",
        moved.into_inner(),
        refused.into_inner()
    );
    println!(
        "transactions run again after a conflict: {}",
        db.stats().retries
    );
    println!(
        "money at the end: {} (must be {})",
        total(&db, &accounts)?,
        ACCOUNTS * OPENING_BALANCE
    );
    db.close()
}

/// Moves money; false when there is not enough.
fn transfer(db: &Database, accounts: &Table, from: u64, to: u64, amount: u64) -> Result<bool> {
    db.update(|tx| {
        let has = balance(tx, accounts, from)?;
        if has < amount || from == to {
            return Ok(false);
        }
        let other = balance(tx, accounts, to)?;
        set_balance(tx, accounts, from, has - amount)?;
        set_balance(tx, accounts, to, other + amount)?;
        Ok(true)
    })
}

fn balance(tx: &Transaction, accounts: &Table, account: u64) -> Result<u64> {
    let value = tx.get_for_update(accounts, account.to_be_bytes())?;
    Ok(number(&value.expect("the account exists")))
}

fn set_balance(tx: &Transaction, accounts: &Table, account: u64, balance: u64) -> Result<()> {
    tx.put(accounts, account.to_be_bytes(), balance.to_be_bytes())
}

fn total(db: &Database, accounts: &Table) -> Result<u64> {
    db.view(|tx| tx.scan(accounts, ..)?.map(|row| Ok(number(&row?.1))).sum())
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().expect("eight bytes"))
}

/// Xorshift: enough for choosing accounts.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

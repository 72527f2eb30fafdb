//! What transactions do, by workload.
//!
//! | workload | a transaction |
//! |---|---|
//! | append | reads and appends to one to four lists; now and then takes an append back to a savepoint |
//! | register | reads, reads and then writes, or just writes one to four registers |
//! | bank | moves an amount between two accounts, or reads all accounts of a bank, which always add up |
//! | predicate | scans ranges of rows, and by what it saw inserts a row or moves one elsewhere |

use super::client::{Client, Ended};
use super::operation::{Content, Operation};
use super::steps::{Purpose, Steps};
use crate::settings::Workload;
use crate::store::Outcome;
use rand::Rng;
use rand::rngs::SmallRng;

/// Most operations on keys in one transaction.
const OPERATIONS_MAX: usize = 4;
/// Accounts of a bank, and what each holds at first.
const ACCOUNTS: i64 = 8;
const BALANCE: i64 = 100;
/// Positions of a group of rows, and the number of rows from which none is inserted any more.
const POSITIONS: i64 = 1 << 32;
const ROWS_ENOUGH: usize = 12;
/// Keys read in one transaction at the end, and attempts at it.
const READ_AT_ONCE: usize = 16;
const ATTEMPTS_MAX: usize = 100;

/// Runs one transaction.
pub(super) fn transaction(workload: Workload, client: &mut Client) -> Outcome<Ended> {
    match workload {
        Workload::Append => append(client),
        Workload::Register => register(client),
        Workload::Bank => bank(client),
        Workload::Predicate => predicate(client),
    }
}

/// Reads every key that was used.
pub(super) fn read_all(workload: Workload, client: &mut Client) -> Outcome {
    let keys = client.shared.keys.used();
    let at_once = match workload {
        Workload::Append | Workload::Register => READ_AT_ONCE,
        Workload::Bank | Workload::Predicate => 1,
    };
    for keys in keys.chunks(at_once) {
        let intended: Vec<Operation> = keys
            .iter()
            .flat_map(|key| match workload {
                Workload::Append | Workload::Register => vec![Operation::read(*key)],
                Workload::Bank => accounts(*key).map(Operation::read).collect(),
                Workload::Predicate => vec![scan_of(*key)],
            })
            .collect();
        let mut attempts = 0;
        while client.read(&intended, |steps| {
            read_as_intended(workload, steps, &intended)
        })? != Ended::Ok
        {
            attempts += 1;
            if attempts == ATTEMPTS_MAX {
                return Err(format!("keys {keys:?} cannot be read at the end").into());
            }
        }
    }
    Ok(())
}

fn read_as_intended(
    workload: Workload,
    steps: &mut Steps,
    intended: &[Operation],
) -> longshore::Result<()> {
    for operation in intended {
        match operation {
            Operation::Read { key, .. } if workload == Workload::Append => steps.read_list(*key)?,
            Operation::Read { key, .. } => drop(steps.read(*key, Purpose::Look)?),
            Operation::Scan { low, high, .. } => drop(steps.scan(*low, *high)?),
            _ => {}
        }
    }
    Ok(())
}

fn append(client: &mut Client) -> Outcome<Ended> {
    let mut intended = Vec::new();
    for _ in 0..client.random.random_range(1..=OPERATIONS_MAX) {
        let key = client.take_key().key;
        intended.push(match client.random.random() {
            true => Operation::Append {
                key,
                value: client.unique(),
            },
            false => Operation::read(key),
        });
    }
    let body = |steps: &mut Steps| {
        for operation in &intended {
            match operation {
                Operation::Append { key, value } => {
                    if steps.random.random_ratio(1, 16) {
                        steps.append_and_take_back(*key)?;
                    }
                    steps.append(*key, *value)?;
                }
                Operation::Read { key, .. } => steps.read_list(*key)?,
                _ => {}
            }
        }
        Ok(())
    };
    let changes = intended
        .iter()
        .any(|operation| matches!(operation, Operation::Append { .. }));
    match changes {
        true => client.change(&intended, body),
        false => client.read(&intended, body),
    }
}

fn register(client: &mut Client) -> Outcome<Ended> {
    let mut intended = Vec::new();
    for _ in 0..client.random.random_range(1..=OPERATIONS_MAX) {
        let key = client.take_key().key;
        let draw = client.random.random_range(0..16);
        if draw > 0 {
            intended.push(Operation::read(key));
        }
        if draw < 8 {
            let value = Some(Content::Number(client.unique()));
            intended.push(Operation::Write { key, value });
        }
    }
    let body = |steps: &mut Steps| {
        for (at, operation) in intended.iter().enumerate() {
            match *operation {
                Operation::Write {
                    key,
                    value: Some(value),
                } => steps.write(key, value)?,
                Operation::Read { key, .. } => {
                    let next = intended.get(at + 1);
                    let is_written =
                        matches!(next, Some(Operation::Write { key: next, .. }) if *next == key);
                    let purpose = purpose(&mut steps.random, is_written);
                    steps.read(key, purpose)?;
                }
                _ => {}
            }
        }
        Ok(())
    };
    let changes = intended
        .iter()
        .any(|operation| matches!(operation, Operation::Write { .. }));
    match changes {
        true => client.change(&intended, body),
        false => client.read(&intended, body),
    }
}

/// Half of those who change a row say so when they read it.
fn purpose(random: &mut SmallRng, is_written: bool) -> Purpose {
    match is_written && random.random() {
        true => Purpose::Change,
        false => Purpose::Look,
    }
}

fn accounts(bank: i64) -> impl Iterator<Item = i64> {
    (0..ACCOUNTS).map(move |account| bank * ACCOUNTS + account)
}

fn bank(client: &mut Client) -> Outcome<Ended> {
    let bank = client.take_key();
    if bank.is_first {
        return open_bank(client, bank.key);
    }
    if client.random.random_ratio(1, 4) {
        let intended: Vec<Operation> = accounts(bank.key).map(Operation::read).collect();
        return client.read(&intended, |steps| {
            read_as_intended(Workload::Bank, steps, &intended)
        });
    }
    let from = client.random.random_range(0..ACCOUNTS);
    let to = (from + client.random.random_range(1..ACCOUNTS)) % ACCOUNTS;
    let [from, to] = [from, to].map(|account| bank.key * ACCOUNTS + account);
    let written = |key| Operation::Write { key, value: None };
    let intended = [
        Operation::read(from),
        Operation::read(to),
        written(from),
        written(to),
    ];
    client.change(&intended, |steps| transfer(steps, from, to))
}

fn open_bank(client: &mut Client, bank: i64) -> Outcome<Ended> {
    let all: Vec<i64> = accounts(bank).collect();
    let promise = Operation::Bank {
        accounts: all.clone(),
        total: ACCOUNTS * BALANCE,
    };
    let written = all.iter().map(|key| Operation::Write {
        key: *key,
        value: None,
    });
    let intended: Vec<Operation> = std::iter::once(promise).chain(written).collect();
    loop {
        let ended = client.change(&intended, |steps| {
            steps.promise(all.clone(), ACCOUNTS * BALANCE);
            for key in &all {
                let stamp = steps.unique();
                steps.write(
                    *key,
                    Content::Balance {
                        balance: BALANCE,
                        stamp,
                    },
                )?;
            }
            Ok(())
        })?;
        if ended != Ended::Fail {
            return Ok(ended);
        }
    }
}

fn transfer(steps: &mut Steps, from: i64, to: i64) -> longshore::Result<()> {
    let purpose = purpose(&mut steps.random, true);
    let (source, target) = (steps.read(from, purpose)?, steps.read(to, purpose)?);
    // A bank that is not open yet has no accounts.
    let (
        Some(Content::Balance {
            balance: source, ..
        }),
        Some(Content::Balance {
            balance: target, ..
        }),
    ) = (source, target)
    else {
        return Ok(());
    };
    let amount = steps.random.random_range(0..=source.max(0));
    for (key, balance) in [(from, source - amount), (to, target + amount)] {
        let stamp = steps.unique();
        steps.write(key, Content::Balance { balance, stamp })?;
    }
    Ok(())
}

fn scan_of(group: i64) -> Operation {
    Operation::scan(group * POSITIONS, (group + 1) * POSITIONS)
}

/// A position in `group` that was never used: a random place, and there a number of its own.
fn position(random: &mut SmallRng, group: i64, unique: i64) -> i64 {
    const UNIQUE_BITS: u32 = 24;
    let place: i64 = random.random_range(0..POSITIONS >> UNIQUE_BITS);
    group * POSITIONS + (place << UNIQUE_BITS) + unique % (1 << UNIQUE_BITS)
}

fn predicate(client: &mut Client) -> Outcome<Ended> {
    let group = client.take_key().key;
    let whole = (group * POSITIONS, (group + 1) * POSITIONS);
    match client.random.random_range(0..4) {
        // Looks at the whole, and then at a half.
        0 => {
            let half = match client.random.random() {
                true => (whole.0, whole.0 + POSITIONS / 2),
                false => (whole.0 + POSITIONS / 2, whole.1),
            };
            let intended = [whole, half].map(|(low, high)| Operation::scan(low, high));
            client.read(&intended, |steps| {
                read_as_intended(Workload::Predicate, steps, &intended)
            })
        }
        // Looks at one group, and changes it or another.
        kind => {
            let changed = if kind == 1 {
                client.take_key().key
            } else {
                group
            };
            let unique = client.unique();
            let to = position(&mut client.random, changed, unique);
            let row = client.unique();
            let change = Operation::Move {
                row: None,
                from: None,
                to,
            };
            let other = (changed != group).then(|| scan_of(changed));
            let intended: Vec<Operation> = std::iter::once(scan_of(group))
                .chain(other)
                .chain([change])
                .collect();
            client.change(&intended, |steps| {
                let mut rows = steps.scan(whole.0, whole.1)?;
                if changed != group {
                    rows = steps.scan(changed * POSITIONS, (changed + 1) * POSITIONS)?;
                }
                if rows.len() < ROWS_ENOUGH {
                    return steps.insert(row, to);
                }
                let (from, row) = rows[steps.random.random_range(0..rows.len())];
                steps.move_row(row, from, to)
            })
        }
    }
}

//! The workloads that every engine can run: insert, read, update.

use crate::harness::{Done, Measured, Plan, run};
use crate::report::Line;
use crate::settings::{Name, Settings};
use crate::store::{Counts, Outcome, ROWS_PER_COMMIT, Store, VALUE_BYTES};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};
use std::time::Duration;

/// One read in this many is timed: a clock costs as much as a read.
const READS_PER_SAMPLE: u64 = 64;

/// Rows that a reader draws by Zipf's law before the run, and then reads in turn: a draw costs as
/// much as a read.
const READS_DRAWN: usize = 1 << 18;

/// Exponent of the skewed reads.
const ZIPF_EXPONENT: f64 = 0.99;

/// Runs one workload with so many clients.
///
/// # Errors
/// The engine's own.
pub(crate) fn measure(
    engine: &'static str,
    store: &dyn Store,
    settings: &Settings,
    clients: usize,
) -> Outcome<(Line, Measured)> {
    let mut before = None;
    let at_start = || before = store.counts();
    let plan = plan(settings, clients);
    let measured = match settings.name {
        Name::Insert => insert(store, &plan, at_start),
        Name::Update => update(store, &plan, settings.rows, at_start),
        Name::ReadUniform => read(
            store,
            &plan,
            |client| uniform(client, settings.rows),
            at_start,
        ),
        _ => read(store, &plan, |client| zipf(client, settings.rows), at_start),
    }?;
    let workload = settings.name.as_str();
    let line = Line::of(engine, workload, clients, settings.durability, &measured);
    Ok((
        with_counts(line, before, store.counts(), &measured),
        measured,
    ))
}

/// How so many clients are run by these settings.
pub(crate) fn plan(settings: &Settings, clients: usize) -> Plan {
    Plan {
        clients,
        warm_up: settings.warm_up(),
        duration: settings.duration(),
        sample: match settings.name {
            Name::Insert | Name::Update => 1,
            _ => READS_PER_SAMPLE,
        },
    }
}

/// Adds what the engine counted between the two moments, if it counts.
pub(crate) fn with_counts(
    line: Line,
    before: Option<Counts>,
    after: Option<Counts>,
    measured: &Measured,
) -> Line {
    match (before, after) {
        (Some(before), Some(after)) => line.with_counts(&before, &after, measured),
        _ => line,
    }
}

fn insert(store: &dyn Store, plan: &Plan, at_start: impl FnOnce()) -> Outcome<Measured> {
    let client = |client| {
        let mut first = 0;
        move || {
            store.insert(client, first, ROWS_PER_COMMIT)?;
            first += ROWS_PER_COMMIT;
            Ok(Some(Done::operations(ROWS_PER_COMMIT)))
        }
    };
    run(plan, client, at_start)
}

/// Reads rows of the shared table; `rows(client)` tells a client which.
pub(crate) fn read<R: FnMut() -> u64>(
    store: &dyn Store,
    plan: &Plan,
    rows: impl Fn(usize) -> R + Sync,
    at_start: impl FnOnce(),
) -> Outcome<Measured> {
    let client = |client| {
        let mut rows = rows(client);
        let mut value = Vec::new();
        move || {
            let row = rows();
            let found = store.read(row, &mut value)?;
            if !found || value.len() != VALUE_BYTES {
                return Err(format!("row {row} is missing").into());
            }
            Ok(Some(Done::operations(1)))
        }
    };
    run(plan, client, at_start)
}

/// Changes rows `0..rows` of the shared table, all equally likely.
pub(crate) fn update(
    store: &dyn Store,
    plan: &Plan,
    rows: u64,
    at_start: impl FnOnce(),
) -> Outcome<Measured> {
    let client = |client| {
        let mut random = SmallRng::seed_from_u64(client as u64);
        move || {
            let aborts = store.update(random.random_range(0..rows), random.random())?;
            Ok(Some(Done {
                aborts,
                ..Done::operations(1)
            }))
        }
    };
    run(plan, client, at_start)
}

/// Loads the rows `0..rows` into the shared table, each client a share of its own in ascending order.
pub(crate) fn load(
    store: &dyn Store,
    clients: usize,
    rows: u64,
    at_start: impl FnOnce(),
) -> Outcome<Measured> {
    let plan = Plan {
        clients,
        warm_up: Duration::ZERO,
        duration: Duration::MAX,
        sample: 1,
    };
    let share = rows.div_ceil(clients as u64);
    let client = |client| {
        let mut first = share * client as u64;
        let end = (first + share).min(rows);
        move || {
            let count = ROWS_PER_COMMIT.min(end.saturating_sub(first));
            if count == 0 {
                return Ok(None);
            }
            store.load(first, count)?;
            first += count;
            Ok(Some(Done::operations(count)))
        }
    };
    run(&plan, client, at_start)
}

/// Rows `0..rows` by Zipf's law.
fn zipf(client: usize, rows: u64) -> impl FnMut() -> u64 + use<> {
    let mut random = SmallRng::seed_from_u64(client as u64);
    let law = Zipf::new(rows as f64, ZIPF_EXPONENT).expect("rows and exponent are positive");
    let draw = |_| scatter(law.sample(&mut random) as u64 - 1, rows);
    let drawn: Vec<u64> = (0..READS_DRAWN).map(draw).collect();
    let mut turn = 0;
    move || {
        turn = (turn + 1) % READS_DRAWN;
        drawn[turn]
    }
}

/// Rows `0..rows`, all equally likely.
pub(crate) fn uniform(client: usize, rows: u64) -> impl FnMut() -> u64 + use<> {
    let mut random = SmallRng::seed_from_u64(client as u64);
    move || random.random_range(0..rows)
}

/// Gives each rank a row, far from those of neighbouring ranks: what is read often is not neighbours
/// in the tree.
fn scatter(rank: u64, rows: u64) -> u64 {
    /// A prime larger than any table, so that no two ranks share a row.
    const STRIDE: u128 = 0x9e37_79b1_85eb_ca87;
    (u128::from(rank) * STRIDE % u128::from(rows)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    /// A store that only takes notes.
    #[derive(Default)]
    struct Notes {
        inserted: Mutex<Vec<(usize, u64, u64)>>,
        loaded: Mutex<HashSet<u64>>,
        updates: AtomicU64,
    }

    impl Store for Notes {
        fn load(&self, first: u64, count: u64) -> Outcome {
            let mut loaded = self.loaded.lock().unwrap();
            assert!(
                (first..first + count).all(|row| loaded.insert(row)),
                "loaded twice"
            );
            Ok(())
        }

        fn insert(&self, client: usize, first: u64, count: u64) -> Outcome {
            self.inserted.lock().unwrap().push((client, first, count));
            std::thread::sleep(Duration::from_millis(1));
            Ok(())
        }

        fn read(&self, row: u64, value: &mut Vec<u8>) -> Outcome<bool> {
            value.resize(VALUE_BYTES, 0);
            Ok(row != 13)
        }

        fn update(&self, _: u64, _: u64) -> Outcome<u64> {
            Ok(self.updates.fetch_add(1, SeqCst) % 2)
        }
    }

    fn settings(name: Name) -> Settings {
        let mut settings = Settings::of(name);
        settings.seconds = 0.02;
        settings.rows = 1000;
        settings
    }

    #[test]
    fn every_rank_has_a_row_of_its_own() {
        for rows in [1, 2, 999, 1000, 1024] {
            let seen: HashSet<u64> = (0..rows).map(|rank| scatter(rank, rows)).collect();
            assert_eq!(seen.len() as u64, rows);
            assert!(seen.iter().all(|&row| row < rows));
        }
    }

    #[test]
    fn skewed_reads_prefer_few_rows_and_uniform_ones_do_not() {
        let most = |mut rows: Box<dyn FnMut() -> u64>| {
            let mut counts = [0; 1000];
            (0..100_000).for_each(|_| counts[rows() as usize] += 1);
            *counts.iter().max().unwrap()
        };
        assert!(most(Box::new(zipf(0, 1000))) > 8000);
        assert!(most(Box::new(uniform(0, 1000))) < 300);
    }

    #[test]
    fn each_client_inserts_ascending_rows() {
        let store = Notes::default();
        let settings = settings(Name::Insert);
        let (line, measured) = measure("notes", &store, &settings, 2).unwrap();
        assert_eq!(
            (line.engine, line.workload, line.threads),
            ("notes", "insert", 2)
        );
        assert!(measured.total.operations.is_multiple_of(ROWS_PER_COMMIT));
        for client in 0..2 {
            let inserted = store.inserted.lock().unwrap();
            let rows: Vec<u64> = inserted
                .iter()
                .filter(|row| row.0 == client)
                .map(|row| row.1)
                .collect();
            let expected: Vec<u64> = (0..rows.len() as u64)
                .map(|turn| turn * ROWS_PER_COMMIT)
                .collect();
            assert_eq!(rows, expected);
        }
    }

    #[test]
    fn clients_load_every_row_once() {
        for (clients, rows) in [(1, 10), (3, 10_007), (8, 5)] {
            let store = Notes::default();
            let measured = load(&store, clients, rows, || ()).unwrap();
            assert_eq!(measured.total.operations, rows);
            assert_eq!(store.loaded.lock().unwrap().len() as u64, rows);
        }
    }

    #[test]
    fn attempts_given_up_are_told() {
        let (_, measured) =
            measure("notes", &Notes::default(), &settings(Name::Update), 1).unwrap();
        assert!(measured.total.aborts > 0 && measured.total.aborts <= measured.total.operations);
    }

    #[test]
    fn a_missing_row_ends_the_benchmark() {
        let settings = settings(Name::ReadUniform);
        let error = measure("notes", &Notes::default(), &settings, 1).unwrap_err();
        assert_eq!(error.to_string(), "row 13 is missing");
    }
}

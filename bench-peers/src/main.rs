//! Runs the workloads of `longshore bench` over Longshore and its peers in turn, in one process.

mod cache;
mod lmdb;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;

use clap::{Parser, Subcommand, ValueEnum};
use longshore_bench::{BenchError, Engine, LongshoreEngine, Name, Report, Settings, run_engines};
use std::error::Error;
use std::io::stdout;
use std::process::ExitCode;

/// Measure Longshore against other engines, in turn, in one run
#[derive(Parser)]
#[command(name = "bench-peers", version, args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(subcommand)]
    other: Option<Other>,

    /// The engines; the others are compared with the first
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "longshore,lmdb,redb"
    )]
    engines: Vec<Peer>,
    #[command(flatten)]
    settings: Option<Settings>,
}

/// What else can be measured.
#[derive(Subcommand)]
enum Other {
    /// Caches in memory: hits per second, and hit ratios on traces
    Cache(cache::Settings),
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Peer {
    /// This repository's engine
    Longshore,
    /// LMDB, by the crate heed
    Lmdb,
    /// redb
    Redb,
    /// RocksDB's TransactionDB
    #[cfg(feature = "rocksdb")]
    Rocksdb,
}

impl Peer {
    fn engine(self) -> &'static dyn Engine {
        match self {
            Peer::Longshore => &LongshoreEngine,
            Peer::Lmdb => &lmdb::LmdbEngine,
            Peer::Redb => &redb::RedbEngine,
            #[cfg(feature = "rocksdb")]
            Peer::Rocksdb => &rocksdb::RocksdbEngine,
        }
    }
}

fn main() -> ExitCode {
    match run(&CommandLine::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-peers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(line: &CommandLine) -> Result<(), Box<dyn Error>> {
    match (&line.other, &line.settings) {
        (Some(Other::Cache(settings)), _) => cache::run(settings, &mut stdout().lock()),
        (None, Some(settings)) => Ok(run_stores(&line.engines, settings)?),
        (None, None) => unreachable!("clap asks for a workload"),
    }
}

fn run_stores(peers: &[Peer], settings: &Settings) -> Result<(), BenchError> {
    if !matches!(
        settings.name,
        Name::Insert | Name::Read | Name::ReadUniform | Name::Update
    ) {
        return Err(BenchError::Settings {
            option: "the benchmark",
            value: settings.name.as_str().to_owned(),
            allowed: "insert, read, read-uniform or update; the others know only Longshore",
        });
    }
    let engines: Vec<&dyn Engine> = peers.iter().map(|peer| peer.engine()).collect();
    run_engines(
        &engines,
        settings,
        &mut Report::new(stdout().lock(), settings.json),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_bench::{Level, Store, VALUE_BYTES, value};

    /// What a store must do to be compared.
    fn keeps_rows(store: &dyn Store) {
        store.load(0, 10).unwrap();
        store.settle().unwrap();
        let mut found = Vec::new();
        assert!(store.read(9, &mut found).unwrap());
        assert_eq!(found, value(9, 0));
        assert!(!store.read(10, &mut found).unwrap());
        assert_eq!(store.update(9, 7).unwrap(), 0);
        assert!(store.read(9, &mut found).unwrap());
        assert_eq!(found, value(9, 7));
        assert_eq!(found.len(), VALUE_BYTES);
        // A private table is another one.
        store.insert(1, 100, 1000).unwrap();
        store.insert(1, 1100, 1000).unwrap();
        assert!(!store.read(100, &mut found).unwrap());
    }

    #[test]
    fn every_engine_keeps_rows_at_every_level() {
        for level in [Level::None, Level::Os, Level::Sync] {
            for peer in Peer::value_variants() {
                let folder = tempfile::tempdir().unwrap();
                let mut settings = Settings::of(Name::Update);
                settings.durability = level;
                settings.pool_mib = Some(64);
                let store = peer.engine().create(folder.path(), &settings, 2).unwrap();
                keeps_rows(&*store);
            }
        }
    }

    #[test]
    fn benchmarks_of_longshore_alone_are_refused() {
        let line = CommandLine::parse_from(["bench-peers", "pool"]);
        let message = run(&line).unwrap_err().to_string();
        assert!(
            message.contains("pool") && message.contains("insert"),
            "{message}"
        );
    }
}

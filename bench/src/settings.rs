//! What a benchmark can be told.

use crate::error::BenchError;
use clap::{Args, ValueEnum};
use longshore::{Durability, PageTrace, Replacement, TransactionOptions};
use plot::Format;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// The benchmarks, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Name {
    /// Ascending keys into a private table per client, a commit per 1000 rows
    Insert,
    /// One read per transaction from a table in memory, keys by Zipf's law (0.99)
    Read,
    /// Like read, all keys equally likely
    ReadUniform,
    /// One changed row per transaction, keys equally likely
    Update,
    /// The buffer manager alone: hits, fixes, misses, sweeps
    Pool,
    /// More rows than memory: memory used, bytes written per byte committed
    Memory,
    /// Opening after a crash: time to the first answered read
    Restart,
    /// What transactions saw, written down for a checker of isolation
    History,
    /// An order-entry system: TPC-C embedded, without think times
    Tpcc,
}

impl Name {
    /// As on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Name::Insert => "insert",
            Name::Read => "read",
            Name::ReadUniform => "read-uniform",
            Name::Update => "update",
            Name::Pool => "pool",
            Name::Memory => "memory",
            Name::Restart => "restart",
            Name::History => "history",
            Name::Tpcc => "tpcc",
        }
    }
}

/// How a benchmark is run.
#[derive(Clone, Debug, Args)]
pub struct Settings {
    /// What to measure
    pub name: Name,
    /// Numbers of clients, one run each [default: 1,2,8,32; 8 for memory and restart; 32 for history]
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub threads: Vec<usize>,
    /// Length of each measured run; a tenth of it, at most a second, is run ahead to warm up
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Rounds of all runs; more than one end with the medians (not for pool, memory, restart)
    #[arg(long, default_value_t = 1)]
    pub rounds: usize,
    /// How safe a commit is when it is answered
    #[arg(long, value_enum, default_value_t = Level::None)]
    pub durability: Level,
    /// Rows in the table that is read or updated
    #[arg(long, default_value_t = 1_000_000)]
    pub rows: u64,
    /// Memory for pages in MiB [default: 2048; 256 for pool and memory]
    #[arg(long, value_name = "MIB")]
    pub pool_mib: Option<usize>,
    /// Which page leaves memory: a policy as `lirs`, or a form and a policy as `lossy/lirs`
    #[arg(long, value_name = "POLICY", default_value = "nb-gclock")]
    pub replacement: Replacement,
    /// MiB of rows to load (memory) or of log to redo (restart) [default: 4096 and 1024]
    #[arg(long, value_name = "MIB")]
    pub data_mib: Option<u64>,
    /// What the transactions of a history do
    #[arg(long, value_enum, default_value_t = Workload::Append)]
    pub workload: Workload,
    /// The isolation of the transactions of history and tpcc
    #[arg(long, value_enum, default_value_t = Isolation::Serializable)]
    pub isolation: Isolation,
    /// Where a history is written, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Where a history is written besides, in the form that Elle reads
    #[arg(long, value_name = "FILE")]
    pub edn: Option<PathBuf>,
    /// Warehouses of tpcc
    #[arg(long, value_name = "W", default_value_t = 4)]
    pub warehouses: u16,
    /// Only these kinds of transactions of tpcc, each in runs of its own
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KIND,...")]
    pub only: Vec<Only>,
    /// A hundredth of the rows in each warehouse of tpcc, which is not the specification's size
    #[arg(long)]
    pub small: bool,
    /// A transaction that reads stays open during each run of tpcc, and must see one state throughout
    #[arg(long)]
    pub reader: bool,
    /// What the rows and clients of tpcc draw their random numbers from
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub seed: u64,
    /// Folder for the databases, which are removed afterwards [default: the system's for temporary files]
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Draw the throughput of each client by the number of clients: FILE.svg or FILE.png
    #[arg(long, value_name = "FILE")]
    pub figure: Option<PathBuf>,
    /// One JSON object per line instead of a table
    #[arg(long)]
    pub json: bool,
    /// Who is told of each use of a page; one run of one database, then.
    #[arg(skip)]
    pub page_trace: Option<Arc<dyn PageTrace>>,
}

impl Settings {
    /// The defaults for one benchmark.
    pub fn of(name: Name) -> Settings {
        Settings {
            name,
            threads: Vec::new(),
            seconds: 5.0,
            rounds: 1,
            durability: Level::None,
            rows: 1_000_000,
            pool_mib: None,
            replacement: Replacement::Native,
            data_mib: None,
            workload: Workload::Append,
            isolation: Isolation::Serializable,
            out: None,
            edn: None,
            warehouses: 4,
            only: Vec::new(),
            small: false,
            reader: false,
            seed: 0,
            dir: None,
            figure: None,
            json: false,
            page_trace: None,
        }
    }

    /// The settings with the defaults that depend on the benchmark filled in.
    ///
    /// # Errors
    /// [`BenchError::Settings`] when one is out of its range.
    pub fn checked(&self) -> Result<Settings, BenchError> {
        let mut settings = self.clone();
        if settings.threads.is_empty() {
            settings.threads = match self.name {
                Name::Memory | Name::Restart => vec![8],
                Name::History => vec![32],
                _ => vec![1, 2, 8, 32],
            };
        }
        check(
            settings
                .threads
                .iter()
                .all(|count| (1..=512).contains(count)),
            ("--threads", &format!("{:?}", self.threads)),
            "numbers from 1 to 512",
        )?;
        check(
            (0.01..=86_400.0).contains(&self.seconds),
            ("--seconds", &self.seconds.to_string()),
            "from 0.01 to 86400",
        )?;
        check(
            (1..=1000).contains(&self.rounds),
            ("--rounds", &self.rounds.to_string()),
            "from 1 to 1000",
        )?;
        check(
            (1..=1 << 40).contains(&self.rows),
            ("--rows", &self.rows.to_string()),
            "from 1 to 2^40",
        )?;
        check(
            (1..=1 << 20).contains(&self.pool_mib()),
            ("--pool-mib", &self.pool_mib().to_string()),
            "from 1 to 1048576",
        )?;
        check(
            (1..=1 << 24).contains(&self.data_mib()),
            ("--data-mib", &self.data_mib().to_string()),
            "from 1 to 16777216",
        )?;
        check(
            self.warehouses > 0,
            ("--warehouses", "0"),
            "from 1 to 65535",
        )?;
        settings.check_history()?;
        settings.check_figure()?;
        settings.check_trace()?;
        Ok(settings)
    }

    fn check_figure(&self) -> Result<(), BenchError> {
        let Some(figure) = &self.figure else {
            return Ok(());
        };
        let given = figure.display().to_string();
        check(
            Format::of(figure).is_some(),
            ("--figure", &given),
            "a file whose name ends with .svg or .png",
        )?;
        let is_by_clients = match self.name {
            Name::Insert | Name::Read | Name::ReadUniform | Name::Update | Name::Tpcc => true,
            Name::Pool | Name::Memory | Name::Restart | Name::History => false,
        };
        check(
            is_by_clients,
            ("--figure", &format!("with {}", self.name.as_str())),
            "left out: only insert, read, read-uniform, update and tpcc are drawn",
        )
    }

    fn check_trace(&self) -> Result<(), BenchError> {
        if self.page_trace.is_none() {
            return Ok(());
        }
        let is_of_one_database = !matches!(self.name, Name::Pool | Name::Restart);
        check(
            is_of_one_database,
            ("<NAME>", self.name.as_str()),
            "recorded: pool has no database, and restart has several",
        )?;
        check(
            self.threads.len() == 1,
            ("--threads", &format!("{:?}", self.threads)),
            "one number where pages are recorded: each has a database of its own",
        )?;
        check(
            self.rounds == 1,
            ("--rounds", &self.rounds.to_string()),
            "1 where pages are recorded: each has a database of its own",
        )?;
        check(
            self.only.len() < 2,
            ("--only", "several"),
            "one where pages are recorded: each has a database of its own",
        )
    }

    /// Where a figure is wanted, and in which form.
    pub(crate) fn figure(&self) -> Option<(&Path, Format)> {
        let figure = self.figure.as_deref()?;
        Some((figure, Format::of(figure)?))
    }

    /// Settings for each kind of [`Settings::only`] alone; of none, these.
    pub(crate) fn each_alone(&self) -> Vec<Settings> {
        if self.only.is_empty() {
            return vec![self.clone()];
        }
        let alone = |only: &Only| Settings {
            only: vec![*only],
            ..self.clone()
        };
        self.only.iter().map(alone).collect()
    }

    fn check_history(&self) -> Result<(), BenchError> {
        if self.name != Name::History {
            return Ok(());
        }
        check(
            self.threads.len() == 1,
            ("--threads", &format!("{:?}", self.threads)),
            "one number: a history is of one run",
        )?;
        check(
            self.out.is_some(),
            ("--out", ""),
            "given: the file that the history is written to",
        )?;
        check(
            self.edn.is_none() || self.workload != Workload::Predicate,
            ("--edn", "with --workload predicate"),
            "left out: Elle knows no predicates",
        )
    }

    /// Length of each measured run.
    pub fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// Length of the run ahead, which is not measured.
    pub fn warm_up(&self) -> Duration {
        self.duration().div_f64(10.0).min(Duration::from_secs(1))
    }

    /// Memory for pages in MiB.
    pub fn pool_mib(&self) -> usize {
        self.pool_mib.unwrap_or(match self.name {
            Name::Pool | Name::Memory => 256,
            _ => 2048,
        })
    }

    /// MiB of rows, or of log.
    pub fn data_mib(&self) -> u64 {
        self.data_mib.unwrap_or(match self.name {
            Name::Memory => 4096,
            _ => 1024,
        })
    }

    /// The most clients that any run has.
    pub(crate) fn threads_max(&self) -> usize {
        self.threads.iter().copied().max().unwrap_or(1)
    }

    /// A folder for databases, removed when dropped.
    ///
    /// # Errors
    /// [`BenchError::File`].
    pub(crate) fn scratch(&self) -> Result<TempDir, BenchError> {
        let parent = self.dir.clone().unwrap_or_else(std::env::temp_dir);
        let mut builder = tempfile::Builder::new();
        builder.prefix("longshore-bench-");
        builder
            .tempdir_in(&parent)
            .map_err(BenchError::file("create a folder in", &parent))
    }
}

fn check(
    holds: bool,
    given: (&'static str, &str),
    allowed: &'static str,
) -> Result<(), BenchError> {
    let (option, value) = (given.0, given.1.to_owned());
    if holds {
        Ok(())
    } else {
        Err(BenchError::Settings {
            option,
            value,
            allowed,
        })
    }
}

/// What the transactions of a history do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// Append to lists and read them
    Append,
    /// Read and write registers
    Register,
    /// Move amounts between accounts that always add up
    Bank,
    /// Scan ranges of rows, insert and move rows
    Predicate,
}

impl Workload {
    /// As on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Workload::Append => "append",
            Workload::Register => "register",
            Workload::Bank => "bank",
            Workload::Predicate => "predicate",
        }
    }
}

/// The transactions of tpcc that can be run by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Only {
    /// A customer pays
    Payment,
    /// A customer orders some items
    NewOrder,
}

/// How transactions are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Isolation {
    /// As if one after the other
    Serializable,
    /// Each on one state, and of two who change a row one gives way
    Snapshot,
    /// Each statement on what was committed before it
    ReadCommitted,
}

impl Isolation {
    /// What transactions are begun with.
    pub fn options(self) -> TransactionOptions {
        TransactionOptions::new().isolation(match self {
            Isolation::Serializable => longshore::Isolation::Serializable,
            Isolation::Snapshot => longshore::Isolation::Snapshot,
            Isolation::ReadCommitted => longshore::Isolation::ReadCommitted,
        })
    }

    /// As on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Isolation::Serializable => "serializable",
            Isolation::Snapshot => "snapshot",
            Isolation::ReadCommitted => "read-committed",
        }
    }
}

/// How safe a commit is when it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// In the log buffer
    None,
    /// Handed to the operating system
    Os,
    /// On the disk
    Sync,
}

impl Level {
    /// The engine's word for it.
    pub fn durability(self) -> Durability {
        match self {
            Level::None => Durability::None,
            Level::Os => Durability::Os,
            Level::Sync => Durability::Sync,
        }
    }

    /// As on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::None => "none",
            Level::Os => "os",
            Level::Sync => "sync",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        settings: Settings,
    }

    fn parse(line: &str) -> Settings {
        Line::parse_from(line.split_whitespace()).settings
    }

    #[test]
    fn the_command_line_says_it_all() {
        let settings =
            parse("bench update --threads 1,2,8,32 --seconds 2.5 --durability sync --json");
        assert_eq!(settings.name, Name::Update);
        assert_eq!(settings.threads, [1, 2, 8, 32]);
        assert_eq!(settings.duration(), Duration::from_millis(2500));
        assert_eq!(settings.durability, Level::Sync);
        assert!(settings.json);
    }

    #[test]
    fn names_are_those_of_the_command_line() {
        for name in Name::value_variants() {
            assert_eq!(parse(&format!("bench {}", name.as_str())).name, *name);
        }
        for level in Level::value_variants() {
            let line = format!("bench read --durability {}", level.as_str());
            assert_eq!(parse(&line).durability, *level);
        }
    }

    #[test]
    fn the_defaults_of_the_command_line_are_those_of_the_code() {
        let (parsed, of) = (parse("bench read"), Settings::of(Name::Read));
        assert_eq!(format!("{parsed:?}"), format!("{of:?}"));
    }

    #[test]
    fn defaults_depend_on_the_benchmark() {
        let threads = |name| Settings::of(name).checked().unwrap().threads;
        assert_eq!(threads(Name::Insert), [1, 2, 8, 32]);
        assert_eq!(threads(Name::Memory), [8]);
        assert_eq!(Settings::of(Name::Memory).pool_mib(), 256);
        assert_eq!(Settings::of(Name::Restart).data_mib(), 1024);
    }

    #[test]
    fn a_history_is_of_one_run_into_a_file() {
        let refused = |line: &str| parse(line).checked().unwrap_err().to_string();
        assert!(refused("bench history").contains("--out"));
        assert!(refused("bench history --out h --threads 1,2").contains("--threads"));
        let edn = "bench history --out h --workload predicate --edn e";
        assert!(refused(edn).contains("Elle knows no predicates"));
        let settings = parse("bench history --out h --workload bank --edn e").checked();
        assert_eq!(settings.unwrap().threads, [32]);
    }

    #[test]
    fn a_figure_has_a_known_form_and_clients_to_show() {
        let refused = |line: &str| parse(line).checked().unwrap_err().to_string();
        assert!(refused("bench tpcc --figure f.jpg").contains(".svg or .png"));
        assert!(refused("bench tpcc --figure f").contains("--figure f: must be"));
        assert!(refused("bench restart --figure f.svg").contains("only insert"));
        assert!(parse("bench tpcc --figure f.png").checked().is_ok());
    }

    #[test]
    fn several_kinds_are_run_each_alone() {
        let settings = parse("bench tpcc --only new-order,payment");
        let alone = settings.each_alone();
        let kinds: Vec<_> = alone.iter().map(|settings| settings.only.clone()).collect();
        assert_eq!(kinds, [[Only::NewOrder], [Only::Payment]]);
        assert_eq!(parse("bench tpcc").each_alone().len(), 1);
    }

    #[test]
    fn each_refusal_names_option_and_range() {
        type Change = fn(&mut Settings);
        let cases: [(&str, Change); 6] = [
            ("--warehouses", |settings| settings.warehouses = 0),
            ("--threads", |settings| settings.threads = vec![1, 1000]),
            ("--seconds", |settings| settings.seconds = f64::NAN),
            ("--rounds", |settings| settings.rounds = 0),
            ("--rows", |settings| settings.rows = 0),
            ("--pool-mib", |settings| settings.pool_mib = Some(0)),
        ];
        for (option, change) in cases {
            let mut settings = Settings::of(Name::Read);
            change(&mut settings);
            let message = settings.checked().unwrap_err().to_string();
            assert!(
                message.contains(option) && message.contains("must be"),
                "{message}"
            );
        }
    }
}

//! The command line: what may be said, and what `--help` says about it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Parser, Subcommand, ValueEnum};
use longshore::PageTrace;

use crate::exit::CODES;
use crate::input::Format;
use crate::units::parse_bytes;

const EXAMPLES: &str = "\
Examples:
  longshore load db zones examples/data/zones.tsv --key zone
  longshore get db zones Europe/Paris
  longshore scan db zones --prefix America/ --limit 10
  longshore put db zones zone=Moon/Tranquility country=-- latitude=0.67
  longshore dump db zones > zones.jsonl
  longshore verify db

DB is a directory; `load` and `put` create it.";

/// A transactional store in a directory: load records, read them back, look inside.
#[derive(Debug, Parser)]
#[command(name = "longshore", version, after_help = EXAMPLES)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{CODES}"))]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What every command on a database may be told.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// Print JSON, for scripts
    #[arg(long)]
    pub json: bool,

    /// Memory for pages
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    #[arg(default_value = "128M")]
    pub pool_bytes: u64,

    /// Which page leaves memory: a policy as `lirs`, or a form and a policy as `lossy/lirs`; an unknown name
    /// is answered with the list
    #[arg(long, value_name = "POLICY", default_value = "nb-gclock")]
    pub replacement: longshore::Replacement,

    /// Disk space for the log
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    #[arg(default_value = "1G")]
    pub log_bytes_max: u64,

    /// Memory for locks
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    #[arg(default_value = "32M")]
    pub lock_bytes_max: u64,

    /// How safe a change is when the command says it is done
    #[arg(long, value_enum, default_value_t = Durability::Sync)]
    pub durability: Durability,

    /// Size of a page: checked for a database that exists, chosen for one that is created
    /// [default: 8K]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub page_size: Option<u64>,

    /// How files are read and written
    #[arg(long, value_enum, default_value_t = Io::Buffered)]
    pub io: Io,

    /// Who is told of each use of a page.
    #[arg(skip)]
    pub page_trace: Option<Arc<dyn PageTrace>>,
}

/// How safe an answered change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    /// In memory until the database is closed
    None,
    /// Survives the process
    Os,
    /// Survives a power loss
    Sync,
}

/// How files are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Io {
    /// Through the page cache of the operating system
    Buffered,
    /// Past it
    Direct,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Load a file of records into a table
    Load(Load),
    /// Print one row
    Get(Get),
    /// Insert a row, or replace it
    Put(Put),
    /// Delete one row
    Delete(Delete),
    /// Print the rows of a range, in key order
    Scan(Scan),
    /// List the tables
    Tables(Tables),
    /// Give a table another name
    Rename(Rename),
    /// Drop a table with all its rows
    Drop(Drop),
    /// Print figures about a database
    Stat(OnlyDatabase),
    /// List the prepared transactions, or decide on one
    Prepared(Prepared),
    /// Check every page, tree and free-space map
    Verify(OnlyDatabase),
    /// Write tables as files that `load` reads
    Dump(Dump),
    /// Print the records of the log
    Log(Log),
    /// Measure the store on this machine, in a scratch folder
    Bench(longshore_bench::Settings),
    /// Compare replacement policies over traces: which one, and how much memory, for your workload
    #[command(subcommand)]
    Lab(Lab),
}

impl Command {
    /// Where to say who is told of each use of a page.
    ///
    /// # Errors
    /// Why there is nothing to tell.
    pub fn page_trace(&mut self) -> Result<&mut Option<Arc<dyn PageTrace>>, &'static str> {
        let global = match self {
            Command::Load(args) => &mut args.global,
            Command::Get(args) => &mut args.global,
            Command::Put(args) => &mut args.global,
            Command::Delete(args) => &mut args.global,
            Command::Scan(args) => &mut args.global,
            Command::Tables(args) => &mut args.global,
            Command::Rename(args) => &mut args.global,
            Command::Drop(args) => &mut args.global,
            Command::Stat(args) | Command::Verify(args) => &mut args.global,
            Command::Prepared(args) => &mut args.global,
            Command::Dump(args) => &mut args.global,
            Command::Bench(settings) => return Ok(&mut settings.page_trace),
            Command::Log(_) => return Err("`log` reads the log, and no pages"),
            Command::Lab(_) => return Err("`lab` uses no database"),
        };
        Ok(&mut global.page_trace)
    }
}

/// `longshore lab`
#[derive(Debug, Subcommand)]
pub enum Lab {
    #[command(flatten)]
    Answer(lab::Command),
    /// Run another command, and write down which pages it uses: a trace for the others
    Record(Record),
}

/// `longshore lab record`
#[derive(Debug, Args)]
#[command(after_help = "\
The trace has each use of a page that the replacement policy is told of, in the order in which they came (to
within 64 uses of each thread), with its thread and whether it reads, writes or creates the page. A program that
embeds Longshore has its own recorded with `Options::page_trace`.

Examples:
  longshore lab record scan.pages scan db zones --prefix America/
  longshore lab record tpcc.pages bench tpcc --threads 8 --warehouses 2
  longshore lab advise tpcc.pages --page-size 8192")]
pub struct Record {
    /// File for the trace; one that is there is replaced
    pub file: PathBuf,
    /// The command with its arguments, without `longshore` before it
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}

/// `longshore load`
#[derive(Debug, Args)]
#[command(after_help = "\
All or nothing: a new table appears, complete, when the last record is in; until then it does not
exist. It is filled fastest from a file sorted by its key, by whole pages as long as keys ascend. Records for a table that exists are loaded in one transaction, which needs memory for its
locks and log space for its undo; for more than some 100,000 rows say --commit-every, which gives up
all or nothing for parts of that size. Run again with --duplicates replace, such a load completes.

Examples:
  longshore load db zones examples/data/zones.tsv --key zone
  longshore load db people people.csv --key country,id:int --bad-lines 10
  zcat events.jsonl.gz | longshore load db events - --format jsonl --key id")]
pub struct Load {
    /// Directory of the database; created where it is missing
    pub db: String,
    /// Table; created where it is missing
    pub table: String,
    /// File of records: .csv, .tsv, .jsonl; `-` is standard input
    pub file: String,

    /// Columns that form the key, most significant first; `:int` after a name orders as numbers.
    /// May be left out for a table that exists
    #[arg(long, short, value_name = "COLUMN[:int],...", value_delimiter = ',')]
    pub key: Vec<String>,

    /// Format of the file, when its name does not tell
    #[arg(long, short, value_enum)]
    pub format: Option<Format>,

    /// How many bad lines to skip (each is reported) before giving up
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub bad_lines: u64,

    /// What to do with a record whose key is there already
    #[arg(long, value_enum, default_value_t = Duplicates::Refuse)]
    pub duplicates: Duplicates,

    /// Commit after every N rows, so that what is loaded stays loaded whatever comes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub commit_every: Option<u64>,

    /// With --commit-every: print `committed ROWS LINE` after each commit, once it is safe
    #[arg(long, requires = "commit_every")]
    pub report_commits: bool,

    /// No progress bar
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub global: Global,
}

/// What to do with a key that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Duplicates {
    /// It is a bad line
    Refuse,
    /// The new record replaces the old one
    Replace,
    /// The old record stays
    Keep,
}

/// `longshore get`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  longshore get db zones Europe/Paris
  longshore get db people NO 17            a key of two columns
  longshore get db zones Europe/Paris --json")]
pub struct Get {
    /// Directory of the database
    pub db: String,
    /// Table
    pub table: String,
    /// The key: one argument for each column of it
    #[arg(required = true, allow_negative_numbers = true)]
    pub key: Vec<String>,
    #[command(flatten)]
    pub view: ViewArgs,
    #[command(flatten)]
    pub global: Global,
}

/// `longshore put`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  longshore put db zones zone=Moon/Tranquility country=-- latitude=0.67
  longshore put db zones --record '{\"zone\": \"Moon/Tranquility\", \"latitude\": 0.67}'
  longshore put db notes id=1 text=hello --key id:int      creates the table
  longshore put db cache some-key some-value --raw         bare key and value, no columns

The row is replaced as a whole: columns that are not given are gone.")]
pub struct Put {
    /// Directory of the database; created where it is missing, with --key or --raw
    pub db: String,
    /// Table
    pub table: String,
    /// COLUMN=VALUE for each column; with --raw or --hex: KEY VALUE
    #[arg(allow_negative_numbers = true)]
    pub values: Vec<String>,
    /// The whole row as a JSON object
    #[arg(long, value_name = "OBJECT", conflicts_with = "values")]
    pub record: Option<String>,
    /// Create the table where it is missing, keyed by these columns
    #[arg(long, short, value_name = "COLUMN[:int],...", value_delimiter = ',')]
    pub key: Vec<String>,
    #[command(flatten)]
    pub view: ViewArgs,
    #[command(flatten)]
    pub global: Global,
}

/// `longshore delete`
#[derive(Debug, Args)]
pub struct Delete {
    /// Directory of the database
    pub db: String,
    /// Table
    pub table: String,
    /// The key: one argument for each column of it
    #[arg(required = true, allow_negative_numbers = true)]
    pub key: Vec<String>,
    #[command(flatten)]
    pub view: ViewArgs,
    #[command(flatten)]
    pub global: Global,
}

/// `longshore scan`
#[derive(Debug, Args)]
#[command(after_help = "\
Keys of several columns: repeat the option, one column each time; later columns may be left out.

Examples:
  longshore scan db zones --prefix America/ --limit 10
  longshore scan db zones --from Europe/A --to Europe/C --output csv
  longshore scan db people --from NO --from 17 --to SE
  longshore scan db zones --reverse --limit 1")]
pub struct Scan {
    /// Directory of the database
    pub db: String,
    /// Table
    pub table: String,
    /// First key
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub from: Vec<String>,
    /// End: the first key that is not printed any more
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub to: Vec<String>,
    /// Keys that begin so; of several columns, the last one given may go on
    #[arg(long, value_name = "KEY", allow_hyphen_values = true, conflicts_with_all = ["from", "to"])]
    pub prefix: Vec<String>,
    /// From the last key to the first
    #[arg(long, short)]
    pub reverse: bool,
    /// At most N rows
    #[arg(long, short, value_name = "N")]
    pub limit: Option<u64>,
    /// How to print the rows [default: table on a terminal, csv elsewhere]
    #[arg(long, short, value_enum)]
    pub output: Option<Output>,
    #[command(flatten)]
    pub view: ViewArgs,
    #[command(flatten)]
    pub global: Global,
}

/// How rows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Aligned columns, for people
    Table,
    /// CSV with a header
    Csv,
    /// One JSON object per line
    Json,
}

/// How keys and values are written.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct ViewArgs {
    /// Bare keys and values as text, whatever columns the table has
    #[arg(long)]
    pub raw: bool,
    /// Bare keys and values in hexadecimal
    #[arg(long)]
    pub hex: bool,
}

/// `longshore tables`
#[derive(Debug, Args)]
pub struct Tables {
    /// Directory of the database
    pub db: String,
    /// Also the tables that the command keeps for itself, and unfinished loads
    #[arg(long, short)]
    pub all: bool,
    /// Count the rows, which reads them all
    #[arg(long, short)]
    pub count: bool,
    #[command(flatten)]
    pub global: Global,
}

/// `longshore rename`
#[derive(Debug, Args)]
#[command(after_help = "\
All or nothing: after a crash the table has one name or the other.

Example:
  longshore rename db zones timezones")]
pub struct Rename {
    /// Directory of the database
    pub db: String,
    /// Table
    pub table: String,
    /// Its new name, which no table may have
    pub name: String,
    #[command(flatten)]
    pub global: Global,
}

/// `longshore drop`
#[derive(Debug, Args)]
#[command(after_help = "\
All or nothing, and not to be undone: no question is asked. `longshore dump` first keeps a copy.

Example:
  longshore drop db zones")]
pub struct Drop {
    /// Directory of the database
    pub db: String,
    /// Table
    pub table: String,
    #[command(flatten)]
    pub global: Global,
}

/// A command about a whole database.
#[derive(Debug, Args)]
pub struct OnlyDatabase {
    /// Directory of the database
    pub db: String,
    #[command(flatten)]
    pub global: Global,
}

/// `longshore prepared`
#[derive(Debug, Args)]
#[command(after_help = "\
A prepared transaction is one part of a commit that spans several databases. It keeps its locks,
whatever crashes come, until it is told how the whole was decided. Until then `get`, `scan` and
`dump` show what was before it; a row that it has locked cannot be changed, nor a table dropped
that it has used. Without --commit and --rollback, all are listed. A name that none has is exit
code 1.

Examples:
  longshore prepared db
  longshore prepared db --commit \"transfer 7\"
  longshore prepared db --rollback \"transfer 8\"")]
pub struct Prepared {
    /// Directory of the database
    pub db: String,
    /// Commit the transaction of this name
    #[arg(long, value_name = "GID", conflicts_with = "rollback")]
    pub commit: Option<String>,
    /// Roll the transaction of this name back
    #[arg(long, value_name = "GID")]
    pub rollback: Option<String>,
    /// Names in hexadecimal, for those that are not text
    #[arg(long)]
    pub hex: bool,
    #[command(flatten)]
    pub global: Global,
}

/// `longshore dump`
#[derive(Debug, Args)]
#[command(after_help = "\
A dump of a table is one snapshot. What prepared transactions have changed is not in it.

Examples:
  longshore dump db zones > zones.jsonl
  longshore dump db zones --output csv > zones.csv
  longshore dump db --directory backup       every table, one file each")]
pub struct Dump {
    /// Directory of the database
    pub db: String,
    /// Table; may be left out with --directory
    #[arg(required_unless_present = "directory")]
    pub table: Option<String>,
    /// Write files TABLE.jsonl (or .csv) into this directory
    #[arg(long, short, value_name = "DIR")]
    pub directory: Option<String>,
    /// csv or json
    #[arg(long, short, value_enum, default_value_t = DumpFormat::Json)]
    pub output: DumpFormat,
    #[command(flatten)]
    pub view: ViewArgs,
    #[command(flatten)]
    pub global: Global,
}

/// How a dump is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DumpFormat {
    /// CSV with a header
    Csv,
    /// One JSON object per line
    Json,
}

/// `longshore log`
#[derive(Debug, Args)]
#[command(after_help = "\
Columns: log sequence number, transaction, kind, what it says. A database that was not closed cleanly
is recovered first, which adds records.

Examples:
  longshore log db --limit 20
  longshore log db --from 65536 --json")]
pub struct Log {
    /// Directory of the database
    pub db: String,
    /// First log sequence number [default: the oldest record there is]
    #[arg(long, value_name = "LSN")]
    pub from: Option<u64>,
    /// At most N records
    #[arg(long, short, value_name = "N")]
    pub limit: Option<u64>,
    /// Only the records of this transaction
    #[arg(long, value_name = "TXN")]
    pub txn: Option<u64>,
    #[command(flatten)]
    pub global: Global,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn keys_are_split_at_commas() {
        let line = ["longshore", "load", "db", "t", "f.csv", "--key", "a,b:int"];
        let Command::Load(load) = Cli::parse_from(line).command else {
            panic!("load")
        };
        assert_eq!(load.key, ["a", "b:int"]);
    }

    #[test]
    fn negative_numbers_are_keys() {
        let line = ["longshore", "get", "db", "t", "-17", "--json"];
        let Command::Get(get) = Cli::parse_from(line).command else {
            panic!("get")
        };
        assert_eq!(get.key, ["-17"]);
        assert!(get.global.json);
    }
}

//! Scripts: what they may say, and how they are read. The format is told in `testscripts/isolation/README.md`.

use super::anomaly::Anomaly;
use longshore::Isolation;
use std::ops::Bound;
use std::path::{Path, PathBuf};

/// What separates the transcripts, and names their levels.
const SECTION: &str = "--- ";

pub type Keys = (Bound<u64>, Bound<u64>);

/// A file of `testscripts/isolation`.
pub struct Script {
    pub path: PathBuf,
    pub title: String,
    /// Everything above the first transcript, as it stands in the file.
    head: String,
    pub rows: Vec<(u64, u64)>,
    /// A unique index on the values.
    pub has_unique_values: bool,
    pub anomaly: Anomaly,
    pub steps: Vec<Step>,
    pub sections: Vec<Section>,
}

/// What is expected at one level.
pub struct Section {
    pub level: Isolation,
    pub verdict: Verdict,
    pub transcript: String,
}

/// What a level promises about an anomaly, and what the store does at that level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdict {
    pub is_permitted: bool,
    pub occurs: bool,
}

/// One statement of one session.
pub struct Step {
    /// Counted from 1; 0 is all of them.
    pub session: usize,
    /// As it stands in the file, without the session and the name of its answer.
    pub text: String,
    pub statement: Statement,
    /// What the script calls the answer.
    pub name: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    Begin(Begin),
    Get {
        key: u64,
        for_update: bool,
    },
    Scan(Scan),
    Set {
        key: u64,
        value: u64,
    },
    /// Adds to the value of one row, by what it is.
    AddTo {
        key: u64,
        more: u64,
    },
    SetWhere {
        change: Change,
        filter: Filter,
    },
    Insert {
        keys: Keys,
        value: u64,
    },
    Delete(u64),
    DeleteRange(Keys),
    DeleteWhere(Filter),
    Savepoint(String),
    RollbackTo(String),
    Commit,
    Rollback,
    Prepare(String),
    CommitPrepared(String),
    RollbackPrepared(String),
    Restart,
}

impl Statement {
    /// Whether the session has no transaction after it.
    pub fn ends(&self) -> bool {
        matches!(
            self,
            Statement::Commit
                | Statement::Rollback
                | Statement::Prepare(_)
                | Statement::CommitPrepared(_)
                | Statement::RollbackPrepared(_)
                | Statement::Restart
        )
    }
}

/// What a transaction chooses that is not the level of the section.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Begin {
    pub is_read_only: bool,
    pub never_waits: bool,
    pub level: Option<Isolation>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Scan {
    pub keys: Keys,
    pub filter: Filter,
    pub is_reverse: bool,
    pub for_update: bool,
    /// Rows after which the scan ends.
    pub first: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    To(u64),
    Add(u64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Filter {
    All,
    Equals(u64),
    Remainder { divisor: u64, remainder: u64 },
}

impl Change {
    pub fn apply(self, value: u64) -> u64 {
        match self {
            Change::To(new) => new,
            Change::Add(more) => value + more,
        }
    }
}

impl Filter {
    pub fn holds(self, value: u64) -> bool {
        match self {
            Filter::All => true,
            Filter::Equals(wanted) => value == wanted,
            Filter::Remainder { divisor, remainder } => value % divisor == remainder,
        }
    }
}

pub fn level_name(level: Isolation) -> &'static str {
    match level {
        Isolation::Serializable => "serializable",
        Isolation::Snapshot => "snapshot",
        Isolation::ReadCommitted => "read committed",
    }
}

fn level(name: &str) -> Isolation {
    let levels = [
        Isolation::Serializable,
        Isolation::Snapshot,
        Isolation::ReadCommitted,
    ];
    let found = levels.into_iter().find(|level| level_name(*level) == name);
    found.unwrap_or_else(|| panic!("`{name}` is no level"))
}

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testscripts/isolation")
}

impl Script {
    pub fn read(name: &str) -> Script {
        let path = folder().join(name).with_extension("txt");
        let text = std::fs::read_to_string(&path).unwrap();
        Script::parse(path, &text)
    }

    fn parse(path: PathBuf, text: &str) -> Script {
        let mut script = Script {
            path,
            title: String::new(),
            head: String::new(),
            rows: vec![(1, 10), (2, 20)],
            has_unique_values: false,
            anomaly: Anomaly::default(),
            steps: Vec::new(),
            sections: Vec::new(),
        };
        for line in text.lines() {
            if let Some(section) = line.strip_prefix(SECTION) {
                script.sections.push(Section::parse(section));
            } else if let Some(section) = script.sections.last_mut() {
                section.transcript += line;
                section.transcript.push('\n');
            } else {
                script.head += line;
                script.head.push('\n');
                script.parse_line(line);
            }
        }
        script
    }

    fn parse_line(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "" => {}
            "#" if self.title.is_empty() => self.title = rest.trim_end_matches('.').to_owned(),
            "#" => {}
            "rows" => self.rows = rest.split_whitespace().map(row).collect(),
            "index" if rest == "unique value" => self.has_unique_values = true,
            "occurs:" => self.anomaly.add(rest),
            "restart" => self.steps.push(Step {
                session: 0,
                text: word.to_owned(),
                statement: Statement::Restart,
                name: None,
            }),
            _ => self.steps.push(Step::parse(word, rest)),
        }
    }

    /// The file's text with the transcripts as they are in `sections`.
    pub fn text(&self) -> String {
        let mut text = self.head.clone();
        for section in &self.sections {
            let level = level_name(section.level);
            let promise = match section.verdict.is_permitted {
                true => "permitted",
                false => "forbidden",
            };
            let fact = match section.verdict.occurs {
                true => "occurs",
                false => "prevented",
            };
            text += &format!("{SECTION}{level}: {promise}, {fact}\n");
            text += &section.transcript;
        }
        text
    }

    /// How many sessions there are.
    pub fn sessions(&self) -> usize {
        self.steps
            .iter()
            .map(|step| step.session)
            .max()
            .unwrap_or(0)
    }
}

impl Section {
    fn parse(line: &str) -> Section {
        let (name, verdict) = line.split_once(": ").expect("LEVEL: PROMISE, FACT");
        Section {
            level: level(name),
            verdict: match verdict {
                "forbidden, prevented" => Verdict::of(false, false),
                "permitted, prevented" => Verdict::of(true, false),
                "permitted, occurs" => Verdict::of(true, true),
                other => panic!("`{other}` is no verdict that a script may give"),
            },
            transcript: String::new(),
        }
    }
}

impl Verdict {
    fn of(is_permitted: bool, occurs: bool) -> Verdict {
        Verdict {
            is_permitted,
            occurs,
        }
    }
}

impl Step {
    fn parse(session: &str, rest: &str) -> Step {
        let session = session.strip_prefix('T').and_then(|s| s.strip_suffix(':'));
        let session = session.unwrap_or_else(|| panic!("no session says `{rest}`"));
        let (text, name) = match rest.split_once(" as ") {
            Some((text, name)) => (text.trim(), Some(name.trim().to_owned())),
            None => (rest.trim(), None),
        };
        Step {
            session: number(session) as usize,
            text: text.to_owned(),
            statement: Statement::parse(text),
            name,
        }
    }
}

impl Statement {
    fn parse(text: &str) -> Statement {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            ["begin"] => Statement::Begin(Begin::default()),
            ["begin", "read", "only"] => Statement::Begin(Begin {
                is_read_only: true,
                ..Begin::default()
            }),
            ["begin", "without", "waiting"] => Statement::Begin(Begin {
                never_waits: true,
                ..Begin::default()
            }),
            ["begin", "at", ref name @ ..] => Statement::Begin(Begin {
                level: Some(level(&name.join(" "))),
                ..Begin::default()
            }),
            ["get", key] => Statement::Get {
                key: number(key),
                for_update: false,
            },
            ["get", key, "for", "update"] => Statement::Get {
                key: number(key),
                for_update: true,
            },
            ["scan", ref options @ ..] => Statement::Scan(scan(options)),
            ["set", "value", "=", value, ref condition @ ..] => Statement::SetWhere {
                change: Change::To(number(value)),
                filter: filter(condition),
            },
            ["add", more, "to", key] => Statement::AddTo {
                key: number(key),
                more: number(more),
            },
            ["add", more, ref condition @ ..] => Statement::SetWhere {
                change: Change::Add(number(more)),
                filter: filter(condition),
            },
            ["set", key, "=", value] => Statement::Set {
                key: number(key),
                value: number(value),
            },
            ["insert", inserted, "=", value] => Statement::Insert {
                keys: keys(inserted),
                value: number(value),
            },
            ["delete", "where", ..] => Statement::DeleteWhere(filter(&words[1..])),
            ["delete", range] if range.contains("..") => Statement::DeleteRange(keys(range)),
            ["delete", key] => Statement::Delete(number(key)),
            ["savepoint", name] => Statement::Savepoint(name.to_owned()),
            ["rollback", "to", name] => Statement::RollbackTo(name.to_owned()),
            ["commit"] => Statement::Commit,
            ["rollback"] => Statement::Rollback,
            ["prepare", gid] => Statement::Prepare(gid.to_owned()),
            ["commit", "prepared", gid] => Statement::CommitPrepared(gid.to_owned()),
            ["rollback", "prepared", gid] => Statement::RollbackPrepared(gid.to_owned()),
            _ => panic!("`{text}` is no statement"),
        }
    }
}

/// `[KEYS] [reverse] [first N] [for update] [where ...]`
fn scan(mut options: &[&str]) -> Scan {
    let mut scan = Scan {
        keys: (Bound::Unbounded, Bound::Unbounded),
        filter: Filter::All,
        is_reverse: false,
        for_update: false,
        first: usize::MAX,
    };
    loop {
        options = match options {
            [] => return scan,
            ["reverse", rest @ ..] => {
                scan.is_reverse = true;
                rest
            }
            ["first", rows, rest @ ..] => {
                scan.first = number(rows) as usize;
                rest
            }
            ["for", "update", rest @ ..] => {
                scan.for_update = true;
                rest
            }
            ["where", ..] => {
                scan.filter = filter(options);
                return scan;
            }
            [range, rest @ ..] => {
                scan.keys = keys(range);
                rest
            }
        }
    }
}

/// `where value = N`, `where value % N = M`, or nothing.
fn filter(words: &[&str]) -> Filter {
    match *words {
        [] => Filter::All,
        ["where", "value", "=", value] => Filter::Equals(number(value)),
        ["where", "value", "%", divisor, "=", remainder] => Filter::Remainder {
            divisor: number(divisor),
            remainder: number(remainder),
        },
        _ => panic!("`{}` is no condition", words.join(" ")),
    }
}

/// `N`, or `N..M` with both ends, either of which may be left out.
fn keys(text: &str) -> Keys {
    let bound = |key: &str| match key {
        "" => Bound::Unbounded,
        key => Bound::Included(number(key)),
    };
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    (bound(low), bound(high))
}

fn row(text: &str) -> (u64, u64) {
    let (key, value) = text.split_once('=').expect("KEY=VALUE");
    (number(key), number(value))
}

fn number(text: &str) -> u64 {
    text.parse()
        .unwrap_or_else(|_| panic!("`{text}` is no number"))
}

//! When an anomaly has occurred: conditions on the answers that a script's sessions got.

use std::collections::HashMap;

/// Occurs when all conditions of one of its lines hold.
#[derive(Default)]
pub struct Anomaly(Vec<Vec<Condition>>);

/// What a run came to.
#[derive(Default)]
pub struct Outcome {
    /// Answers by name; `end` are the rows in the end.
    pub named: HashMap<String, String>,
    /// What each session's reads returned.
    pub reads: Vec<(usize, String)>,
    pub committed: Vec<usize>,
}

enum Condition {
    Commits(usize),
    /// One of the session's reads had all these rows.
    Saw(usize, Vec<String>),
    Is(String, String),
    IsNot(String, String),
    Has(String, Vec<String>),
    Lacks(String, Vec<String>),
}

impl Anomaly {
    /// Adds a line: conditions with commas between them.
    pub fn add(&mut self, line: &str) {
        self.0.push(line.split(',').map(Condition::parse).collect());
    }

    pub fn occurs(&self, outcome: &Outcome) -> bool {
        assert!(!self.0.is_empty(), "a script says when its anomaly occurs");
        let holds = |line: &Vec<Condition>| line.iter().all(|condition| condition.holds(outcome));
        self.0.iter().any(holds)
    }

    /// The names that its conditions speak of.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .flatten()
            .filter_map(|condition| match condition {
                Condition::Commits(_) | Condition::Saw(..) => None,
                Condition::Is(name, _)
                | Condition::IsNot(name, _)
                | Condition::Has(name, _)
                | Condition::Lacks(name, _) => Some(&name[..]),
            })
    }
}

impl Condition {
    fn parse(text: &str) -> Condition {
        let words: Vec<&str> = text.split_whitespace().collect();
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match words[..] {
            [session, "commits"] => Condition::Commits(number(session)),
            [session, "saw", ref rows @ ..] => Condition::Saw(number(session), owned(rows)),
            [name, "is", "not", ref answer @ ..] => Condition::IsNot(name.into(), answer.join(" ")),
            [name, "is", ref answer @ ..] => Condition::Is(name.into(), answer.join(" ")),
            [name, "has", ref rows @ ..] => Condition::Has(name.into(), owned(rows)),
            [name, "lacks", ref rows @ ..] => Condition::Lacks(name.into(), owned(rows)),
            _ => panic!("`{text}` is no condition"),
        }
    }

    /// A condition on an answer that was never given does not hold.
    fn holds(&self, outcome: &Outcome) -> bool {
        let named = |name: &str| outcome.named.get(name);
        match self {
            Condition::Commits(session) => outcome.committed.contains(session),
            Condition::Saw(session, rows) => outcome
                .reads
                .iter()
                .any(|(reader, read)| reader == session && has_all(read, rows)),
            Condition::Is(name, answer) => named(name) == Some(answer),
            Condition::IsNot(name, answer) => named(name).is_some_and(|given| given != answer),
            Condition::Has(name, rows) => named(name).is_some_and(|given| has_all(given, rows)),
            Condition::Lacks(name, rows) => named(name).is_some_and(|given| !has_all(given, rows)),
        }
    }
}

fn has_all(answer: &str, rows: &[String]) -> bool {
    rows.iter()
        .all(|row| answer.split_whitespace().any(|given| given == row))
}

fn number(session: &str) -> usize {
    let number = session.strip_prefix('T').and_then(|n| n.parse().ok());
    number.unwrap_or_else(|| panic!("`{session}` is no session"))
}

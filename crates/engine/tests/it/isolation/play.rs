//! Plays a script at one level, step by step.
//!
//! # Protocol
//! Each session is a thread. The earliest statement whose session is free is given to it; then we wait until
//! every session has answered or waits for a lock, before the next statement is given. A session waits
//! when [`Database::lock_waits`] says whom for, and no circle is left that the
//! search for deadlocks will break. A session that gave way leaves out the rest of its statements, as does one
//! whose transaction a restart has undone.
//!
//! Beside the sessions, two kinds of readers look on after each statement, which fail if they have to wait: one
//! from before the first statement, which must always see the same; and a new one each time, which must see what the
//! one before it saw unless somebody has committed meanwhile.

use super::anomaly::Outcome;
use super::script::{Script, Statement, Step};
use super::session::{Answer, Session};
use super::store::{FOREVER, Place, shown};
use longshore::{Database, Isolation, LockWaitView, Transaction, TxnId};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

/// The column at which answers begin.
const ANSWER: usize = 44;

/// What was played.
pub struct Played {
    pub transcript: String,
    pub outcome: Outcome,
}

/// The script's side of a session.
struct Line<'a> {
    to: Sender<Statement>,
    from: Receiver<Answer>,
    /// The statement that has not been answered yet.
    pending: Option<&'a Step>,
    has_given_way: bool,
    is_open: bool,
}

struct Play<'a> {
    script: &'a Script,
    place: &'a Place,
    lines: Vec<Line<'a>>,
    onlooker: Transaction,
    /// The rows when the onlooker began, and after the last commit.
    first: String,
    now: String,
    /// Who has prepared what.
    prepared: HashMap<&'a str, usize>,
    played: Played,
}

pub fn play(script: &Script, level: Isolation) -> Played {
    play_with(script, level, |_| {})
}

/// Plays in a database that `prepare` has done something to.
pub fn play_with(script: &Script, level: Isolation, prepare: impl FnOnce(&Database)) -> Played {
    let place = Place::new(script);
    prepare(&place.now().db);
    let mut played = std::thread::scope(|scope| {
        let _release = Release(&place);
        let lines = (0..script.sessions()).map(|_| {
            let (to, statements) = channel();
            let (answers, from) = channel();
            let session = Session::new(&place, level);
            scope.spawn(move || session.serve(statements, answers));
            Line {
                to,
                from,
                pending: None,
                has_given_way: false,
                is_open: false,
            }
        });
        let store = place.now();
        let onlooker = store.reader();
        let first = shown(store.rows(&onlooker));
        let mut play = Play {
            script,
            place: &place,
            lines: lines.collect(),
            onlooker,
            now: first.clone(),
            first,
            prepared: HashMap::new(),
            played: Played {
                transcript: String::new(),
                outcome: Outcome::default(),
            },
        };
        play.run();
        play.end()
    });
    let store = place.now();
    assert!(store.db.prepared().is_empty());
    assert!(store.db.snapshots().is_empty());
    let report = store.db.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.faults);
    let end = shown(store.rows(&store.reader()));
    played.line("end", &end);
    played.outcome.named.insert("end".into(), end);
    played
}

impl<'a> Play<'a> {
    fn run(&mut self) {
        let mut rest: Vec<&Step> = self.script.steps.iter().collect();
        while !rest.is_empty() {
            let is_free =
                |step: &&Step| step.session == 0 || self.lines[step.session - 1].pending.is_none();
            let next = rest.iter().position(is_free);
            let step = rest.remove(next.expect("somebody can go on"));
            match step.statement {
                Statement::Restart => self.restart(step),
                _ => self.step(step),
            }
        }
    }

    /// Crashes, and goes on with what is left: prepared transactions, and what was committed.
    fn restart(&mut self, step: &'a Step) {
        self.place.crash();
        for line in &mut self.lines {
            assert!(line.pending.is_none(), "a session waits at a restart");
            line.has_given_way |= line.is_open;
            line.is_open = false;
            line.pending = Some(step);
            line.to.send(Statement::Restart).unwrap();
        }
        self.settle();
        self.place.reopen(self.script);
        let store = self.place.now();
        self.onlooker = store.reader();
        self.first = shown(store.rows(&self.onlooker));
        assert_eq!(
            self.first, self.now,
            "a restart has changed what was committed"
        );
        self.played.line("restart", "ok");
    }

    fn step(&mut self, step: &'a Step) {
        let text = format!("T{}: {}", step.session, step.text);
        let line = &mut self.lines[step.session - 1];
        if line.has_given_way {
            self.played.line(&text, "-");
            return;
        }
        line.pending = Some(step);
        line.is_open = !step.statement.ends();
        line.to.send(step.statement.clone()).unwrap();
        let mut answers = self.settle();
        // Its own answer first.
        answers.sort_by_key(|(answered, _)| (answered.session != step.session, answered.session));
        if answers
            .first()
            .is_none_or(|(first, _)| first.session != step.session)
        {
            self.played.line(&text, "waits");
        }
        let mut has_committed = false;
        for (answered, answer) in answers {
            let indent = if answered.session == step.session {
                ""
            } else {
                "  "
            };
            let text = format!("{indent}T{}: {}", answered.session, answered.text);
            self.played.line(&text, answer.text());
            has_committed |= self.note(answered, &answer);
        }
        self.look_on(has_committed);
    }

    /// Takes note of an answer; true if it is that of a commit.
    fn note(&mut self, step: &'a Step, answer: &Answer) -> bool {
        let outcome = &mut self.played.outcome;
        match answer {
            Answer::GaveWay(_) => {
                let line = &mut self.lines[step.session - 1];
                line.has_given_way = true;
                line.is_open = false;
                return false;
            }
            Answer::Read(rows) => outcome.reads.push((step.session, rows.clone())),
            Answer::Done(_) | Answer::Refused(_) => {}
        }
        if let Some(name) = &step.name {
            outcome.named.insert(name.clone(), answer.text().to_owned());
        }
        let committed = match (&step.statement, answer) {
            (Statement::Prepare(gid), _) => {
                self.prepared.insert(gid, step.session);
                None
            }
            (Statement::Commit, _) => Some(step.session),
            (Statement::CommitPrepared(gid), Answer::Done(_)) => self.prepared.remove(&gid[..]),
            _ => None,
        };
        outcome.committed.extend(committed);
        committed.is_some()
    }

    /// Waits until every session has answered or waits for a lock; returns the answers.
    fn settle(&mut self) -> Vec<(&'a Step, Answer)> {
        let since = Instant::now();
        let mut answers = Vec::new();
        // Twice in a row: what one look finds is not all of one moment.
        let mut looks = 0;
        while looks < 2 {
            let before = answers.len();
            answers.extend(self.lines.iter_mut().filter_map(Line::answer));
            let pending = self.lines.iter().filter(|line| line.pending.is_some());
            let waits = self.place.now().db.lock_waits();
            let is_settled = answers.len() == before && stand_still(&waits) == pending.count();
            looks = if is_settled { looks + 1 } else { 0 };
            assert!(since.elapsed() < FOREVER / 20, "stuck: {waits:#?}");
            std::thread::sleep(Duration::from_micros(50));
        }
        answers
    }

    /// Reads without waiting, beside whatever the sessions are in the midst of.
    fn look_on(&mut self, has_committed: bool) {
        let store = self.place.now();
        let first = shown(store.rows(&self.onlooker));
        assert_eq!(first, self.first, "what was seen has changed");
        let reader = store.reader();
        let now = shown(store.rows(&reader));
        if now != self.now {
            assert!(has_committed, "{} became {now} without a commit", self.now);
            self.played.line("    committed", &now);
            self.now = now;
        }
    }

    fn end(self) -> Played {
        for (session, line) in self.lines.iter().enumerate() {
            assert!(
                line.pending.is_none() && !line.is_open,
                "T{} does not end",
                session + 1
            );
        }
        self.onlooker.commit().unwrap();
        self.played
    }
}

/// A play that fails lets its sessions go.
struct Release<'a>(&'a Place);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        let db = self.0.now().db;
        while std::thread::panicking() && !db.lock_waits().is_empty() {
            for wait in db.lock_waits() {
                db.cancel(wait.transaction);
            }
            std::thread::yield_now();
        }
    }
}

impl<'a> Line<'a> {
    fn answer(&mut self) -> Option<(&'a Step, Answer)> {
        let step = self.pending?;
        match self.from.try_recv() {
            Ok(answer) => {
                self.pending = None;
                Some((step, answer))
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => panic!("T{} panicked", step.session),
        }
    }
}

impl Answer {
    fn text(&self) -> &str {
        match self {
            Answer::Done(text)
            | Answer::Read(text)
            | Answer::Refused(text)
            | Answer::GaveWay(text) => text,
        }
    }
}

impl Played {
    fn line(&mut self, what: &str, answer: &str) {
        writeln!(self.transcript, "{what:ANSWER$}{answer}").unwrap();
    }
}

/// How many wait for somebody; nobody counts while there is a circle.
fn stand_still(waits: &[LockWaitView]) -> usize {
    let mut left: Vec<&LockWaitView> = waits.iter().filter(|w| !w.waits_for.is_empty()).collect();
    let count = left.len();
    loop {
        let waiting: HashSet<TxnId> = left.iter().map(|wait| wait.transaction).collect();
        let before = left.len();
        // Who waits only for those that run is in no circle.
        left.retain(|wait| wait.waits_for.iter().any(|other| waiting.contains(other)));
        if left.len() == before {
            return if left.is_empty() { count } else { usize::MAX };
        }
    }
}

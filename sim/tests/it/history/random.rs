//! Random histories of a small store that keeps its level: never flagged at that level, flagged above it
//! sooner or later; and changed by hand afterwards, which must be found or at least survived.

use serde_json::Value;
use sim::history::{Level, Order, check};
use sim::rng::Choices;
use std::collections::{BTreeMap, HashMap};

/// How the small store runs its transactions.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Store {
    /// All at once, somewhere between the lines.
    Serial,
    /// On the state at the begin; the first that commits a change of a key wins.
    Snapshot,
    /// On the last state at each step; who meets another's change gives up.
    ReadCommitted,
}

/// What a key names: a list, a register, or the row at a position.
type Key = (&'static str, i64);
/// The values that a key had, each with the number of its commit.
type Versions = Vec<(u64, Option<Vec<i64>>)>;

#[derive(Default)]
struct Simulated {
    versions: BTreeMap<Key, Versions>,
    commits: u64,
    lines: Vec<String>,
    unique: i64,
    next_process: usize,
}

#[derive(Clone, Default)]
struct Client {
    process: usize,
    snapshot: u64,
    steps_left: Option<u64>,
    own: HashMap<Key, Option<Vec<i64>>>,
    done: Vec<String>,
}

impl Simulated {
    fn line(&mut self, process: usize, kind: &str, done: &[String]) {
        let (index, value) = (self.lines.len(), done.join(","));
        self.lines.push(format!(
            "{{\"index\":{index},\"process\":{process},\"time\":{index},\"type\":\"{kind}\",\"value\":[{value}]}}\n"
        ));
    }

    fn unique(&mut self) -> i64 {
        self.unique += 1;
        self.unique
    }

    fn get(&self, client: &Client, key: Key) -> Option<Vec<i64>> {
        if let Some(own) = client.own.get(&key) {
            return own.clone();
        }
        let versions = self.versions.get(&key)?;
        let seen = versions
            .iter()
            .rev()
            .find(|version| version.0 <= client.snapshot);
        seen.and_then(|version| version.1.clone())
    }

    fn rows(&self, client: &Client, low: i64, high: i64) -> Vec<(i64, i64)> {
        let own = client.own.keys();
        let mut positions: Vec<i64> = self
            .versions
            .keys()
            .chain(own)
            .filter(|key| key.0 == "row" && (low..high).contains(&key.1))
            .map(|key| key.1)
            .collect();
        positions.sort_unstable();
        positions.dedup();
        let at = |position| {
            self.get(client, ("row", position))
                .map(|row| (position, row[0]))
        };
        positions.into_iter().filter_map(at).collect()
    }

    /// One operation; none if another's change is in the way.
    fn operate(
        &mut self,
        client: &mut Client,
        choices: &mut Choices,
        others: &[Key],
    ) -> Option<()> {
        let key = choices.below(3) as i64;
        let done = match choices.below(6) {
            0 => {
                let list = self.get(client, ("list", key)).unwrap_or_default();
                format!("[\"r\",{key},{list:?}]")
            }
            1 => {
                let value = self.unique();
                let mut list = self.get(client, ("list", key)).unwrap_or_default();
                list.push(value);
                client.write(("list", key), Some(list), others)?;
                format!("[\"append\",{key},{value}]")
            }
            2 => match self.get(client, ("register", key)) {
                Some(value) => format!("[\"r\",{},{}]", key + 10, value[0]),
                None => format!("[\"r\",{},null]", key + 10),
            },
            3 => {
                let value = self.unique();
                client.write(("register", key), Some(vec![value]), others)?;
                format!("[\"w\",{},{value}]", key + 10)
            }
            4 => {
                let (low, high) = (
                    choices.below(2) as i64 * 500,
                    500 + choices.below(2) as i64 * 500,
                );
                let rows = self.rows(client, low, high.max(low + 1));
                let rows: Vec<String> = rows
                    .iter()
                    .map(|(at, row)| format!("[{at},{row}]"))
                    .collect();
                format!(
                    "[\"scan\",{low},{},[{}]]",
                    high.max(low + 1),
                    rows.join(",")
                )
            }
            _ => {
                let rows = self.rows(client, 0, 1000);
                // Below 1000 and never used before.
                let to = (self.unique() * 7919) % 1000;
                if self.versions.contains_key(&("row", to)) || client.own.contains_key(&("row", to))
                {
                    return Some(());
                }
                if rows.len() < 4 {
                    let row = self.unique();
                    client.write(("row", to), Some(vec![row]), others)?;
                    format!("[\"insert\",{row},{to}]")
                } else {
                    let (from, row) = rows[choices.index(rows.len())];
                    client.write(("row", from), None, others)?;
                    client.write(("row", to), Some(vec![row]), others)?;
                    format!("[\"move\",{row},{from},{to}]")
                }
            }
        };
        client.done.push(done);
        Some(())
    }

    fn commit(&mut self, client: &mut Client) {
        self.commits += 1;
        for (key, value) in client.own.drain() {
            self.versions
                .entry(key)
                .or_default()
                .push((self.commits, value));
        }
    }

    fn is_outdated(&self, client: &Client) -> bool {
        let newest = |key| self.versions.get(key).and_then(|versions| versions.last());
        client
            .own
            .keys()
            .any(|key| newest(key).is_some_and(|version| version.0 > client.snapshot))
    }
}

impl Client {
    fn write(&mut self, key: Key, value: Option<Vec<i64>>, others: &[Key]) -> Option<()> {
        if others.contains(&key) {
            return None;
        }
        self.own.insert(key, value);
        Some(())
    }
}

/// The history of `events` steps of five clients.
fn history(seed: u64, store: Store, events: usize) -> Vec<String> {
    let mut choices = Choices::new(seed);
    let mut simulated = Simulated {
        next_process: 5,
        ..Simulated::default()
    };
    let mut clients: Vec<Client> = (0..5)
        .map(|process| Client {
            process,
            ..Client::default()
        })
        .collect();
    for _ in 0..events {
        let at = choices.index(clients.len());
        let mut client = std::mem::take(&mut clients[at]);
        step(&mut simulated, &mut client, &mut choices, store, &clients);
        clients[at] = client;
    }
    simulated.lines
}

fn step(
    simulated: &mut Simulated,
    client: &mut Client,
    choices: &mut Choices,
    store: Store,
    clients: &[Client],
) {
    let Some(left) = client.steps_left else {
        simulated.line(client.process, "invoke", &[]);
        client.snapshot = simulated.commits;
        client.steps_left = Some(1 + choices.below(4));
        client.done.clear();
        return;
    };
    if store != Store::Snapshot {
        client.snapshot = simulated.commits;
    }
    let locked: Vec<Key> = match store {
        Store::ReadCommitted => clients
            .iter()
            .flat_map(|other| other.own.keys().copied())
            .collect(),
        _ => Vec::new(),
    };
    let steps = if store == Store::Serial {
        left
    } else {
        left.min(1)
    };
    for _ in 0..steps {
        if simulated.operate(client, choices, &locked).is_none() {
            return end(simulated, client, "fail");
        }
    }
    client.steps_left = Some(left - steps);
    if client.steps_left != Some(0) {
        return;
    }
    let outdated = store == Store::Snapshot && simulated.is_outdated(client);
    if outdated || choices.one_in(12) {
        return end(
            simulated,
            client,
            if choices.one_in(4) { "info" } else { "fail" },
        );
    }
    simulated.commit(client);
    end(
        simulated,
        client,
        if choices.one_in(20) { "info" } else { "ok" },
    );
}

fn end(simulated: &mut Simulated, client: &mut Client, kind: &str) {
    let done = std::mem::take(&mut client.done);
    simulated.line(client.process, kind, &done);
    client.own.clear();
    client.steps_left = None;
    if kind == "info" {
        client.process = simulated.next_process;
        simulated.next_process += 1;
    }
}

fn is_valid(lines: &[String], level: Level) -> Result<bool, String> {
    match check(lines.concat().as_bytes(), level, Order::Strict) {
        Ok(report) => Ok(report.valid),
        Err(error) => Err(error.to_string()),
    }
}

const SEEDS: std::ops::Range<u64> = 1..300;
const EVENTS: usize = 250;

#[test]
fn what_a_store_promises_is_never_flagged() {
    for (store, level) in [
        (Store::Serial, Level::Serializable),
        (Store::Snapshot, Level::Snapshot),
        (Store::ReadCommitted, Level::ReadCommitted),
    ] {
        for seed in SEEDS {
            let lines = history(seed, store, EVENTS);
            let report = check(lines.concat().as_bytes(), level, Order::Strict);
            let report = report.unwrap_or_else(|error| panic!("{store:?}, seed {seed}: {error}"));
            assert!(report.valid, "{store:?}, seed {seed}:\n{report}");
        }
    }
}

#[test]
fn what_a_store_does_not_promise_is_found() {
    for (store, level, anomalies) in [
        (Store::Snapshot, Level::Serializable, &["G2-item", "G2"][..]),
        (
            Store::ReadCommitted,
            Level::Snapshot,
            &["lost-update", "G-single", "G2-item", "G2"][..],
        ),
    ] {
        let mut met: BTreeMap<String, u32> = BTreeMap::new();
        for seed in SEEDS {
            let lines = history(seed, store, EVENTS);
            let report = check(lines.concat().as_bytes(), level, Order::Strict).unwrap();
            for found in report.found {
                *met.entry(found.anomaly).or_default() += 1;
            }
        }
        for anomaly in anomalies {
            assert!(
                met.contains_key(*anomaly),
                "{store:?}: no {anomaly} in {met:?}"
            );
        }
    }
}

#[test]
fn a_value_that_nobody_wrote_is_found_wherever_it_is_put() {
    for seed in SEEDS {
        let mut lines = history(seed, Store::Serial, EVENTS);
        let mut choices = Choices::new(seed);
        let reads: Vec<usize> = (0..lines.len())
            .filter(|at| lines[*at].contains("\"ok\"") && lines[*at].contains("[\"r\",0,["))
            .collect();
        if reads.is_empty() {
            continue;
        }
        let at = reads[choices.index(reads.len())];
        let open = lines[at].find("[\"r\",0,[").expect("chosen so") + "[\"r\",0,[".len();
        let comma = if lines[at][open..].starts_with(']') {
            ""
        } else {
            ","
        };
        lines[at].insert_str(open, &format!("999999{comma}"));
        assert_eq!(
            is_valid(&lines, Level::ReadCommitted),
            Ok(false),
            "seed {seed}, line {at}"
        );
    }
}

#[test]
fn an_append_that_was_seen_must_not_have_failed() {
    let mut changes = 0;
    for seed in SEEDS {
        let lines = history(seed, Store::Serial, EVENTS);
        let parsed: Vec<Value> = lines
            .iter()
            .map(|line| serde_json::from_str(line).expect("written here"))
            .collect();
        let operations = |at: usize, name: &'static str| {
            let is_ok = parsed[at]["type"] == "ok";
            let all = parsed[at]["value"].as_array().expect("a list").iter();
            all.filter(move |operation| is_ok && operation[0] == name)
        };
        let is_seen = |at: usize, append: &Value| {
            let others = (0..parsed.len()).filter(|other| *other != at);
            others.flat_map(|other| operations(other, "r")).any(|read| {
                let list = read[2].as_array();
                read[1] == append[1] && list.is_some_and(|list| list.contains(&append[2]))
            })
        };
        for at in (0..lines.len()).filter(|at| operations(*at, "append").any(|op| is_seen(*at, op)))
        {
            let mut changed = lines.clone();
            changed[at] = changed[at].replace("\"ok\"", "\"fail\"");
            let valid = is_valid(&changed, Level::ReadCommitted);
            assert_eq!(valid, Ok(false), "seed {seed}, line {}", at + 1);
            changes += 1;
        }
    }
    assert!(changes > 1000, "{changes} changes only");
}

#[test]
fn no_damage_makes_the_checker_panic() {
    for seed in SEEDS {
        let mut choices = Choices::new(seed);
        let lines = history(seed, Store::Snapshot, 120);
        for _ in 0..20 {
            let mut changed = lines.clone();
            for _ in 0..1 + choices.below(3) {
                let (a, b) = (choices.index(changed.len()), choices.index(changed.len()));
                match choices.below(4) {
                    0 => changed.swap(a, b),
                    1 => drop(changed.remove(a)),
                    2 => changed[a] = changed[b].clone(),
                    _ => {
                        let digit = char::from(b'0' + choices.below(10) as u8);
                        let from = char::from(b'0' + choices.below(10) as u8);
                        changed[a] = changed[a].replacen(from, &digit.to_string(), 2);
                    }
                }
            }
            // Sound or not, refused or not: an answer is all that is asked.
            let _ = is_valid(&changed, Level::Serializable);
        }
    }
}

//! One measured run, as a line of JSON or a row of a table.

use crate::harness::Measured;
use crate::settings::Level;
use crate::store::Counts;
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::{self, Write};

/// The result of one run. Fields are part of the command's interface; the README lists them.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The engine.
    pub engine: &'static str,
    /// The benchmark.
    pub workload: &'static str,
    /// Clients.
    pub threads: usize,
    /// How safe a commit was when it was answered.
    pub durability: &'static str,
    /// Operations per second over all clients.
    pub ops_per_second: f64,
    /// Median time of a call, in microseconds.
    pub p50_us: f64,
    /// Time that 99 of 100 calls stay below, in microseconds.
    pub p99_us: f64,
    /// Attempts given up and repeated.
    pub aborts: u64,
    /// Times that a thread had to wait for something short of a lock, per million page fixes.
    pub blocked_per_million_fixes: Option<f64>,
    /// Bytes of log per operation.
    pub log_bytes_per_op: Option<f64>,
    /// What only this benchmark tells.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Line {
    /// The line of a measured run.
    pub(crate) fn of(
        engine: &'static str,
        workload: &'static str,
        threads: usize,
        durability: Level,
        run: &Measured,
    ) -> Line {
        let line = Line {
            engine,
            workload,
            threads,
            durability: durability.as_str(),
            ops_per_second: rounded(run.operations_per_second()),
            p50_us: run.total.latency_us(0.5),
            p99_us: run.total.latency_us(0.99),
            aborts: run.total.aborts,
            blocked_per_million_fixes: None,
            log_bytes_per_op: None,
            more: Map::new(),
        };
        let processor_ns = run.processor_ns_per_operation().map(rounded);
        let client_ns = run.client_ns_per_operation().map(rounded);
        line.with_some("cpu_ns_per_op", processor_ns)
            .with_some("client_cpu_ns_per_op", client_ns)
    }

    /// Adds a figure of this benchmark's own.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Line {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a figure that not every system or engine can tell.
    pub(crate) fn with_some(self, name: &str, value: Option<impl Into<Value>>) -> Line {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds what the engine counted during the run.
    pub(crate) fn with_counts(mut self, before: &Counts, after: &Counts, run: &Measured) -> Line {
        let per_operation = |count: u64| count as f64 / run.total.operations.max(1) as f64;
        let fixes = after.fixes - before.fixes;
        let blocked: u64 = differences(&before.blocked, &after.blocked)
            .map(|(_, n)| n)
            .sum();
        let per_million = blocked as f64 * 1e6 / fixes.max(1) as f64;
        self.blocked_per_million_fixes = Some(rounded(per_million));
        self.log_bytes_per_op = Some(rounded(per_operation(after.log_bytes - before.log_bytes)));
        self = self.with("fixes_per_op", rounded(per_operation(fixes)));
        let waits = differences(&before.blocked, &after.blocked);
        for (name, count) in waits.chain(differences(&before.others, &after.others)) {
            if count > 0 {
                self = self.with(name, count);
            }
        }
        self
    }
}

/// How much each named count has grown.
fn differences<'a>(
    before: &'a [(&'static str, u64)],
    after: &'a [(&'static str, u64)],
) -> impl Iterator<Item = (&'static str, u64)> + use<'a> {
    let pairs = before.iter().zip(after);
    pairs.map(|(before, after)| (after.0, after.1.saturating_sub(before.1)))
}

/// Writes lines as they come, for a person or for a script.
pub struct Report<W: Write> {
    out: W,
    json: bool,
    headed: bool,
}

impl<W: Write> Report<W> {
    /// A report to `out`.
    pub fn new(out: W, json: bool) -> Report<W> {
        Report {
            out,
            json,
            headed: false,
        }
    }

    /// Writes one line.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&mut self, line: &Line) -> io::Result<()> {
        if self.json {
            serde_json::to_writer(&mut self.out, line)?;
            writeln!(self.out)?;
        } else {
            self.write_row(line)?;
        }
        self.out.flush()
    }

    fn write_row(&mut self, line: &Line) -> io::Result<()> {
        if !self.headed {
            self.headed = true;
            writeln!(
                self.out,
                "{:<10} {:<18} {:>7} {:>5} {:>12} {:>10} {:>10} {:>7} {:>9} {:>8}",
                "engine",
                "workload",
                "threads",
                "safe",
                "ops/s",
                "p50 us",
                "p99 us",
                "aborts",
                "blocked/M",
                "log B/op"
            )?;
        }
        let optional = |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{v:.1}"));
        writeln!(
            self.out,
            "{:<10} {:<18} {:>7} {:>5} {:>12.0} {:>10.2} {:>10.2} {:>7} {:>9} {:>8}",
            line.engine,
            line.workload,
            line.threads,
            line.durability,
            line.ops_per_second,
            line.p50_us,
            line.p99_us,
            line.aborts,
            optional(line.blocked_per_million_fixes),
            optional(line.log_bytes_per_op)
        )?;
        let (parts, figures): (Vec<_>, Vec<_>) =
            line.more.iter().partition(|(_, value)| value.is_object());
        if !figures.is_empty() {
            writeln!(self.out, "{:<10} {}", "", listed(figures))?;
        }
        // A row for each part that has figures of its own.
        for (_, parts) in parts {
            for (name, figures) in parts.as_object().into_iter().flatten() {
                let figures = figures.as_object().into_iter().flatten();
                writeln!(self.out, "{:<10} {name:<22} {}", "", listed(figures))?;
            }
        }
        Ok(())
    }
}

fn listed<'a>(figures: impl IntoIterator<Item = (&'a String, &'a Value)>) -> String {
    let figures = figures.into_iter();
    let shown: Vec<String> = figures
        .map(|(name, value)| format!("{name} {}", shown(value)))
        .collect();
    shown.join(", ")
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Two digits behind the point suffice for every figure here.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Bytes as MiB.
pub(crate) fn mib(bytes: u64) -> f64 {
    rounded(bytes as f64 / (1 << 20) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Tally;
    use std::time::Duration;

    fn measured() -> Measured {
        let mut total = Tally::new();
        (1..=100).for_each(|us| total.latency.record(us * 1000).unwrap());
        (total.operations, total.aborts) = (500, 3);
        Measured::of(total, Duration::from_secs(2), Some(Duration::from_secs(1)))
    }

    fn line() -> Line {
        Line::of("ours", "update", 8, Level::Os, &measured())
    }

    fn written(json: bool, lines: &[Line]) -> String {
        let mut out = Vec::new();
        let mut report = Report::new(&mut out, json);
        lines.iter().for_each(|line| report.write(line).unwrap());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn json_has_all_fields_also_those_without_a_value() {
        let text = written(true, &[line().with("extra", 7)]);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["engine"], "ours");
        assert_eq!(value["workload"], "update");
        assert_eq!(value["threads"], 8);
        assert_eq!(value["durability"], "os");
        assert_eq!(value["ops_per_second"], 250.0);
        assert!((value["p50_us"].as_f64().unwrap() - 50.0).abs() < 1.0);
        assert!((value["p99_us"].as_f64().unwrap() - 99.0).abs() < 1.0);
        assert_eq!(value["aborts"], 3);
        assert_eq!(value.get("blocked_per_million_fixes"), Some(&Value::Null));
        assert_eq!(value.get("log_bytes_per_op"), Some(&Value::Null));
        assert_eq!(value["cpu_ns_per_op"], 2e6);
        assert_eq!(value["extra"], 7);
    }

    #[test]
    fn a_table_has_one_header_and_columns_that_align() {
        let text = written(false, &[line(), line()]);
        // Lines that are set in hold the figures without a column.
        let (more, rows): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.starts_with(' '));
        assert_eq!((rows.len(), more.len()), (3, 2));
        assert!(rows[0].starts_with("engine"));
        assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{text}");
        assert!(more[0].contains("cpu_ns_per_op"), "{text}");
    }

    #[test]
    fn parts_have_rows_of_their_own() {
        let parts = serde_json::json!({"payment": {"p50_us": 7}, "delivery": {"p50_us": 9}});
        let text = written(false, &[line().with("transactions", parts)]);
        let rows: Vec<Vec<&str>> = text
            .lines()
            .skip(3)
            .map(|row| row.split_whitespace().collect())
            .collect();
        assert_eq!(
            rows,
            [["payment", "p50_us", "7"], ["delivery", "p50_us", "9"]]
        );
    }

    #[test]
    fn counts_are_those_of_the_run_alone() {
        let before = Counts {
            log_bytes: 1000,
            fixes: 1_000_000,
            blocked: vec![("latch_waits", 5), ("log_waits", 1)],
            others: vec![("evictions", 9)],
        };
        let after = Counts {
            log_bytes: 51_000,
            fixes: 3_000_000,
            blocked: vec![("latch_waits", 8), ("log_waits", 2)],
            others: vec![("evictions", 9)],
        };
        let line = line().with_counts(&before, &after, &measured());
        assert_eq!(line.log_bytes_per_op, Some(100.0));
        assert_eq!(line.blocked_per_million_fixes, Some(2.0));
        assert_eq!(line.more["latch_waits"], 3);
        assert!(
            !line.more.contains_key("evictions"),
            "nothing is said of what did not happen"
        );
    }
}

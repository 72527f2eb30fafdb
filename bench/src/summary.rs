//! The medians of several rounds, and how the engines compare.

use crate::report::{Line, rounded};
use serde_json::Map;

/// Median lines, in the order in which the engines first appear: one per engine, workload and number of
/// threads. Those of the first engine tell how many times as fast it was as each other one.
pub(crate) fn medians(lines: &[Line]) -> Vec<Line> {
    let mut medians: Vec<Line> = Vec::new();
    for line in lines {
        if !medians.iter().any(|known| same_run(known, line)) {
            let rounds: Vec<&Line> = lines.iter().filter(|other| same_run(other, line)).collect();
            medians.push(median(&rounds));
        }
    }
    medians.sort_by_key(|line| line.threads);
    for at in 0..medians.len() {
        let ratios = ratios(&medians[at], &medians, lines[0].engine);
        medians[at].more.extend(ratios);
    }
    medians
}

fn same_run(one: &Line, other: &Line) -> bool {
    one.engine == other.engine && one.workload == other.workload && one.threads == other.threads
}

fn median(rounds: &[&Line]) -> Line {
    let of =
        |figure: &dyn Fn(&Line) -> f64| middle(rounds.iter().map(|line| figure(line)).collect());
    let of_some = |figure: &dyn Fn(&Line) -> Option<f64>| {
        let values: Vec<f64> = rounds.iter().filter_map(|line| figure(line)).collect();
        (!values.is_empty()).then(|| middle(values))
    };
    let line = Line {
        ops_per_second: of(&|line| line.ops_per_second),
        p50_us: of(&|line| line.p50_us),
        p99_us: of(&|line| line.p99_us),
        aborts: of(&|line| line.aborts as f64) as u64,
        blocked_per_million_fixes: of_some(&|line| line.blocked_per_million_fixes),
        log_bytes_per_op: of_some(&|line| line.log_bytes_per_op),
        more: shared(rounds),
        ..rounds[0].clone()
    };
    // Those of the benchmarks' own figures that stay comparable.
    let own = |name: &'static str| of_some(&|line: &Line| line.more.get(name)?.as_f64());
    let line = line.with("median_of", rounds.len());
    [
        "cpu_ns_per_op",
        "tpmc",
        "syncs_per_second",
        "commits_per_sync",
        "syncs_undisturbed_per_second",
        "commits_per_sync_undisturbed",
    ]
    .into_iter()
    .fold(line, |line, name| line.with_some(name, own(name)))
}

/// What all rounds tell alike, such as their isolation.
fn shared(rounds: &[&Line]) -> Map<String, serde_json::Value> {
    let more = rounds[0].more.iter();
    let is_shared = |(name, value): &(&String, &serde_json::Value)| {
        rounds
            .iter()
            .all(|line| line.more.get(*name) == Some(value))
    };
    more.filter(is_shared)
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The first engine's speed as a multiple of each other's.
fn ratios(line: &Line, medians: &[Line], first: &str) -> Map<String, serde_json::Value> {
    let is_first = line.engine == first;
    medians
        .iter()
        .filter(|other| is_first && other.engine != first)
        .filter(|other| other.threads == line.threads && other.workload == line.workload)
        .map(|other| {
            let ratio = rounded(line.ops_per_second / other.ops_per_second);
            (format!("times_{}", other.engine), ratio.into())
        })
        .collect()
}

/// The middle value, or the mean of the two in the middle.
pub(crate) fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 {
        values[half]
    } else {
        (values[half - 1] + values[half]) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(engine: &'static str, threads: usize, ops_per_second: f64) -> Line {
        Line {
            engine,
            workload: "insert",
            threads,
            durability: "none",
            ops_per_second,
            p50_us: 1.0,
            p99_us: 2.0,
            aborts: 0,
            blocked_per_million_fixes: None,
            log_bytes_per_op: None,
            more: Map::new(),
        }
    }

    #[test]
    fn the_middle_of_odd_and_even() {
        assert_eq!(middle(vec![9.0, 1.0, 2.0]), 2.0);
        assert_eq!(middle(vec![4.0, 1.0, 2.0, 9.0]), 3.0);
    }

    #[test]
    fn workloads_are_told_apart() {
        let payment = || Line {
            workload: "tpcc-payment",
            ..line("ours", 1, 70.0)
        };
        let lines = [
            line("ours", 1, 30.0),
            payment(),
            line("ours", 1, 30.0),
            payment(),
        ];
        let shown: Vec<_> = medians(&lines)
            .iter()
            .map(|m| (m.workload, m.ops_per_second))
            .collect();
        assert_eq!(shown, [("insert", 30.0), ("tpcc-payment", 70.0)]);
    }

    #[test]
    fn one_slow_round_does_not_count_and_ratios_are_the_first_engines() {
        let mut lines = Vec::new();
        for (round, (ours, theirs)) in [(300.0, 100.0), (1.0, 150.0), (310.0, 160.0)]
            .into_iter()
            .enumerate()
        {
            let first = line("ours", 1, ours).with("isolation", "snapshot");
            lines.extend([first.with("round", round), line("theirs", 1, theirs)]);
            lines.extend([line("ours", 2, 2.0 * ours), line("theirs", 2, theirs)]);
        }
        let medians = medians(&lines);
        let shown: Vec<_> = medians
            .iter()
            .map(|m| (m.engine, m.threads, m.ops_per_second))
            .collect();
        assert_eq!(
            shown,
            [
                ("ours", 1, 300.0),
                ("theirs", 1, 150.0),
                ("ours", 2, 600.0),
                ("theirs", 2, 150.0)
            ]
        );
        assert_eq!(medians[0].more["times_theirs"], 2.0);
        assert_eq!(medians[2].more["times_theirs"], 4.0);
        assert_eq!(medians[0].more["median_of"], 3);
        assert_eq!(medians[0].more["isolation"], "snapshot");
        assert!(!medians[0].more.contains_key("round"));
        assert!(!medians[1].more.contains_key("times_ours"));
    }
}

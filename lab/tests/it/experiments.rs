//! The papers' experiments, made so small that they say nothing: each must run, and be shown in every form.

use lab::Progress;
use lab::experiments::{Bench, EXPERIMENTS, Plan, figure, markdown, objects, print};
use std::time::Duration;

#[test]
fn every_experiment_runs_and_is_shown() {
    let plan = Plan {
        threads: Vec::new(),
        capacities: vec![64, 128],
        workload: Some("zipf:pages=300,requests=3000".to_string()),
        duration: Duration::from_millis(2),
        rounds: 1,
        dir: None,
        is_quick: true,
    };
    let progress = Progress::hidden();
    let mut bench = Bench::new(&plan, &progress);
    for about in EXPERIMENTS {
        let findings = about
            .run(&mut bench)
            .unwrap_or_else(|error| panic!("{}: {error}", about.name));
        for table in &findings.tables {
            assert!(!table.rows.is_empty(), "{}: {}", about.name, table.title);
            for row in &table.rows {
                let columns = table.columns.len();
                assert_eq!(row.ours.len(), columns, "{}: {}", about.name, row.name);
                assert_eq!(row.paper.len(), columns, "{}: {}", about.name, row.name);
            }
        }
        let conditions = findings.conditions.join(" ");
        assert!(
            conditions.contains("zipf:pages=300"),
            "{}: {conditions}",
            about.name
        );
        let mut text = Vec::new();
        print(about, &findings, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.contains(about.source) && text.contains("LRU"),
            "{text}"
        );
        assert!(markdown(&findings).contains("|---|---:|"), "{}", about.name);
        assert!(objects(about, &findings).len() > 5, "{}", about.name);
        let drawn = figure(about, &findings).render(plot::Format::Svg);
        drawn.unwrap_or_else(|error| panic!("{}: {error}", about.name));
    }
}

#[test]
fn one_number_of_threads_is_asked_for_where_there_is_one() {
    let plan = Plan {
        threads: vec![1, 2],
        capacities: Vec::new(),
        workload: Some("loop:pages=50,requests=100".to_string()),
        duration: Duration::from_millis(1),
        rounds: 1,
        dir: None,
        is_quick: true,
    };
    let progress = Progress::hidden();
    let about = lab::experiments::About::of("nbg-fig13").unwrap();
    let error = about.run(&mut Bench::new(&plan, &progress)).unwrap_err();
    assert!(
        error.to_string().contains("nbg-fig13 has one number"),
        "{error}"
    );
}

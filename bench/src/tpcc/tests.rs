//! Short runs of the whole, and the conditions broken on purpose.

use super::client::{Client, Kind};
use super::key::{self, DistrictId};
use super::schema::{District, Order, Warehouse};
use super::*;
use crate::settings::{Isolation, Only};
use longshore::{Result, Transaction};
use std::collections::BTreeMap;

const AT: DistrictId = DistrictId {
    warehouse: 1,
    district: 3,
};

fn settings(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings::of(Name::Tpcc);
    settings.small = true;
    settings.warehouses = 2;
    settings.threads = vec![2];
    settings.seconds = 0.3;
    settings.pool_mib = Some(64);
    settings.json = true;
    change(&mut settings);
    settings.checked().unwrap()
}

fn site(settings: &Settings) -> (tempfile::TempDir, Site) {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::create(folder.path(), settings, &Progress::new()).unwrap();
    (folder, site)
}

/// The lines that a run writes.
fn lines(settings: &Settings) -> Vec<serde_json::Value> {
    let mut out = Vec::new();
    let mut report = Report::new(&mut out, true);
    run(settings, &mut report, &Progress::new()).unwrap();
    let text = String::from_utf8(out).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// So many transactions of a kind by each of two new clients at a time.
fn two_clients(site: &mut Site, settings: &Settings, kind: Kind, transactions: usize) {
    let first = site.clients + 1;
    site.clients += 2;
    let shared = site.shared(settings);
    std::thread::scope(|scope| {
        for number in [first, first + 1] {
            let shared = &shared;
            scope.spawn(move || {
                let mut client = Client::new(shared, number);
                for _ in 0..transactions {
                    assert_eq!(client.run(kind).unwrap().operations, 1);
                }
            });
        }
    });
}

#[test]
fn the_tables_are_filled_consistently() {
    let (_folder, site) = site(&settings(|_| ()));
    assert_eq!(site.reader().unwrap().first.violations, []);
}

#[test]
fn every_kind_of_transaction_leaves_the_data_consistent_at_each_level() {
    for isolation in [
        Isolation::Serializable,
        Isolation::Snapshot,
        Isolation::ReadCommitted,
    ] {
        let settings = settings(|settings| settings.isolation = isolation);
        let (_folder, mut site) = site(&settings);
        for kind in Kind::ALL {
            two_clients(&mut site, &settings, kind, 60);
            let violations = site.reader().unwrap().first.violations;
            check(2, &violations)
                .unwrap_or_else(|error| panic!("{isolation:?}, {kind:?}: {error}"));
        }
        let report = site.db.verify().unwrap();
        assert!(report.is_sound(), "{isolation:?}: {:?}", report.faults);
        let mut compared = Vec::new();
        for table in &report.tables {
            let indexes = table.indexes.iter().filter(|index| index.is_compared);
            compared.extend(
                indexes.map(|index| (index.info.name.as_str(), index.entries == table.rows)),
            );
        }
        assert_eq!(
            compared,
            [("by name", true), ("by customer", true)],
            "{isolation:?}"
        );
    }
}

#[test]
fn the_mix_runs_all_kinds_and_tells_their_figures() {
    let lines = lines(&settings(|settings| {
        settings.threads = vec![1, 2];
        settings.seconds = 0.5;
    }));
    assert_eq!(lines.len(), 2);
    for line in &lines {
        assert_eq!(line["workload"], "tpcc");
        assert_eq!(line["scale"], "small");
        assert_eq!(line["isolation"], "serializable");
        assert!(line["tpmc"].as_f64() > Some(0.0), "{line}");
        assert!(line["log_bytes_per_op"].as_f64() > Some(0.0), "{line}");
        for kind in [
            "new-order",
            "payment",
            "order-status",
            "delivery",
            "stock-level",
        ] {
            let figures = &line["transactions"][kind];
            let figure = |name: &str| figures[name].as_f64().unwrap_or(-1.0);
            assert!(figure("per_second") > 0.0, "{kind} in {line}");
            assert!(figure("p50_us") <= figure("p95_us"), "{kind} in {line}");
            assert!(figure("p99_us") <= figure("max_us"), "{kind} in {line}");
            assert!(figures["retries"].is_number(), "{kind} in {line}");
        }
    }
}

#[test]
fn one_kind_can_be_run_by_itself() {
    for (only, workload, kind) in [
        (Only::Payment, "tpcc-payment", "payment"),
        (Only::NewOrder, "tpcc-new-order", "new-order"),
    ] {
        let lines = lines(&settings(|settings| settings.only = vec![only]));
        assert_eq!(lines[0]["workload"], workload);
        let ran = lines[0]["transactions"].as_object().unwrap();
        let others = ran.keys().filter(|name| !name.starts_with(kind));
        assert_eq!(others.count(), 0, "{ran:?}");
    }
}

#[test]
fn kinds_run_in_turn_are_drawn_beside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let figure = folder.path().join("f.svg");
    let lines = lines(&settings(|settings| {
        settings.only = vec![Only::NewOrder, Only::Payment];
        settings.threads = vec![1, 2];
        settings.figure = Some(figure.clone());
    }));
    let ran = lines.iter().map(|line| {
        (
            line["workload"].as_str().unwrap(),
            line["threads"].as_u64().unwrap(),
        )
    });
    let expected = [
        ("tpcc-new-order", 1),
        ("tpcc-new-order", 2),
        ("tpcc-payment", 1),
        ("tpcc-payment", 2),
    ];
    assert_eq!(ran.collect::<Vec<_>>(), expected);
    let svg = std::fs::read_to_string(figure).unwrap();
    let (left, right) = (
        svg.find(">New Order<").unwrap(),
        svg.find(">Payment<").unwrap(),
    );
    assert!(left < right);
}

#[test]
fn a_reader_that_stays_open_sees_one_state() {
    let lines = lines(&settings(|settings| settings.reader = true));
    assert_eq!(lines[0]["reader"], true);

    let settings = settings(|_| ());
    let (_folder, mut site) = site(&settings);
    let reader = site.reader().unwrap();
    two_clients(&mut site, &settings, Kind::Payment, 10);
    let before = reader.look_again(&site).unwrap();
    assert_eq!(before.0, before.1.sums);
    let after = site.reader().unwrap().first;
    let refused = check_unchanged(1, before.0, after).unwrap_err().to_string();
    assert!(refused.contains("stayed open"), "{refused}");
}

/// What a district has earned, its next order, and the customers of its orders.
type Left = (i64, u32, Vec<u32>);

/// What the transactions of a run have left, but for the time.
fn outcome(tx: &Transaction, site: &Site) -> Result<BTreeMap<DistrictId, Left>> {
    site.scale
        .districts()
        .map(|at| {
            let row = site.tables.district.get(tx, &key::district(at))?;
            let mut orders = site
                .tables
                .order
                .scan(tx, key::order(at, 0)..key::order(at, u32::MAX))?;
            let mut customers = Vec::new();
            while let Some((_, order)) = orders.next()? {
                customers.push(order.get(Order::CUSTOMER));
            }
            let figures = (
                row.get(District::YTD),
                row.get(District::NEXT_ORDER),
                customers,
            );
            Ok((at, figures))
        })
        .collect()
}

#[test]
fn a_seed_gives_the_same_transactions_and_another_one_does_not() {
    let run = |seed| {
        let settings = settings(|settings| settings.seed = seed);
        let (_folder, site) = site(&settings);
        let shared = site.shared(&settings);
        let mut client = Client::new(&shared, 1);
        for _ in 0..300 {
            client.next().unwrap();
        }
        let tx = site.db.begin().unwrap();
        outcome(&tx, &site).unwrap()
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

/// The conditions that are found not to hold after a change.
fn broken_by(change: impl FnMut(&Transaction, &Tables) -> Result<()>) -> Vec<u8> {
    let (_folder, site) = site(&settings(|_| ()));
    let mut change = change;
    site.db.update(|tx| change(tx, &site.tables)).unwrap();
    let violations = site.reader().unwrap().first.violations;
    let refused = check(1, &violations).unwrap_err().to_string();
    assert!(refused.contains("inconsistent: condition"), "{refused}");
    violations.iter().map(|found| found.condition).collect()
}

#[test]
fn each_condition_that_is_broken_is_found() {
    let warehouse = broken_by(|tx, tables| {
        let key = key::warehouse(2);
        tables.warehouse.modify(tx, &key, |row| {
            row.set(Warehouse::YTD, row.get(Warehouse::YTD) + 1);
        })
    });
    assert_eq!(warehouse, [1]);

    let next_order = broken_by(|tx, tables| {
        let key = key::district(AT);
        tables.district.modify(tx, &key, |row| {
            row.set(District::NEXT_ORDER, row.get(District::NEXT_ORDER) + 1);
        })
    });
    assert_eq!(next_order, [2]);

    let newest = Scale::small(1).customers;
    let newest_new_order = broken_by(|tx, tables| {
        assert!(tables.new_order.delete(tx, &key::order(AT, newest))?);
        Ok(())
    });
    assert_eq!(newest_new_order, [2]);

    let gap = broken_by(|tx, tables| {
        assert!(tables.new_order.delete(tx, &key::order(AT, newest - 1))?);
        Ok(())
    });
    assert_eq!(gap, [3]);

    let line = broken_by(|tx, tables| {
        let key = key::order_line(AT, 1, 1);
        assert!(tables.order_line.delete(tx, &key)?);
        Ok(())
    });
    assert_eq!(line, [4]);
}

//! What is told of a run.

use super::client::Kind;
use crate::harness::{Measured, Tally};
use crate::ours::NAME;
use crate::report::{Line, rounded};
use crate::settings::{Only, Settings};
use serde_json::{Map, Value, json};

/// The line of a run.
pub(super) fn line(settings: &Settings, clients: usize, measured: &Measured) -> Line {
    let workload = match settings.only.first() {
        None => "tpcc",
        Some(Only::NewOrder) => "tpcc-new-order",
        Some(Only::Payment) => "tpcc-payment",
    };
    let new_orders = measured.kinds.get(Kind::NewOrder as usize);
    let new_orders = new_orders.map_or(0, |tally| tally.operations);
    let minutes = measured.elapsed.as_secs_f64() / 60.0;
    let by_kind: Map<String, Value> = Kind::ALL
        .into_iter()
        .zip(&measured.kinds)
        .filter(|(_, tally)| tally.operations > 0)
        .map(|(kind, tally)| (kind.as_str().to_owned(), figures(tally, measured)))
        .collect();
    let reader = settings.reader.then_some(true);
    Line::of(NAME, workload, clients, settings.durability, measured)
        .with_some("reader", reader)
        .with(
            "per_client_per_second",
            rounded(measured.operations_per_second() / clients as f64),
        )
        .with("isolation", settings.isolation.as_str())
        .with("warehouses", settings.warehouses)
        .with("scale", if settings.small { "small" } else { "full" })
        .with("tpmc", rounded(new_orders as f64 / minutes))
        .with("transactions", by_kind)
}

fn figures(tally: &Tally, measured: &Measured) -> Value {
    let seconds = measured.elapsed.as_secs_f64();
    json!({
        "per_second": rounded(tally.operations as f64 / seconds),
        "p50_us": tally.latency_us(0.5),
        "p95_us": tally.latency_us(0.95),
        "p99_us": tally.latency_us(0.99),
        "max_us": tally.latency_us(1.0),
        "retries": tally.aborts,
    })
}

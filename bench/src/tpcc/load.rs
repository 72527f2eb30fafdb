//! Fills the tables, one by one, by sorted bulk loads.

use super::key;
use super::layout::{Layout, Row};
use super::populate::Population;
use super::scale::Scale;
use super::tables::{Relation, Tables};
use crate::progress::Progress;
use longshore::{Database, Result};

/// Rows between two lines of progress.
const ROWS_PER_STEP: u64 = 20_000;

/// Fills all tables; returns how many rows there are.
pub(super) fn load(
    db: &Database,
    tables: &Tables,
    population: &Population,
    progress: &Progress,
) -> Result<u64> {
    let scale = population.scale;
    let loader = Loader { db, progress };
    let warehouses = 1..=scale.warehouses;
    let customers = each_of_district(scale);
    let mut rows = 0;
    rows += loader.fill(
        &tables.item,
        (1..=scale.items).map(|item| (key::item(item), population.item(item))),
    )?;
    rows += loader.fill(
        &tables.warehouse,
        warehouses
            .clone()
            .map(|warehouse| (key::warehouse(warehouse), population.warehouse(warehouse))),
    )?;
    let stock =
        warehouses.flat_map(|warehouse| (1..=scale.items).map(move |item| (warehouse, item)));
    rows += loader.fill(
        &tables.stock,
        stock.map(|(warehouse, item)| {
            (
                key::stock(warehouse, item),
                population.stock(warehouse, item),
            )
        }),
    )?;
    rows += loader.fill(
        &tables.district,
        scale
            .districts()
            .map(|at| (key::district(at), population.district(at))),
    )?;
    rows += loader.fill(
        &tables.customer,
        customers.clone().map(|(at, customer)| {
            (
                key::customer(at, customer),
                population.customer(at, customer),
            )
        }),
    )?;
    rows += loader.fill(
        &tables.history,
        (0..)
            .zip(customers)
            .map(|(row, (at, customer))| (key::history(0, row), population.history(at, customer))),
    )?;
    rows += load_orders(&loader, tables, population)?;
    progress.clear();
    Ok(rows)
}

/// The customers of all districts, or their orders, in the order of their keys.
fn each_of_district(scale: Scale) -> impl Iterator<Item = (key::DistrictId, u32)> + Clone {
    let districts: Vec<key::DistrictId> = scale.districts().collect();
    districts
        .into_iter()
        .flat_map(move |at| (1..=scale.customers).map(move |number| (at, number)))
}

fn load_orders(loader: &Loader, tables: &Tables, population: &Population) -> Result<u64> {
    let scale = population.scale;
    let orders = scale.districts().flat_map(|at| {
        let customers = population.customers_by_order(at).into_iter();
        (1..).zip(customers).map(move |(order, customer)| {
            (key::order(at, order), population.order(at, order, customer))
        })
    });
    let mut rows = loader.fill(&tables.order, orders)?;
    let new_orders = each_of_district(scale)
        .filter(|(_, order)| *order >= scale.first_new_order())
        .map(|(at, order)| (key::order(at, order), Row::empty()));
    rows += loader.fill(&tables.new_order, new_orders)?;
    let lines = each_of_district(scale).flat_map(|(at, order)| {
        (1..=population.lines(at, order)).map(move |line| {
            let row = population.order_line(at, order, line);
            (key::order_line(at, order, line), row)
        })
    });
    rows += loader.fill(&tables.order_line, lines)?;
    Ok(rows)
}

struct Loader<'a> {
    db: &'a Database,
    progress: &'a Progress,
}

impl Loader<'_> {
    fn fill<R: Layout, K: AsRef<[u8]>, const N: usize>(
        &self,
        relation: &Relation<R>,
        rows: impl Iterator<Item = (K, Row<R, [u8; N]>)>,
    ) -> Result<u64> {
        let told = (0u64..).zip(rows).map(|(count, (key, row))| {
            if count.is_multiple_of(ROWS_PER_STEP) {
                self.progress
                    .say(format_args!("tpcc: loading {}, {count} rows", R::TABLE));
            }
            Ok((key, row))
        });
        self.db.bulk_load(&relation.table, told)
    }
}

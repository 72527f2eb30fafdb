//! Stock-Level: of how many items of its last twenty orders a district runs short (clause 2.8).

use super::client::Ended;
use super::key::{self, DistrictId};
use super::scale::{DISTRICTS, Scale};
use super::schema::{District, OrderLine, Stock};
use super::tables::Tables;
use longshore::{Result, Transaction};
use rand::Rng;
use rand::rngs::SmallRng;
use std::hint::black_box;

/// Orders that are looked at.
const ORDERS: u32 = 20;

/// What a terminal sends.
#[derive(Debug)]
pub(super) struct StockLevel {
    at: DistrictId,
    threshold: i16,
}

impl StockLevel {
    pub(super) fn draw(random: &mut SmallRng, scale: Scale) -> StockLevel {
        StockLevel {
            at: DistrictId {
                warehouse: random.random_range(1..=scale.warehouses),
                district: random.random_range(1..=DISTRICTS),
            },
            threshold: random.random_range(10..=20),
        }
    }

    pub(super) fn run(&self, tx: &Transaction, tables: &Tables) -> Result<Ended> {
        let district = tables.district.get(tx, &key::district(self.at))?;
        let next = district.get(District::NEXT_ORDER);
        let first = next.saturating_sub(ORDERS);
        let range = key::order(self.at, first)..key::order(self.at, next);
        let mut lines = tables.order_line.scan(tx, range)?;
        let mut items = Vec::with_capacity(ORDERS as usize * 15);
        while let Some((_, line)) = lines.next()? {
            items.push(line.get(OrderLine::ITEM));
        }
        items.sort_unstable();
        items.dedup();
        let mut short = 0;
        for item in items {
            let stock = tables.stock.get(tx, &key::stock(self.at.warehouse, item))?;
            short += u32::from(stock.get(Stock::QUANTITY) < self.threshold);
        }
        black_box(short);
        Ok(Ended::Committed)
    }
}

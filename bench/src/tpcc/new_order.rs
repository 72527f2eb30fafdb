//! New-Order: a customer orders some items (clause 2.4).
//!
//! The specification leaves the order of the steps open. Stock first, in the order of its keys, so that no
//! two of these end in a deadlock; then the district; the warehouse, which every payment changes, last.

use super::client::Ended;
use super::key::{self, DistrictId};
use super::layout::{Layout, Row, Text};
use super::random::{self, ORIGINAL, one_of_hundred};
use super::scale::{DISTRICTS, Scale};
use super::schema::{
    Customer, District, Item, NEVER, NO_CARRIER, Order, OrderLine, Stock, Warehouse,
};
use super::tables::Tables;
use longshore::{Result, Transaction};
use rand::Rng;
use rand::rngs::SmallRng;
use std::hint::black_box;

/// Rates are in parts of so many.
const WHOLE: i64 = 10_000;

/// What a terminal sends.
#[derive(Debug)]
pub(super) struct NewOrder {
    pub(super) at: DistrictId,
    pub(super) customer: u32,
    pub(super) lines: Vec<Line>,
}

/// A line of the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Line {
    supply_warehouse: u16,
    item: u32,
    quantity: u8,
}

impl NewOrder {
    /// One in a hundred ends with an item that there is not (clause 2.4.1.4).
    pub(super) fn draw(random: &mut SmallRng, scale: Scale) -> NewOrder {
        let home = random.random_range(1..=scale.warehouses);
        let at = DistrictId {
            warehouse: home,
            district: random.random_range(1..=DISTRICTS),
        };
        let customer = random::customer(random, scale);
        let mut lines: Vec<Line> = (0..random.random_range(5..=15))
            .map(|_| Line {
                item: random::item(random, scale),
                supply_warehouse: match one_of_hundred(random, 1) {
                    true => random::other_warehouse(random, home, scale.warehouses),
                    false => home,
                },
                quantity: random.random_range(1..=10),
            })
            .collect();
        lines.sort_unstable();
        if one_of_hundred(random, 1) {
            lines.last_mut().expect("five lines or more").item = scale.items + 1;
        }
        NewOrder {
            at,
            customer,
            lines,
        }
    }

    pub(super) fn run(&self, tx: &Transaction, tables: &Tables, date: u64) -> Result<Ended> {
        let mut rows = Vec::with_capacity(self.lines.len());
        for line in &self.lines {
            let Some(row) = self.take_from_stock(tx, tables, line)? else {
                return Ok(Ended::RolledBack);
            };
            rows.push(row);
        }
        let customer = tables
            .customer
            .get(tx, &key::customer(self.at, self.customer))?;
        let discount = i64::from(customer.get(Customer::DISCOUNT));
        black_box((customer.get(Customer::LAST), customer.get(Customer::CREDIT)));

        let at = key::district(self.at);
        let (order, district_tax) = tables.district.modify(tx, &at, |district| {
            let order = district.get(District::NEXT_ORDER);
            district.set(District::NEXT_ORDER, order + 1);
            (order, district.get(District::TAX))
        })?;

        self.insert_order(tx, tables, order, date)?;
        for (number, row) in (1..).zip(&rows) {
            let key = key::order_line(self.at, order, number);
            tables.order_line.insert(tx, &key, row)?;
        }
        let warehouse = key::warehouse(self.at.warehouse);
        let warehouse = tables.warehouse.get(tx, &warehouse)?;
        let tax = warehouse.get(Warehouse::TAX) + district_tax;
        let sum: i64 = rows.iter().map(|row| row.get(OrderLine::AMOUNT)).sum();
        // What the terminal would show.
        black_box(sum * (WHOLE - discount) / WHOLE * (WHOLE + i64::from(tax)) / WHOLE);
        Ok(Ended::Committed)
    }

    /// Takes what a line orders out of the stock; returns the line's row, or `None` when there is no such
    /// item.
    fn take_from_stock(
        &self,
        tx: &Transaction,
        tables: &Tables,
        line: &Line,
    ) -> Result<Option<Row<OrderLine, [u8; OrderLine::WIDTH]>>> {
        let Some(item) = tables.item.find(tx, &key::item(line.item))? else {
            return Ok(None);
        };
        let key = key::stock(line.supply_warehouse, line.item);
        let is_remote = line.supply_warehouse != self.at.warehouse;
        let (info, is_branded) = tables.stock.modify(tx, &key, |stock| {
            let left = stock.get(Stock::QUANTITY) - i16::from(line.quantity);
            let refilled = if left < 10 { left + 91 } else { left };
            stock.set(Stock::QUANTITY, refilled);
            stock.set(Stock::YTD, stock.get(Stock::YTD) + u32::from(line.quantity));
            stock.set(Stock::ORDERS, stock.get(Stock::ORDERS).wrapping_add(1));
            let remote = stock.get(Stock::REMOTE);
            stock.set(Stock::REMOTE, remote.wrapping_add(u16::from(is_remote)));
            let infos = stock.get(Stock::DISTRICT_INFO);
            let (infos, _) = infos.as_chunks();
            let info = infos[usize::from(self.at.district) - 1];
            (info, is_original(&stock.get(Stock::DATA)))
        })?;
        // Goods of a brand are marked on the terminal.
        black_box(is_branded && is_original(&item.get(Item::DATA)));
        let mut row = Row::blank();
        row.set(OrderLine::ITEM, line.item);
        row.set(OrderLine::SUPPLY_WAREHOUSE, line.supply_warehouse);
        row.set(OrderLine::DELIVERED, NEVER);
        row.set(OrderLine::QUANTITY, line.quantity);
        let price = item.get(Item::PRICE);
        row.set(OrderLine::AMOUNT, price * i64::from(line.quantity));
        row.set(OrderLine::DISTRICT_INFO, info);
        Ok(Some(row))
    }

    fn insert_order(&self, tx: &Transaction, tables: &Tables, order: u32, date: u64) -> Result<()> {
        let key = key::order(self.at, order);
        let is_local = |line: &Line| line.supply_warehouse == self.at.warehouse;
        let mut row = Row::<Order, [u8; Order::WIDTH]>::blank();
        row.set(Order::CUSTOMER, self.customer);
        row.set(Order::DATE, date);
        row.set(Order::CARRIER, NO_CARRIER);
        row.set(Order::LINES, self.lines.len() as u8);
        row.set(Order::ALL_LOCAL, u8::from(self.lines.iter().all(is_local)));
        tables.order.insert(tx, &key, &row)?;
        tables.new_order.insert(tx, &key, &Row::empty())
    }
}

/// Whether goods with these data are of a brand.
fn is_original(data: &Text<50>) -> bool {
    let mut parts = data.as_bytes().windows(ORIGINAL.len());
    parts.any(|part| part == ORIGINAL)
}

//! Delivery: the oldest new order of each district is delivered (clause 2.7), all in one transaction.
//!
//! It is run at once, not queued; a district without new orders is skipped.

use super::client::Ended;
use super::key::{self, DistrictId};
use super::scale::{DISTRICTS, Scale};
use super::schema::{Customer, Order, OrderLine};
use super::tables::Tables;
use longshore::{Result, Transaction};
use rand::Rng;
use rand::rngs::SmallRng;

/// What a terminal sends.
#[derive(Debug)]
pub(super) struct Delivery {
    warehouse: u16,
    carrier: u8,
}

impl Delivery {
    pub(super) fn draw(random: &mut SmallRng, scale: Scale) -> Delivery {
        Delivery {
            warehouse: random.random_range(1..=scale.warehouses),
            carrier: random.random_range(1..=10),
        }
    }

    pub(super) fn run(&self, tx: &Transaction, tables: &Tables, date: u64) -> Result<Ended> {
        for district in 1..=DISTRICTS {
            let at = DistrictId {
                warehouse: self.warehouse,
                district,
            };
            if let Some(order) = take_oldest(tx, tables, at)? {
                self.deliver(tx, tables, at, order, date)?;
            }
        }
        Ok(Ended::Committed)
    }

    fn deliver(
        &self,
        tx: &Transaction,
        tables: &Tables,
        at: DistrictId,
        order: u32,
        date: u64,
    ) -> Result<()> {
        let key = key::order(at, order);
        let (lines, customer) = tables.order.modify(tx, &key, |row| {
            row.set(Order::CARRIER, self.carrier);
            (row.get(Order::LINES), row.get(Order::CUSTOMER))
        })?;

        let mut amount = 0;
        for line in 1..=lines {
            let key = key::order_line(at, order, line);
            amount += tables.order_line.modify(tx, &key, |line| {
                line.set(OrderLine::DELIVERED, date);
                line.get(OrderLine::AMOUNT)
            })?;
        }

        let key = key::customer(at, customer);
        tables.customer.modify(tx, &key, |customer| {
            let balance = customer.get(Customer::BALANCE);
            customer.set(Customer::BALANCE, balance + amount);
            let deliveries = customer.get(Customer::DELIVERIES);
            customer.set(Customer::DELIVERIES, deliveries.wrapping_add(1));
        })
    }
}

/// Takes the oldest new order of a district.
fn take_oldest(tx: &Transaction, tables: &Tables, at: DistrictId) -> Result<Option<u32>> {
    loop {
        let range = key::order(at, 0)..key::order(at, u32::MAX);
        let mut orders = tables.new_order.scan(tx, range)?;
        let Some(order) = orders.next()?.map(|(key, _)| key::number(key)) else {
            return Ok(None);
        };
        // False when another delivery was quicker, which a transaction that locks what it reads never sees.
        if tables.new_order.delete(tx, &key::order(at, order))? {
            return Ok(Some(order));
        }
    }
}

//! Order-Status: what became of a customer's last order (clause 2.6).

use super::client::Ended;
use super::customer::Who;
use super::key::{self, DistrictId};
use super::scale::{DISTRICTS, Scale};
use super::schema::{Customer, Order, OrderLine};
use super::tables::Tables;
use longshore::{Error, Result, Transaction};
use rand::Rng;
use rand::rngs::SmallRng;
use std::hint::black_box;

/// Bytes of an order's key that the keys of its lines begin with.
const ORDER_BYTES: usize = 7;

/// What a terminal sends.
#[derive(Debug)]
pub(super) struct OrderStatus {
    at: DistrictId,
    who: Who,
}

impl OrderStatus {
    pub(super) fn draw(random: &mut SmallRng, scale: Scale) -> OrderStatus {
        OrderStatus {
            at: DistrictId {
                warehouse: random.random_range(1..=scale.warehouses),
                district: random.random_range(1..=DISTRICTS),
            },
            who: Who::draw(random, scale),
        }
    }

    pub(super) fn run(&self, tx: &Transaction, tables: &Tables) -> Result<Ended> {
        let customer = self.who.find(tx, tables, self.at)?;
        let at = key::customer(self.at, customer);
        let row = tables.customer.get(tx, &at)?;
        black_box((
            row.get(Customer::FIRST),
            row.get(Customer::MIDDLE),
            row.get(Customer::LAST),
            row.get(Customer::BALANCE),
        ));
        let orders = tables.order_by_customer.find(tx, (self.at, customer))?;
        let newest = orders.keys().next_back().transpose()?;
        let (_, order) = newest.ok_or_else(|| Error::other("a customer has no order"))?;
        let at = key::order(self.at, key::number_of(order));
        let row = tables.order.get(tx, &at)?;
        black_box((row.get(Order::DATE), row.get(Order::CARRIER)));
        let mut lines = tables.order_line.prefix(tx, &at[..ORDER_BYTES])?;
        while let Some((_, line)) = lines.next()? {
            black_box((
                line.get(OrderLine::ITEM),
                line.get(OrderLine::SUPPLY_WAREHOUSE),
                line.get(OrderLine::QUANTITY),
                line.get(OrderLine::AMOUNT),
                line.get(OrderLine::DELIVERED),
            ));
        }
        Ok(Ended::Committed)
    }
}

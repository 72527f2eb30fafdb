//! Payment: a customer pays, at a district that may not be the own (clause 2.5).
//!
//! The warehouse, which all payments of it change, comes as late as it may.

use super::client::Ended;
use super::customer::Who;
use super::key::{self, DistrictId};
use super::layout::{Layout, Row, Text};
use super::random::{self, one_of_hundred};
use super::scale::{DISTRICTS, Scale};
use super::schema::{BAD_CREDIT, Customer, DOLLAR, District, History, Warehouse};
use super::tables::Tables;
use longshore::{Result, Transaction};
use rand::Rng;
use rand::rngs::SmallRng;
use std::io::Write;

/// What a terminal sends.
#[derive(Debug)]
pub(super) struct Payment {
    pub(super) at: DistrictId,
    pub(super) customer_at: DistrictId,
    pub(super) who: Who,
    amount: i64,
    /// The key of the payment in the history.
    history: key::Key,
}

impl Payment {
    /// Fifteen of a hundred customers live elsewhere (clause 2.5.1.2).
    pub(super) fn draw(random: &mut SmallRng, scale: Scale, history: key::Key) -> Payment {
        let at = DistrictId {
            warehouse: random.random_range(1..=scale.warehouses),
            district: random.random_range(1..=DISTRICTS),
        };
        let customer_at = match one_of_hundred(random, 15) {
            false => at,
            true => DistrictId {
                warehouse: random::other_warehouse(random, at.warehouse, scale.warehouses),
                district: random.random_range(1..=DISTRICTS),
            },
        };
        Payment {
            at,
            customer_at,
            who: Who::draw(random, scale),
            amount: random.random_range(DOLLAR..=5000 * DOLLAR),
            history,
        }
    }

    pub(super) fn run(&self, tx: &Transaction, tables: &Tables, date: u64) -> Result<Ended> {
        let customer = self.pay(tx, tables)?;

        let at = key::district(self.at);
        let district = tables.district.modify(tx, &at, |district| {
            district.set(District::YTD, district.get(District::YTD) + self.amount);
            district.get(District::NAME)
        })?;

        let at = key::warehouse(self.at.warehouse);
        let warehouse = tables.warehouse.modify(tx, &at, |warehouse| {
            warehouse.set(Warehouse::YTD, warehouse.get(Warehouse::YTD) + self.amount);
            warehouse.get(Warehouse::NAME)
        })?;

        let mut row = Row::<History, [u8; History::WIDTH]>::blank();
        row.set(History::CUSTOMER, customer);
        row.set(History::CUSTOMER_DISTRICT, self.customer_at.district);
        row.set(History::CUSTOMER_WAREHOUSE, self.customer_at.warehouse);
        row.set(History::DISTRICT, self.at.district);
        row.set(History::WAREHOUSE, self.at.warehouse);
        row.set(History::DATE, date);
        row.set(History::AMOUNT, self.amount);
        row.set(History::DATA, joined(&warehouse, &district));
        tables.history.insert(tx, &self.history, &row)?;
        Ok(Ended::Committed)
    }

    /// Changes the customer's row; returns who it is.
    fn pay(&self, tx: &Transaction, tables: &Tables) -> Result<u32> {
        let customer = self.who.find(tx, tables, self.customer_at)?;
        let key = key::customer(self.customer_at, customer);
        tables.customer.modify(tx, &key, |row| {
            row.set(Customer::BALANCE, row.get(Customer::BALANCE) - self.amount);
            let paid = row.get(Customer::YTD_PAYMENT);
            row.set(Customer::YTD_PAYMENT, paid + self.amount);
            let payments = row.get(Customer::PAYMENTS);
            row.set(Customer::PAYMENTS, payments.wrapping_add(1));
            if row.get(Customer::CREDIT) == BAD_CREDIT {
                let data = row.get(Customer::DATA);
                row.set(Customer::DATA, self.noted(customer, data.as_bytes()));
            }
        })?;
        Ok(customer)
    }

    /// The data of a customer of bad credit: this payment, and before it what fits of the others.
    fn noted(&self, customer: u32, before: &[u8]) -> Text<500> {
        /// Room for the longest note.
        const NOTE_BYTES: usize = 64;
        let mut data = Vec::with_capacity(NOTE_BYTES + before.len());
        let (theirs, ours, amount) = (self.customer_at, self.at, self.amount);
        write!(
            data,
            "{customer} {} {} {} {} {}.{:02}|",
            theirs.district,
            theirs.warehouse,
            ours.district,
            ours.warehouse,
            amount / 100,
            amount % 100
        )
        .expect("memory takes everything");
        data.extend_from_slice(before);
        Text::of(&data)
    }
}

/// The names of warehouse and district, four spaces between.
fn joined(warehouse: &Text<10>, district: &Text<10>) -> Text<24> {
    let (warehouse, district) = (warehouse.as_bytes(), district.as_bytes());
    let mut both = [b' '; 24];
    both[..warehouse.len()].copy_from_slice(warehouse);
    let at = warehouse.len() + 4;
    both[at..at + district.len()].copy_from_slice(district);
    Text::of(&both[..at + district.len()])
}

//! The rows that the tables are filled with (clause 4.3.3). Each is drawn from its key and the seed alone, so
//! tables are filled one by one and still agree.

use super::key::DistrictId;
use super::layout::{Layout, Row, Text};
use super::random::{self, digits, fill, for_row, one_of_hundred, text};
use super::scale::{DISTRICTS, Scale};
use super::schema::{
    BAD_CREDIT, Customer, DOLLAR, District, GOOD_CREDIT, History, Item, NEVER, NO_CARRIER, Order,
    OrderLine, Stock, Warehouse,
};
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

/// A whole row.
type Whole<R, const N: usize> = Row<R, [u8; N]>;

/// What each customer has paid, and what is left to pay.
const PAID: i64 = 10 * DOLLAR;
/// What was sold in each district: a payment of each customer.
const SOLD_PER_CUSTOMER: i64 = PAID;

/// Draws the rows of a database.
#[derive(Clone, Copy)]
pub(super) struct Population {
    pub(super) scale: Scale,
    pub(super) seed: u64,
    /// The time that it is filled at.
    pub(super) date: u64,
}

/// The fields of an address, alike for three tables.
macro_rules! set_address {
    ($row:ident: $kind:ident, $random:expr) => {
        $row.set($kind::STREET_1, text($random, 10));
        $row.set($kind::STREET_2, text($random, 10));
        $row.set($kind::CITY, text($random, 10));
        $row.set($kind::STATE, state($random));
        $row.set($kind::ZIP, zip($random));
    };
}

impl Population {
    fn random<R: Layout>(&self, key: impl Into<u64>) -> SmallRng {
        for_row(self.seed, R::TABLE, key.into())
    }

    pub(super) fn item(&self, item: u32) -> Whole<Item, { Item::WIDTH }> {
        let random = &mut self.random::<Item>(item);
        let mut row = Row::blank();
        row.set(Item::IMAGE, random.random_range(1..=10_000));
        row.set(Item::NAME, text(random, 14));
        row.set(Item::PRICE, random.random_range(DOLLAR..=100 * DOLLAR));
        row.set(Item::DATA, random::data(random));
        row
    }

    pub(super) fn warehouse(&self, warehouse: u16) -> Whole<Warehouse, { Warehouse::WIDTH }> {
        let random = &mut self.random::<Warehouse>(warehouse);
        let mut row = Row::blank();
        row.set(Warehouse::NAME, text(random, 6));
        set_address!(row: Warehouse, random);
        row.set(Warehouse::TAX, random.random_range(0..=2000));
        let customers = i64::from(self.scale.customers) * i64::from(DISTRICTS);
        row.set(Warehouse::YTD, customers * SOLD_PER_CUSTOMER);
        row
    }

    pub(super) fn stock(&self, warehouse: u16, item: u32) -> Whole<Stock, { Stock::WIDTH }> {
        let random = &mut self.random::<Stock>(u64::from(warehouse) << 32 | u64::from(item));
        let mut row = Row::blank();
        row.set(Stock::QUANTITY, random.random_range(10..=100));
        let mut info = [0; 240];
        fill(random, &mut info);
        row.set(Stock::DISTRICT_INFO, info);
        row.set(Stock::DATA, random::data(random));
        row
    }

    pub(super) fn district(&self, at: DistrictId) -> Whole<District, { District::WIDTH }> {
        let random = &mut self.random::<District>(number(at, 0));
        let mut row = Row::blank();
        row.set(District::NAME, text(random, 6));
        set_address!(row: District, random);
        row.set(District::TAX, random.random_range(0..=2000));
        let customers = i64::from(self.scale.customers);
        row.set(District::YTD, customers * SOLD_PER_CUSTOMER);
        row.set(District::NEXT_ORDER, self.scale.customers + 1);
        row
    }

    /// First and last name of a customer.
    pub(super) fn name(&self, at: DistrictId, customer: u32) -> (Text<16>, Text<16>) {
        let random = &mut for_row(self.seed, "name", number(at, customer));
        let last = match customer {
            1..=1000 => random::last_name_of(customer - 1),
            _ => random::last_name_to_load(random, self.scale),
        };
        (text(random, 8), last)
    }

    pub(super) fn customer(
        &self,
        at: DistrictId,
        customer: u32,
    ) -> Whole<Customer, { Customer::WIDTH }> {
        let random = &mut self.random::<Customer>(number(at, customer));
        let (first, last) = self.name(at, customer);
        let mut row = Row::blank();
        row.set(Customer::FIRST, first);
        row.set(Customer::MIDDLE, *b"OE");
        row.set(Customer::LAST, last);
        set_address!(row: Customer, random);
        row.set(Customer::PHONE, digits(random));
        row.set(Customer::SINCE, self.date);
        let has_bad_credit = one_of_hundred(random, 10);
        let credit = if has_bad_credit {
            BAD_CREDIT
        } else {
            GOOD_CREDIT
        };
        row.set(Customer::CREDIT, credit);
        row.set(Customer::CREDIT_LIMIT, 50_000 * DOLLAR);
        row.set(Customer::DISCOUNT, random.random_range(0..=5000));
        row.set(Customer::BALANCE, -PAID);
        row.set(Customer::YTD_PAYMENT, PAID);
        row.set(Customer::PAYMENTS, 1);
        row.set(Customer::DATA, text(random, 300));
        row
    }

    pub(super) fn history(
        &self,
        at: DistrictId,
        customer: u32,
    ) -> Whole<History, { History::WIDTH }> {
        let random = &mut self.random::<History>(number(at, customer));
        let mut row = Row::blank();
        row.set(History::CUSTOMER, customer);
        row.set(History::CUSTOMER_DISTRICT, at.district);
        row.set(History::CUSTOMER_WAREHOUSE, at.warehouse);
        row.set(History::DISTRICT, at.district);
        row.set(History::WAREHOUSE, at.warehouse);
        row.set(History::DATE, self.date);
        row.set(History::AMOUNT, PAID);
        row.set(History::DATA, text(random, 12));
        row
    }

    /// The customers of a district in the order of their first orders.
    pub(super) fn customers_by_order(&self, at: DistrictId) -> Vec<u32> {
        let mut customers: Vec<u32> = (1..=self.scale.customers).collect();
        customers.shuffle(&mut for_row(self.seed, "customers by order", number(at, 0)));
        customers
    }

    pub(super) fn order(
        &self,
        at: DistrictId,
        order: u32,
        customer: u32,
    ) -> Whole<Order, { Order::WIDTH }> {
        let random = &mut self.random::<Order>(number(at, order));
        let mut row = Row::blank();
        row.set(Order::LINES, random.random_range(5..=15));
        row.set(Order::CUSTOMER, customer);
        row.set(Order::DATE, self.date);
        let carrier = match self.is_new(order) {
            true => NO_CARRIER,
            false => random.random_range(1..=10),
        };
        row.set(Order::CARRIER, carrier);
        row.set(Order::ALL_LOCAL, 1);
        row
    }

    /// How many lines an order has.
    pub(super) fn lines(&self, at: DistrictId, order: u32) -> u8 {
        // Its customer does not matter for that.
        self.order(at, order, 0).get(Order::LINES)
    }

    pub(super) fn order_line(
        &self,
        at: DistrictId,
        order: u32,
        line: u8,
    ) -> Whole<OrderLine, { OrderLine::WIDTH }> {
        let random = &mut self.random::<OrderLine>(number(at, order) << 8 | u64::from(line));
        let mut row = Row::blank();
        row.set(OrderLine::ITEM, random.random_range(1..=self.scale.items));
        row.set(OrderLine::SUPPLY_WAREHOUSE, at.warehouse);
        row.set(OrderLine::QUANTITY, 5);
        if self.is_new(order) {
            row.set(OrderLine::DELIVERED, NEVER);
            row.set(
                OrderLine::AMOUNT,
                random.random_range(1..=9999 * DOLLAR + 99),
            );
        } else {
            row.set(OrderLine::DELIVERED, self.date);
        }
        let mut info = [0; 24];
        fill(random, &mut info);
        row.set(OrderLine::DISTRICT_INFO, info);
        row
    }

    /// Whether an order is not delivered yet.
    fn is_new(&self, order: u32) -> bool {
        order >= self.scale.first_new_order()
    }
}

/// A number for each row of a district.
fn number(at: DistrictId, row: u32) -> u64 {
    u64::from(at.warehouse) << 40 | u64::from(at.district) << 32 | u64::from(row)
}

fn state(random: &mut SmallRng) -> [u8; 2] {
    std::array::from_fn(|_| random.random_range(b'A'..=b'Z'))
}

fn zip(random: &mut SmallRng) -> [u8; 9] {
    let mut zip = *b"000011111";
    zip[..4].copy_from_slice(&digits::<4>(random));
    zip
}

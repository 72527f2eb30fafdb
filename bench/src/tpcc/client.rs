//! A client: draws transactions by the mix, and runs each until it is done.

use super::delivery::Delivery;
use super::key;
use super::new_order::NewOrder;
use super::order_status::OrderStatus;
use super::payment::Payment;
use super::scale::Scale;
use super::stock_level::StockLevel;
use super::tables::Tables;
use crate::harness::Done;
use crate::settings::Only;
use crate::store::Outcome;
use longshore::{Database, Result, Transaction, TransactionOptions};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::time::{Duration, SystemTime};

/// The kinds of transactions; New-Orders that were rolled back, as they ask, are one of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
    NewOrderRolledBack,
}

impl Kind {
    pub(super) const ALL: [Kind; 6] = [
        Kind::NewOrder,
        Kind::Payment,
        Kind::OrderStatus,
        Kind::Delivery,
        Kind::StockLevel,
        Kind::NewOrderRolledBack,
    ];

    /// As in the report.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Kind::NewOrder => "new-order",
            Kind::Payment => "payment",
            Kind::OrderStatus => "order-status",
            Kind::Delivery => "delivery",
            Kind::StockLevel => "stock-level",
            Kind::NewOrderRolledBack => "new-order-rolled-back",
        }
    }

    /// Draws by the least shares that the specification allows (clause 5.2.3).
    fn draw(random: &mut SmallRng) -> Kind {
        match random.random_range(0..100) {
            0..45 => Kind::NewOrder,
            45..88 => Kind::Payment,
            88..92 => Kind::OrderStatus,
            92..96 => Kind::Delivery,
            _ => Kind::StockLevel,
        }
    }
}

/// How a transaction wants to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Committed,
    /// An item was asked for that there is not.
    RolledBack,
}

/// What all clients share.
pub(super) struct Shared<'a> {
    pub(super) db: &'a Database,
    pub(super) tables: &'a Tables,
    pub(super) scale: Scale,
    pub(super) seed: u64,
    pub(super) options: TransactionOptions,
    pub(super) only: Option<Only>,
}

/// A client; its number is one that no client of this database had before, and never 0.
pub(super) struct Client<'a> {
    shared: &'a Shared<'a>,
    number: u32,
    payments: u32,
    random: SmallRng,
}

impl<'a> Client<'a> {
    pub(super) fn new(shared: &'a Shared<'a>, number: u32) -> Client<'a> {
        let random = SmallRng::seed_from_u64(shared.seed.rotate_left(32) ^ u64::from(number));
        Client {
            shared,
            number,
            payments: 0,
            random,
        }
    }

    /// Runs the next transaction.
    ///
    /// # Errors
    /// Those of the store that no other attempt would mend.
    pub(super) fn next(&mut self) -> Outcome<Done> {
        let kind = match self.shared.only {
            Some(Only::NewOrder) => Kind::NewOrder,
            Some(Only::Payment) => Kind::Payment,
            None => Kind::draw(&mut self.random),
        };
        self.run(kind)
    }

    /// Runs a transaction of this kind.
    pub(super) fn run(&mut self, kind: Kind) -> Outcome<Done> {
        let Shared {
            tables,
            scale,
            options,
            ..
        } = *self.shared;
        let random = &mut self.random;
        match kind {
            Kind::NewOrder | Kind::NewOrderRolledBack => {
                let input = NewOrder::draw(random, scale);
                let date = now_us();
                self.attempts(kind, options, |tx| input.run(tx, tables, date))
            }
            Kind::Payment => {
                self.payments += 1;
                let history = key::history(self.number, self.payments);
                let input = Payment::draw(random, scale, history);
                let date = now_us();
                self.attempts(kind, options, |tx| input.run(tx, tables, date))
            }
            Kind::Delivery => {
                let input = Delivery::draw(random, scale);
                let date = now_us();
                self.attempts(kind, options, |tx| input.run(tx, tables, date))
            }
            Kind::OrderStatus => {
                let input = OrderStatus::draw(random, scale);
                self.attempts(kind, options.read_only(), |tx| input.run(tx, tables))
            }
            Kind::StockLevel => {
                let input = StockLevel::draw(random, scale);
                self.attempts(kind, options.read_only(), |tx| input.run(tx, tables))
            }
        }
    }

    /// Runs `body` in a transaction, again and again while it has to give way to others.
    fn attempts(
        &mut self,
        kind: Kind,
        options: TransactionOptions,
        body: impl Fn(&Transaction) -> Result<Ended>,
    ) -> Outcome<Done> {
        let mut aborts = 0;
        loop {
            match self.attempt(options, &body) {
                Ok(ended) => {
                    let kind = match ended {
                        Ended::Committed => kind,
                        Ended::RolledBack => Kind::NewOrderRolledBack,
                    };
                    return Ok(Done {
                        kind: kind as usize,
                        operations: 1,
                        aborts,
                    });
                }
                Err(error) if error.is_retryable() => {
                    aborts += 1;
                    self.pause(aborts);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn attempt(
        &self,
        options: TransactionOptions,
        body: impl Fn(&Transaction) -> Result<Ended>,
    ) -> Result<Ended> {
        let tx = self.shared.db.begin_with(options)?;
        let ended = body(&tx)?;
        match ended {
            Ended::Committed => tx.commit()?,
            Ended::RolledBack => tx.rollback()?,
        }
        Ok(ended)
    }

    /// Lets the others go ahead: not at all the first time, then longer and longer, at random.
    fn pause(&mut self, aborts: u64) {
        const FIRST_US: u64 = 50;
        const DOUBLED_MAX: u64 = 9;
        if aborts > 1 {
            let longest = FIRST_US << aborts.min(DOUBLED_MAX);
            let pause = Duration::from_micros(self.random.random_range(0..longest));
            std::thread::sleep(pause);
        }
    }
}

/// Microseconds since 1970.
pub(super) fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |time| time.as_micros() as u64)
}

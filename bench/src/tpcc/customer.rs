//! Who a customer is: known by number, or by last name.

use super::key::{self, DistrictId};
use super::layout::Text;
use super::random::{self, one_of_hundred};
use super::scale::Scale;
use super::tables::Tables;
use longshore::{Error, Result, Transaction};
use rand::rngs::SmallRng;

/// How a terminal says which customer it means.
#[derive(Clone, Copy, Debug)]
pub(super) enum Who {
    Number(u32),
    LastName(Text<16>),
}

impl Who {
    /// Sixty of a hundred are named (clauses 2.5.1.2 and 2.6.1.2).
    pub(super) fn draw(random: &mut SmallRng, scale: Scale) -> Who {
        match one_of_hundred(random, 60) {
            true => Who::LastName(random::last_name(random, scale)),
            false => Who::Number(random::customer(random, scale)),
        }
    }

    /// The customer's number: of those with the last name, the one in the middle by first name, and of two in
    /// the middle the former.
    pub(super) fn find(&self, tx: &Transaction, tables: &Tables, at: DistrictId) -> Result<u32> {
        let last = match self {
            Who::Number(customer) => return Ok(*customer),
            Who::LastName(last) => last,
        };
        let rows = tables.customer_by_name.prefix(tx, (at, *last))?;
        let mut named = Vec::with_capacity(8);
        for keys in rows.keys() {
            let (_, key) = keys?;
            named.push(key::number_of(key));
        }
        let middle = named.len().div_ceil(2).checked_sub(1);
        let found = middle.and_then(|middle| named.get(middle)).copied();
        found.ok_or_else(|| {
            let last = String::from_utf8_lossy(last.as_bytes()).into_owned();
            Error::other(format!("no customer of {at:?} is named {last}"))
        })
    }
}

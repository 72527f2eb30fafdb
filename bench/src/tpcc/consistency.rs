//! The consistency conditions 1 to 4 of clause 3.3.2.
//!
//! | condition | says |
//! |---|---|
//! | 1 | what a warehouse has earned is what its districts have |
//! | 2 | a district's next order number is one above its newest order, and above its newest new order if it has one |
//! | 3 | the new orders of a district have numbers without gaps |
//! | 4 | the orders of a district have as many lines as they say |

use super::key::{self, DistrictId};
use super::scale::{DISTRICTS, Scale};
use super::schema::{District, Order, Warehouse};
use super::tables::Tables;
use longshore::{Result, Transaction};
use std::fmt;

/// A condition that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) condition: u8,
    warehouse: u16,
    district: Option<u8>,
    found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (condition, warehouse, found) = (self.condition, self.warehouse, &self.found);
        write!(f, "condition {condition}, warehouse {warehouse}")?;
        if let Some(district) = self.district {
            write!(f, ", district {district}")?;
        }
        write!(f, ": {found}")
    }
}

/// What a transaction sees of the whole database.
#[derive(Debug, Default)]
pub(super) struct State {
    /// All that does not hold.
    pub(super) violations: Vec<Violation>,
    pub(super) sums: Sums,
}

/// What there is, over all warehouses. Each transaction that changes something changes one of these, but for
/// a delivery where there is nothing to deliver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    earned: i64,
    lines: u64,
    new_orders: u64,
    next_orders: u64,
}

/// Reads the whole database.
pub(super) fn state(tx: &Transaction, tables: &Tables, scale: Scale) -> Result<State> {
    let mut state = State::default();
    let State { violations, sums } = &mut state;
    for warehouse in 1..=scale.warehouses {
        let mut earned = 0;
        for district in 1..=DISTRICTS {
            let at = DistrictId {
                warehouse,
                district,
            };
            let row = tables.district.get(tx, &key::district(at))?;
            earned += row.get(District::YTD);
            let counted = Counted::of(tx, tables, at)?;
            let next = row.get(District::NEXT_ORDER);
            sums.next_orders += u64::from(next);
            sums.lines += counted.lines;
            sums.new_orders += u64::from(counted.new_orders);
            violations.extend(
                counted
                    .violations(next)
                    .map(|(condition, found)| Violation {
                        condition,
                        warehouse,
                        district: Some(district),
                        found,
                    }),
            );
        }
        let row = tables.warehouse.get(tx, &key::warehouse(warehouse))?;
        let total = row.get(Warehouse::YTD);
        sums.earned += total;
        if total != earned {
            violations.push(Violation {
                condition: 1,
                warehouse,
                district: None,
                found: format!("it has earned {total}, its districts {earned}"),
            });
        }
    }
    Ok(state)
}

/// What there is of a district.
#[derive(Default)]
struct Counted {
    newest_order: u32,
    /// Lines that the orders say they have.
    lines_told: u64,
    lines: u64,
    new_orders: u32,
    oldest_new_order: u32,
    newest_new_order: u32,
}

impl Counted {
    fn of(tx: &Transaction, tables: &Tables, at: DistrictId) -> Result<Counted> {
        let mut counted = Counted::default();
        let all = || key::order(at, 0)..key::order(at, u32::MAX);
        let mut orders = tables.order.scan(tx, all())?;
        while let Some((key, order)) = orders.next()? {
            counted.newest_order = key::number(key);
            counted.lines_told += u64::from(order.get(Order::LINES));
        }
        let mut new_orders = tables.new_order.scan(tx, all())?;
        while let Some((key, _)) = new_orders.next()? {
            counted.newest_new_order = key::number(key);
            if counted.new_orders == 0 {
                counted.oldest_new_order = key::number(key);
            }
            counted.new_orders += 1;
        }
        let mut lines = tables.order_line.scan(tx, all())?;
        while lines.next()?.is_some() {
            counted.lines += 1;
        }
        Ok(counted)
    }

    /// The conditions 2 to 4 that do not hold.
    fn violations(&self, next: u32) -> impl Iterator<Item = (u8, String)> + use<> {
        let &Counted {
            newest_order,
            lines_told,
            lines,
            new_orders,
            oldest_new_order: oldest,
            newest_new_order: newest,
        } = self;
        let has_new = new_orders > 0;
        let is_next = next == newest_order + 1 && (!has_new || newest == newest_order);
        let has_no_gap = !has_new || newest - oldest + 1 == new_orders;
        let checks = [
            (
                2,
                is_next,
                format!(
                    "the next order is {next}, the newest {newest_order}, the newest new one {newest}"
                ),
            ),
            (
                3,
                has_no_gap,
                format!("{new_orders} new orders from {oldest} to {newest}"),
            ),
            (
                4,
                lines_told == lines,
                format!("its orders say they have {lines_told} lines, and have {lines}"),
            ),
        ];
        checks
            .into_iter()
            .filter(|(_, holds, _)| !holds)
            .map(|(condition, _, found)| (condition, found))
    }
}

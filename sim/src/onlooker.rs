//! A reader that stays open while others change what it will look at: it finds what was committed when it
//! began, and a crash finds it open.
//!
//! It uses its table only when it looks, and then it ends: one who is inside a table keeps it from being dropped.

use crate::model::Rows;
use crate::trace::trace;
use crate::workload::{Stop, Workload, same};
use longshore::{Error, Table, Transaction, TransactionOptions};

pub(crate) struct Onlooker {
    transaction: Transaction,
    table: Table,
    /// What was committed in it.
    rows: Rows,
}

impl Workload<'_> {
    /// Opens the snapshot of one who will look at a table, or has the one there is look and end.
    pub(crate) fn look(&mut self) -> Result<(), Stop> {
        match self.onlooker.take() {
            Some(onlooker) => self.look_at_last(onlooker),
            None => self.begin_to_look(),
        }
    }

    fn begin_to_look(&mut self) -> Result<(), Stop> {
        let Some((name, table)) = self.pick_table()? else {
            return Ok(());
        };
        trace(|| format!("onlooker: begins, at {name}"));
        match self.db.begin_with(TransactionOptions::new().read_only()) {
            Ok(transaction) => {
                let rows = self.history.now().tables[&name].clone();
                self.onlooker = Some(Onlooker {
                    transaction,
                    table,
                    rows,
                });
                Ok(())
            }
            Err(error) => self.sort(Err(error)),
        }
    }

    fn look_at_last(&mut self, onlooker: Onlooker) -> Result<(), Stop> {
        trace(|| "onlooker: looks".to_owned());
        let transaction = onlooker.transaction;
        let all = transaction.scan(&onlooker.table, ..);
        match all.and_then(|cursor| cursor.collect::<Result<Rows, Error>>()) {
            Ok(found) => {
                same(found, onlooker.rows, || "a snapshot".to_owned()).map_err(Stop::Wrong)
            }
            Err(Error::TableDropped { .. }) => Ok(()),
            Err(error) => self.sort(Err(error)),
        }
    }
}

//! What a transaction of a model has been granted, and may rely on until it ends: whatever is granted to
//! one is held against what the others have.

use longshore_txn::{Mode, TableMode};
use std::collections::BTreeMap;

/// At most what the transaction's locks are: those may be more, and then others are refused more.
pub struct Claims {
    table: Mode,
    rows: BTreeMap<u8, Mode>,
}

impl Claims {
    pub fn none() -> Claims {
        Claims {
            table: Mode::NONE,
            rows: BTreeMap::new(),
        }
    }

    /// The whole table was granted, or an intent on it.
    pub fn table<'a>(&mut self, others: impl Iterator<Item = &'a Claims>, mode: Mode) {
        let wanted = self.table.supremum(mode);
        for other in others {
            let held = other.table;
            assert!(held.is_compatible(wanted), "{wanted:?} beside {held:?}");
        }
        self.table = wanted;
    }

    /// Rows were granted, those included that are not there.
    pub fn rows<'a>(
        &mut self,
        others: impl Iterator<Item = &'a Claims> + Clone,
        keys: impl IntoIterator<Item = u8>,
        mode: Mode,
    ) {
        let intents = [TableMode::IntentShared, TableMode::IntentExclusive].map(Mode::table);
        let intent = intents.into_iter().find(|intent| intent.permits_row(mode));
        for key in keys {
            self.table(others.clone(), intent.expect("rows can be locked"));
            for other in others.clone() {
                let held = other.rows.get(&key).copied().unwrap_or(Mode::NONE);
                assert!(held.is_compatible(mode), "{key}: {mode:?} beside {held:?}");
            }
            let mine = self.rows.entry(key).or_insert(Mode::NONE);
            *mine = mine.supremum(mode);
        }
    }
}

//! Requests on rows, tables and the database at random, against a list of who holds what.

use crate::actors::manager;
use longshore_base::{StoreId, TxnId};
use longshore_txn::{Dependency, Escalation, LockName, LockOptions, Mode, Owner, TableMode, Wait};
use proptest::prelude::*;
use std::collections::HashMap;

const OWNERS: usize = 4;

#[derive(Clone, Copy, Debug)]
enum Step {
    Row(usize, u32, u8, Mode),
    Table(usize, u32, TableMode),
    Database(usize, TableMode),
    End(usize),
}

/// What each owner holds: by table (zero is the database) and row.
#[derive(Default)]
struct Model {
    tables: HashMap<(usize, u32), Mode>,
    rows: HashMap<(usize, u32, u8), Mode>,
}

impl Model {
    fn table(&mut self, owner: usize, store: u32, mode: Mode) -> bool {
        let mine = self.tables.get(&(owner, store)).copied();
        let wanted = mine.unwrap_or(Mode::NONE).supremum(mode);
        let free = self
            .tables
            .iter()
            .all(|(&(o, s), held)| o == owner || s != store || held.is_compatible(wanted));
        if free {
            self.tables.insert((owner, store), wanted);
        }
        free
    }

    fn row(&mut self, owner: usize, store: u32, key: u8, mode: Mode) -> bool {
        if self.mode_on(owner, store).covers_row(mode) {
            return true;
        }
        if !self.mode_on(owner, store).permits_row(mode) {
            let intent = intent_of(mode);
            if !self.table(owner, 0, intent) {
                return false;
            }
            let database = self.mode_on(owner, 0);
            let above = match (database.covers_row(mode), intent == Mode::INTENT_SHARED) {
                (false, _) => intent,
                (true, true) => Mode::table(TableMode::Shared),
                (true, false) => database,
            };
            if !self.table(owner, store, above) {
                return false;
            }
        }
        if self.mode_on(owner, store).covers_row(mode) {
            return true;
        }
        let mine = self.rows.get(&(owner, store, key)).copied();
        let wanted = mine.unwrap_or(Mode::NONE).supremum(mode);
        let free = self.rows.iter().all(|(&(o, s, k), held)| {
            o == owner || (s, k) != (store, key) || held.is_compatible(wanted)
        });
        if free {
            self.rows.insert((owner, store, key), wanted);
        }
        free
    }

    fn mode_on(&self, owner: usize, store: u32) -> Mode {
        let held = self.tables.get(&(owner, store));
        held.copied().unwrap_or(Mode::NONE)
    }

    fn end(&mut self, owner: usize) {
        self.tables.retain(|(o, _), _| *o != owner);
        self.rows.retain(|(o, _, _), _| *o != owner);
    }
}

fn intent_of(mode: Mode) -> Mode {
    match Mode::INTENT_SHARED.permits_row(mode) {
        true => Mode::INTENT_SHARED,
        false => Mode::INTENT_EXCLUSIVE,
    }
}

fn table_mode() -> impl Strategy<Value = TableMode> {
    prop::sample::select(vec![
        TableMode::IntentShared,
        TableMode::IntentExclusive,
        TableMode::Shared,
        TableMode::Update,
        TableMode::SharedIntentExclusive,
        TableMode::Exclusive,
    ])
}

fn row_mode() -> impl Strategy<Value = Mode> {
    prop::sample::select(vec![
        Mode::READ,
        Mode::UPDATE,
        Mode::WRITE,
        Mode::READ_GAP,
        Mode::READ_RANGE,
        Mode::INSERT,
        Mode::WRITE_RANGE,
    ])
}

fn step() -> impl Strategy<Value = Step> {
    let owner = || 0..OWNERS;
    // Two tables that share a word, and one that does not.
    let store = || prop::sample::select(vec![16_u32, 16 + 128, 17]);
    prop_oneof![
        8 => (owner(), store(), 0u8..3, row_mode()).prop_map(|(o, s, k, m)| Step::Row(o, s, k, m)),
        3 => (owner(), store(), table_mode()).prop_map(|(o, s, m)| Step::Table(o, s, m)),
        1 => (owner(), table_mode()).prop_map(|(o, m)| Step::Database(o, m)),
        2 => owner().prop_map(Step::End),
    ]
}

proptest! {
    #[test]
    fn what_is_granted_is_what_a_list_of_holders_would_grant(
        steps in prop::collection::vec(step(), 1..120)
    ) {
        let locks = manager(LockOptions {
            bytes_max: 1 << 20,
            owners_max: OWNERS,
            escalation: Escalation::Never,
            ..LockOptions::default()
        });
        let mut owners: Vec<Owner> =
            (0..OWNERS).map(|n| locks.register(n, TxnId::new(n as u64))).collect();
        let mut model = Model::default();
        for step in steps {
            let (granted, expected) = match step {
                Step::Row(o, store, key, mode) => {
                    let name = LockName::of_key(StoreId::new(store), &[key]);
                    let granted = locks.try_lock(&mut owners[o], name, mode).unwrap();
                    (granted, model.row(o, store, key, mode))
                }
                Step::Table(o, store, mode) => {
                    let id = StoreId::new(store);
                    let granted = locks.lock_table(&mut owners[o], id, mode, Wait::No).is_ok();
                    let above = Mode::table(mode);
                    let changes = !matches!(
                        mode,
                        TableMode::IntentShared | TableMode::Shared | TableMode::Update
                    );
                    let intent =
                        [Mode::INTENT_SHARED, Mode::INTENT_EXCLUSIVE][usize::from(changes)];
                    (granted, model.table(o, 0, intent) && model.table(o, store, above))
                }
                Step::Database(o, mode) => {
                    let granted = locks.lock_database(&mut owners[o], mode, Wait::No).is_ok();
                    (granted, model.table(o, 0, Mode::table(mode)))
                }
                Step::End(o) => {
                    locks.release_all(&mut owners[o], Dependency::NONE);
                    model.end(o);
                    (true, true)
                }
            };
            prop_assert_eq!(granted, expected, "{:?}", step);
            let rows: usize = owners.iter().map(Owner::locks_held).sum();
            prop_assert_eq!(rows, model.rows.len());
            prop_assert_eq!(locks.holds(1000).len(), model.rows.len() + model.tables.len());
        }
        for owner in &mut owners {
            locks.release_all(owner, Dependency::NONE);
        }
        prop_assert!(locks.holds(10).is_empty());
        let mut stranger = locks.register(0, TxnId::new(99));
        locks.lock_database(&mut stranger, TableMode::Exclusive, Wait::No).unwrap();
    }
}

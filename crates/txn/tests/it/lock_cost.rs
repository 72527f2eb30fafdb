//! What an uncontended lock costs. The bound is loose, for machines that are busy; `--nocapture` prints
//! the figure, which means something in a release build only.

use crate::actors::manager;
use longshore_base::{StoreId, TxnId};
use longshore_txn::{Dependency, LockName, LockOptions, Mode, Wait};
use std::time::Instant;

/// Locks a transaction takes before it ends.
const LOCKS: u64 = 1000;

#[test]
fn an_uncontended_lock_is_cheap() {
    let locks = manager(LockOptions::default());
    let mut best = f64::INFINITY;
    for round in 0..60u64 {
        let start = Instant::now();
        let mut owner = locks.register(0, TxnId::new(round));
        for key in 0..LOCKS {
            let key = (round % 7 * LOCKS + key).to_be_bytes();
            let name = LockName::of_key(StoreId::new(16), &key);
            locks.lock(&mut owner, name, Mode::WRITE, Wait::No).unwrap();
        }
        locks.release_all(&mut owner, Dependency::NONE);
        best = best.min(start.elapsed().as_nanos() as f64 / LOCKS as f64);
    }
    println!("lock and unlock, key hashed: {best:.1} ns");
    assert!(best < 2000.0, "{best} ns");
}

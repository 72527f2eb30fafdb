//! The tree's question before a boundary disappears.

use super::manager::LockManager;
use super::name::LockName;
use longshore_access::Boundaries;
use longshore_base::StoreId;

impl Boundaries for LockManager {
    fn may_remove(&self, store: StoreId, key: &[u8]) -> bool {
        self.is_free(LockName::of_key(store, key), key)
    }
}

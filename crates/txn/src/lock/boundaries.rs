//! tmp
use super::manager::LockManager;
use super::name::LockName;
use longshore_base::StoreId;
impl LockManager {
    /// tmp
    pub fn may_remove(&self, store: StoreId, key: &[u8]) -> bool {
        self.is_free(LockName::of_key(store, key))
    }
}

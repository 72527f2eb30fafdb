//! Locks by name for the disks that live in this process only.

use crate::disk::DiskLock;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The names locked on one in-process disk.
#[derive(Default)]
pub(crate) struct LockedNames {
    names: Arc<Mutex<BTreeSet<String>>>,
}

impl LockedNames {
    /// Locks `name`, or returns `None` when it is held.
    pub(crate) fn try_lock(&self, name: &str) -> Option<DiskLock> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = names.insert(name.to_owned());
        is_new.then(|| {
            DiskLock::new(Held {
                name: name.to_owned(),
                names: self.names.clone(),
            })
        })
    }
}

struct Held {
    name: String,
    names: Arc<Mutex<BTreeSet<String>>>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.names
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.name);
    }
}

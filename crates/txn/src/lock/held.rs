//! What one transaction holds, by names that last longer than the lock table.

use super::manager::LockManager;
use super::mode::Mode;
use super::name::LockName;
use super::owner::Owner;

impl LockManager {
    /// All that `owner` holds: on the database and on tables, then on rows.
    pub(crate) fn held_by(&self, owner: &Owner) -> Vec<(LockName, Mode)> {
        let tables = owner.tables.iter();
        let tables = tables.map(|hold| (LockName::of_table(hold.store), hold.mode));
        let rows = owner.held.iter().flat_map(|&hash| {
            let tables = owner.tables.iter();
            tables.filter_map(move |hold| LockName::of_row_in(hold.store, hash))
        });
        let rows = rows.map(|name| (name, self.mode_held(owner, name)));
        let held = tables.chain(rows);
        held.filter(|(_, mode)| *mode != Mode::NONE).collect()
    }

    fn mode_held(&self, owner: &Owner, name: LockName) -> Mode {
        let latched = self.latch(name.hash());
        let mut requests = latched.of(name);
        let own = requests.find(|request| request.owner() == owner.index);
        own.map_or(Mode::NONE, |request| request.held)
    }
}

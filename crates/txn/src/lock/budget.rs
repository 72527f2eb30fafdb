//! Memory for locks: buckets that grow, lists of locks held, and the bound over all of it.

use super::bucket::Latched;
use super::error::LockError;
use super::manager::LockManager;
use super::name::LockName;
use super::owner::Owner;
use super::queue::Request;
use super::table::TableHold;
use longshore_base::sync::atomic::Ordering;

/// Bytes that a bucket keeps for its next rush when it becomes empty.
const SPILL_KEPT: usize = 8 * size_of::<Request>();

/// The part of the budget that is kept for tables, as a divisor: whoever trades rows for a table must
/// be able to ask for it when there is no room for rows.
const TABLES_SHARE: usize = 32;

/// What memory is wanted for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    Rows,
    Tables,
}

impl Use {
    pub fn of(name: LockName) -> Use {
        match name.is_table() {
            true => Use::Tables,
            false => Use::Rows,
        }
    }
}

impl LockManager {
    /// Bytes of memory in use.
    pub fn bytes_used(&self) -> usize {
        // Relaxed: a count.
        self.bytes_used.load(Ordering::Relaxed)
    }

    /// Bytes of memory allowed.
    pub fn bytes_max(&self) -> usize {
        self.options().bytes_max
    }

    /// Doubles the room in a bucket.
    #[cold]
    pub(super) fn make_room(
        &self,
        latched: &mut Latched<'_>,
        use_for: Use,
    ) -> Result<(), LockError> {
        let before = latched.bytes_spilled();
        // What the bucket had inside itself becomes part of what it has outside.
        let guess = (2 * before).max(4 * size_of::<Request>());
        self.charge(guess, use_for)?;
        latched.grow();
        self.give_back(guess + before - latched.bytes_spilled());
        Ok(())
    }

    /// Gives back what a rush has left in an empty bucket.
    #[cold]
    pub(super) fn tidy(&self, latched: &mut Latched<'_>) {
        let spilled = latched.bytes_spilled();
        if spilled > SPILL_KEPT && latched.iter().next().is_none() {
            latched.shrink();
            self.give_back(spilled - latched.bytes_spilled());
        }
    }

    #[cold]
    pub(super) fn grow_list(&self, owner: &mut Owner) -> Result<(), LockError> {
        let before = owner.held.capacity();
        let inside = if owner.held.spilled() { before } else { 0 };
        self.charge((2 * before - inside) * size_of::<u64>(), Use::Rows)?;
        owner.held.reserve_exact(2 * before - owner.held.len());
        Ok(())
    }

    /// Doubles the room for what an owner holds on tables.
    #[cold]
    pub(super) fn grow_tables(&self, owner: &mut Owner) -> Result<(), LockError> {
        let before = owner.tables.capacity();
        let inside = if owner.tables.spilled() { before } else { 0 };
        self.charge((2 * before - inside) * size_of::<TableHold>(), Use::Tables)?;
        owner.tables.reserve_exact(2 * before - owner.tables.len());
        Ok(())
    }

    /// Gives back what an owner's list has no use for any more.
    pub(super) fn shrink_list(&self, owner: &mut Owner) {
        let bytes = |owner: &Owner| match owner.held.spilled() {
            true => owner.held.capacity() * size_of::<u64>(),
            false => 0,
        };
        let before = bytes(owner);
        owner.held.shrink_to_fit();
        self.give_back(before - bytes(owner));
    }

    fn charge(&self, bytes: usize, use_for: Use) -> Result<(), LockError> {
        let bytes_max = self.options().bytes_max;
        let kept = match use_for {
            Use::Rows => bytes_max / TABLES_SHARE,
            Use::Tables => 0,
        };
        // Relaxed: a count; nothing is published through it.
        let before = self.bytes_used.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > bytes_max - kept {
            self.give_back(bytes);
            return Err(LockError::TableFull { bytes_max });
        }
        Ok(())
    }

    pub(super) fn give_back(&self, bytes: usize) {
        // Relaxed: a count; nothing is published through it.
        self.bytes_used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

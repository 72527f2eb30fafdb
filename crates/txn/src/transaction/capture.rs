//! A writer's part in the versions of rows: what a row was is captured before it changes.

use super::manager::Core;
use super::work::Work;
use crate::error::{Result, TxnError};
use crate::lock::{CommitLevel, LockName};
use crate::version::{Arena, Image, Patience, Room, RowRef, Shortage};
use longshore_access::{Tree, ValueKind};
use longshore_base::Lsn;

/// What the owner of an arena knows about it, so that it need not look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CaptureRoom(usize);

impl CaptureRoom {
    /// Nothing was captured yet.
    pub const NONE: CaptureRoom = CaptureRoom(0);
    /// Nothing more is captured.
    const INCOMPLETE: CaptureRoom = CaptureRoom(usize::MAX);
}

/// Bytes that the stub of a chain takes at most.
const STUB_BYTES_MAX: usize = 64;

impl Work {
    /// Makes room for the image of a row of `tree`. No latch is held.
    ///
    /// Rows of the GARBAGE tree have no images: nobody reads them by snapshot.
    #[inline]
    pub(super) fn prepare_capture(&mut self, core: &Core, tree: Tree, key: &[u8]) -> Result<()> {
        let value_max = core.access.limits().inline_max(key.len());
        let need = Arena::entry_bytes(key.len(), value_max.max(STUB_BYTES_MAX));
        if core.versions.is_short(self.capture_room.0, need)
            && tree.store != core.options.garbage.store
        {
            return self.make_room_for_images(core, need);
        }
        Ok(())
    }

    #[cold]
    fn make_room_for_images(&mut self, core: &Core, need: usize) -> Result<()> {
        let patience = Patience {
            limit: self.patience(core),
            tail: &|| core.log.tail(),
        };
        let room = core
            .versions
            .make_room(self.slot, self.txn(), need, &patience);
        self.capture_room = match room {
            Ok(Room::Bytes(bytes)) => CaptureRoom(bytes),
            Ok(Room::Incomplete) => CaptureRoom::INCOMPLETE,
            Err(Shortage { bytes_max, oldest }) => {
                return Err(TxnError::VersionsFull {
                    bytes_max,
                    oldest: oldest.map(|view| view.txn),
                });
            }
        };
        Ok(())
    }

    /// Captures what the row is, before it changes and under the latch of its leaf: absent, or with the
    /// value that is in `value_buffer`.
    #[inline]
    pub(super) fn capture(
        &mut self,
        core: &Core,
        tree: Tree,
        name: LockName,
        key: &[u8],
        before: Option<ValueKind>,
    ) {
        if self.capture_room == CaptureRoom::INCOMPLETE || tree.store == core.options.garbage.store
        {
            return;
        }
        let value = &self.value_buffer;
        let image = before.map_or(Image::Absent, |kind| Image::of_kind(kind, value));
        let bytes = Arena::entry_bytes(key.len(), before.map_or(0, |_| value.len()));
        debug_assert!(bytes <= self.capture_room.0, "room was made");
        self.capture_room.0 -= bytes;
        let seen = self.owner.dependency();
        core.versions
            .capture(self.slot, RowRef::new(name, key), image, seen);
    }

    /// The commit record lies at `lsn`: keeps the images that open snapshots need. All locks are held.
    pub(super) fn keep_images(&mut self, core: &Core, lsn: Lsn, level: CommitLevel) {
        core.versions
            .committed(self.slot, lsn, level, || core.log.tail());
    }

    /// Drops the images. All locks are released.
    #[inline]
    pub(super) fn drop_images(&mut self, core: &Core) {
        if self.capture_room != CaptureRoom::NONE || self.cx.is_some() {
            core.versions.end(self.slot, &|| core.log.tail());
            self.capture_room = CaptureRoom::NONE;
        }
    }
}

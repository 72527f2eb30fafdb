//! Where threads sleep until the log has got somewhere: a room for each thing to wait for.
//!
//! All who sleep in a room are woken by one call, and so by one system call, however many they are; it
//! is made after the group's mutex was given free, so that the woken do not run into it. One alone is
//! called under the mutex: whoever is counted by then is asleep, or has been called.
//!
//! # Invariants
//! A1. A room's count is never less than the threads that sleep in it without a call on its way to
//! them: a thread counts itself under the mutex under which it goes to sleep; a call of all empties the
//! count and reaches everybody, a call of one lowers it by one and reaches one. So a call that is left
//! out because nobody is counted is missed by nobody. The count may be too high, since a call of all also
//! reaches those who came after it was decided; a call is then made in vain.
//! A2. If a call of one reaches somebody who has been called with all, those whom it was meant for are
//! reached by that other call.

use longshore_base::sync::{Condvar, MutexGuard};

/// What the threads in a room wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// Room in the ring.
    Released,
    /// A write.
    Written,
    /// The end of a sync: two rooms, taken in turns.
    Synced(Turns),
}

/// Which of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Turns {
    #[default]
    Even,
    Odd,
}

const ROOMS: usize = 4;

/// How many sleep where; guarded by the group's mutex.
#[derive(Debug, Default)]
pub(crate) struct Sleepers {
    asleep: [u32; ROOMS],
    /// Whose sync is running, or was the last to run.
    running: Turns,
}

/// The rooms themselves.
#[derive(Default)]
pub(crate) struct Rooms([Condvar; ROOMS]);

impl Room {
    fn index(self) -> usize {
        match self {
            Room::Released => 0,
            Room::Written => 1,
            Room::Synced(Turns::Even) => 2,
            Room::Synced(Turns::Odd) => 3,
        }
    }
}

impl Turns {
    fn other(self) -> Turns {
        match self {
            Turns::Even => Turns::Odd,
            Turns::Odd => Turns::Even,
        }
    }
}

impl Sleepers {
    /// The room of those whom the running sync serves.
    pub(crate) fn running(&self) -> Room {
        Room::Synced(self.running)
    }

    /// The room of those whom the next sync serves.
    pub(crate) fn gathering(&self) -> Room {
        Room::Synced(self.running.other())
    }

    /// The gathered are served from now on; others gather where the last sync's were.
    pub(crate) fn swap(&mut self) {
        self.running = self.running.other();
    }

    /// Counts the caller, who goes to sleep before it gives the mutex free.
    pub(crate) fn add(&mut self, room: Room) {
        self.asleep[room.index()] += 1;
    }

    /// Empties a room. Returns it if somebody may be there: to be called when the mutex is free.
    #[must_use]
    pub(crate) fn take_all(&mut self, room: Room) -> Option<Room> {
        let asleep = std::mem::take(&mut self.asleep[room.index()]);
        (asleep > 0).then_some(room)
    }

    /// How many are in a room, as far as is known.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn count(&self, room: Room) -> u32 {
        self.asleep[room.index()]
    }
}

impl Rooms {
    /// Gives the mutex free, sleeps until woken, and takes it again.
    pub(crate) fn sleep<'a, T>(&self, room: Room, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0[room.index()].wait(guard)
    }

    /// Wakes one of a room, if somebody may be there; under the mutex that guards `sleepers`.
    pub(crate) fn wake_one(&self, sleepers: &mut Sleepers, room: Room) {
        let asleep = &mut sleepers.asleep[room.index()];
        if *asleep > 0 {
            *asleep -= 1;
            self.0[room.index()].notify_one();
        }
    }

    /// Wakes all of a room.
    pub(crate) fn wake_all(&self, room: Room) {
        self.0[room.index()].notify_all();
    }

    /// Wakes all of all rooms.
    pub(crate) fn wake_everybody(&self) {
        self.0.iter().for_each(Condvar::notify_all);
    }
}

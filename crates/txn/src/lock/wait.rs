//! Waiting for a lock: line up, sleep, be called or granted, or give up.

use super::budget::Use;
use super::error::LockError;
use super::manager::LockManager;
use super::mode::Mode;
use super::name::LockName;
use super::owner::{Owner, Roused, Verdict};
use super::queue::{Acquired, Claimed, Withdrawn};
use super::wakes::Wakes;
use std::time::Duration;

/// Whether a request that is not granted at once may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Fail instead.
    No,
    /// For at most this long.
    For(Duration),
}

/// A request in the queue. Whoever holds one must `finish` or `withdraw` it.
#[must_use]
#[derive(Debug)]
enum Ticket {
    /// Granted after all.
    Done,
    /// In the queue, for more than is held, or for something new.
    Queued(Asks),
}

/// What a request asks for, beside what its owner holds on the name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asks {
    Anew,
    More,
}

impl LockManager {
    /// Waits until `owner` holds `mode` on `name`. Called with no latch held.
    #[cold]
    pub(super) fn lock_waiting(
        &self,
        owner: &mut Owner,
        name: LockName,
        mode: Mode,
        limit: Duration,
    ) -> Result<(), LockError> {
        let Ticket::Queued(asks) = self.line_up(owner, name, mode)? else {
            return Ok(());
        };
        self.counters().blocked.add(1);
        let since = self.now();
        let outcome = self.sleep_in_queue(owner, name, asks, limit, since);
        self.slot(owner.index).end_wait();
        let waited = self.now().saturating_sub(since);
        self.counters()
            .wait_nanos
            .add(u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX));
        outcome
    }

    /// Lines up and gives up at once, unless the lock was granted in between: a time-out for tests in
    /// which no time passes.
    #[doc(hidden)]
    pub fn lock_or_leave(&self, owner: &mut Owner, name: LockName, mode: Mode) -> bool {
        let above = self.lock_above(owner, name.store(), mode, Wait::No);
        assert_eq!(above, Ok(None), "nobody wants the whole table");
        let _ = owner.above(name.store(), mode);
        match self.line_up(owner, name, mode) {
            Ok(Ticket::Done) => true,
            Ok(Ticket::Queued(asks)) => {
                let granted = self.withdraw(owner, name) == Withdrawn::AlreadyGranted;
                if granted {
                    self.finish(owner, name, asks);
                }
                self.slot(owner.index).end_wait();
                granted
            }
            Err(_) => false,
        }
    }

    /// Puts the request in the queue, or grants it if the way has become free.
    fn line_up(&self, owner: &mut Owner, name: LockName, mode: Mode) -> Result<Ticket, LockError> {
        let slot = self.slot(owner.index);
        slot.begin_wait(name, mode, self.now(), owner.txn);
        loop {
            let mut latched = self.latch(name.hash());
            let mut acquired = latched.acquire(name, owner.index, mode);
            let asks = match latched.is_held_by(name, owner.index) {
                true => Asks::More,
                false => Asks::Anew,
            };
            if acquired == Acquired::Blocked {
                acquired = latched.enqueue(name, owner.index, mode);
            }
            match acquired {
                Acquired::Blocked => return Ok(Ticket::Queued(asks)),
                Acquired::Full => self.make_room(&mut latched, Use::of(name))?,
                done => {
                    owner.depend_on(latched.last_commit());
                    drop(latched);
                    slot.end_wait();
                    self.note_waited(owner, name, done);
                    return Ok(Ticket::Done);
                }
            }
        }
    }

    fn sleep_in_queue(
        &self,
        owner: &mut Owner,
        name: LockName,
        asks: Asks,
        limit: Duration,
        since: Duration,
    ) -> Result<(), LockError> {
        let slot = self.slot(owner.index);
        let mut slept = Duration::ZERO;
        if slot.is_cancelled(owner.txn) {
            return self.give_up(owner, name, asks, LockError::Cancelled);
        }
        let mut is_over = self.break_deadlocks(owner.index).then_some(Verdict::Victim);
        loop {
            match is_over {
                Some(Verdict::Granted) => {
                    self.finish(owner, name, asks);
                    return Ok(());
                }
                Some(Verdict::Victim) => {
                    return self.give_up(owner, name, asks, LockError::Deadlock { name });
                }
                Some(Verdict::Cancelled) => {
                    return self.give_up(owner, name, asks, LockError::Cancelled);
                }
                None => {}
            }
            // The clock of a simulation need not move while we sleep; count the naps too.
            let waited = slept.max(self.now().saturating_sub(since));
            if waited >= limit {
                let holder = self.first_in_the_way(owner, name);
                let waited = limit;
                let error = LockError::Timeout {
                    name,
                    waited,
                    holder,
                };
                return self.give_up(owner, name, asks, error);
            }
            let nap = self.search_interval().min(limit - waited);
            is_over = match slot.sleep(nap) {
                Roused::By(verdict) => Some(verdict),
                Roused::Called => self.claim(owner, name),
                Roused::TimedOut => {
                    slept += nap;
                    self.break_deadlocks(owner.index).then_some(Verdict::Victim)
                }
            };
        }
    }

    /// Comes for the lock that the owner was called for; nothing if somebody has passed.
    fn claim(&self, owner: &Owner, name: LockName) -> Option<Verdict> {
        match self.latch(name.hash()).claim(name, owner.index) {
            Claimed::Granted => Some(Verdict::Granted),
            Claimed::Passed => {
                self.counters().came_in_vain.add(1);
                None
            }
        }
    }

    /// Leaves the queue with `error`, unless the request has been granted meanwhile.
    fn give_up(
        &self,
        owner: &mut Owner,
        name: LockName,
        asks: Asks,
        error: LockError,
    ) -> Result<(), LockError> {
        match self.withdraw(owner, name) {
            Withdrawn::AlreadyGranted => {
                self.finish(owner, name, asks);
                Ok(())
            }
            Withdrawn::Yes => {
                match error {
                    LockError::Deadlock { .. } => self.counters().deadlocks.add(1),
                    LockError::Cancelled => self.counters().cancelled.add(1),
                    _ => self.counters().timeouts.add(1),
                }
                Err(error)
            }
        }
    }

    /// Takes the request out of the queue and lets those behind it pass.
    fn withdraw(&self, owner: &Owner, name: LockName) -> Withdrawn {
        let mut wakes = Wakes::default();
        let mut latched = self.latch(name.hash());
        let withdrawn = latched.withdraw(name, owner.index);
        if withdrawn == Withdrawn::Yes {
            latched.serve(name, |index, turn| self.tell(index, turn, &mut wakes));
        }
        drop(latched);
        self.wake(wakes);
        withdrawn
    }

    /// Takes note of a lock that was granted during the wait.
    fn finish(&self, owner: &mut Owner, name: LockName, asks: Asks) {
        let latched = self.latch(name.hash());
        owner.depend_on(latched.last_commit());
        drop(latched);
        let acquired = match asks {
            Asks::Anew => Acquired::Granted,
            Asks::More => Acquired::Converted,
        };
        self.note_waited(owner, name, acquired);
    }

    fn note_waited(&self, owner: &mut Owner, name: LockName, acquired: Acquired) {
        // Whoever asks for a table takes note of it.
        if !name.is_table() {
            self.note_granted(owner, name.hash(), acquired);
        }
    }
}

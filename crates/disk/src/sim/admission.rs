//! Each call is admitted before it works: it is counted, and the plans decide whether it happens,
//! fails, or happens unseen because the machine crashes in it.

use super::plan::{FaultError, SimIo};
use super::state::State;
use crate::error::{DiskError, DiskErrorKind, DiskOperation};
use std::io;

/// What becomes of an operation that was admitted.
pub(super) enum Fate {
    Happens,
    /// It happens, but the caller does not live to see it.
    Crashes,
    Fails(FaultError),
}

/// One call, as it is counted and traced.
pub(super) struct Call<'a> {
    pub(super) operation: DiskOperation,
    pub(super) file: &'a str,
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) is_change: bool,
}

impl State {
    /// Counts a call and decides what becomes of it.
    pub(super) fn admit(&mut self, call: &Call<'_>) -> Result<Fate, DiskError> {
        self.check_alive(call.operation, call.file)?;
        self.ios += 1;
        self.changes += u64::from(call.is_change);
        if let Some(trace) = &mut self.trace {
            trace.push(call.traced());
        }
        if self
            .crash
            .as_mut()
            .is_some_and(|crash| crash.strikes(call.is_change))
        {
            self.is_crashed = true;
            return Ok(Fate::Crashes);
        }
        let mut failing = None;
        for planned in &mut self.faults {
            // Every fault counts every call, even one that another fault has already hit.
            if planned.strikes(call.operation, call.is_change) {
                failing = failing.or(Some(planned.fault.error));
            }
        }
        self.faults_hit += u64::from(failing.is_some());
        Ok(failing.map_or(Fate::Happens, Fate::Fails))
    }

    /// Admits a call and does its work.
    pub(super) fn perform<T>(
        &mut self,
        call: &Call<'_>,
        work: impl FnOnce(&mut State) -> Result<T, io::Error>,
    ) -> Result<T, DiskError> {
        match self.admit(call)? {
            Fate::Happens => work(self).map_err(|source| call.failed(source)),
            Fate::Crashes => {
                let _unseen = work(self);
                Err(call.crashed())
            }
            Fate::Fails(error) => Err(call.failed(error.into())),
        }
    }

    /// Admits a call that makes something safe: if the machine crashes in it, nothing is.
    pub(super) fn perform_sync(
        &mut self,
        call: &Call<'_>,
        work: impl FnOnce(&mut State),
    ) -> Result<(), DiskError> {
        match self.admit(call)? {
            Fate::Happens => {
                work(self);
                Ok(())
            }
            Fate::Crashes => Err(call.crashed()),
            Fate::Fails(error) => Err(call.failed(error.into())),
        }
    }

    pub(super) fn check_alive(
        &self,
        operation: DiskOperation,
        file: &str,
    ) -> Result<(), DiskError> {
        match self.is_crashed {
            false => Ok(()),
            true => Err(crashed(operation, file)),
        }
    }
}

impl<'a> Call<'a> {
    /// A call that changes something, on a whole file.
    pub(super) fn on(operation: DiskOperation, file: &'a str) -> Self {
        Self {
            operation,
            file,
            offset: 0,
            len: 0,
            is_change: true,
        }
    }

    fn traced(&self) -> SimIo {
        SimIo {
            operation: self.operation,
            file: self.file.into(),
            offset: self.offset,
            len: self.len,
            is_change: self.is_change,
        }
    }

    pub(super) fn failed(&self, source: io::Error) -> DiskError {
        let has_offset = matches!(self.operation, DiskOperation::Read | DiskOperation::Write);
        DiskError::new(
            self.operation,
            self.file,
            has_offset.then_some(self.offset),
            source,
        )
    }

    pub(super) fn crashed(&self) -> DiskError {
        crashed(self.operation, self.file)
    }
}

fn crashed(operation: DiskOperation, file: &str) -> DiskError {
    let reason = "the simulated machine has crashed";
    DiskError::because(operation, file, DiskErrorKind::Crashed, reason)
}

impl From<FaultError> for io::Error {
    fn from(error: FaultError) -> Self {
        match error {
            FaultError::Io => io::Error::other("injected fault: the device failed"),
            FaultError::ShortWrite => io::Error::other("injected fault: written only in part"),
            FaultError::Full => io::ErrorKind::StorageFull.into(),
        }
    }
}

//! Values too large for a leaf: written as a chain of pages, read whole or piece by piece.
//!
//! # Protocol
//! Lock the row's key; choose the chain; announce it as garbage (see `garbage`); write it link by link;
//! make the row refer to it; retract the announcement. A failure at any point leaves the announcement,
//! and a purge round frees what was written. The chain that a row referred to before is enlisted as
//! garbage in the same transaction.
//!
//! Who reads a chain holds a lock on its row, or has a snapshot open that sees it, so nobody frees it meanwhile.

use super::garbage::Item;
use super::manager::Core;
use super::snapshot::Reads;
use super::statement::{Change, Stored};
use super::work::Work;
use crate::error::{Result, TxnError};
use crate::lock::{LockName, Mode};
use longshore_access::overflow::{ChainReader, ChainWriter, Link, Stub};
use longshore_access::{Access, AccessError, Corruption, RowFlags, Tree, ValueKind};
use longshore_base::{PageId, StoreId, crash_point};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes that a value may have.
const VALUE_BYTES_MAX: u64 = 1 << 30;
/// Bytes taken from a source at a time.
const PIECE: usize = 64 << 10;
/// Log space that writing a chain claims ahead.
const CHAIN_BYTES: u64 = 4 << 10;

impl Work {
    /// Makes what `source` yields the value of `key`; false when the row's presence or absence forbids it.
    pub(super) fn store_large(
        &mut self,
        core: &Core,
        tree: Tree,
        key: &[u8],
        source: &mut dyn Read,
        change: Change,
    ) -> Result<bool> {
        self.lock_to_change(core, LockName::of_key(tree.store, key), key)?;
        if change != Change::Put {
            let is_there = self.contains_locked(core, tree, key)?;
            if is_there == (change == Change::Insert) {
                return Ok(false);
            }
        }
        let mut writer = ChainWriter::begin(&core.access, tree.store)?;
        let item = Item::Chain(tree.store, writer.chain());
        self.announce(core, item)?;
        let stub = self.write_chain(core, &mut writer, source).and_then(|()| {
            let mut cx = core.access.system_context(CHAIN_BYTES)?;
            Ok(writer.finish(&mut cx)?)
        })?;
        crash_point("value.written");
        let stored = Stored {
            flags: RowFlags::OVERFLOW,
            bytes: &stub.to_bytes(),
        };
        let is_stored = self.store_row(core, tree, key, stored, change)?;
        if is_stored {
            self.retract(core, item)?;
        }
        Ok(is_stored)
    }

    pub fn put_stream(
        &mut self,
        core: &Core,
        tree: Tree,
        key: &[u8],
        source: &mut dyn Read,
    ) -> Result<u64> {
        let inline_max = core.access.limits().inline_max(key.len());
        let mut head = Vec::new();
        source
            .take(inline_max as u64 + 1)
            .read_to_end(&mut head)
            .map_err(source_failed)?;
        if head.len() <= inline_max {
            self.put(core, tree, key, &head)?;
            return Ok(head.len() as u64);
        }
        let mut counted = Counted {
            inner: head.as_slice().chain(source),
            bytes: 0,
        };
        self.store_large(core, tree, key, &mut counted, Change::Put)?;
        Ok(counted.bytes)
    }

    pub fn open_value(
        &mut self,
        core: &Core,
        tree: Tree,
        key: &[u8],
    ) -> Result<Option<ValueReader>> {
        let mut value = Vec::new();
        let found = match self.reads {
            Reads::Locked => {
                self.lock(core, LockName::of_key(tree.store, key), Mode::READ)?;
                tree.get(&core.access, key, &mut value)?
            }
            Reads::Snapshot(_) | Reads::Statements => {
                // Kept until the transaction ends, as the reader may be.
                let statement = self.begin_statement(core)?;
                self.in_snapshot(core, statement, |work, snapshot| {
                    work.read_row(core, snapshot, tree, key, &mut value)
                })?
            }
        };
        let chain = match found {
            None => return Ok(None),
            Some(ValueKind::Inline) => None,
            Some(ValueKind::Overflow) => {
                let stub = decode_stub(tree.store, &value)?;
                value.clear();
                Some(ChainReader::new(tree.store, stub))
            }
        };
        let ended = self.ended.get_or_insert_default();
        Ok(Some(ValueReader {
            access: Arc::clone(&core.access),
            ended: Arc::clone(ended),
            store: tree.store,
            chain,
            piece: value,
            at: 0,
        }))
    }

    /// Replaces the content of `out` by the value that `stub` stands for. The row is locked.
    pub(super) fn read_chain(
        &mut self,
        core: &Core,
        store: StoreId,
        stub: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let stub = decode_stub(store, stub)?;
        out.clear();
        out.reserve(usize::try_from(stub.len.min(VALUE_BYTES_MAX)).unwrap_or(0));
        match ChainReader::new(store, stub).read_to_end(&core.access, out)? {
            true => Ok(()),
            false => Err(chain_missing(store, stub.chain.first)),
        }
    }

    /// Has the chain freed whose stub is in `value_buffer`, if this transaction commits.
    pub(super) fn enlist_old_chain(&mut self, core: &Core, store: StoreId) -> Result<()> {
        let stub = decode_stub(store, &self.value_buffer)?;
        self.enlist(core, Item::Chain(store, stub.chain))
    }
}

impl Work {
    fn write_chain(
        &self,
        core: &Core,
        writer: &mut ChainWriter<'_>,
        source: &mut dyn Read,
    ) -> Result<()> {
        let mut cx = core.access.system_context(CHAIN_BYTES)?;
        let mut piece = vec![0; PIECE];
        loop {
            let len = match source.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(source_failed(error)),
            };
            if writer.len() + len as u64 > VALUE_BYTES_MAX {
                let max = VALUE_BYTES_MAX;
                return Err(TxnError::ValueTooLong { max });
            }
            writer.write(&mut cx, &piece[..len])?;
            self.let_log_go(core);
        }
    }
}

/// A source that counts what it yields.
struct Counted<R> {
    inner: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(buffer)?;
        self.bytes += len as u64;
        Ok(len)
    }
}

/// Reads a row's value piece by piece, as long as the transaction that opened it is open.
pub struct ValueReader {
    access: Arc<Access>,
    /// Set when the transaction ends: its lock no longer keeps the chain.
    ended: Arc<AtomicBool>,
    store: StoreId,
    /// What is still to come, unless the value was short.
    chain: Option<ChainReader>,
    /// What was read, from `at` on not yet handed out.
    piece: Vec<u8>,
    at: usize,
}

impl ValueReader {
    /// Bytes still to be read.
    pub fn remaining(&self) -> u64 {
        let held = (self.piece.len() - self.at) as u64;
        held + self.chain.as_ref().map_or(0, ChainReader::remaining)
    }

    /// Reads the next link; false at the end.
    fn refill(&mut self) -> Result<bool> {
        let Some(chain) = &mut self.chain else {
            return Ok(false);
        };
        self.piece.clear();
        self.at = 0;
        match chain.read_link(&self.access, &mut self.piece)? {
            Link::Read => Ok(true),
            Link::End => Ok(false),
            Link::Gone => Err(chain_missing(self.store, PageId::NONE)),
        }
    }
}

impl Read for ValueReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Acquire: pairs with the Release at the transaction's end.
        if self.ended.load(Ordering::Acquire) {
            let message = "the transaction that opened the value has ended";
            return Err(io::Error::other(message));
        }
        if self.at == self.piece.len() && !self.refill().map_err(io::Error::other)? {
            return Ok(0);
        }
        let len = buffer.len().min(self.piece.len() - self.at);
        buffer[..len].copy_from_slice(&self.piece[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}

impl std::fmt::Debug for ValueReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ValueReader({} bytes to come)", self.remaining())
    }
}

fn source_failed(error: io::Error) -> TxnError {
    TxnError::Source(Arc::new(error))
}

fn decode_stub(store: StoreId, bytes: &[u8]) -> Result<Stub> {
    Stub::from_bytes(bytes).ok_or_else(|| {
        corrupt(
            store,
            PageId::NONE,
            "the stub of a large value",
            "other bytes",
        )
    })
}

#[cold]
fn chain_missing(store: StoreId, page: PageId) -> TxnError {
    corrupt(store, page, "a link of a row's value", "something else")
}

#[cold]
fn corrupt(store: StoreId, page: PageId, expected: &str, found: &str) -> TxnError {
    TxnError::Access(AccessError::Corrupt(Box::new(Corruption {
        page,
        store,
        expected: expected.to_owned(),
        found: found.to_owned(),
    })))
}

//! What a row holds in place of a value that is in a chain.

use longshore_base::{Lsn, PageId};

use super::link::ChainId;
use crate::bytes::Decoder;

/// Where a large value is and how long it is; the value of a row flagged
/// [`OVERFLOW`](crate::RowFlags::OVERFLOW).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stub {
    /// The chain.
    pub chain: ChainId,
    /// Bytes of the value.
    pub len: u64,
}

impl Stub {
    /// Bytes of a stub.
    pub const BYTES: usize = 24;

    /// The stub as it stands in the row.
    pub fn to_bytes(self) -> [u8; Stub::BYTES] {
        let mut bytes = [0; Stub::BYTES];
        bytes[0..8].copy_from_slice(&self.chain.first.get().to_le_bytes());
        bytes[8..16].copy_from_slice(&self.chain.born.get().to_le_bytes());
        bytes[16..24].copy_from_slice(&self.len.to_le_bytes());
        bytes
    }

    /// The stub that `value` is; `None` when it is none, as it may be before it was validated.
    pub fn from_bytes(value: &[u8]) -> Option<Stub> {
        let mut from = Decoder::new(value);
        let first = PageId::new(from.u64().ok()?);
        let born = Lsn::new(from.u64().ok()?);
        let len = from.u64().ok()?;
        from.finish().ok()?;
        Some(Stub {
            chain: ChainId { first, born },
            len,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stub_round_trips_and_nothing_else_is_one() {
        let chain = ChainId {
            first: PageId::new(3),
            born: Lsn::new(640),
        };
        let stub = Stub {
            chain,
            len: 1 << 30,
        };
        let bytes = stub.to_bytes();
        assert_eq!(Stub::from_bytes(&bytes), Some(stub));
        assert_eq!(Stub::from_bytes(&bytes[1..]), None);
        assert_eq!(Stub::from_bytes(&[bytes.as_slice(), &[0]].concat()), None);
    }
}

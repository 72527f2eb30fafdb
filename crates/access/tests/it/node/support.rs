//! Pages, models and strategies that the node's tests share.

use std::collections::BTreeMap;

use longshore_access::action::{Corrupt, PageAction};
use longshore_access::node::{NodeRef, RowFlags};
use longshore_base::{PageId, PageSize, StoreId};
use longshore_pool::PageBuffer;
use proptest::prelude::*;

pub const STORE: StoreId = StoreId::new(16);

pub type Rows = BTreeMap<Vec<u8>, (RowFlags, Vec<u8>)>;

/// What a node means, however it is laid out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    pub level: u8,
    pub low: Vec<u8>,
    pub upper: Option<Vec<u8>>,
    pub foster: Option<PageId>,
    pub rows: Rows,
}

impl Content {
    pub fn of(page: &PageBuffer) -> Content {
        let node = NodeRef::new(page.as_ref());
        let rows =
            (0..node.count()).map(|slot| (node.key(slot), (node.flags(slot), node.value(slot))));
        Content {
            level: node.level(),
            low: node.low(),
            upper: node.upper(),
            foster: node.foster(),
            rows: rows.collect(),
        }
    }

    pub fn owns(&self, key: &[u8]) -> bool {
        key >= &self.low[..] && self.upper.as_ref().is_none_or(|upper| key < &upper[..])
    }
}

/// A page outside the pool, with the id it would have.
pub struct TestPage {
    pub id: PageId,
    pub bytes: PageBuffer,
}

impl TestPage {
    pub fn blank(id: u64, size: PageSize) -> TestPage {
        TestPage {
            id: PageId::new(id),
            bytes: PageBuffer::zeroed(size),
        }
    }

    pub fn apply(&mut self, action: &PageAction<'_>) -> Result<(), Corrupt> {
        action.apply(self.id, &mut self.bytes.as_mut())
    }

    /// Applies the action as redo would see it: encoded and decoded.
    pub fn redo(&mut self, action: &PageAction<'_>) -> Result<(), Corrupt> {
        let mut bytes = Vec::new();
        action.encode(&mut bytes);
        let decoded = PageAction::decode(&bytes).expect("what was encoded can be decoded");
        assert_eq!(decoded, *action);
        self.apply(&decoded)
    }

    pub fn node(&self) -> NodeRef<'_> {
        NodeRef::new(self.bytes.as_ref())
    }

    pub fn verify(&self) {
        self.node().verify().expect("the node is sound");
    }
}

pub fn page_sizes() -> impl Strategy<Value = PageSize> {
    prop_oneof![4 => Just(4096), 3 => Just(8192), 1 => Just(65536)]
        .prop_map(|bytes| PageSize::new(bytes).unwrap())
}

/// Keys that share prefixes, tie in their heads, contain zeros, are empty, or are as long as a
/// key in a page of 4 KiB may be.
pub fn keys() -> impl Strategy<Value = Vec<u8>> {
    let prefix = prop_oneof![
        Just(Vec::new()),
        Just(b"user/0000".to_vec()),
        Just(b"user/0000/profile/".to_vec()),
        Just(vec![0; 4]),
        Just(vec![0xFF; 5]),
    ];
    let byte = prop_oneof![Just(0u8), Just(1u8), Just(b'a'), Just(0xFFu8), any::<u8>()];
    let tail = prop_oneof![
        8 => prop::collection::vec(byte.clone(), 0..7),
        2 => prop::collection::vec(byte, 0..40),
        1 => (any::<u8>(), 900usize..=1006).prop_map(|(byte, len)| vec![byte; len]),
    ];
    (prefix, tail).prop_map(|(mut key, tail)| {
        key.extend_from_slice(&tail);
        key
    })
}

pub fn row_flags() -> impl Strategy<Value = RowFlags> {
    (0u16..4).prop_map(|bits| RowFlags::from_bits(bits).unwrap())
}

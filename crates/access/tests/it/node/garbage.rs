//! Readers race with writers: whatever the page holds, reading ends, and without a panic.

use longshore_access::action::{PageAction, map_is_used};
use longshore_access::node::{ImageBuf, NodeRef, RowFlags};
use longshore_base::{PageId, PageSize};
use longshore_pool::{PageBuffer, PageRef};
use proptest::prelude::*;

use super::support::{STORE, TestPage, keys};

fn read_everything(page: PageRef<'_>, probes: &[Vec<u8>]) {
    let node = NodeRef::new(page);
    let mut out = Vec::new();
    let _ = (
        node.level(),
        node.is_leaf(),
        node.foster(),
        node.is_unbounded(),
    );
    node.low_into(&mut out);
    node.upper_into(&mut out);
    for key in probes {
        let _ = (
            node.owns(key),
            node.owns_from_left(key),
            node.child_for(key),
        );
        let slot = node.find(key).unwrap_or_else(|slot| slot);
        assert!(slot <= node.count());
        let _ = node.split_slot(slot, key.len(), 100);
    }
    for slot in (0..node.count())
        .step_by(node.count() / 64 + 1)
        .chain([node.count(), 8192, 65535])
    {
        node.key_into(slot, &mut out);
        assert!(out.len() <= 2 * page.len());
        node.value_into(slot, &mut out);
        assert!(out.len() <= page.len());
        let _ = (node.flags(slot), node.value_len(slot), node.child(slot));
        let _ = node.room_for_update(slot, 50);
    }
    let _ = (node.free_bytes(), node.used_bytes(), node.ghost_bytes());
    let _ = node.room_for_insert(20, 100);
    let _ = node.verify();
    let _ = map_is_used(page, 12345);
}

proptest! {
    #[test]
    fn random_bytes_are_read_in_bounded_time(
        bytes in prop::collection::vec(any::<u8>(), 4096),
        probes in prop::collection::vec(keys(), 1..8),
    ) {
        read_everything(PageBuffer::from_bytes(&bytes).as_ref(), &probes);
    }

    /// A sound node with a few words overwritten gets further into every loop than noise does.
    #[test]
    fn a_torn_node_is_read_in_bounded_time(
        rows in prop::collection::btree_map(keys(), 0usize..60, 1..60),
        level in 0u8..2,
        torn in prop::collection::vec((0usize..80, any::<u64>()), 1..6),
        torn_far in prop::collection::vec((0usize..512, any::<u64>()), 0..6),
        probes in prop::collection::vec(keys(), 1..8),
    ) {
        let mut image = ImageBuf::new(STORE, level, b"", None);
        image.push(b"", RowFlags::NONE, &[1; 8]);
        let mut page = TestPage::blank(2, PageSize::MIN);
        page.apply(&PageAction::FormatNode(image.as_image())).unwrap();
        for (key, len) in &rows {
            let value = vec![2; *len];
            let _ = page.apply(&match level {
                0 => PageAction::InsertRow { key, flags: RowFlags::NONE, value: &value },
                _ => PageAction::InsertChild { key, child: PageId::new(*len as u64) },
            });
        }
        page.verify();
        for (word, value) in torn.into_iter().chain(torn_far) {
            page.bytes.as_mut().set_word(word, value);
        }
        read_everything(page.bytes.as_ref(), &probes);
    }
}

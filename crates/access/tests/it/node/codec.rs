//! Actions and record bodies: what is written is what is read, and nothing else is a panic.

use longshore_access::action::PageAction;
use longshore_access::node::{ImageBuf, Kept, RowFlags};
use longshore_access::overflow::ChainId;
use longshore_access::record::{CLR, ROW, Readable, RowOp, RowRecord, SMO, SmoBody, changes};
use longshore_base::{Lsn, PageId, PageSize, StoreId};
use proptest::prelude::*;

use super::support::{STORE, TestPage, keys, row_flags};

/// An action that owns what it names.
#[derive(Clone, Debug)]
struct Owned {
    kind: u8,
    key: Vec<u8>,
    value: Vec<u8>,
    flags: RowFlags,
    number: u64,
    image: ImageBuf,
}

impl Owned {
    fn action(&self) -> PageAction<'_> {
        let Owned {
            kind,
            key,
            value,
            flags,
            number,
            image,
        } = self;
        let (flags, page) = (*flags, PageId::new(*number));
        match kind {
            0 => PageAction::FormatNode(image.as_image()),
            1 => PageAction::InsertRow { key, flags, value },
            2 => PageAction::UpdateRow {
                key,
                flags,
                kept: Kept {
                    front: *number as u16,
                    back: (*number >> 16) as u16,
                },
                middle: value,
            },
            3 => PageAction::Ghost { key },
            4 => PageAction::Revive { key },
            5 => PageAction::Purge { key },
            6 => PageAction::SplitOff { key, foster: page },
            7 => PageAction::InsertChild { key, child: page },
            8 => PageAction::RemoveChild { key },
            9 => PageAction::SetFoster { foster: page },
            10 => PageAction::ClearFoster,
            11 => PageAction::Absorb(image.as_image()),
            12 => PageAction::FormatMap,
            13 => PageAction::SetMapBits {
                first: *number as u32 % 40000,
                count: (*number >> 32) as u32 % 100,
                used: number & 1 == 0,
            },
            14 => PageAction::OverflowImage {
                store: STORE,
                chain: ChainId {
                    first: page,
                    born: Lsn::new(*number),
                },
                index: *number as u32,
                next: page,
                bytes: value,
            },
            15 => PageAction::OverflowLink { next: page },
            16 => PageAction::FormatMeta,
            17 => PageAction::FreePage,
            _ => PageAction::MetaSet {
                at: *number as u16,
                bytes: value,
            },
        }
    }
}

fn images() -> impl Strategy<Value = ImageBuf> {
    let rows = prop::collection::btree_map(keys(), (row_flags(), 0usize..50), 1..12);
    (rows, 0u8..3, any::<bool>(), any::<bool>()).prop_map(|(rows, level, bounded, foster)| {
        let low = rows.keys().next().unwrap().clone();
        let last = rows.keys().next_back().unwrap();
        let upper = [&last[..], b"\0"].concat();
        let mut image = ImageBuf::new(STORE, level, &low, bounded.then_some(&upper[..]));
        for (key, (flags, len)) in &rows {
            match level {
                0 => image.push(key, *flags, &vec![3; *len]),
                _ => image.push_child(key, PageId::new(*len as u64)),
            }
        }
        image.with_foster(if foster {
            PageId::new(77)
        } else {
            PageId::NONE
        })
    })
}

fn actions() -> impl Strategy<Value = Owned> {
    let value = prop::collection::vec(any::<u8>(), 0..200);
    (0u8..19, keys(), value, row_flags(), any::<u64>(), images()).prop_map(
        |(kind, key, value, flags, number, image)| Owned {
            kind,
            key,
            value,
            flags,
            number,
            image,
        },
    )
}

fn encoded(action: &PageAction<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    action.encode(&mut bytes);
    bytes
}

fn body(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

proptest! {
    #[test]
    fn actions_round_trip_and_no_part_of_one_is_one(owned in actions()) {
        let action = owned.action();
        let bytes = encoded(&action);
        prop_assert_eq!(PageAction::decode(&bytes), Ok(action));
        for end in 0..bytes.len() {
            prop_assert!(PageAction::decode(&bytes[..end]).is_err());
        }
        prop_assert!(PageAction::decode(&[&bytes[..], b"x"].concat()).is_err());
        prop_assert!(!action.to_string().is_empty());
    }

    /// A2: whatever the action and whatever the page, there is an answer; and an error leaves the
    /// page as it was.
    #[test]
    fn any_action_on_any_page_succeeds_or_leaves_it_alone(
        before in prop::collection::vec(actions(), 0..8),
        owned in actions(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let mut page = TestPage::blank(4, PageSize::MIN);
        for owned in &before {
            let _ = page.apply(&owned.action());
        }
        let mut bytes = encoded(&owned.action());
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let Ok(action) = PageAction::decode(&bytes) else { return Ok(()) };
        let snapshot = page.bytes.to_bytes();
        let was_sound = page.node().verify().is_ok();
        match page.apply(&action) {
            Ok(()) if was_sound && page.bytes.as_ref().page_type() == Some(longshore_base::PageType::Node) => {
                page.verify();
            }
            Ok(()) => {}
            Err(_) => prop_assert!(page.bytes.to_bytes() == snapshot),
        }
    }

    #[test]
    fn resets_need_nothing_of_the_page(
        owned in actions(),
        garbage in prop::collection::vec(any::<u8>(), 4096),
    ) {
        let action = owned.action();
        if action.resets_page() {
            let mut fresh = TestPage::blank(4, PageSize::MIN);
            let mut dirty = TestPage::blank(4, PageSize::MIN);
            dirty.bytes = longshore_pool::PageBuffer::from_bytes(&garbage);
            let outcome = fresh.apply(&action);
            prop_assert_eq!(dirty.apply(&action), outcome);
            if outcome.is_ok() && owned.kind == 0 {
                dirty.verify();
                prop_assert_eq!(
                    super::support::Content::of(&fresh.bytes),
                    super::support::Content::of(&dirty.bytes)
                );
            }
        }
    }

    #[test]
    fn rows_round_trip(
        key in keys(),
        value in prop::collection::vec(any::<u8>(), 0..300),
        old_value in prop::collection::vec(any::<u8>(), 0..300),
        flags in row_flags(),
        old_flags in row_flags(),
        op in 0usize..4,
        numbers in prop::collection::vec((any::<u64>(), 0..64).prop_map(|(n, by)| n >> by), 4),
        kept in (any::<u16>(), any::<u16>()).prop_map(|(front, back)| Kept { front, back }),
        undo_next in any::<u64>(),
    ) {
        let op = [RowOp::Insert, RowOp::Update, RowOp::Ghost, RowOp::Revive][op];
        let row = RowRecord {
            store: StoreId::new(numbers[0] as u32),
            root: PageId::new(numbers[1]),
            page: PageId::new(numbers[2]),
            previous: Lsn::new(numbers[3] & !7),
            op,
            key: &key,
            flags,
            kept,
            value: &value,
            old_flags,
            old_value: &old_value,
        };
        let bytes = body(&row.parts(&row.head(None)));
        prop_assert_eq!(RowRecord::decode(&bytes), Ok(row));
        let change = &changes(ROW, &bytes).unwrap()[0];
        prop_assert_eq!((change.page, change.previous), (row.page, row.previous));
        prop_assert_eq!(change.actions().collect::<Vec<_>>(), vec![Ok(row.action())]);

        let undo = row.inverse();
        let clr = body(&undo.parts(&undo.head(Some(Lsn::new(undo_next)))));
        prop_assert!(clr.len() <= row.undo_body_bytes_max());
        prop_assert_eq!(RowRecord::decode_clr(&clr), Ok((Lsn::new(undo_next), undo)));
        prop_assert_eq!(changes(CLR, &clr).unwrap().len(), 1);
        for end in 0..bytes.len() {
            prop_assert!(changes(ROW, &bytes[..end]).is_err());
        }
        for end in 0..clr.len() {
            prop_assert!(changes(CLR, &clr[..end]).is_err());
        }
    }

    #[test]
    fn structure_changes_group_actions_by_page(
        steps in prop::collection::vec((0u64..4, actions()), 0..12),
    ) {
        let mut smo = SmoBody::new();
        for (page, owned) in &steps {
            smo.push(PageId::new(*page), Lsn::new(page * 8), &owned.action());
        }
        let bytes = body(&smo.parts());
        prop_assert_eq!(bytes.len(), smo.body_bytes());
        let changed = changes(SMO, &bytes).unwrap();
        let pages: std::collections::BTreeSet<_> = steps.iter().map(|(page, _)| *page).collect();
        prop_assert_eq!(changed.len(), pages.len());
        for change in &changed {
            let expected: Vec<_> = steps
                .iter()
                .filter(|(page, _)| change.page == PageId::new(*page))
                .map(|(_, owned)| Ok(owned.action()))
                .collect();
            prop_assert_eq!(change.actions().collect::<Vec<_>>(), expected);
            prop_assert_eq!(change.previous, Lsn::new(change.page.get() * 8));
            prop_assert!(change.resets_page().is_ok());
        }
        for end in 0..bytes.len() {
            prop_assert!(changes(SMO, &bytes[..end]).is_err());
        }
        let line = Readable { kind: SMO, body: &bytes }.to_string();
        prop_assert!(!line.is_empty());
    }

    #[test]
    fn any_bytes_are_read_or_refused(kind in 0u8..6, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = PageAction::decode(&bytes);
        if let Ok(changes) = changes(kind, &bytes) {
            for change in changes {
                prop_assert!(change.actions().count() <= bytes.len() + 1);
            }
        }
        let _ = Readable { kind, body: &bytes }.to_string();
    }
}

proptest! {
    /// What a reader sees of the row is after the undo what it was before the operation.
    #[test]
    fn inverse_restores_what_readers_see(
        op in 0usize..4,
        before in prop::option::of((row_flags(), prop::collection::vec(0..2_u8, 0..40))),
        flags in row_flags(),
        value in prop::collection::vec(0..2_u8, 0..40),
    ) {
        let op = [RowOp::Insert, RowOp::Update, RowOp::Ghost, RowOp::Revive][op];
        let mut page = TestPage::blank(4, PageSize::MIN);
        let empty = ImageBuf::new(STORE, 0, b"", None);
        page.apply(&PageAction::FormatNode(empty.as_image())).unwrap();
        let (old_flags, old_value) = before.clone().unwrap_or_default();
        if before.is_some() {
            let row = PageAction::InsertRow { key: b"k", flags: old_flags, value: &old_value };
            page.apply(&row).unwrap();
        }
        let visible = |page: &TestPage| {
            let node = page.node();
            let slot = node.find(b"k").ok().filter(|slot| !node.is_ghost(*slot));
            slot.map(|slot| (node.flags(slot), node.value(slot)))
        };
        let seen = visible(&page);
        let kept = match op {
            RowOp::Update => Kept::between(&old_value, &value),
            _ => Kept::NOTHING,
        };
        let row = RowRecord {
            store: STORE,
            root: PageId::new(3),
            page: PageId::new(4),
            previous: Lsn::ZERO,
            op,
            key: b"k",
            flags,
            kept,
            value: kept.middle(&value).unwrap(),
            old_flags,
            old_value: kept.middle(&old_value).unwrap(),
        };
        if page.apply(&row.action()).is_ok() {
            page.apply(&row.inverse().action()).or_else(|why| match op {
                // An insert of a ghost has nothing to undo that anybody sees.
                RowOp::Insert if flags.is_ghost() => Ok(()),
                _ => Err(why),
            }).unwrap();
            prop_assert_eq!(visible(&page), seen);
        }
    }
}

/// An image with its fences the wrong way about shares less with them than the merged node would.
#[test]
fn absorbing_an_image_with_crossed_fences_is_refused() {
    let mut page = TestPage::blank(4, PageSize::MIN);
    let left = ImageBuf::new(STORE, 0, b"aax", Some(b"abc"));
    page.apply(&PageAction::FormatNode(left.as_image()))
        .unwrap();
    let before = page.bytes.to_bytes();
    let right = ImageBuf::new(STORE, 0, b"abc", Some(b"aax2"));
    let refused = page
        .redo(&PageAction::Absorb(right.as_image()))
        .unwrap_err();
    assert_eq!(refused.reason, "its fences are out of order");
    assert!(page.bytes.to_bytes() == before);
}

#[test]
fn records_read_well() {
    let row = RowRecord {
        store: STORE,
        root: PageId::new(3),
        page: PageId::new(9),
        previous: Lsn::new(640),
        op: RowOp::Update,
        key: b"ann",
        flags: RowFlags::NONE,
        kept: Kept { front: 7, back: 0 },
        value: b"42\n",
        old_flags: RowFlags::GHOST,
        old_value: &[b'x'; 50],
    };
    let bytes = body(&row.parts(&row.head(None)));
    assert_eq!(
        Readable {
            kind: ROW,
            body: &bytes
        }
        .to_string(),
        format!(
            "row store 16 page 9: update \"ann\" = 7 bytes kept, \"42\\n\" (was \"{}\"… (50 bytes) (ghost))",
            "x".repeat(32)
        )
    );
    let mut smo = SmoBody::new();
    let page = PageId::new(4);
    smo.push(
        page,
        Lsn::ZERO,
        &PageAction::SplitOff {
            key: b"m",
            foster: PageId::new(5),
        },
    );
    smo.push(
        PageId::new(1),
        Lsn::ZERO,
        &PageAction::SetMapBits {
            first: 5,
            count: 1,
            used: true,
        },
    );
    smo.push(page, Lsn::ZERO, &PageAction::ClearFoster);
    assert_eq!(
        Readable {
            kind: SMO,
            body: &body(&smo.parts())
        }
        .to_string(),
        "structure change of 2 pages\n    page 4: split off at \"m\" to page 5; clear foster;\n    \
         page 1: set 1 map bits from 5;"
    );
    assert_eq!(
        Readable {
            kind: ROW,
            body: &bytes[..20]
        }
        .to_string(),
        "malformed log record: it ends early"
    );
}

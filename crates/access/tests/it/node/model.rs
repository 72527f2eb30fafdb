//! Random changes of a node, compared with a map after each; and the same changes redone on a
//! twin whose heap is laid out differently.

use longshore_access::action::PageAction;
use longshore_access::node::{ImageBuf, Kept, Limits, Owns, Room, RowFlags};
use longshore_base::{PageId, PageSize};
use proptest::prelude::*;
use proptest::sample::Index;

use super::support::{Content, STORE, TestPage, keys, page_sizes};

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>, usize),
    Update(Index, usize),
    Delete(Index),
    Revive(Index),
    Purge(Index),
    /// Split at a slot, go on with one half, and take the other in again if asked to.
    Split(Index, Half),
    /// Let the foster child go, as if a parent had adopted it.
    Adopt,
    /// Lay the twin out anew, so that its fragments differ from the original's.
    CompactTwin,
}

#[derive(Clone, Copy, Debug)]
enum Half {
    Left,
    Right,
    Both,
}

fn steps() -> impl Strategy<Value = Step> {
    let len = prop_oneof![6 => 0usize..120, 1 => 0usize..20000];
    prop_oneof![
        8 => (keys(), len.clone()).prop_map(|(key, len)| Step::Insert(key, len)),
        3 => (any::<Index>(), len).prop_map(|(at, len)| Step::Update(at, len)),
        2 => any::<Index>().prop_map(Step::Delete),
        1 => any::<Index>().prop_map(Step::Revive),
        2 => any::<Index>().prop_map(Step::Purge),
        1 => (any::<Index>(), prop_oneof![Just(Half::Left), Just(Half::Right), Just(Half::Both)])
            .prop_map(|(at, half)| Step::Split(at, half)),
        1 => Just(Step::Adopt),
        1 => Just(Step::CompactTwin),
    ]
}

/// The node under test, its twin and its model.
struct Trio {
    original: TestPage,
    twin: TestPage,
    model: Content,
    limits: Limits,
    size: PageSize,
    pages: u64,
}

impl Trio {
    fn new(size: PageSize, low: &[u8], upper: Option<&[u8]>) -> Trio {
        let mut trio = Trio {
            original: TestPage::blank(7, size),
            twin: TestPage::blank(7, size),
            model: Content {
                low: low.to_vec(),
                upper: upper.map(<[u8]>::to_vec),
                ..Content::default()
            },
            limits: Limits::new(size),
            size,
            pages: 7,
        };
        let image = ImageBuf::new(STORE, 0, low, upper);
        trio.apply(&PageAction::FormatNode(image.as_image()));
        trio
    }

    fn apply(&mut self, action: &PageAction<'_>) {
        self.original.apply(action).unwrap();
        self.twin
            .redo(action)
            .expect("N5: redo fits whenever the original fitted");
    }

    fn check(&self) {
        self.original.verify();
        self.twin.verify();
        assert_eq!(Content::of(&self.original.bytes), self.model);
        assert_eq!(
            Content::of(&self.twin.bytes),
            self.model,
            "redo yields the same page"
        );
        assert_eq!(
            self.original.node().free_bytes(),
            self.twin.node().free_bytes(),
            "N5"
        );
    }

    fn pick(&self, at: Index) -> Option<(Vec<u8>, RowFlags)> {
        let rows = &self.model.rows;
        (!rows.is_empty())
            .then(|| at.index(rows.len()))
            .map(|slot| {
                let (key, (flags, _)) = rows.iter().nth(slot).unwrap();
                (key.clone(), *flags)
            })
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Insert(key, len) => self.insert(&key, len),
            Step::Update(at, len) => self.update(at, len),
            Step::Delete(at) => self.flip_ghost(at, false),
            Step::Revive(at) => self.flip_ghost(at, true),
            Step::Purge(at) => {
                let Some((key, flags)) = self.pick(at) else {
                    return;
                };
                if flags.is_ghost() {
                    self.apply(&PageAction::Purge { key: &key });
                    self.model.rows.remove(&key);
                }
            }
            Step::Split(at, half) => {
                if let Some((key, _)) = self.pick(at)
                    && key > self.model.low
                {
                    self.split(&key, half);
                }
            }
            Step::Adopt => {
                if self.model.foster.is_some() {
                    self.apply(&PageAction::ClearFoster);
                    self.model.foster = None;
                }
            }
            Step::CompactTwin => {
                let image = self.twin.node().image();
                self.twin
                    .apply(&PageAction::FormatNode(image.as_image()))
                    .unwrap();
            }
        }
    }

    fn insert(&mut self, key: &[u8], len: usize) {
        let key = &key[..key.len().min(self.limits.key_max())];
        let value = value(
            len.min(self.limits.inline_max(key.len())),
            self.model.rows.len(),
        );
        if !self.model.owns(key) || self.model.rows.contains_key(key) {
            return;
        }
        for _ in 0..64 {
            let node = self.original.node();
            let position = node.find(key).unwrap_err();
            if node.room_for_insert(key.len(), value.len()) != Room::Split {
                let action = PageAction::InsertRow {
                    key,
                    flags: RowFlags::NONE,
                    value: &value,
                };
                let slot = Err(position);
                action
                    .apply_at(self.original.id, &mut self.original.bytes.as_mut(), slot)
                    .unwrap();
                self.twin
                    .redo(&action)
                    .expect("N5: redo fits whenever the original fitted");
                self.model
                    .rows
                    .insert(key.to_vec(), (RowFlags::NONE, value));
                return;
            }
            let slot = node.split_slot(position, key.len(), value.len());
            let slot = slot.expect("a row within the limits finds room by splitting");
            let fence = node.key(slot);
            self.split(
                &fence,
                if key < &fence[..] {
                    Half::Left
                } else {
                    Half::Right
                },
            );
        }
        panic!(
            "splitting never makes room for a key of {} bytes",
            key.len()
        );
    }

    fn update(&mut self, at: Index, len: usize) {
        let Some((key, flags)) = self.pick(at) else {
            return;
        };
        let value = value(len.min(self.limits.inline_max(key.len())), len);
        let node = self.original.node();
        let slot = node.find(&key).unwrap();
        if node.room_for_update(slot, value.len()) != Room::Split {
            let flags = RowFlags::from_bits(flags.bits() ^ 2).unwrap();
            // Whole, or only what differs.
            let kept = match len % 3 {
                0 => Kept::NOTHING,
                _ => Kept::between(&node.value(slot), &value),
            };
            self.apply(&PageAction::UpdateRow {
                key: &key,
                flags,
                kept,
                middle: kept.middle(&value).unwrap(),
            });
            self.model.rows.insert(key, (flags, value));
        }
    }

    fn flip_ghost(&mut self, at: Index, was_ghost: bool) {
        let Some((key, flags)) = self.pick(at) else {
            return;
        };
        if flags.is_ghost() != was_ghost {
            return;
        }
        let row = self.model.rows.get_mut(&key).unwrap();
        if was_ghost {
            row.0 = flags.without_ghost();
            self.apply(&PageAction::Revive { key: &key });
        } else {
            row.0 = flags.with_ghost();
            self.apply(&PageAction::Ghost { key: &key });
        }
    }

    fn split(&mut self, key: &[u8], half: Half) {
        self.pages += 1;
        let foster = PageId::new(self.pages);
        let slot = self.original.node().find(key).unwrap();
        let right_image = self.original.node().image_right_of(slot);
        let format_right = PageAction::FormatNode(right_image.as_image());
        let mut right = TestPage::blank(self.pages, self.size);
        right.apply(&format_right).unwrap();
        right.verify();
        let whole = self.model.clone();

        let right_model = Content {
            level: 0,
            low: key.to_vec(),
            upper: self.model.upper.clone(),
            foster: self.model.foster,
            rows: self.model.rows.split_off(key),
        };
        assert_eq!(Content::of(&right.bytes), right_model);
        if let Half::Right = half {
            let mut twin = TestPage::blank(self.pages, self.size);
            twin.redo(&format_right).unwrap();
            (self.original, self.twin, self.model) = (right, twin, right_model);
            return;
        }
        self.apply(&PageAction::SplitOff { key, foster });
        self.model.foster = Some(foster);
        self.model.upper = Some(key.to_vec());
        self.check();
        assert_eq!(self.original.node().owns(key), Owns::Foster(foster));
        if let Half::Both = half {
            let image = right.node().image();
            assert!(self.original.node().can_absorb(&right.node()));
            self.apply(&PageAction::Absorb(image.as_image()));
            self.model = whole;
        }
    }

    /// Looks keys up that are there and others, and compares the slots with the model's ranks.
    fn check_find(&self, probes: &[Vec<u8>]) {
        let node = self.original.node();
        for key in probes.iter().chain(self.model.rows.keys()) {
            if !self.model.owns(key) {
                assert_ne!(node.owns(key), Owns::Own);
                continue;
            }
            assert_eq!(node.owns(key), Owns::Own);
            let rank = self.model.rows.range::<Vec<u8>, _>(..key).count();
            let expected = if self.model.rows.contains_key(key) {
                Ok(rank)
            } else {
                Err(rank)
            };
            assert_eq!(
                node.find(key),
                expected,
                "key {:?}",
                key.escape_ascii().to_string()
            );
        }
    }
}

fn value(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + seed * 7) as u8).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn leaf_acts_like_a_map_and_redo_like_the_leaf(
        size in page_sizes(),
        fences in prop::option::of((keys(), keys())),
        steps in prop::collection::vec(steps(), 1..120),
        probes in prop::collection::vec(keys(), 0..20),
    ) {
        let mut trio = match fences {
            Some((a, b)) if a < b => Trio::new(size, &a, Some(&b)),
            Some((a, _)) => Trio::new(size, &a, None),
            None => Trio::new(size, b"", None),
        };
        for step in steps {
            trio.step(step);
            trio.check();
        }
        trio.check_find(&probes);
    }

    /// Rows as long as rows may be, and others: splitting at keys that are there makes room for all.
    #[test]
    fn greatest_rows_find_room(
        size in page_sizes(),
        rows in prop::collection::vec((any::<u8>(), any::<u8>(), 0usize..3, any::<bool>()), 1..60),
    ) {
        let limits = Limits::new(size);
        let mut trio = Trio::new(size, b"", None);
        for (first, second, shorter, full) in rows {
            let mut key = vec![first; limits.key_max() - shorter * limits.key_max() / 3];
            key[1] = second;
            trio.insert(&key, if full { usize::MAX } else { 0 });
            trio.check();
        }
    }

    /// The same for branches, whose entries are children.
    #[test]
    fn greatest_children_find_room(
        size in page_sizes(),
        keys in prop::collection::vec((any::<u8>(), any::<u8>(), 0usize..3), 1..60),
    ) {
        let mut page = TestPage::blank(3, size);
        let mut root = ImageBuf::new(STORE, 1, b"", None);
        root.push_child(b"", PageId::new(5));
        page.apply(&PageAction::FormatNode(root.as_image())).unwrap();
        for (first, second, shorter) in keys {
            let key_max = Limits::new(size).key_max();
            let mut key = vec![first; key_max - shorter * key_max / 3];
            key[1] = second;
            if page.node().owns(&key) != Owns::Own {
                continue;
            }
            let Err(position) = page.node().find(&key) else { continue };
            for splits in 0.. {
                prop_assert!(splits < 64);
                let node = page.node();
                if node.room_for_child(key.len()) != Room::Split {
                    break;
                }
                let position = node.find(&key).unwrap_err().min(position);
                let slot = node.split_slot(position, key.len(), 8).expect("a branch can be split");
                let (fence, right) = (node.key(slot), node.image_right_of(slot));
                let action = if key < fence {
                    PageAction::SplitOff { key: &fence, foster: PageId::new(9) }
                } else {
                    PageAction::FormatNode(right.as_image())
                };
                page.apply(&action).unwrap();
            }
            page.apply(&PageAction::InsertChild { key: &key, child: PageId::new(6) }).unwrap();
            page.verify();
        }
    }

    #[test]
    fn branch_routes_like_a_map(
        size in page_sizes(),
        children in prop::collection::btree_map(keys(), 0u64..1000, 1..60),
        removed in prop::collection::vec(any::<Index>(), 0..10),
        probes in prop::collection::vec(keys(), 0..40),
    ) {
        let mut page = TestPage::blank(3, size);
        let mut twin = TestPage::blank(3, size);
        let mut root = ImageBuf::new(STORE, 1, b"", None);
        root.push_child(b"", PageId::new(5));
        page.apply(&PageAction::FormatNode(root.as_image())).unwrap();
        twin.redo(&PageAction::FormatNode(root.as_image())).unwrap();
        let mut model = std::collections::BTreeMap::from([(Vec::new(), 5)]);
        for (key, child) in children {
            if key.is_empty() || page.node().room_for_child(key.len()) == Room::Split {
                continue;
            }
            let action = PageAction::InsertChild { key: &key, child: PageId::new(child) };
            page.apply(&action).unwrap();
            twin.redo(&action).unwrap();
            model.insert(key, child);
        }
        for at in removed {
            let key = model.keys().nth(at.index(model.len())).unwrap().clone();
            let action = PageAction::RemoveChild { key: &key };
            if key.is_empty() {
                prop_assert!(page.apply(&action).is_err());
                continue;
            }
            page.apply(&action).unwrap();
            twin.redo(&action).unwrap();
            model.remove(&key);
        }
        page.verify();
        prop_assert_eq!(Content::of(&page.bytes), Content::of(&twin.bytes));
        for key in probes.iter().chain(model.keys()) {
            let child = model.range::<Vec<u8>, _>(..=key).next_back().unwrap().1;
            prop_assert_eq!(page.node().child_for(key), PageId::new(*child));
        }
    }
}

const RUN: u64 = 2000;
const RUN_VALUE_BYTES: usize = 100;

/// The most splits that a run of keys takes whose pages are left full.
///
/// A page is split when it has no room for one row more, and one row leaves it: all others stay for good.
/// A prefix that the fences share only makes room for more of them.
fn splits_of_full_pages(size: PageSize) -> u64 {
    let page = Trio::new(size, &0u64.to_be_bytes(), Some(&u64::MAX.to_be_bytes()));
    let node = page.original.node();
    assert_eq!(node.prefix_len(), 0);
    let rows = node.free_bytes() / node.row_bytes(8, RUN_VALUE_BYTES);
    RUN / (rows as u64 - 1)
}

/// Ascending keys leave full pages behind, descending ones too.
#[test]
fn sorted_inserts_split_at_the_end_where_they_arrive() {
    let size = PageSize::DEFAULT;
    for ascending in [true, false] {
        let mut trio = Trio::new(size, b"", None);
        let pages = trio.pages;
        for n in 0..RUN {
            let key = if ascending { n } else { u64::MAX - n }.to_be_bytes();
            trio.insert(&key, RUN_VALUE_BYTES);
        }
        let splits = trio.pages - pages;
        assert!(splits <= splits_of_full_pages(size), "{splits} splits");
    }
}

/// An ascending run in front of other rows takes one split to part from them, and leaves full pages behind
/// from then on.
#[test]
fn ascending_run_in_the_middle_fills_its_pages() {
    let size = PageSize::DEFAULT;
    let mut trio = Trio::new(size, b"", None);
    for n in 0..30u64 {
        trio.insert(&(1 << 40 | n).to_be_bytes(), RUN_VALUE_BYTES);
    }
    let pages = trio.pages;
    for n in 0..RUN {
        trio.insert(&n.to_be_bytes(), RUN_VALUE_BYTES);
        trio.check();
    }
    let splits = trio.pages - pages;
    assert!(splits <= 1 + splits_of_full_pages(size), "{splits} splits");
}

/// A split behind the last row moves no other; prefix and room stay those of the node as it was.
#[test]
fn last_row_leaves_without_a_rebuild() {
    let size = PageSize::DEFAULT;
    let mut trio = Trio::new(size, b"", None);
    for n in 0..40u64 {
        trio.insert(&n.to_be_bytes(), 100);
    }
    let key = 39u64.to_be_bytes();
    let (free, row) = {
        let node = trio.original.node();
        (node.free_bytes(), node.row_bytes(key.len(), 100))
    };
    trio.split(&key, Half::Left);
    trio.check();
    let node = trio.original.node();
    assert_eq!(node.prefix_len(), 0);
    assert_eq!(node.upper().as_deref(), Some(&key[..]));
    assert_eq!(node.free_bytes(), free + row - key.len());
    let probes: Vec<_> = (0..39u64).map(|n| n.to_be_bytes().to_vec()).collect();
    trio.check_find(&probes);
}

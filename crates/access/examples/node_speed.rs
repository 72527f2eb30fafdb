//! How long one node takes to find, insert and update, in nanoseconds.
//!
//! ```text
//! cargo run --release -p longshore-access --example node_speed
//! ```

use std::hint::black_box;
use std::time::Instant;

use longshore_access::action::PageAction;
use longshore_access::node::{ImageBuf, Kept, NodeRef, Room, RowFlags};
use longshore_base::{PageId, PageSize, StoreId};
use longshore_pool::PageBuffer;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const ID: PageId = PageId::new(5);
const STORE: StoreId = StoreId::new(16);
const ROUNDS: usize = 2_000_000;
const NODES: usize = 512;

fn main() {
    println!(
        "{:44} {:>6} {:>8} {:>8}",
        "page of 8 KiB", "slots", "ns", "ns far"
    );
    find(
        "find, 8-byte keys, fences, 100-byte rows",
        100,
        number,
        true,
    );
    find("find, 8-byte keys, fences, 16-byte rows", 16, number, true);
    find(
        "find, 8-byte keys, no upper fence (ties)",
        100,
        number,
        false,
    );
    find("find, 20-byte text keys, 100-byte rows", 100, text, true);
    find(
        "find, random 16-byte keys, 100-byte rows",
        100,
        scattered,
        true,
    );
    route("child_for, 8-byte keys", number);
    route("child_for, 20-byte text keys", text);
    insert(
        "find and insert ascending, with splits",
        |n, _| number(n),
        true,
    );
    insert(
        "find and insert random, no splits",
        |_, random| scattered(random),
        false,
    );
    update();
    split();
}

fn number(n: u64) -> Vec<u8> {
    (n + 1_000_000).to_be_bytes().to_vec()
}

fn text(n: u64) -> Vec<u8> {
    format!("customer/{:011}", n * 7).into_bytes()
}

fn scattered(n: u64) -> Vec<u8> {
    let spread = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    [spread.to_be_bytes(), spread.rotate_left(17).to_be_bytes()].concat()
}

fn format(level: u8, low: &[u8], upper: Option<&[u8]>) -> PageBuffer {
    let mut page = PageBuffer::zeroed(PageSize::DEFAULT);
    let mut image = ImageBuf::new(STORE, level, low, upper);
    if level > 0 {
        image.push_child(low, PageId::new(1));
    }
    PageAction::FormatNode(image.as_image())
        .apply(ID, &mut page.as_mut())
        .unwrap();
    page
}

/// A full node with ascending keys, and its keys.
fn full(key_of: fn(u64) -> Vec<u8>, value: usize, bounded: bool) -> (PageBuffer, Vec<Vec<u8>>) {
    let mut keys: Vec<_> = (0..600).map(key_of).collect();
    keys.sort();
    let upper = bounded.then(|| keys[201].clone());
    let mut page = format(0, &keys[0], upper.as_deref());
    let value = vec![7; value];
    let mut count = 0;
    for key in &keys[..200] {
        if NodeRef::new(page.as_ref()).room_for_insert(key.len(), value.len()) != Room::Fits {
            break;
        }
        let action = PageAction::InsertRow {
            key,
            flags: RowFlags::NONE,
            value: &value,
        };
        action.apply(ID, &mut page.as_mut()).unwrap();
        count += 1;
    }
    keys.truncate(count);
    (page, keys)
}

fn per_op(start: Instant, ops: usize) -> f64 {
    start.elapsed().as_nanos() as f64 / ops as f64
}

fn find(name: &str, value: usize, key_of: fn(u64) -> Vec<u8>, bounded: bool) {
    let (page, keys) = full(key_of, value, bounded);
    let mut random = SmallRng::seed_from_u64(1);
    let picks: Vec<usize> = (0..4096)
        .map(|_| random.random_range(0..keys.len()))
        .collect();
    let near = time_finds(&[&page], &keys, &picks);
    let bytes = page.to_bytes();
    let copies: Vec<_> = (0..NODES).map(|_| PageBuffer::from_bytes(&bytes)).collect();
    let far = time_finds(&copies.iter().collect::<Vec<_>>(), &keys, &picks);
    println!("{name:44} {:>6} {near:>8.1} {far:>8.1}", keys.len());
}

fn time_finds(pages: &[&PageBuffer], keys: &[Vec<u8>], picks: &[usize]) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        let mut found = 0;
        for round in 0..ROUNDS {
            let pick = picks[round % picks.len()];
            // A new node each time, in an order that the prefetcher does not know.
            let page = pages[(round.wrapping_mul(0x9E37_79B1) >> 7) % pages.len()];
            let node = NodeRef::new(page.as_ref());
            found += usize::from(black_box(node.find(black_box(&keys[pick]))).is_ok());
        }
        assert_eq!(found, ROUNDS);
        best = best.min(per_op(start, ROUNDS));
    }
    best
}

fn route(name: &str, key_of: fn(u64) -> Vec<u8>) {
    let keys: Vec<_> = (0..2000).map(key_of).collect();
    let mut page = format(1, &keys[0], Some(&keys[1999]));
    let mut count = 1;
    while NodeRef::new(page.as_ref()).room_for_child(keys[count].len()) == Room::Fits {
        let child = PageId::new(count as u64);
        PageAction::InsertChild {
            key: &keys[count],
            child,
        }
        .apply(ID, &mut page.as_mut())
        .unwrap();
        count += 1;
    }
    let mut random = SmallRng::seed_from_u64(1);
    let picks: Vec<usize> = (0..4096).map(|_| random.random_range(0..count)).collect();
    let start = Instant::now();
    for round in 0..ROUNDS {
        let key = &keys[picks[round % picks.len()]];
        black_box(NodeRef::new(page.as_ref()).child_for(black_box(key)));
    }
    println!("{name:44} {count:>6} {:>8.1}", per_op(start, ROUNDS));
}

/// Fills nodes. A full one is split, and the right half goes on; or, where keys come in no order,
/// gives way to an empty one.
fn insert(name: &str, key_of: fn(u64, u64) -> Vec<u8>, ascending: bool) {
    let mut random = SmallRng::seed_from_u64(1);
    let keys: Vec<_> = (0..500_000).map(|n| key_of(n, random.random())).collect();
    let value = vec![7; 100];
    let mut page = format(0, b"", None);
    let mut right = PageBuffer::zeroed(PageSize::DEFAULT);
    let start = Instant::now();
    for key in &keys {
        let mut node = NodeRef::new(page.as_ref());
        let mut slot = node.find(key);
        if node.room_for_insert(key.len(), value.len()) == Room::Split {
            if ascending {
                let at = node
                    .split_slot(slot.unwrap_err(), key.len(), value.len())
                    .unwrap();
                let fence = node.key(at);
                let image = node.image_right_of(at);
                PageAction::FormatNode(image.as_image())
                    .apply(ID, &mut right.as_mut())
                    .unwrap();
                let split = PageAction::SplitOff {
                    key: &fence,
                    foster: PageId::new(6),
                };
                split.apply(ID, &mut page.as_mut()).unwrap();
                std::mem::swap(&mut page, &mut right);
            } else {
                page = format(0, b"", None);
            }
            node = NodeRef::new(page.as_ref());
            slot = node.find(key);
        }
        let action = PageAction::InsertRow {
            key,
            flags: RowFlags::NONE,
            value: &value,
        };
        action.apply_at(ID, &mut page.as_mut(), slot).unwrap();
    }
    println!("{name:44} {:>6} {:>8.1}", "", per_op(start, keys.len()));
}

fn update() {
    let (mut page, keys) = full(number, 100, true);
    let value = vec![9; 100];
    let start = Instant::now();
    for round in 0..ROUNDS {
        let key = &keys[round * 31 % keys.len()];
        let slot = NodeRef::new(page.as_ref()).find(key);
        let action = PageAction::UpdateRow {
            key,
            flags: RowFlags::NONE,
            kept: Kept::NOTHING,
            middle: &value,
        };
        action.apply_at(ID, &mut page.as_mut(), slot).unwrap();
    }
    println!(
        "{:44} {:>6} {:>8.1}",
        "find and update in place",
        keys.len(),
        per_op(start, ROUNDS)
    );
}

fn split() {
    let (page, keys) = full(number, 100, false);
    let rounds = 20_000;
    let bytes = page.to_bytes();
    let mut pages: Vec<_> = (0..64).map(|_| PageBuffer::from_bytes(&bytes)).collect();
    let mut right = PageBuffer::zeroed(PageSize::DEFAULT);
    let mut spent = 0;
    for round in 0..rounds {
        let page = &mut pages[round % 64];
        page.as_mut().copy_in(0, &bytes);
        let start = Instant::now();
        let node = NodeRef::new(page.as_ref());
        let at = node.count() / 2;
        let image = node.image_right_of(at);
        PageAction::FormatNode(image.as_image())
            .apply(ID, &mut right.as_mut())
            .unwrap();
        let action = PageAction::SplitOff {
            key: &keys[at],
            foster: PageId::new(6),
        };
        action.apply(ID, &mut page.as_mut()).unwrap();
        spent += start.elapsed().as_nanos();
    }
    println!(
        "{:44} {:>6} {:>8.1}",
        "split in the middle",
        keys.len(),
        spent as f64 / rounds as f64
    );
}

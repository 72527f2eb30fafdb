//! Overflow chains on a pool and a log in memory.

use std::sync::Arc;

use longshore_access::overflow::{
    ChainId, ChainReader, ChainWriter, Link, Stub, free_step, link_capacity, walk,
};
use longshore_access::{Access, Freeing, PageSet, Unlocked};
use longshore_base::{Lsn, PageSize};
use proptest::prelude::*;

use crate::tree::support::{STORE, World, pool_on};

const SIZE: PageSize = PageSize::MIN;

fn value(len: usize, seed: u8) -> Vec<u8> {
    (0..len)
        .map(|at| (at / 251) as u8 ^ (at % 251) as u8 ^ seed)
        .collect()
}

fn write(world: &World, value: &[u8], piece: usize) -> Stub {
    let mut cx = world.begin();
    let mut writer = ChainWriter::begin(&world.access, STORE).unwrap();
    for piece in value.chunks(piece) {
        writer.write(&mut cx, piece).unwrap();
    }
    assert_eq!(writer.len(), value.len() as u64);
    let chain = writer.chain();
    let stub = writer.finish(&mut cx).unwrap();
    assert_eq!(
        stub,
        Stub {
            chain,
            len: value.len() as u64
        }
    );
    stub
}

fn read(access: &Access, stub: Stub) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let whole = ChainReader::new(STORE, stub)
        .read_to_end(access, &mut out)
        .unwrap();
    whole.then_some(out)
}

fn pages_of(access: &Access, chains: &[ChainId]) -> (PageSet, u64) {
    let mut pages = PageSet::new();
    let mut bytes = 0;
    for chain in chains {
        bytes += walk(access, STORE, *chain, |page| assert!(pages.insert(page))).unwrap();
    }
    (pages, bytes)
}

/// Every page in use belongs to one of the chains, and the other way about.
fn check_space(access: &Access, chains: &[ChainId]) {
    let report = access.verify_space(&pages_of(access, chains).0).unwrap();
    assert!(report.is_sound(), "{report:?}");
}

fn free_all(world: &World, chain: ChainId) {
    while free_step(&world.access, &mut world.begin(), STORE, chain, 3).unwrap() != Freeing::Done {}
}

#[test]
fn values_of_every_length_come_back() {
    let world = World::new(SIZE, 100);
    let link = link_capacity(SIZE);
    let lens = [
        0,
        1,
        link - 1,
        link,
        link + 1,
        2 * link,
        5 * link + 17,
        300_000,
    ];
    let mut chains = Vec::new();
    for (seed, len) in lens.into_iter().enumerate() {
        for piece in [len.max(1), 1000, link] {
            let value = value(len, seed as u8);
            let stub = write(&world, &value, piece);
            assert!(read(&world.access, stub).unwrap() == value, "{len} bytes");
            let (pages, bytes) = pages_of(&world.access, &[stub.chain]);
            assert_eq!(
                (pages.len(), bytes),
                (len.div_ceil(link).max(1), len as u64)
            );
            chains.push(stub.chain);
        }
    }
    check_space(&world.access, &chains);
    chains.iter().for_each(|chain| free_all(&world, *chain));
    check_space(&world.access, &[]);
}

/// A value larger than the pool passes through it.
#[test]
fn value_larger_than_memory_is_streamed() {
    let world = World::new(SIZE, 64);
    let len = 8 << 20;
    let mut cx = world.begin();
    let mut writer = ChainWriter::begin(&world.access, STORE).unwrap();
    let piece = value(65_521, 3);
    while (writer.len() as usize) < len {
        writer.write(&mut cx, &piece).unwrap();
        world.access.pool().maintain(64).unwrap();
    }
    let stub = writer.finish(&mut cx).unwrap();
    let mut reader = ChainReader::new(STORE, stub);
    let (mut out, mut at) = (Vec::new(), 0);
    while reader.read_link(&world.access, &mut out).unwrap() == Link::Read {
        assert!(out.len() <= link_capacity(SIZE));
        assert!(
            out.iter()
                .enumerate()
                .all(|(i, byte)| *byte == piece[(at + i) % piece.len()])
        );
        at += out.len();
        out.clear();
    }
    assert_eq!((at as u64, reader.remaining()), (stub.len, 0));
}

/// The id of a chain that is gone stays harmless, even when its pages are another chain's.
#[test]
fn freeing_twice_does_not_touch_the_next_chain() {
    let world = World::new(SIZE, 100);
    let old = write(&world, &value(20_000, 1), 512);
    free_all(&world, old.chain);
    assert_eq!(read(&world.access, old), None);
    check_space(&world.access, &[]);
    let mut alive = Vec::new();
    while !alive
        .iter()
        .any(|stub: &Stub| stub.chain.first == old.chain.first)
    {
        alive.push(write(&world, &value(9_000, 2), 9_000));
        assert!(alive.len() < 1000, "the page is never used again");
    }
    let ask_again = free_step(&world.access, &mut world.begin(), STORE, old.chain, 9).unwrap();
    assert_eq!(ask_again, Freeing::Done);
    assert_eq!(read(&world.access, old), None);
    for stub in &alive {
        assert!(read(&world.access, *stub).unwrap() == value(9_000, 2));
    }
}

/// Somebody who reads without a lock while the chain is freed never gets wrong bytes.
#[test]
fn reader_of_a_chain_being_freed_sees_that_it_is_gone() {
    let world = World::new(SIZE, 100);
    let whole = value(40_000, 1);
    for links_before in 0..11 {
        for freed in 0..11 {
            let stub = write(&world, &whole, 40_000);
            let mut reader = ChainReader::new(STORE, stub);
            let mut out = Vec::new();
            for _ in 0..links_before.min(9) {
                assert_eq!(
                    reader.read_link(&world.access, &mut out).unwrap(),
                    Link::Read
                );
            }
            free_step(&world.access, &mut world.begin(), STORE, stub.chain, freed).unwrap();
            let all = reader.read_to_end(&world.access, &mut out).unwrap();
            assert!(whole.starts_with(&out));
            assert_eq!(all, out.len() == whole.len());
            free_all(&world, stub.chain);
        }
    }
}

/// A crash may come after any record: whoever knows the chain's id can free what there is of it.
#[test]
fn chain_cut_off_anywhere_can_be_freed() {
    let world = World::new(SIZE, 100);
    let first = write(&world, &value(15_000, 1), 700);
    let second = write(&world, &value(9_000, 2), 9_000);
    free_all(&world, first.chain);
    let third = write(&world, &value(30_000, 3), 30_000);
    let records: Vec<_> = world.log.scan(Lsn::ZERO).map(Result::unwrap).collect();
    let records: Vec<_> = records
        .iter()
        .filter(|record| Access::has_redo(record.kind))
        .collect();
    assert!(records.len() >= 20);
    for cut in 1..=records.len() {
        let pool = pool_on(&world.log, SIZE, 100);
        let access = Access::new(pool, Arc::clone(&world.log), Arc::new(Unlocked));
        for record in &records[..cut] {
            access.redo(record, |_| true).unwrap();
        }
        access.attach().unwrap();
        let chains = [first.chain, second.chain, third.chain];
        check_space(&access, &chains);
        let mut cx = access.system_context(1 << 16).unwrap();
        for chain in chains {
            while free_step(&access, &mut cx, STORE, chain, 2).unwrap() != Freeing::Done {}
        }
        check_space(&access, &[]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn chains_act_like_a_map_of_values(
        steps in prop::collection::vec((0usize..6, 0usize..30_000, 1usize..9_000), 1..20),
    ) {
        let world = World::new(SIZE, 100);
        let mut slots: Vec<Option<(Stub, Vec<u8>)>> = vec![None; 6];
        for (seed, (slot, len, piece)) in steps.into_iter().enumerate() {
            if let Some((stub, old)) = slots[slot].take() {
                prop_assert_eq!(read(&world.access, stub), Some(old));
                free_all(&world, stub.chain);
                prop_assert!(stub.len == 0 || read(&world.access, stub).is_none());
            } else {
                let value = value(len, seed as u8);
                slots[slot] = Some((write(&world, &value, piece), value));
            }
            let alive: Vec<_> = slots.iter().flatten().map(|(stub, _)| stub.chain).collect();
            check_space(&world.access, &alive);
        }
    }
}

//! Disks that are full, logs that are full, disks that die: trees stay sound.

use super::support::{STORE, World, access_on, create_log, key, redo_all, roomy_log};
use longshore_access::{AccessError, RowRecord, Tree, Unlocked, record};
use longshore_base::{Lsn, PageSize, SeededEnvironment};
use longshore_disk::{Disk, MemoryDisk, SimDisk, SimOptions};
use longshore_log::{Access as LogAccess, Level, Log, LogOptions};
use longshore_pool::PoolError;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;

#[test]
fn full_disk_is_an_error_and_changes_nothing() {
    let capacity_bytes = Some(2 << 20);
    let disk = SimDisk::new(1, SimOptions { capacity_bytes });
    let log = roomy_log();
    let access = access_on(&disk, &log, PageSize::MIN, 400, Arc::new(Unlocked)).unwrap();
    let world = World::on(access, log);
    world.access.format(&mut world.begin()).unwrap();
    let tree = world.create(STORE);
    let mut rows = 0;
    let full = loop {
        match world.try_put(&tree, &mut world.begin(), &key(rows), &[1; 500]) {
            Ok(_) => rows += 1,
            Err(error) => break error,
        }
    };
    assert!(
        matches!(full, AccessError::Pool(PoolError::Disk(_))),
        "{full}"
    );
    assert_eq!(world.verify(&[tree])[0].rows, u64::from(rows));
    // Deleting gives room without the disk's help.
    for k in 0..rows / 2 {
        world.delete(&tree, &mut world.begin(), &key(k));
        tree.purge(&world.access, &mut world.begin(), &key(k))
            .unwrap();
    }
    for k in rows..rows + rows / 3 {
        world.put(&tree, &mut world.begin(), &key(k), &[1; 500]);
    }
    world.verify(&[tree]);
}

/// A transaction fills the log, and can still be undone.
#[test]
fn full_log_is_an_error_and_rollback_works() {
    let options = LogOptions {
        segment_bytes: 64 << 10,
        buffer_bytes: 64 << 10,
        bytes_max: 512 << 10,
    };
    let log = create_log(Arc::new(MemoryDisk::new()), options).unwrap();
    let disk = MemoryDisk::new();
    let access = access_on(&disk, &log, PageSize::MIN, 400, Arc::new(Unlocked)).unwrap();
    let world = World::on(access, log);
    world.access.format(&mut world.begin()).unwrap();
    let tree = world.create(STORE);
    let mut before = world.begin();
    for k in 0..50 {
        world.put(&tree, &mut before, &key(k), &[1; 100]);
    }
    drop(before);
    let mut cx = world.begin();
    let mut rng = SmallRng::seed_from_u64(2);
    let full = loop {
        let (key, len) = (key(rng.random_range(0..2_000)), rng.random_range(0..300));
        if let Err(error) = world.try_put(&tree, &mut cx, &key, &vec![2; len]) {
            break error;
        }
    };
    assert!(
        matches!(&full, AccessError::Log(error) if error.is_full()),
        "{full}"
    );
    world.verify(&[tree]);
    world.roll_back(&mut cx, Lsn::ZERO).unwrap();
    assert_eq!(world.verify(&[tree])[0].rows, 50);
    assert_eq!(world.get(&tree, &key(7)).unwrap(), [1; 100]);
}

/// What a log says the rows of one tree are: its row records, one after the other.
fn fold(records: &[longshore_log::Record]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (mut rows, mut ghosts) = (BTreeMap::new(), BTreeMap::new());
    for one in records {
        let row = match one.kind {
            record::ROW => RowRecord::decode(&one.body).unwrap(),
            record::CLR => RowRecord::decode_clr(&one.body).unwrap().1,
            _ => continue,
        };
        let key = row.key.to_vec();
        match row.op {
            longshore_access::RowOp::Insert => drop(rows.insert(key, row.value.to_vec())),
            longshore_access::RowOp::Update => {
                let mut value = rows.remove(&key).or(ghosts.remove(&key)).unwrap();
                assert!(row.kept.replace(&mut value, row.value));
                match row.flags.is_ghost() {
                    true => ghosts.insert(key, value),
                    false => rows.insert(key, value),
                };
            }
            longshore_access::RowOp::Ghost => {
                let value = rows.remove(&key).unwrap();
                ghosts.insert(key, value);
            }
            longshore_access::RowOp::Revive => {
                let value = ghosts[&key].clone();
                rows.insert(key, value);
            }
        }
    }
    rows
}

fn small_log() -> LogOptions {
    LogOptions {
        segment_bytes: 256 << 10,
        buffer_bytes: 64 << 10,
        bytes_max: 64 << 20,
    }
}

/// Works on `disk` until it dies, or for long enough.
fn work_until_death(disk: &SimDisk, seed: u64) -> Result<(), AccessError> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let log = create_log(Arc::new(disk.clone()), small_log())?;
    let access = access_on(disk, &log, PageSize::MIN, 40, Arc::new(Unlocked))?;
    let world = World::on(access, log);
    world.access.format(&mut world.begin())?;
    let tree = Tree::create(&world.access, &mut world.begin(), STORE)?;
    world.log.flush_all(Level::Sync)?;
    for step in 0..1_500 {
        let key = key(rng.random_range(0..400));
        let mut cx = world.begin();
        match rng.random_range(0..20) {
            0..9 => {
                world.try_put(&tree, &mut cx, &key, &vec![4; rng.random_range(0..400)])?;
            }
            9..15 => {
                world.try_delete(&tree, &mut cx, &key)?;
            }
            15..18 => {
                tree.purge(&world.access, &mut cx, &key)?;
            }
            18 => {
                world.try_put(&tree, &mut cx, &key, &[9; 700])?;
                world.roll_back(&mut cx, Lsn::ZERO)?;
            }
            _ if step % 7 == 0 => {
                world.access.truncate_end()?;
            }
            _ => world.log.flush_all(Level::Sync)?,
        }
        if step % 50 == 0 {
            world.access.pool().maintain(16)?;
        }
    }
    disk.crash_now();
    Ok(())
}

/// Recovers from the disk, and compares the tree with what the log says.
fn recover(disk: &SimDisk) -> Result<(), AccessError> {
    let env = Arc::new(SeededEnvironment::new(3));
    let directory: Arc<dyn Disk> = Arc::new(disk.clone());
    let log = Log::open(
        directory,
        small_log(),
        1,
        Lsn::ZERO,
        LogAccess::ReadWrite,
        env,
    )?;
    let access = access_on(disk, &log, PageSize::MIN, 40, Arc::new(Unlocked))?;
    access.pool().recover_double_write()?;
    let records = redo_all(&access, &log)?;
    let Some(root) = records.iter().find_map(root_of) else {
        return Ok(());
    };
    access.attach()?;
    let tree = Tree { store: STORE, root };
    let world = World::on(access, log);
    world.verify(&[tree]);
    let expected: Vec<_> = fold(&records).into_iter().collect();
    assert_eq!(world.scan(&tree, &[], usize::MAX), expected);
    for k in 0..100 {
        world.try_put(&tree, &mut world.begin(), &key(k), &[6; 200])?;
    }
    world.access.pool().flush_all()?;
    world.access.pool().sync_data()?;
    world.verify(&[tree]);
    Ok(())
}

/// The root is in the first row record.
fn root_of(one: &longshore_log::Record) -> Option<longshore_base::PageId> {
    (one.kind == record::ROW).then(|| RowRecord::decode(&one.body).unwrap().root)
}

/// The disk dies at a random moment, and again during recovery; what the log still has is what
/// the tree then holds, and its structure and the map of used pages are sound.
#[test]
fn crashes_lose_nothing_that_the_log_has() {
    for seed in 0..60u64 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let disk = SimDisk::new(seed, SimOptions::default());
        disk.crash_after(rng.random_range(20..900));
        let died = work_until_death(&disk, seed);
        assert!(disk.is_crashed(), "seed {seed}: {died:?}");
        let image = disk.crash_image(seed);
        if rng.random_bool(0.5) {
            image.crash_after(rng.random_range(1..60));
        }
        let first = recover(&image);
        if image.is_crashed() {
            let again = image.crash_image(seed + 1);
            recover_or_nothing(&again, seed);
        } else if let Err(error) = first {
            check_nothing(&error, &image, seed);
        }
    }
}

fn recover_or_nothing(disk: &SimDisk, seed: u64) {
    if let Err(error) = recover(disk) {
        check_nothing(&error, disk, seed);
    }
}

/// The only excuse: the crash came before the log was there.
fn check_nothing(error: &AccessError, disk: &SimDisk, seed: u64) {
    let files = disk.list().unwrap();
    let has_log = files.iter().any(|name| name.starts_with("log-"));
    assert!(!has_log, "seed {seed}: {error}; {files:?}");
}

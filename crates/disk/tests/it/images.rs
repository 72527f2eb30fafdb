//! What crash images may and may not hold, checked against every state a file went through.

use longshore_disk::{CrashStyle, Disk, DiskFile, OpenMode, SimDisk, SimOptions};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeSet;
use std::sync::Arc;

const SECTOR: usize = 512;

/// A file and all the states that a crash may mix: the one last synced, and those since.
struct Witness {
    file: Arc<dyn DiskFile>,
    states: Vec<Vec<u8>>,
    was_cut: bool,
}

impl Witness {
    fn new(disk: &SimDisk, name: &str) -> Self {
        let file = disk.open(name, OpenMode::Create).unwrap();
        disk.sync_directory().unwrap();
        Self {
            file,
            states: vec![Vec::new()],
            was_cut: false,
        }
    }

    fn change_randomly(&mut self, random: &mut SmallRng) {
        let mut state = self.states.last().unwrap().clone();
        match random.random_range(0..10) {
            0 => self.sync(),
            1 => {
                let len = random.random_range(0..20_000);
                self.was_cut |= len < state.len();
                self.file.set_len(len as u64).unwrap();
                state.resize(len, 0);
                self.states.push(state);
            }
            2 => {
                let len = random.random_range(0..20_000);
                self.file.allocate(len as u64).unwrap();
                state.resize(len.max(state.len()), 0);
                self.states.push(state);
            }
            _ => {
                let (offset, len) = (random.random_range(0..15_000), random.random_range(1..6000));
                let bytes: Vec<u8> = (0..len).map(|_| random.random()).collect();
                self.file.write_at(&bytes, offset as u64).unwrap();
                state.resize(state.len().max(offset + len), 0);
                state[offset..offset + len].copy_from_slice(&bytes);
                self.states.push(state);
            }
        }
    }

    fn sync(&mut self) {
        self.file.sync().unwrap();
        self.states.drain(..self.states.len() - 1);
        self.was_cut = false;
    }

    /// Checks I1 and I6 on what a crash left.
    fn check(&self, image: &[u8]) {
        assert!(
            self.states.iter().any(|state| state.len() == image.len()),
            "length {} is none that the file had",
            image.len()
        );
        for (index, sector) in image.chunks(SECTOR).enumerate() {
            let is_known = self
                .states
                .iter()
                .any(|state| is_state(sector, state, index));
            // A cut that got through and grew again leaves zeros after bytes of any state.
            assert!(
                is_known || self.was_cut && self.is_mixed_with_zeros(sector, index),
                "sector {index} was never like this"
            );
        }
    }

    fn is_mixed_with_zeros(&self, sector: &[u8], index: usize) -> bool {
        self.states.iter().any(|state| {
            let (from, to) = (index * SECTOR, index * SECTOR + sector.len());
            let state = &state[from.min(state.len())..to.min(state.len())];
            let same = sector
                .iter()
                .zip(state)
                .take_while(|(left, right)| left == right)
                .count();
            sector[same..].iter().all(|byte| *byte == 0)
        })
    }
}

fn is_state(sector: &[u8], state: &[u8], index: usize) -> bool {
    sector
        .iter()
        .enumerate()
        .all(|(at, byte)| *byte == state.get(index * SECTOR + at).copied().unwrap_or(0))
}

#[test]
fn every_sector_is_a_state_since_the_last_sync() {
    for seed in 0..1500 {
        let _on_failure = PrintSeed(seed);
        let mut random = SmallRng::seed_from_u64(seed);
        let disk = SimDisk::new(seed, SimOptions::default());
        let mut witness = Witness::new(&disk, "f");
        for _ in 0..random.random_range(1..30) {
            witness.change_randomly(&mut random);
        }
        for image_seed in 0..8 {
            let image = disk.crash_image(image_seed).contents("f").unwrap();
            witness.check(&image);
        }
        let now = disk.contents("f").unwrap();
        assert_eq!(&now, witness.states.last().unwrap());
        let kept = disk
            .crash_image_in_style(CrashStyle::KeepAll, 0)
            .contents("f")
            .unwrap();
        assert_eq!(kept, now, "keeping all keeps all");
        let lost = disk
            .crash_image_in_style(CrashStyle::LoseAll, 0)
            .contents("f")
            .unwrap();
        assert_eq!(lost, witness.states[0], "losing all leaves what was synced");
    }
}

#[test]
fn images_of_images_keep_what_was_synced_in_between() {
    for seed in 0..300 {
        let _on_failure = PrintSeed(seed);
        let mut random = SmallRng::seed_from_u64(seed);
        let mut disk = SimDisk::new(seed, SimOptions::default());
        let mut witness = Witness::new(&disk, "f");
        for depth in 0..4 {
            for _ in 0..random.random_range(1..20) {
                witness.change_randomly(&mut random);
            }
            disk.crash_now();
            disk = disk.crash_image(seed ^ depth);
            let image = disk.contents("f").unwrap();
            witness.check(&image);
            let file = disk.open("f", OpenMode::Write).unwrap();
            witness = Witness {
                file,
                states: vec![image],
                was_cut: false,
            };
        }
    }
}

#[test]
fn unsynced_writes_are_lost_kept_torn_and_reordered() {
    let disk = SimDisk::new(0, SimOptions::default());
    let mut witness = Witness::new(&disk, "f");
    witness.file.write_at(&[1; 8192], 0).unwrap();
    witness.sync();
    witness.file.write_at(&[2; 4096], 0).unwrap();
    witness.file.write_at(&[2; 4096], 4096).unwrap();
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let image = disk.crash_image(seed).contents("f").unwrap();
        let part = |bytes: &[u8]| match bytes.iter().filter(|byte| **byte == 2).count() {
            0 => "lost",
            4096 => "kept",
            _ => "torn",
        };
        seen.insert((part(&image[..4096]), part(&image[4096..])));
    }
    assert_eq!(
        seen.len(),
        9,
        "each write in each way, independently: {seen:?}"
    );
}

#[test]
fn length_can_be_lost_and_can_be_kept_without_the_bytes() {
    let disk = SimDisk::new(0, SimOptions::default());
    let witness = Witness::new(&disk, "f");
    witness.file.write_at(&[1; 1000], 0).unwrap();
    let images = (0..100).map(|seed| disk.crash_image(seed).contents("f").unwrap());
    let seen: BTreeSet<Vec<u8>> = images.collect();
    assert!(seen.contains(&vec![]), "length lost");
    assert!(seen.contains(&vec![0; 1000]), "length kept, bytes lost");
    assert!(seen.contains(&vec![1; 1000]), "both kept");
}

/// Which of the names are there, and what their files hold.
fn names(disk: &SimDisk) -> Vec<(String, Vec<u8>)> {
    let names = disk.list().unwrap();
    names
        .into_iter()
        .map(|name| (name.clone(), disk.contents(&name).unwrap()))
        .collect()
}

fn write_file(disk: &SimDisk, name: &str, bytes: &[u8]) {
    let file = disk.open(name, OpenMode::Create).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.sync().unwrap();
}

#[test]
fn synced_file_may_vanish_until_its_directory_is_synced() {
    let disk = SimDisk::new(0, SimOptions::default());
    write_file(&disk, "a", b"a");
    write_file(&disk, "b", b"b");
    let counts = |disk: &SimDisk| -> BTreeSet<Vec<String>> {
        (0..100)
            .map(|seed| disk.crash_image(seed).list().unwrap())
            .collect()
    };
    let each = [
        vec![],
        vec!["a".into()],
        vec!["b".into()],
        vec!["a".into(), "b".into()],
    ];
    assert_eq!(
        counts(&disk),
        BTreeSet::from(each),
        "each is lost on its own"
    );
    disk.sync_directory().unwrap();
    assert_eq!(
        counts(&disk),
        BTreeSet::from([vec!["a".into(), "b".into()]])
    );
    assert_eq!(names(&disk.crash_image(5))[1], ("b".into(), b"b".to_vec()));
}

#[test]
fn rename_leaves_the_old_or_the_new_file_never_neither() {
    let disk = SimDisk::new(0, SimOptions::default());
    write_file(&disk, "control", b"old");
    disk.sync_directory().unwrap();
    write_file(&disk, "control.new", b"new");
    disk.rename("control.new", "control").unwrap();
    let mut seen = BTreeSet::new();
    for seed in 0..100 {
        seen.insert(disk.crash_image(seed).contents("control").unwrap());
    }
    assert_eq!(seen, BTreeSet::from([b"old".to_vec(), b"new".to_vec()]));
    disk.sync_directory().unwrap();
    assert_eq!(
        names(&disk.crash_image(0)),
        [("control".into(), b"new".to_vec())]
    );
}

#[test]
fn removed_file_comes_back_until_the_directory_is_synced() {
    let disk = SimDisk::new(0, SimOptions::default());
    write_file(&disk, "a", b"bytes");
    disk.sync_directory().unwrap();
    disk.remove("a").unwrap();
    let back: Vec<SimDisk> = (0..50).map(|seed| disk.crash_image(seed)).collect();
    assert!(
        back.iter()
            .any(|disk| disk.contents("a") == Some(b"bytes".to_vec()))
    );
    assert!(back.iter().any(|disk| disk.contents("a").is_none()));
    disk.sync_directory().unwrap();
    assert!((0..50).all(|seed| disk.crash_image(seed).contents("a").is_none()));
}

#[test]
fn recycled_name_chains_stay_consistent() {
    // Log segments are recycled by renaming the oldest over and over; a crash may stop the chain
    // anywhere, but the file has exactly one name throughout.
    for seed in 0..200 {
        let _on_failure = PrintSeed(seed);
        let disk = SimDisk::new(seed, SimOptions::default());
        write_file(&disk, "log-0", b"segment");
        disk.sync_directory().unwrap();
        for number in 0..5 {
            disk.rename(&format!("log-{number}"), &format!("log-{}", number + 1))
                .unwrap();
        }
        let left = names(&disk.crash_image(seed));
        assert_eq!(left.len(), 1, "{left:?}");
        assert_eq!(left[0].1, b"segment");
    }
}

#[test]
fn same_seeds_give_the_same_disk() {
    let run = |seed| {
        let mut random = SmallRng::seed_from_u64(seed);
        let disk = SimDisk::new(seed, SimOptions::default());
        disk.start_trace();
        let mut witness = Witness::new(&disk, "f");
        write_file(&disk, "unsafe", b"name");
        (0..25).for_each(|_| witness.change_randomly(&mut random));
        let second = disk.crash_image(seed);
        second
            .open("f", OpenMode::OpenOrCreate)
            .unwrap()
            .write_at(&[9; 3000], 700)
            .unwrap();
        (
            names(&second),
            names(&second.crash_image(seed + 1)),
            disk.take_trace(),
        )
    };
    for seed in 0..50 {
        assert!(
            run(seed) == run(seed),
            "seed {seed} gave two different disks"
        );
    }
}

#[test]
fn image_does_not_change_with_the_disk_it_was_taken_from() {
    let disk = SimDisk::new(0, SimOptions::default());
    write_file(&disk, "f", &[1; 10_000]);
    disk.sync_directory().unwrap();
    let image = disk.crash_image(0);
    disk.open("f", OpenMode::Write)
        .unwrap()
        .write_at(&[2; 5000], 2000)
        .unwrap();
    assert_eq!(image.contents("f").unwrap(), [1; 10_000]);
    image
        .open("f", OpenMode::Write)
        .unwrap()
        .write_at(&[3; 5000], 0)
        .unwrap();
    assert_eq!(disk.contents("f").unwrap()[..2000], [1; 2000]);
}

/// Names the seed when the test that made it fails.
struct PrintSeed(u64);

impl Drop for PrintSeed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed with seed {}", self.0);
        }
    }
}

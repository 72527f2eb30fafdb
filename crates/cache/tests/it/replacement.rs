//! What leaves: as a version of a few lines has it, and about as S3-FIFO does.

use longshore_cache::{Cache, CacheBuilder, Insertion};
use longshore_policy::Trace;
use longshore_policy::simulator::Contender;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use rand_distr::Zipf;
use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

/// Hashes that the model can compute as well.
#[derive(Clone, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are numbers")
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = (key + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

type Spreading = BuildHasherDefault<Spread>;

/// Pages by Zipf's law, and each fourth one of a scan.
fn trace(seed: u64) -> Trace {
    println!("seed {seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    let zipf = Zipf::new(2000.0, 0.9).unwrap();
    let mut trace = Trace::new();
    for step in 0..60_000_u64 {
        let page = match step % 4 {
            0 => 10_000 + step % 3000,
            _ => random.sample(zipf) as u64,
        };
        trace.push(page).unwrap();
    }
    trace
}

fn misses(trace: &Trace, capacity: u64) -> u64 {
    let builder = CacheBuilder::new(capacity).hasher(Spreading::default());
    let cache = builder.build();
    for page in trace.iter() {
        let _ = cache.get_or_load(&page, || Ok::<_, ()>(()));
    }
    cache.stats().misses
}

/// The replacement of one thread, in a few lines.
#[derive(Default)]
struct Model {
    slots: Vec<Option<Entry>>,
    free: VecDeque<usize>,
    slot_of: BTreeMap<u64, usize>,
    ghosts: BTreeMap<usize, u64>,
    proven: usize,
    probation_hand: usize,
    proven_hand: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    key: u64,
    weight: u8,
    is_proven: bool,
}

impl Model {
    /// Whether a key is there; if not, it is afterwards.
    fn ask(&mut self, key: u64, capacity: usize) -> bool {
        if let Some(slot) = self.slot_of.get(&key) {
            let entry = self.slots[*slot].as_mut().unwrap();
            entry.weight = (entry.weight + 1).min(3);
            return true;
        }
        while self.slot_of.len() == capacity {
            self.sweep();
        }
        let place = self.ghost_place(key);
        let is_proven = self.ghosts.get(&place) == Some(&key);
        if is_proven {
            self.ghosts.remove(&place);
            self.proven += 1;
        }
        let slot = self.free.pop_front().unwrap_or(self.slots.len());
        self.slots.resize(self.slots.len().max(slot + 1), None);
        self.slots[slot] = Some(Entry {
            key,
            weight: 0,
            is_proven,
        });
        self.slot_of.insert(key, slot);
        false
    }

    /// Sweeps a stretch.
    fn sweep(&mut self) {
        let entries = self.slot_of.len();
        let probation = entries - self.proven;
        let is_probation_due = self.proven == 0 || probation > entries / 10;
        let hand = match is_probation_due {
            true => &mut self.probation_hand,
            false => &mut self.proven_hand,
        };
        let stretch = *hand..*hand + (self.slots.len() / 64).clamp(1, 8);
        *hand = stretch.end;
        stretch.for_each(|at| self.visit(at % self.slots.len(), is_probation_due));
    }

    fn visit(&mut self, slot: usize, is_probation_due: bool) {
        match self.slots[slot].as_mut() {
            Some(entry) if entry.is_proven != is_probation_due => match entry.weight {
                0 => self.evict(slot),
                _ if is_probation_due => {
                    (entry.is_proven, entry.weight) = (true, 0);
                    self.proven += 1;
                }
                _ => entry.weight -= 1,
            },
            _ => {}
        }
    }

    fn evict(&mut self, slot: usize) {
        let entry = self.slots[slot].take().unwrap();
        match entry.is_proven {
            true => self.proven -= 1,
            false => drop(self.ghosts.insert(self.ghost_place(entry.key), entry.key)),
        }
        self.slot_of.remove(&entry.key);
        self.free.push_back(slot);
    }

    fn ghost_place(&self, key: u64) -> usize {
        let hash = Spreading::default().hash_one(key) >> 2 << 2;
        ((u128::from(hash) * self.slots.len() as u128) >> 64) as usize
    }
}

#[test]
fn one_thread_misses_as_often_as_the_model() {
    let trace = trace(1);
    for capacity in [1, 2, 7, 50, 127, 512, 1000] {
        let mut model = Model::default();
        let asked = trace.iter().filter(|page| !model.ask(*page, capacity));
        let (expected, capacity) = (asked.count() as u64, capacity as u64);
        assert_eq!(misses(&trace, capacity), expected, "{capacity} entries");
    }
}

fn simulated(policy: &str, trace: &Trace, capacity: u64) -> u64 {
    let contender: Contender = policy.parse().unwrap();
    let run = contender.run(trace, capacity as u32, &mut |_| {});
    run.unwrap().misses
}

/// One hit is enough to be proven here, as there; but hands sweep by the stretch, and ghosts keep no order.
#[test]
fn a_large_cache_misses_nearly_as_often_as_s3_fifo() {
    let trace = trace(2);
    for capacity in [200, 512, 1000, 2000] {
        let s3_fifo = simulated("s3-fifo:move=1", &trace, capacity);
        let gclock = simulated("gclock:cap=3", &trace, capacity);
        let ours = misses(&trace, capacity);
        let more = ours as f64 - s3_fifo as f64;
        let points = 100.0 * more / trace.refs().len() as f64;
        println!("{capacity} entries: {ours} misses, {points:+.3} points; GCLOCK {gclock}");
        assert!(points <= 2.0, "{capacity} entries: {points:+.3} points");
    }
}

#[test]
fn a_scan_leaves_what_was_used_alone() {
    let cache = Cache::new(1000);
    for round in 0..3 {
        for key in 0..800 {
            assert_eq!(cache.get(&key).is_some(), round > 0);
            cache.insert(key, key);
        }
    }
    for key in 1000..100_000 {
        cache.insert(key, key);
    }
    let left = (0..800).filter(|key| cache.get(key).is_some());
    assert_eq!(left.count(), 800);
}

#[test]
fn what_comes_back_soon_is_proven() {
    let cache = Cache::new(100);
    (0..300).for_each(|key| assert_eq!(cache.insert(key, ()), Insertion::New));
    let stats = cache.stats();
    assert_eq!((stats.entries, stats.probation), (100, 100));
    // The one that left last: no later one has taken its place among the ghosts.
    cache.insert(199, ());
    let stats = cache.stats();
    assert_eq!((stats.entries, stats.probation), (100, 99));
    assert_eq!(cache.insert(199, ()), Insertion::Replaced);
    cache.insert(300, ());
    assert_eq!(cache.stats().probation, 99);
    assert_eq!(cache.get(&199), Some(()));
}

//! Random operations against a map, in every configuration, with calls that fail.

use crate::replacement::replacements;
use crate::support::{Bed, check, fill, small, under};
use longshore_base::PageId;
use longshore_disk::{Fault, FaultError, FaultOn, FaultRepeat, SimDisk, SimOptions};
use longshore_pool::{HandKind, MissMode, PageTableKind, PoolOptions, Replacement};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

const PAGES: u64 = 70;

#[derive(Clone, Debug)]
enum Step {
    Create(u64),
    Set(u64),
    SetFromRead(u64),
    Get(u64),
    Scan(u64, u64),
    Prefetch(u64),
    Maintain(usize),
    Flush,
    Resize(usize),
    Truncate(u64),
    Grow(u64),
    Reopen,
    /// The call that comes so many calls later fails.
    Fail(u64, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let page = 0..PAGES;
    prop_oneof![
        3 => page.clone().prop_map(Step::Create),
        6 => page.clone().prop_map(Step::Set),
        4 => page.clone().prop_map(Step::SetFromRead),
        6 => page.clone().prop_map(Step::Get),
        2 => (page.clone(), 1..PAGES).prop_map(|(from, count)| Step::Scan(from, count)),
        1 => page.clone().prop_map(Step::Prefetch),
        2 => (0..40usize).prop_map(Step::Maintain),
        1 => Just(Step::Flush),
        1 => (16..80usize).prop_map(Step::Resize),
        1 => page.clone().prop_map(Step::Truncate),
        1 => page.prop_map(Step::Grow),
        1 => Just(Step::Reopen),
        1 => (1..7u64, any::<bool>()).prop_map(|(after, write)| Step::Fail(after, write)),
    ]
}

struct Model {
    disk: SimDisk,
    options: PoolOptions,
    bed: Bed,
    values: HashMap<u64, u64>,
    next: u64,
}

impl Model {
    fn new(options: PoolOptions) -> Model {
        let disk = SimDisk::new(1, SimOptions::default());
        Model {
            bed: Bed::on(Arc::new(disk.clone()), options.clone()),
            disk,
            options,
            values: HashMap::new(),
            next: 1,
        }
    }

    /// Does a step; one that fails must have changed nothing.
    fn run(&mut self, step: &Step) {
        self.next += 1;
        let (pool, value) = (self.bed.pool.clone(), self.next);
        match *step {
            Step::Create(id) => {
                if let Ok(mut guard) = pool.fix_new(PageId::new(id)) {
                    fill(&mut guard.page_mut(), id, value);
                    guard.stamp(self.bed.lsn());
                    self.values.insert(id, value);
                }
            }
            Step::Set(id) => {
                if let Ok(mut guard) = pool.fix_exclusive(PageId::new(id)) {
                    assert_eq!(check(guard.page(), id), self.wanted(id));
                    fill(&mut guard.page_mut(), id, value);
                    guard.stamp(self.bed.lsn());
                    self.values.insert(id, value);
                }
            }
            Step::SetFromRead(id) => {
                if let Ok(guard) = pool.read(PageId::new(id)) {
                    assert_eq!(check(guard.page(), id), self.wanted(id));
                    let mut guard = guard.try_exclusive().expect("we are alone");
                    fill(&mut guard.page_mut(), id, value);
                    guard.stamp(self.bed.lsn());
                    self.values.insert(id, value);
                }
            }
            Step::Get(id) => {
                if let Ok(guard) = pool.fix_shared(PageId::new(id)) {
                    assert_eq!(check(guard.page(), id), self.wanted(id));
                }
            }
            Step::Scan(from, count) => {
                for id in from..from + count {
                    if let Ok(guard) = pool.read_scan(PageId::new(id)) {
                        assert_eq!(check(guard.page(), id), self.wanted(id));
                        guard.validate().expect("we are alone");
                    }
                }
            }
            Step::Prefetch(id) => pool.prefetch(PageId::new(id)),
            Step::Maintain(budget) => drop(pool.maintain(budget)),
            Step::Flush => drop(pool.flush_all()),
            Step::Resize(frames) => {
                let options = under(&pool.options().replacement, small(frames));
                drop(pool.resize(options.bytes_max));
            }
            Step::Grow(pages) => drop(pool.grow(pages)),
            Step::Truncate(pages) => {
                self.disk.clear_faults();
                pool.truncate(pages).unwrap();
                self.values.retain(|id, _| *id < pages);
            }
            Step::Reopen => {
                self.disk.clear_faults();
                pool.flush_all().unwrap();
                self.bed = Bed::on(Arc::new(self.disk.clone()), self.options.clone());
            }
            Step::Fail(after, write) => {
                let fault = Fault {
                    error: if write {
                        FaultError::ShortWrite
                    } else {
                        FaultError::Io
                    },
                    repeat: FaultRepeat::Once,
                    on: if write { FaultOn::Write } else { FaultOn::Read },
                };
                self.disk.fail_at(after, fault);
            }
        }
        assert!(!pool.is_poisoned());
    }

    fn wanted(&self, id: u64) -> u64 {
        self.values.get(&id).copied().unwrap_or(0)
    }

    fn check_all(&mut self) {
        self.disk.clear_faults();
        (0..2 * PAGES).for_each(|id| assert_eq!(self.bed.get(id), self.wanted(id), "page {id}"));
        let now = self.bed.pool.stats();
        assert!(now.frames_free <= now.frames);
    }
}

fn configurations() -> Vec<PoolOptions> {
    let mut all = Vec::new();
    for miss in [MissMode::OneLoads, MissMode::Optimistic] {
        for table in [PageTableKind::Translation, PageTableKind::Hash] {
            for hand in [HandKind::Batched, HandKind::Striped] {
                all.push(PoolOptions {
                    miss,
                    table,
                    hand,
                    wait: Duration::from_millis(5),
                    ..small(20)
                });
            }
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, failure_persistence: None, ..Default::default() })]

    #[test]
    fn pool_acts_like_a_map(
        configuration in 0..8usize,
        steps in prop::collection::vec(step(), 1..250),
    ) {
        let mut model = Model::new(configurations().swap_remove(configuration));
        steps.iter().for_each(|step| model.run(step));
        model.check_all();
    }

    #[test]
    fn pool_under_any_policy_acts_like_a_map(
        configuration in 0..8usize,
        replacement in prop::sample::select(replacements().collect::<Vec<Replacement>>()),
        steps in prop::collection::vec(step(), 1..250),
    ) {
        let options = configurations().swap_remove(configuration);
        let mut model = Model::new(under(&replacement, options));
        for step in &steps {
            model.run(step);
            model.bed.pool.verify_replacement().unwrap();
        }
        model.check_all();
    }
}

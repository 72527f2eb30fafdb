//! Millions of random steps against the model, the structure verified now and then.

use longshore_base::{Environment, PageId, SeededEnvironment};
use longshore_policy::{Frame, Gone, Spec, Take};

use crate::all;
use crate::pool::Pool;

const STEPS: u64 = if cfg!(debug_assertions) {
    100_000
} else {
    10_000_000
};

struct Chance(SeededEnvironment);

impl Chance {
    /// A number below `bound`.
    fn below(&self, bound: u64) -> u64 {
        self.0.random() % bound
    }

    fn one_in(&self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

fn run(spec: &Spec, seed: u64, steps: u64) {
    let chance = Chance(SeededEnvironment::new(seed));
    let mut pool = Pool::new(spec, 1 + chance.below(100) as u32);
    let mut scan = 10_000;
    for step in 0..steps {
        // Half of it skewed, the rest in runs that are seen once, or again soon.
        let page = match chance.below(4) {
            0 | 1 => chance.below(1 + chance.below(1 + chance.below(500))),
            2 => scan - chance.below(150).min(scan),
            _ => {
                scan += 1;
                scan
            }
        };
        match chance.below(1000) {
            0 if pool.frame_of(page).is_none() => pool.policy.forget_ghost(PageId::new(page)),
            1..20 => remove_some(&mut pool, &chance),
            20..30 => drop(pool.evict(None, |_, _| veto(&chance))),
            30 if chance.one_in(20) => {
                let half = (pool.capacity() / 2) as u32;
                let doubled = (pool.capacity() * 2).min(200) as u32;
                pool.resize(if chance.one_in(2) {
                    half.max(1)
                } else {
                    doubled
                });
            }
            31..34 => pool.settle(),
            _ => drop(pool.use_unless(page, |_, _| veto(&chance))),
        }
        if step % 997 == 0 || step < 200 {
            pool.check();
        }
    }
    pool.check();
}

fn veto(chance: &Chance) -> Take {
    match chance.below(10) {
        0 => Take::Busy,
        1 => Take::Dirty,
        2 if chance.one_in(20) => Take::Enough,
        _ => Take::Taken,
    }
}

fn remove_some(pool: &mut Pool, chance: &Chance) {
    let frame = chance.below(pool.capacity() as u64) as Frame;
    if pool.page_in(frame).is_none() {
        return;
    }
    match chance.one_in(3) {
        true => drop(pool.relocate(frame)),
        false => drop(pool.remove(frame, Gone::Invalidated)),
    }
}

#[test]
fn random_steps_keep_every_policy_sound() {
    // Small pools reach the corners; each run has its own size.
    for spec in all() {
        for run_number in 0..10 {
            let seed = 20_261_122 + run_number;
            println!("{spec}, seed {seed}, {} steps", STEPS / 10);
            run(&spec, seed, STEPS / 10);
        }
    }
}

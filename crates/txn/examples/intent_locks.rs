//! Three ways to hold intent locks where nobody wants a whole table, against each other: what
//! `docs/decisions/0004-intent-locks.md` quotes.
//!
//! ```text
//! cargo run --release -p longshore-txn --example intent_locks [rounds]
//! ```
//!
//! Each round is a transaction that takes intents on three tables and ends. *Counted*: a count for each
//! table and stripe of threads. *Words*: a word of the owner's own, as in `lock/intent.rs`. *Inherited*:
//! the same words, left in place for the thread's next transaction, which marks them as used again.

use crossbeam_utils::CachePadded;
use longshore_base::metrics::{STRIPES, thread_number};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Instant;

const TABLES: usize = 3;
const USED: u64 = 1 << 63;

#[derive(Default)]
struct Table {
    counts: [CachePadded<AtomicU64>; STRIPES],
    strong: CachePadded<AtomicU64>,
}

#[derive(Default)]
struct Slot {
    words: CachePadded<[AtomicU64; TABLES]>,
}

fn counted(tables: &[Table], _: &Slot) {
    let stripe = thread_number() % STRIPES;
    for table in tables {
        // SeqCst: count, then look; who wants the table would set, then count.
        table.counts[stripe].fetch_add(1, Ordering::SeqCst);
        assert_eq!(table.strong.load(Ordering::SeqCst), 0);
    }
    for table in tables {
        // Release: would pair with the load of who counts.
        table.counts[stripe].fetch_sub(1, Ordering::Release);
    }
}

fn words(tables: &[Table], slot: &Slot) {
    for (n, table) in tables.iter().enumerate() {
        // Relaxed: the fence orders it before the look; who wants the table has one between its two steps.
        slot.words[n].store(n as u64 + 1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        assert_eq!(table.strong.load(Ordering::Acquire), 0);
    }
    for word in slot.words.iter() {
        // AcqRel: would pair with the exchange by which somebody transfers the word.
        assert_ne!(word.swap(0, Ordering::AcqRel), 0);
    }
}

fn inherited(_: &[Table], slot: &Slot) {
    for (n, word) in slot.words.iter().enumerate() {
        let idle = n as u64 + 1;
        // Relaxed: a guess. SeqCst: mark, then look.
        let before = word.load(Ordering::Relaxed);
        let marked =
            word.compare_exchange(before, idle | USED, Ordering::SeqCst, Ordering::Relaxed);
        assert!(marked.is_ok());
    }
    for (n, word) in slot.words.iter().enumerate() {
        let idle = n as u64 + 1;
        // AcqRel: would pair with the exchange by which somebody takes an idle word away.
        let left = word.compare_exchange(idle | USED, idle, Ordering::AcqRel, Ordering::Relaxed);
        assert!(left.is_ok());
    }
}

type Way = fn(&[Table], &Slot);

fn nanos(way: Way, threads: usize, rounds: u64) -> f64 {
    let tables: Vec<Table> = (0..TABLES).map(|_| Table::default()).collect();
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let slot = Slot::default();
                (0..rounds).for_each(|_| way(&tables, &slot));
            });
        }
    });
    start.elapsed().as_nanos() as f64 / (rounds * TABLES as u64) as f64
}

fn main() {
    let rounds = std::env::args()
        .nth(1)
        .map_or(1_000_000, |arg| arg.parse().expect("a number"));
    let ways: [(&str, Way); 3] = [
        ("counted per stripe", counted),
        ("words of the owner", words),
        ("inherited words", inherited),
    ];
    println!("ns an intent, taken and let go (best of five, interleaved)");
    for threads in [1, 2, 8] {
        let mut best = [f64::INFINITY; 3];
        for _ in 0..5 {
            for (best, (_, way)) in best.iter_mut().zip(ways) {
                *best = best.min(nanos(way, threads, rounds / threads as u64));
            }
        }
        for (best, (name, _)) in best.iter().zip(ways) {
            println!("{threads:>2} threads  {name:<20} {best:>6.1}");
        }
    }
}

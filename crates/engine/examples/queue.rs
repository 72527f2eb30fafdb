//! A queue that outlives the process: several producers, several consumers, each item once.
//!
//! Keys are numbers in ascending order. A consumer takes the first item by deleting it in the same
//! transaction in which it notes the item's result, so a crash between the two is impossible.
//!
//! Run with `cargo run --release -p longshore --example queue`.

use longshore::{Database, Result, Table};
use std::sync::atomic::{AtomicU64, Ordering};

const PRODUCERS: u64 = 3;
const CONSUMERS: usize = 3;
const ITEMS_PER_PRODUCER: u64 = 500;

fn main() -> Result<()> {
    let db = Database::in_memory()?;
    let queue = db.create_table("queue")?;
    let results = db.create_table("results")?;
    let total = PRODUCERS * ITEMS_PER_PRODUCER;
    println!("{PRODUCERS} producers, {CONSUMERS} consumers, {total} items ...");

    let next = AtomicU64::new(0);
    let done = AtomicU64::new(0);
    let outcome: Result<Vec<u64>> = std::thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let (db, queue, next) = (&db, &queue, &next);
            scope.spawn(move || {
                for item in 0..ITEMS_PER_PRODUCER {
                    let ticket = next.fetch_add(1, Ordering::Relaxed);
                    let job = format!("job {item} of producer {producer}");
                    db.update(|tx| tx.insert(queue, ticket.to_be_bytes(), &job))
                        .expect("a producer failed");
                }
            });
        }
        let consumers: Vec<_> = (0..CONSUMERS)
            .map(|_| {
                let (db, queue, results, done) = (&db, &queue, &results, &done);
                scope.spawn(move || {
                    let mut taken = 0;
                    while done.load(Ordering::Relaxed) < total {
                        match take(db, queue, results)? {
                            true => {
                                taken += 1;
                                done.fetch_add(1, Ordering::Relaxed);
                            }
                            false => std::thread::yield_now(),
                        }
                    }
                    Ok(taken)
                })
            })
            .collect();
        consumers
            .into_iter()
            .map(|consumer| consumer.join().expect("a consumer panicked"))
            .collect()
    });

    for (consumer, taken) in outcome?.iter().enumerate() {
        println!("consumer {consumer} took {taken}");
    }
    let left = db.view(|tx| Ok(tx.scan(&queue, ..)?.count()))?;
    let noted = db.view(|tx| Ok(tx.scan(&results, ..)?.count()))?;
    println!("{left} left in the queue, {noted} results, each item exactly once");
    assert_eq!((left, noted as u64), (0, total));
    db.close()
}

/// Takes the first item, if there is one, and notes its result.
///
/// Looking and taking are two transactions: the second locks the one item that it takes, so consumers
/// never wait for each other in a circle. Who comes second finds the item gone, and looks again.
fn take(db: &Database, queue: &Table, results: &Table) -> Result<bool> {
    let Some((ticket, _)) = db.view(|tx| tx.scan(queue, ..)?.next().transpose())? else {
        return Ok(false);
    };
    db.update(|tx| {
        let Some(job) = tx.get_for_update(queue, &ticket)? else {
            return Ok(false);
        };
        tx.delete(queue, &ticket)?;
        tx.insert(results, &ticket, [b"done: ", job.as_slice()].concat())?;
        Ok(true)
    })
}

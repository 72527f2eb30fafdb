//! Indexes are built while others write, opened, dropped, loaded, compared with their table.

use crate::people::{People, Person, by_badge, by_last, message, person, world};
use crate::support::{assert_sound, crash, in_memory, open, rows, sim};
use longshore::{Error, IndexError, IndexSpec, Options, Result, TypedTable};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

#[test]
fn a_table_with_an_index_that_nobody_registered_refuses_changes() {
    let disk = Arc::new(sim(1));
    let db = open(&disk, 1).unwrap();
    let people = world(&db).unwrap().people;
    people.insert(&db, 1, &person("Hopper", 7)).unwrap();
    db.close().unwrap();
    drop((db, people));

    let db = open(&disk, 2).unwrap();
    let people: People = TypedTable::open(&db, "people").unwrap();
    assert_eq!(people.get(&db, 1).unwrap(), Some(person("Hopper", 7)));
    let expected = "table `people` has the index `by last`, and nobody has registered what its keys are; \
                    open it with `TypedTable::open_index` before rows are changed";
    assert_eq!(message(people.put(&db, 2, &person("x", 1))), expected);
    assert_eq!(message(people.insert(&db, 2, &person("x", 1))), expected);
    assert_eq!(message(people.delete(&db, 1)), expected);
    assert_eq!(message(people.delete_range(&db, ..)), expected);
    assert!(!db.verify().unwrap().tables[2].indexes[0].is_compared);
    people.open_index(&db, by_last()).unwrap();
    let refused = message(people.put(&db, 2, &person("x", 1)));
    assert!(refused.contains("`by badge`"), "{refused}");
    world(&db).unwrap();
    people.put(&db, 2, &person("x", 1)).unwrap();
    let report = db.verify().unwrap();
    assert!(
        report.tables[2]
            .indexes
            .iter()
            .all(|index| index.is_compared)
    );
    assert_sound(&db);
}

#[test]
fn an_index_is_opened_as_it_was_created_or_not_at_all() {
    let db = in_memory();
    let people = world(&db).unwrap().people;
    let other = IndexSpec::new("by last", "last v2", |_, p: &Person| {
        [p.last.to_lowercase()]
    });
    assert_eq!(
        message(people.open_index(&db, other)),
        "index `by last` of table `people` is not unique, with definition \"last v1\", but is opened as not \
         unique, with definition \"last v2\"; if that is what is wanted, drop the index and create it anew"
    );
    let other = IndexSpec::unique("by last", "last v1", |_, p: &Person| [p.last.clone()]);
    let refused = message(people.open_index(&db, other));
    assert!(refused.contains("opened as unique"), "{refused}");
    let other = IndexSpec::new("by last", "last v1", |_, p: &Person| [p.last.len() as u64]);
    let refused = message(people.open_index(&db, other));
    assert!(refused.contains("with the types (u64, u32, "), "{refused}");
    assert_eq!(
        message(people.create_index(&db, by_last())),
        "table `people` has an index `by last` already; open it, or choose another name"
    );
    let missing = IndexSpec::new("by heart", "", |number: &u32, _: &Person| [*number]);
    assert_eq!(
        message(people.open_index(&db, missing)),
        "table `people` has no index `by heart`; create it, or see `Table::indexes`"
    );
    let long = IndexSpec::new(&"x".repeat(256), "", |number: &u32, _: &Person| [*number]);
    assert_eq!(
        message(people.create_index(&db, long)),
        "an index's name has 1 to 255 bytes; this one has 256"
    );
    let infos = people.table().indexes();
    assert_eq!(infos.len(), 3);
    assert!(infos.iter().all(|info| info.is_ready && info.is_registered));
    assert!(infos[1].is_unique && infos[1].name == "by badge");
}

#[test]
fn an_index_is_built_while_others_write() {
    let db = Options::new()
        .durability(longshore::Durability::None)
        .pool_bytes(16 << 20)
        .lock_wait(Duration::from_secs(5))
        .in_memory()
        .unwrap();
    let people: People = TypedTable::create(&db, "people").unwrap();
    let loaded = (0..20_000u32).map(|n| Ok((n * 2, person(&format!("name {}", n % 100), n * 2))));
    people.bulk_load(&db, loaded).unwrap();
    let stop = AtomicBool::new(false);
    let written = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..3u32 {
            let (db, people, stop, written) = (&db, &people, &stop, &written);
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(u64::from(thread));
                while !stop.load(Ordering::Relaxed) {
                    // Each thread has its own badges: the rows of one remainder.
                    let number = random.random_range(0..13_000) * 3 + thread;
                    let change = db.update(|tx| match random.random_range(0..3) {
                        0 => people.delete(tx, number).map(drop),
                        _ => people.put(tx, number, &person("new", number)),
                    });
                    change.unwrap();
                    written.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while written.load(Ordering::Relaxed) < 50 {
            std::thread::yield_now();
        }
        let before = written.load(Ordering::Relaxed);
        let by_last = people.create_index(&db, by_last()).unwrap();
        let by_badge = people.create_index(&db, by_badge()).unwrap();
        assert!(
            written.load(Ordering::Relaxed) > before,
            "nobody wrote meanwhile"
        );
        stop.store(true, Ordering::Relaxed);
        assert_eq!(by_last.name(), "by last");
        assert_eq!(by_badge.name(), "by badge");
    });
    let report = db.verify().unwrap();
    assert!(
        report.tables[2]
            .indexes
            .iter()
            .all(|index| index.is_compared)
    );
    assert_sound(&db);
}

#[test]
fn an_index_that_cannot_be_built_leaves_nothing() {
    let db = in_memory();
    let people: People = TypedTable::create(&db, "people").unwrap();
    for number in 0..500 {
        people
            .put(&db, number, &person("Hopper", number % 499))
            .unwrap();
    }
    let refused = people.create_index(&db, by_badge()).unwrap_err();
    assert!(
        matches!(refused, Error::UniqueViolation { .. }),
        "{refused}"
    );
    assert_eq!(people.table().indexes(), []);
    people.put(&db, 1000, &person("Hopper", 0)).unwrap();
    assert_sound(&db);

    // A row of another type.
    db.update(|tx| tx.put(people.table(), 5u32.to_be_bytes(), "no person"))
        .unwrap();
    let refused = message(people.create_index(&db, by_last()));
    assert!(
        refused.starts_with("the value of a row of table `people` is of another type"),
        "{refused}"
    );
    people.put(&db, 5, &person("Hopper", 5)).unwrap();
    let index = people.create_index(&db, by_last()).unwrap();
    let refused = db.update(|tx| tx.put(people.table(), 5u32.to_be_bytes(), "no person"));
    assert!(matches!(refused, Err(Error::Decode { .. })), "{refused:?}");
    assert_eq!(
        index.find(&db.begin().unwrap(), "Hopper").unwrap().count(),
        501
    );
    assert_sound(&db);
}

#[test]
fn indexes_go_and_are_renamed_with_their_table() {
    let db = in_memory();
    let world = world(&db).unwrap();
    world.people.insert(&db, 1, &person("Hopper", 7)).unwrap();
    db.rename_table("people", "persons").unwrap();
    world.people.insert(&db, 2, &person("Lovelace", 8)).unwrap();
    let refused = message(world.people.insert(&db, 3, &person("x", 8)));
    assert!(refused.contains("of table `persons`"), "{refused}");
    assert_eq!(world.by_badge.get(&db, 8).unwrap().unwrap().0, 2);

    db.drop_index(world.people.table(), "by badge").unwrap();
    assert_eq!(
        message(world.by_badge.get(&db, 8)),
        "table `persons.by badge` has been dropped; handles to it are of no more use"
    );
    world.people.insert(&db, 3, &person("x", 8)).unwrap();
    let missing = db.drop_index(world.people.table(), "by badge");
    assert!(matches!(
        missing,
        Err(Error::Index(IndexError::Missing { .. }))
    ));
    assert_sound(&db);

    db.drop_table("persons").unwrap();
    assert!(world.by_last.find(&db.begin().unwrap(), "Hopper").is_err());
    while !db.maintain().unwrap().is_idle() {}
    let report = db.verify().unwrap();
    assert!(report.is_sound());
    assert_eq!(report.tables.len(), 2);
}

#[test]
fn a_user_of_the_table_delays_an_index() {
    let db = Options::new()
        .lock_wait(Duration::from_millis(20))
        .in_memory()
        .unwrap();
    let people: People = TypedTable::create(&db, "people").unwrap();
    let tx = db.begin().unwrap();
    people.insert(&tx, 1, &person("Hopper", 7)).unwrap();
    let busy = people.create_index(&db, by_last());
    assert!(matches!(busy, Err(Error::TableBusy { .. })), "{busy:?}");
    tx.commit().unwrap();
    let index = people.create_index(&db, by_last()).unwrap();
    let tx = db.begin().unwrap();
    assert_eq!(index.find(&tx, "Hopper").unwrap().count(), 1);
    let busy = db.drop_index(people.table(), "by last");
    assert!(matches!(busy, Err(Error::TableBusy { .. })), "{busy:?}");
    drop(tx);
    db.drop_index(people.table(), "by last").unwrap();
    assert_sound(&db);
}

#[test]
fn loading_in_bulk_fills_the_indexes() {
    let db = in_memory();
    let world = world(&db).unwrap();
    let twice = (0..300u32).map(|n| Ok((n, person("Hopper", n % 299))));
    let refused = world.people.bulk_load(&db, twice).unwrap_err();
    assert!(
        matches!(refused, Error::UniqueViolation { .. }),
        "{refused}"
    );
    assert_eq!(rows(&db, world.people.table()), []);
    assert_sound(&db);
    let loaded = (0..3000u32).map(|n| Ok((n, person(&format!("name {}", n % 7), n))));
    assert_eq!(world.people.bulk_load(&db, loaded).unwrap(), 3000);
    assert_eq!(world.by_badge.get(&db, 2999).unwrap().unwrap().0, 2999);
    let tx = db.begin().unwrap();
    assert_eq!(world.by_last.find(&tx, "name 3").unwrap().count(), 429);
    drop(tx);
    world.people.delete(&db, 2999).unwrap();
    assert_sound(&db);
}

#[test]
fn verify_finds_entries_that_are_missing_or_too_many() {
    static OTHERWISE: AtomicBool = AtomicBool::new(false);
    let db = in_memory();
    let people: People = TypedTable::create(&db, "people").unwrap();
    let fickle = IndexSpec::new("fickle", "", |number: &u32, _: &Person| {
        let odd = *number % 2 == 1 && OTHERWISE.load(Ordering::Relaxed);
        [number + 100 * u32::from(odd)]
    });
    people.create_index(&db, fickle).unwrap();
    for number in 0..4 {
        people.put(&db, number, &person("Hopper", number)).unwrap();
    }
    assert_sound(&db);
    OTHERWISE.store(true, Ordering::Relaxed);
    let faults = db.verify().unwrap().faults;
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        faults,
        [
            "table `people`, index `fickle`: the entry of row \"\\x00\\x00\\x00\\x01\" with key \"\\x00\\x00\\x00e\" is missing",
            "table `people`, index `fickle`: the entry of row \"\\x00\\x00\\x00\\x03\" with key \"\\x00\\x00\\x00g\" is missing",
            "table `people`, index `fickle`: row \"\\x00\\x00\\x00\\x01\" has no key \"\\x00\\x00\\x00\\x01\", but an entry with it",
            "table `people`, index `fickle`: row \"\\x00\\x00\\x00\\x03\" has no key \"\\x00\\x00\\x00\\x03\", but an entry with it",
        ]
    );
    assert_eq!(
        message(people.delete(&db, 1)),
        "index `fickle` of table `people` does not fit the table: a row that is changed has no entry; the extractor must \
         always give the same keys for the same row; drop the index and create it anew"
    );
    db.drop_index(people.table(), "fickle").unwrap();
    people.delete(&db, 1).unwrap();
    assert_sound(&db);
}

#[test]
fn a_crash_while_an_index_is_built_or_dropped_leaves_all_or_nothing() {
    for cut in 0.. {
        let disk = Arc::new(sim(cut));
        let db = open(&disk, 1).unwrap();
        let people: People = TypedTable::create(&db, "people").unwrap();
        db.update(|tx| (0..150).try_for_each(|n| people.put(tx, n, &person("Hopper", n))))
            .unwrap();
        disk.crash_after_changes(cut);
        let work = || -> Result<()> {
            people.create_index(&db, by_last())?;
            people.create_index(&db, by_badge())?;
            people.delete(&db, 17)?;
            db.checkpoint()?;
            db.drop_index(people.table(), "by last")?;
            while !db.maintain()?.is_idle() {}
            Ok(())
        };
        let outcome = work();
        let is_over = !disk.is_crashed();
        assert_eq!(outcome.is_ok(), is_over, "cut {cut}: {outcome:?}");
        let image = crash(&disk, cut);
        drop((db, people));
        let db = open(&image, 2).unwrap_or_else(|error| panic!("cut {cut}: {error}"));
        let people: People = TypedTable::open(&db, "people").unwrap();
        for index in people.table().indexes() {
            assert!(index.is_ready, "cut {cut}: {index:?}");
            match index.name.as_str() {
                "by last" => drop(people.open_index(&db, by_last()).unwrap()),
                _ => drop(people.open_index(&db, by_badge()).unwrap()),
            }
        }
        assert_sound(&db);
        let world = world(&db).unwrap();
        world.people.put(&db, 3, &person("Lovelace", 1003)).unwrap();
        assert_sound(&db);
        if is_over {
            assert!(cut > 10, "the workload changed nothing");
            return;
        }
    }
}

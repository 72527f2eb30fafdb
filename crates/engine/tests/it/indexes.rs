//! Indexes: kept with every change, unique or not, and read through.

use crate::people::{People, Person, World, message, person, world};
use crate::support::{assert_sound, in_memory};
use longshore::{Error, IndexSpec, Options, Result, TypedTable};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

#[test]
fn rows_are_found_by_other_keys() {
    let db = in_memory();
    let world = world(&db).unwrap();
    db.update(|tx| {
        for (number, last) in ["Hopper", "Lovelace", "Hopper", "Dijkstra"]
            .iter()
            .enumerate()
        {
            world
                .people
                .insert(tx, number as u32, &person(last, 10 + number as u32))?;
        }
        Ok(())
    })
    .unwrap();
    let tx = db.begin().unwrap();
    let numbers = |cursor: longshore::IndexCursor<String, u32, Person>| -> Vec<u32> {
        cursor.map(|row| row.unwrap().1).collect()
    };
    assert_eq!(numbers(world.by_last.find(&tx, "Hopper").unwrap()), [0, 2]);
    assert_eq!(numbers(world.by_last.scan(&tx, ..).unwrap()), [3, 0, 2, 1]);
    assert_eq!(
        numbers(world.by_last.scan(&tx, ..).unwrap().reverse()),
        [1, 2, 0, 3]
    );
    assert_eq!(
        numbers(world.by_last.scan(&tx, "Dijkstra".."Hopper").unwrap()),
        [3]
    );
    assert_eq!(
        numbers(world.by_last.scan(&tx, "E"..="Hopper").unwrap()),
        [0, 2]
    );
    let above = (
        std::ops::Bound::Excluded("Hopper"),
        std::ops::Bound::Unbounded,
    );
    assert_eq!(numbers(world.by_last.scan(&tx, above).unwrap()), [1]);
    assert_eq!(numbers(world.by_last.prefix(&tx, "Ho").unwrap()), [0, 2]);
    let keys: Result<Vec<_>> = world
        .by_language
        .prefix(&tx, (1,))
        .unwrap()
        .keys()
        .collect();
    // Once each, though the extractor gives language 1 twice.
    assert_eq!(
        keys.unwrap()
            .iter()
            .map(|(_, number)| *number)
            .collect::<Vec<_>>(),
        [3, 0, 2, 1]
    );
    assert_eq!(
        world.by_badge.get(&tx, 11).unwrap(),
        Some((1, person("Lovelace", 11)))
    );
    assert_eq!(world.by_badge.get(&tx, 99).unwrap(), None);
    assert_eq!(
        message(world.by_last.find(&tx, "x").and(world.by_last_get(&tx))),
        "index `by last` of table `people` is not unique; use `find`, which yields all rows"
    );
    drop(tx);
    assert_sound(&db);
}

impl World {
    fn by_last_get(&self, tx: &longshore::Transaction) -> Result<Option<(u32, Person)>> {
        self.by_last.get(tx, "x")
    }
}

#[test]
fn a_second_row_with_a_unique_key_is_refused_and_leaves_nothing() {
    let db = in_memory();
    let world = world(&db).unwrap();
    world.people.insert(&db, 1, &person("Hopper", 7)).unwrap();
    db.update(|tx| {
        world.people.insert(tx, 2, &person("Lovelace", 8))?;
        let refused = world
            .people
            .insert(tx, 3, &person("Dijkstra", 7))
            .unwrap_err();
        assert_eq!(
            refused.to_string(),
            "another row of table `people` has this key in the unique index `by badge`: \
             \"\\x00\\x00\\x00\\x07\""
        );
        assert!(!refused.is_retryable());
        let Error::UniqueViolation { key, .. } = &refused else {
            panic!("{refused}");
        };
        assert_eq!(world.by_badge.violated_key(key)?, 7);
        // Neither the row nor its entries in the other indexes.
        assert_eq!(world.people.get(tx, 3)?, None);
        assert_eq!(world.by_last.find(tx, "Dijkstra")?.keys().count(), 0);
        let refused = world.people.put(tx, 2, &person("Lovelace", 7));
        assert!(matches!(refused, Err(Error::UniqueViolation { .. })));
        assert_eq!(world.people.get(tx, 2)?, Some(person("Lovelace", 8)));
        // A badge that was given back can be had by another.
        world.people.put(tx, 1, &person("Hopper", 9))?;
        world.people.insert(tx, 3, &person("Dijkstra", 7))
    })
    .unwrap();
    assert_eq!(world.by_badge.get(&db, 7).unwrap().unwrap().0, 3);
    assert_sound(&db);
}

/// Every kind of change, savepoints and rollbacks, against the index computed anew from the rows.
#[test]
fn indexes_follow_random_changes() {
    for seed in 0..6 {
        println!("seed {seed}");
        let mut random = SmallRng::seed_from_u64(seed);
        let db = in_memory();
        let world = world(&db).unwrap();
        let mut model: BTreeMap<u32, Person> = BTreeMap::new();
        for _ in 0..60 {
            let tx = db.begin().unwrap();
            let mut changed = model.clone();
            let mut saved = None;
            for _ in 0..random.random_range(1..12) {
                let number = random.random_range(0..30);
                let new = Person {
                    last: ["Hopper", "", "H\0", "Lovelace"][random.random_range(0..4)].into(),
                    badge: random.random_bool(0.7).then(|| random.random_range(0..40)),
                    languages: (0..random.random_range(0..4))
                        .map(|_| random.random_range(0..4))
                        .collect(),
                };
                let is_taken = changed.iter().any(|(other, p)| {
                    *other != number && p.badge.is_some() && p.badge == new.badge
                });
                match random.random_range(0..13) {
                    0..5 => match world.people.put(&tx, number, &new) {
                        Ok(()) => {
                            assert!(!is_taken);
                            changed.insert(number, new);
                        }
                        Err(Error::UniqueViolation { .. }) => assert!(is_taken),
                        Err(error) => panic!("{error}"),
                    },
                    5 => match world.people.insert(&tx, number, &new) {
                        Ok(()) => assert_eq!(changed.insert(number, new), None),
                        Err(Error::KeyExists { .. }) => assert!(changed.contains_key(&number)),
                        Err(Error::UniqueViolation { .. }) => assert!(is_taken),
                        Err(error) => panic!("{error}"),
                    },
                    6 | 7 => {
                        let found = world.people.delete(&tx, number).unwrap();
                        assert_eq!(found, changed.remove(&number).is_some());
                    }
                    8 => {
                        let range = number..number + 3;
                        let count = world.people.delete_range(&tx, range.clone()).unwrap();
                        let before = changed.len();
                        changed.retain(|number, _| !range.contains(number));
                        assert_eq!(count as usize, before - changed.len());
                    }
                    9 => {
                        let expected = changed.get(&number).cloned();
                        let people = &world.people;
                        match people.compare_and_set(&tx, number, expected.as_ref(), Some(&new)) {
                            Ok(done) => {
                                assert!(done && !is_taken);
                                changed.insert(number, new);
                            }
                            Err(Error::UniqueViolation { .. }) => assert!(is_taken),
                            Err(error) => panic!("{error}"),
                        }
                    }
                    // Some keys change, or none.
                    10 | 11 => {
                        let modify = |person: &mut Person| {
                            person.languages = new.languages.clone();
                            Ok(())
                        };
                        let found = world.people.modify(&tx, number, modify).unwrap();
                        assert_eq!(found, changed.contains_key(&number));
                        if let Some(person) = changed.get_mut(&number) {
                            person.languages = new.languages.clone();
                        }
                    }
                    _ => match saved.take() {
                        None => saved = Some((tx.savepoint().unwrap(), changed.clone())),
                        Some((savepoint, state)) => {
                            tx.rollback_to(&savepoint).unwrap();
                            changed = state;
                        }
                    },
                }
            }
            compare(&world, &tx, &changed);
            if random.random_bool(0.6) {
                tx.commit().unwrap();
                model = changed;
            } else {
                tx.rollback().unwrap();
            }
        }
        compare(&world, &db.begin().unwrap(), &model);
        assert_sound(&db);
    }
}

fn compare(world: &World, tx: &longshore::Transaction, model: &BTreeMap<u32, Person>) {
    let mut expected: BTreeSet<(String, u32)> = BTreeSet::new();
    let mut badges = BTreeMap::new();
    let mut languages = BTreeSet::new();
    for (number, person) in model {
        expected.insert((person.last.clone(), *number));
        badges.extend(person.badge.map(|badge| (badge, *number)));
        for language in &person.languages {
            languages.insert(((*language, person.last.clone()), *number));
        }
    }
    let found: Vec<_> = world
        .by_last
        .scan(tx, ..)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert!(
        found
            .iter()
            .all(|(_, number, person)| model.get(number) == Some(person))
    );
    let found = found.into_iter().map(|(last, number, _)| (last, number));
    assert!(found.eq(expected));
    let found = world
        .by_badge
        .scan(tx, ..)
        .unwrap()
        .keys()
        .map(Result::unwrap);
    assert!(found.eq(badges));
    let found = world
        .by_language
        .scan(tx, ..)
        .unwrap()
        .keys()
        .map(Result::unwrap);
    assert!(found.eq(languages));
}

#[test]
fn streamed_values_are_refused() {
    let db = in_memory();
    let world = world(&db).unwrap();
    let refused = db.update(|tx| tx.put_stream(world.people.table(), "k", &b"v"[..]));
    assert_eq!(
        message(refused),
        "table `people` has indexes, which need whole values; use `put`"
    );
}

#[test]
fn what_was_read_through_an_index_stays_as_it_was() {
    let db = Options::new()
        .lock_wait(Duration::ZERO)
        .in_memory()
        .unwrap();
    let world = world(&db).unwrap();
    for (number, last) in [(1, "Hopper"), (2, "Lovelace")] {
        let person = person(last, number * 10);
        world.people.insert(&db, number, &person).unwrap();
    }
    let reader = db.begin().unwrap();
    assert_eq!(world.by_last.find(&reader, "Hopper").unwrap().count(), 1);
    assert_eq!(world.by_badge.get(&reader, 15).unwrap(), None);
    let writer = db.begin().unwrap();
    // A phantom between what was read, a row that would leave it, a unique key that was not there.
    let outcomes = [
        world.people.insert(&writer, 3, &person("Hopper", 33)),
        db.begin()
            .and_then(|tx| world.people.put(&tx, 1, &person("x", 31))),
        db.begin()
            .and_then(|tx| world.people.insert(&tx, 4, &person("x", 15))),
    ];
    for outcome in outcomes {
        assert!(
            matches!(outcome, Err(Error::LockTimeout { .. })),
            "{outcome:?}"
        );
    }
    let tx = db.begin().unwrap();
    world.people.insert(&tx, 5, &person("Zuse", 35)).unwrap();
    tx.commit().unwrap();
}

#[test]
fn an_extractor_that_panics_has_changed_nothing() {
    let db = in_memory();
    let people: People = TypedTable::create(&db, "people").unwrap();
    let strict = IndexSpec::new("strict", "", |_, person: &Person| {
        assert!(person.last != "boom", "an extractor that panics");
        [person.last.clone()]
    });
    let index = people.create_index(&db, strict).unwrap();
    people.put(&db, 1, &person("Hopper", 1)).unwrap();
    let tx = db.begin().unwrap();
    let put = std::panic::AssertUnwindSafe(|| people.put(&tx, 1, &person("boom", 1)));
    assert!(std::panic::catch_unwind(put).is_err());
    people.put(&tx, 2, &person("Lovelace", 2)).unwrap();
    tx.commit().unwrap();
    assert_eq!(index.scan(&db.begin().unwrap(), ..).unwrap().count(), 2);
    assert_sound(&db);
}

//! Typed tables: derived keys and values, cursors, and what is said when rows are of other types.

use crate::support::in_memory;
use longshore::{Database, Error, Key, TypedTable, Value};
use proptest::prelude::*;
use std::cmp::Reverse;

#[derive(Key, Value, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Berth {
    quay: String,
    number: Reverse<i32>,
}

#[derive(Key, Value, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Wrapped<T>(T, Option<T>);

#[derive(Key, Value, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Nothing;

#[derive(Key, Value, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Empty,
    Waiting(u32, String),
    #[longshore(tag = 7)]
    At {
        berth: Berth,
        since: i64,
    },
    Gone(Wrapped<Vec<u8>>),
}

#[derive(Value, Clone, Debug, PartialEq)]
struct Ship {
    name: String,
    draught: f64,
    cargo: Vec<(String, u32)>,
}

fn berth() -> impl Strategy<Value = Berth> {
    let quay = prop_oneof![Just("e"), Just("east"), Just("e\0"), Just("")];
    (quay, any::<i32>()).prop_map(|(quay, number)| Berth {
        quay: quay.into(),
        number: Reverse(number),
    })
}

fn state() -> impl Strategy<Value = State> {
    let bytes = || proptest::collection::vec(0..2u8, 0..3);
    prop_oneof![
        Just(State::Empty),
        (0..2u32, "[ab]?").prop_map(|(since, name)| State::Waiting(since, name)),
        (berth(), -1..1i64).prop_map(|(berth, since)| State::At { berth, since }),
        (bytes(), proptest::option::of(bytes())).prop_map(|(a, b)| State::Gone(Wrapped(a, b))),
    ]
}

proptest! {
    #[test]
    fn derived_keys_keep_the_order_of_their_type(a in (state(), berth()), b in (state(), berth())) {
        let (left, right) = (Key::to_bytes(&a), Key::to_bytes(&b));
        prop_assert_eq!(left.cmp(&right), a.cmp(&b));
        prop_assert_eq!(<(State, Berth) as Key>::from_bytes(&left).unwrap(), a);
    }

    #[test]
    fn derived_values_come_back(a in (state(), berth())) {
        let bytes = Value::to_bytes(&a);
        prop_assert_eq!(<(State, Berth) as Value>::from_bytes(&bytes).unwrap(), a);
    }

    #[test]
    fn garbage_is_never_a_panic(garbage in proptest::collection::vec(any::<u8>(), 0..30)) {
        let _ = <State as Key>::from_bytes(&garbage);
        let _ = <State as Value>::from_bytes(&garbage);
    }
}

#[test]
fn layouts_of_derived_types() {
    let waiting = State::Waiting(1, "ab".into());
    assert_eq!(Key::to_bytes(&State::Empty), [0]);
    assert_eq!(Key::to_bytes(&waiting), *b"\x01\0\0\0\x01ab\0\0");
    assert_eq!(Value::to_bytes(&waiting), *b"\x01\0\0\0\x01\x02ab");
    assert_eq!(Key::to_bytes(&State::Gone(Wrapped(vec![], None)))[0], 8);
    assert_eq!(Key::to_bytes(&Nothing), []);
}

#[test]
fn refusals_name_the_field() {
    let message = |bytes: &[u8]| <State as Value>::from_bytes(bytes).unwrap_err().to_string();
    assert_eq!(
        message(&[9]),
        "State: expected the tag of a variant, found 9"
    );
    assert_eq!(
        message(&[7, 1, b'q', 0, 0]),
        "State::At.berth: Berth.number: expected the 4 bytes of a i32, found 2"
    );
}

#[test]
fn rows_are_read_written_and_deleted_by_their_types() {
    let db = in_memory();
    let berths: TypedTable<Berth, Ship> = TypedTable::create(&db, "berths").unwrap();
    let at = |quay: &str, number| Berth {
        quay: quay.into(),
        number: Reverse(number),
    };
    let ship = |name: &str| Ship {
        name: name.into(),
        draught: 7.5,
        cargo: vec![("rope".into(), 3)],
    };
    berths.insert(&db, at("east", 1), &ship("Ada")).unwrap();
    db.update(|tx| {
        let second = at("east", 2);
        berths.put(tx, &second, &ship("Grace"))?;
        berths.put(tx, at("west", 1), &ship("Edsger"))?;
        assert_eq!(berths.get(tx, second)?, Some(ship("Grace")));
        assert!(berths.contains(tx, at("west", 1))?);
        assert_eq!(
            berths.get_for_update(tx, at("west", 1))?,
            Some(ship("Edsger"))
        );
        Ok(())
    })
    .unwrap();
    let taken = berths.insert(&db, at("east", 1), &ship("Alan"));
    assert!(matches!(taken, Err(Error::KeyExists { .. })), "{taken:?}");

    let tx = db.begin().unwrap();
    let names = |cursor: longshore::TypedCursor<Berth, Ship>| -> Vec<String> {
        cursor.map(|row| row.unwrap().1.name).collect()
    };
    // The higher numbers come first.
    assert_eq!(
        names(berths.scan(&tx, ..).unwrap()),
        ["Grace", "Ada", "Edsger"]
    );
    assert_eq!(
        names(berths.scan(&tx, at("east", 1)..).unwrap()),
        ["Ada", "Edsger"]
    );
    assert_eq!(names(berths.scan(&tx, ..at("east", 1)).unwrap()), ["Grace"]);
    assert_eq!(
        names(berths.prefix(&tx, ("east".to_owned(),)).unwrap().reverse()),
        ["Ada", "Grace"]
    );
    let mut cursor = berths.scan(&tx, ..=at("east", 1)).unwrap();
    assert_eq!(cursor.next_row().unwrap().unwrap().0, at("east", 2));
    assert_eq!(cursor.next_row().unwrap().unwrap().0, at("east", 1));
    assert_eq!(cursor.next_row().unwrap(), None);
    tx.commit().unwrap();

    assert!(berths.delete(&db, at("east", 1)).unwrap());
    assert!(!berths.delete(&db, at("east", 1)).unwrap());
    assert_eq!(berths.delete_range(&db, ..at("west", 1)).unwrap(), 1);
}

#[test]
fn texts_are_found_by_str_and_by_their_beginning() {
    let db = in_memory();
    let harbours: TypedTable<String, u32> = TypedTable::open_or_create(&db, "harbours").unwrap();
    for (name, depth) in [("Gdansk", 10), ("Gdynia", 13), ("Göteborg", 11)] {
        harbours.put(&db, name, &depth).unwrap();
    }
    assert_eq!(harbours.get(&db, "Gdynia").unwrap(), Some(13));
    let tx = db.begin().unwrap();
    assert_eq!(harbours.prefix(&tx, "Gd").unwrap().count(), 2);
    assert_eq!(harbours.scan(&tx, "Gdansk".."Gdynia").unwrap().count(), 1);
    assert_eq!(harbours.scan(&tx, "Gdynia"..).unwrap().count(), 2);
}

#[test]
fn rows_of_another_type_are_refused_by_name() {
    let db = in_memory();
    let numbers: TypedTable<u32, u64> = TypedTable::create(&db, "numbers").unwrap();
    numbers.put(&db, 1, &2).unwrap();
    let texts: TypedTable<u32, String> = TypedTable::open(&db, "numbers").unwrap();
    let refused = texts.get(&db, 1).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the value of a row of table `numbers` is of another type: expected nothing behind \
         alloc::string::String, found 7 more bytes; open the table with the types that it was written with, \
         or as bytes"
    );
    assert!(!refused.is_retryable());
    let wide: TypedTable<u64, u64> = TypedTable::open(&db, "numbers").unwrap();
    let tx = db.begin().unwrap();
    let mut cursor = wide.scan(&tx, ..).unwrap();
    let refused = cursor.next().unwrap().unwrap_err().to_string();
    assert!(
        refused.starts_with("the key of a row of table `numbers`"),
        "{refused}"
    );
    assert!(cursor.next().is_none(), "a cursor ends after an error");
}

#[test]
fn sorted_rows_are_loaded() {
    let db = in_memory();
    let squares: TypedTable<i16, i32> = TypedTable::create(&db, "squares").unwrap();
    let rows = (-500..500).map(|n: i16| Ok((n, i32::from(n) * i32::from(n))));
    assert_eq!(squares.bulk_load(&db, rows).unwrap(), 1000);
    assert_eq!(squares.get(&db, -12).unwrap(), Some(144));
    check_first(&db, &squares);
}

fn check_first(db: &Database, squares: &TypedTable<i16, i32>) {
    let tx = db.begin().unwrap();
    let first = squares.scan(&tx, ..).unwrap().next().unwrap().unwrap();
    assert_eq!(first, (-500, 250_000));
}

//! The layouts, pinned: they are the file format. Whoever has to change a line here changes what every
//! stored row means, and raises the format version.

use super::{Key, Value};
use proptest::prelude::*;
use std::cmp::{Ordering, Reverse};
use std::fmt::Debug;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[track_caller]
fn key<K: Key + PartialEq + Debug>(key: K, expected: &str) {
    assert_eq!(hex(&key.to_bytes()), expected, "{key:?}");
    assert_eq!(K::from_bytes(&key.to_bytes()), Ok(key));
}

#[track_caller]
fn value<V: Value + PartialEq + Debug>(value: V, expected: &str) {
    assert_eq!(hex(&value.to_bytes()), expected, "{value:?}");
    assert_eq!(V::from_bytes(&value.to_bytes()), Ok(value));
}

#[test]
fn layouts_of_keys() {
    key(false, "00");
    key(true, "01");
    key(7u8, "07");
    key(0x1234u16, "1234");
    key(0x1234_5678u32, "12345678");
    key(1u64 << 63, "8000000000000000");
    key(1u128, "00000000000000000000000000000001");
    key(-1i8, "7f");
    key(0i16, "8000");
    key(i32::MIN, "00000000");
    key(5i64, "8000000000000005");
    key(-2i128, "7ffffffffffffffffffffffffffffffe");
    key(1.0f32, "bf800000");
    key(-1.0f64, "400fffffffffffff");
    key(0.0f64, "8000000000000000");
    key('A', "000041");
    key('\u{10ffff}', "10ffff");
    key(String::from("ab"), "61620000");
    key(String::from("a\0b"), "6100ff620000");
    key(vec![0u8, 1, 255], "00ff01ff0000");
    key((), "");
    key((1u8, String::from("x"), true), "0178000001");
    key([1u16, 2], "00010002");
    key(None::<u8>, "00");
    key(Some(9u8), "0109");
    key(Reverse(1u16), "fffe");
    key((Reverse(String::from("a")), 1u8), "9effff01");
    key((1u8, 2u8, 3u8, 4u8, 5u8, 6u8, 7u8, 8u8), "0102030405060708");
}

#[test]
fn layouts_of_values() {
    value(0x0102u16, "0102");
    value(-1i32, "7fffffff");
    value(String::from("a\0b"), "03610062");
    value(vec![1u8, 2, 0], "03010200");
    value(vec![1u16, 2], "0200010002");
    value("x".repeat(200), &format!("c801{}", "78".repeat(200)));
    value(vec![String::from("a"), String::new()], "02016100");
    value(vec![vec![1u8], vec![]], "02010100");
    value(
        (Some(1u8), None::<u8>, [true, false]),
        "01010001 00".replace(' ', "").as_str(),
    );
    value(vec![(); 3], "03");
    value(Reverse(1u16), "0001");
}

/// Order and round trip of a pair.
fn pair<K: Key>(a: &K, b: &K, order: Ordering) {
    let (left, right) = (a.to_bytes(), b.to_bytes());
    assert_eq!(left.cmp(&right), order);
    if order != Ordering::Equal {
        assert!(!right.starts_with(&left) && !left.starts_with(&right), "T2");
    }
    for (key, bytes) in [(a, &left), (b, &right)] {
        // Decoding takes exactly the key, whatever follows.
        let followed = [bytes.as_slice(), &[0, 0xff, 7]].concat();
        let mut rest = followed.as_slice();
        let back = K::decode(&mut rest).expect("it was encoded");
        assert_eq!(rest, [0, 0xff, 7]);
        assert_eq!(&back.to_bytes(), bytes);
        let _ = key;
    }
}

/// Few different bytes, so that strings share beginnings and hold zeros.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(254), Just(255)], 0..5)
}

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![Just('\0'), Just('a'), Just('\u{7ff}'), Just('\u{10ffff}')],
        0..4,
    )
    .prop_map(|chars| chars.into_iter().collect())
}

macro_rules! ordered {
    ($($name:ident: $strategy:expr;)*) => {
        proptest! {$(
            #[test]
            fn $name(a in $strategy, b in $strategy) {
                pair(&a, &b, a.cmp(&b));
            }
        )*}
    };
}

ordered! {
    order_of_bool: any::<bool>();
    order_of_u8: any::<u8>();
    order_of_u32: any::<u32>();
    order_of_u64: prop_oneof![any::<u64>(), 0..4u64];
    order_of_u128: any::<u128>();
    order_of_i8: any::<i8>();
    order_of_i16: any::<i16>();
    order_of_i32: prop_oneof![any::<i32>(), -2..2i32];
    order_of_i64: any::<i64>();
    order_of_i128: any::<i128>();
    order_of_char: any::<char>();
    order_of_text: text();
    order_of_any_text: ".*";
    order_of_bytes: bytes();
    order_of_options: proptest::option::of(bytes());
    order_of_arrays: [bytes(), bytes(), bytes()];
    order_of_reversed: bytes().prop_map(Reverse);
    order_of_pairs: (bytes(), any::<i8>());
    order_of_nested: (text(), (proptest::option::of(bytes()), 0..3u8), bytes().prop_map(Reverse));
    order_of_reversed_pairs: (bytes(), 0..3i8).prop_map(Reverse);
    order_of_eight: (0..2u8, 0..2i8, bytes(), any::<bool>(), text(), 0..2u16, bytes(), 0..2i64);
}

fn float() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        Just(0f64.to_bits()),
        Just((-0f64).to_bits()),
        Just(f64::NAN.to_bits()),
        Just((-f64::NAN).to_bits()),
        Just(f64::INFINITY.to_bits()),
    ]
}

proptest! {
    #[test]
    fn order_of_floats_is_the_total_order(a in float(), b in float()) {
        let (a, b) = (f64::from_bits(a), f64::from_bits(b));
        pair(&a, &b, a.total_cmp(&b));
        let (a, b) = (f32::from_bits(a.to_bits() as u32), f32::from_bits(b.to_bits() as u32));
        pair(&a, &b, a.total_cmp(&b));
    }

    #[test]
    fn values_come_back(
        a in proptest::collection::vec((text(), proptest::option::of(bytes())), 0..5),
        b in any::<(i64, f32, char, [u16; 3])>(),
    ) {
        let value = (a, vec![vec![b.0]; 3], b.2, b.3);
        let back = Value::from_bytes(&Value::to_bytes(&value));
        prop_assert_eq!(back, Ok(value));
    }

    #[test]
    fn garbage_is_an_error_or_a_value(garbage in proptest::collection::vec(any::<u8>(), 0..40)) {
        type Keys = (Option<bool>, String, Reverse<Vec<u8>>, (char, f32, [i16; 2]));
        type Values = (Vec<(String, Option<char>)>, Vec<Vec<()>>, bool);
        let mut bytes = garbage.as_slice();
        if let Ok(key) = <Keys as Key>::decode(&mut bytes) {
            prop_assert_eq!(Key::to_bytes(&key), &garbage[..garbage.len() - bytes.len()]);
        }
        let _ = <Values as Value>::from_bytes(&garbage);
        let _ = <Vec<Vec<()>> as Value>::from_bytes(&garbage);
        let _ = <Vec<u64> as Value>::from_bytes(&garbage);
    }
}

#[test]
fn refusals_say_what_was_expected_and_found() {
    let message = |error: Result<(), super::DecodeError>| error.unwrap_err().to_string();
    let cases = [
        (
            message(u32::from_bytes_as_key(&[1])),
            "expected the 4 bytes of a u32, found 1",
        ),
        (
            message(bool::from_bytes_as_key(&[7])),
            "expected 0 or 1 for a bool, found 7",
        ),
        (
            message(char::from_bytes_as_key(&[0x00, 0xd8, 0x00])),
            "expected the number of a char, found 0xd800",
        ),
        (
            message(String::from_bytes_as_key(b"abc")),
            "expected a text with zeros escaped, ended by 00 00, found no end",
        ),
        (
            message(String::from_bytes_as_key(&[0xff, 0, 0])),
            "expected UTF-8, found something else at byte 0",
        ),
        (
            message(<Vec<u8> as Key>::from_bytes(&[1, 0, 5]).map(drop)),
            "expected a byte string with zeros escaped, ended by 00 00, found 00 05 within it",
        ),
        (
            message(<Vec<u8> as Value>::from_bytes(&[9, 1]).map(drop)),
            "expected the 9 bytes of a byte string, found 1",
        ),
        (
            message(<Vec<u16> as Value>::from_bytes(&[0xff; 20]).map(drop)),
            "expected a count of 64 bits, found a longer one",
        ),
        (
            message(<Vec<()> as Value>::from_bytes(&[0xff, 0xff, 0xff, 0xff, 7]).map(drop)),
            "expected at most 1048576 elements without bytes, found 2147483647",
        ),
    ];
    for (found, expected) in cases {
        assert_eq!(found, expected);
    }
}

#[test]
fn lists_within_lists_do_not_exhaust_the_stack() {
    #[derive(Debug)]
    struct Tree(#[expect(dead_code)] Vec<Tree>);
    impl Value for Tree {
        fn encode(&self, _: &mut Vec<u8>) {}
        fn decode(bytes: &mut &[u8]) -> Result<Tree, super::DecodeError> {
            Value::decode(bytes).map(Tree)
        }
    }
    let error = Tree::from_bytes(&[1; 1_000_000]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected at most 100 lists within each other, found more"
    );
    // The depth is counted anew.
    assert!(Tree::from_bytes(&[1, 1, 1, 0]).is_ok());
}

/// Shortens the table above.
trait FromBytesAsKey: Key {
    fn from_bytes_as_key(bytes: &[u8]) -> Result<(), super::DecodeError> {
        <Self as Key>::from_bytes(bytes).map(drop)
    }
}

impl<K: Key> FromBytesAsKey for K {}

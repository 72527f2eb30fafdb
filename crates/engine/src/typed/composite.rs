//! Keys and values made of others: one part after the other, each knowing where it ends.

use super::decode::{DecodeError, take_array};
use super::key::{AsPrefix, Key};
use super::value::Value;
use std::cmp::Reverse;

const NONE: u8 = 0;
const SOME: u8 = 1;

/// Whether an `Option`'s value follows.
fn take_option(bytes: &mut &[u8]) -> Result<bool, DecodeError> {
    match take_array(bytes, "option's mark")? {
        [NONE] => Ok(false),
        [SOME] => Ok(true),
        [other] => Err(DecodeError::new("0 or 1 for an option", other.to_string())),
    }
}

/// Decodes the elements of an array.
fn take_each<T, const N: usize>(
    mut decode: impl FnMut() -> Result<T, DecodeError>,
) -> Result<[T; N], DecodeError> {
    let mut elements = Vec::with_capacity(N);
    for _ in 0..N {
        elements.push(decode()?);
    }
    Ok(elements
        .try_into()
        .unwrap_or_else(|_| unreachable!("as many as were decoded")))
}

/// What is alike for keys and values.
macro_rules! composite {
    ($($trait:ident),*) => {$(
        impl<T: $trait> $trait for Option<T> {
            fn encode(&self, out: &mut Vec<u8>) {
                match self {
                    None => out.push(NONE),
                    Some(inner) => {
                        out.push(SOME);
                        inner.encode(out);
                    }
                }
            }

            fn decode(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
                take_option(bytes)?.then(|| T::decode(bytes)).transpose()
            }
        }

        impl<T: $trait, const N: usize> $trait for [T; N] {
            fn encode(&self, out: &mut Vec<u8>) {
                self.iter().for_each(|element| element.encode(out));
            }

            fn decode(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
                take_each(|| T::decode(bytes))
            }
        }

        impl $trait for () {
            fn encode(&self, _: &mut Vec<u8>) {}

            fn decode(_: &mut &[u8]) -> Result<Self, DecodeError> {
                Ok(())
            }
        }

        tuple!($trait: A);
        tuple!($trait: A B);
        tuple!($trait: A B C);
        tuple!($trait: A B C D);
        tuple!($trait: A B C D E);
        tuple!($trait: A B C D E F);
        tuple!($trait: A B C D E F G);
        tuple!($trait: A B C D E F G H);
    )*};
}

macro_rules! tuple {
    ($trait:ident: $($part:ident)*) => {
        impl<$($part: $trait),*> $trait for ($($part,)*) {
            fn encode(&self, out: &mut Vec<u8>) {
                #[allow(non_snake_case)]
                let ($($part,)*) = self;
                $($part.encode(out);)*
            }

            fn decode(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
                Ok(($($part::decode(bytes)?,)*))
            }
        }
    };
}

/// Lets `(A, B)` stand for what `(A, B, C, D)` begins with.
macro_rules! prefix {
    ($($part:ident)* | $($rest:ident)*) => {
        impl<$($part: Key,)* $($rest: Key),*> AsPrefix<($($part,)* $($rest,)*)> for ($($part,)*) {
            fn encode_prefix(&self, out: &mut Vec<u8>) {
                self.encode(out);
            }
        }
    };
}

composite!(Key, Value);

prefix!(A | B);
prefix!(A | B C);
prefix!(A B | C);
prefix!(A | B C D);
prefix!(A B | C D);
prefix!(A B C | D);
prefix!(A | B C D E);
prefix!(A B | C D E);
prefix!(A B C | D E);
prefix!(A B C D | E);
prefix!(A | B C D E F);
prefix!(A B | C D E F);
prefix!(A B C | D E F);
prefix!(A B C D | E F);
prefix!(A B C D E | F);
prefix!(A | B C D E F G);
prefix!(A B | C D E F G);
prefix!(A B C | D E F G);
prefix!(A B C D | E F G);
prefix!(A B C D E | F G);
prefix!(A B C D E F | G);
prefix!(A | B C D E F G H);
prefix!(A B | C D E F G H);
prefix!(A B C | D E F G H);
prefix!(A B C D | E F G H);
prefix!(A B C D E | F G H);
prefix!(A B C D E F | G H);
prefix!(A B C D E F G | H);

impl<K: Key> Key for Reverse<K> {
    fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.0.encode(out);
        flip(&mut out[start..]);
    }

    fn decode(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        let mut flipped = bytes.to_vec();
        flip(&mut flipped);
        let mut rest = flipped.as_slice();
        let key = K::decode(&mut rest)?;
        *bytes = &bytes[bytes.len() - rest.len()..];
        Ok(Reverse(key))
    }
}

impl<V: Value> Value for Reverse<V> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        V::decode(bytes).map(Reverse)
    }
}

fn flip(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte = !*byte);
}

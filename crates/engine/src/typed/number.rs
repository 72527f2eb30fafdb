//! Numbers, truth values and characters: the same bytes as keys and as values.

use super::decode::{DecodeError, take_array};
use super::key::Key;
use super::value::Value;

/// Lets values take the form that keys have.
macro_rules! value_as_key {
    ($($type:ty),*) => {$(
        impl Value for $type {
            fn encode(&self, out: &mut Vec<u8>) {
                Key::encode(self, out);
            }

            fn decode(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
                Key::decode(bytes)
            }
        }
    )*};
}

macro_rules! unsigned {
    ($($type:ident),*) => {$(
        impl Key for $type {
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }

            fn decode(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
                take_array(bytes, stringify!($type)).map($type::from_be_bytes)
            }
        }
    )*};
}

macro_rules! signed {
    ($($type:ident as $bits:ident),*) => {$(
        impl Key for $type {
            fn encode(&self, out: &mut Vec<u8>) {
                // Flipping the sign bit puts the negative ones first.
                Key::encode(&((*self as $bits) ^ (1 << ($bits::BITS - 1))), out);
            }

            fn decode(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
                let bits = take_array(bytes, stringify!($type)).map($bits::from_be_bytes)?;
                Ok((bits ^ (1 << ($bits::BITS - 1))) as $type)
            }
        }
    )*};
}

macro_rules! float {
    ($($type:ident as $bits:ident),*) => {$(
        impl Key for $type {
            fn encode(&self, out: &mut Vec<u8>) {
                const SIGN: $bits = 1 << ($bits::BITS - 1);
                let bits = self.to_bits();
                let flipped = if bits & SIGN == 0 { SIGN } else { $bits::MAX };
                Key::encode(&(bits ^ flipped), out);
            }

            fn decode(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
                const SIGN: $bits = 1 << ($bits::BITS - 1);
                let bits = take_array(bytes, stringify!($type)).map($bits::from_be_bytes)?;
                let flipped = if bits & SIGN == 0 { $bits::MAX } else { SIGN };
                Ok($type::from_bits(bits ^ flipped))
            }
        }
    )*};
}

unsigned!(u16, u32, u64, u128);
signed!(i8 as u8, i16 as u16, i32 as u32, i64 as u64, i128 as u128);
float!(f32 as u32, f64 as u64);
value_as_key!(
    u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64, bool, char
);

impl Key for u8 {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn decode(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        let [byte] = take_array(bytes, "u8")?;
        Ok(byte)
    }
}

impl Key for bool {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn decode(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        match take_array(bytes, "bool")? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(DecodeError::new("0 or 1 for a bool", other.to_string())),
        }
    }
}

impl Key for char {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&u32::from(*self).to_be_bytes()[1..]);
    }

    fn decode(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        let [high, middle, low] = take_array(bytes, "char")?;
        let number = u32::from_be_bytes([0, high, middle, low]);
        char::from_u32(number)
            .ok_or_else(|| DecodeError::new("the number of a char", format!("{number:#x}")))
    }
}

//! Fields inside a 64-bit state word.
//!
//! A state word declares its layout once, as constants of [`Field`]; shifts and masks then appear
//! nowhere else.

/// A run of bits in a 64-bit word that holds a small number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    shift: u32,
    width: u32,
}

impl Field {
    /// The field of `width` bits whose lowest bit is `shift`.
    ///
    /// # Panics
    /// If the field does not lie within 64 bits; in a constant, that is an error of the compiler.
    pub const fn new(shift: u32, width: u32) -> Field {
        assert!(width >= 1 && shift + width <= 64);
        Field { shift, width }
    }

    /// The field of `width` bits right above this one.
    pub const fn then(self, width: u32) -> Field {
        Field::new(self.shift + self.width, width)
    }

    /// The greatest value that fits.
    pub const fn max(self) -> u64 {
        u64::MAX >> (64 - self.width)
    }

    /// The bits of this field, in place.
    pub const fn mask(self) -> u64 {
        self.max() << self.shift
    }

    /// The value 1 of this field, in place: what to add to count up by one.
    pub const fn one(self) -> u64 {
        1 << self.shift
    }

    /// Reads the field.
    pub const fn get(self, word: u64) -> u64 {
        (word >> self.shift) & self.max()
    }

    /// The word with the field set to `value`.
    ///
    /// # Panics
    /// If `value` does not fit.
    #[track_caller]
    pub const fn with(self, word: u64, value: u64) -> u64 {
        assert!(value <= self.max(), "value does not fit its field");
        (word & !self.mask()) | (value << self.shift)
    }

    /// Whether any bit of the field is set.
    pub const fn is_set(self, word: u64) -> bool {
        word & self.mask() != 0
    }

    /// The word with the field counted up by one, wrapping inside the field.
    pub const fn wrapping_next(self, word: u64) -> u64 {
        let next = (self.get(word) + 1) & self.max();
        (word & !self.mask()) | (next << self.shift)
    }
}

/// Up to eight bytes as the lowest of a word, the first one least significant.
#[inline]
pub fn little_word(bytes: &[u8]) -> u64 {
    if let Some(whole) = bytes.first_chunk() {
        return u64::from_le_bytes(*whole);
    }
    let (mut word, mut rest) = (0, bytes);
    if let Some((four, others)) = bytes.split_first_chunk() {
        word = u64::from(u32::from_le_bytes(*four));
        rest = others;
    }
    let done = bytes.len() - rest.len();
    for (place, byte) in (done..).zip(rest) {
        word |= u64::from(*byte) << (8 * place);
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_bytes_are_the_lowest_of_a_word() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        for len in 0..=bytes.len() {
            let mut word = [0; 8];
            let taken = len.min(8);
            word[..taken].copy_from_slice(&bytes[..taken]);
            assert_eq!(little_word(&bytes[..len]), u64::from_le_bytes(word));
        }
    }

    #[test]
    fn fields_do_not_disturb_each_other() {
        const LOW: Field = Field::new(0, 16);
        const MID: Field = LOW.then(4);
        const TOP: Field = MID.then(44);
        let word = TOP.with(MID.with(LOW.with(0, 0xffff), 9), 7);
        assert_eq!(
            (LOW.get(word), MID.get(word), TOP.get(word)),
            (0xffff, 9, 7)
        );
        assert_eq!(LOW.mask() | MID.mask() | TOP.mask(), u64::MAX);
        assert_eq!(LOW.get(LOW.wrapping_next(word)), 0);
        assert_eq!(MID.get(LOW.wrapping_next(word)), 9);
        assert_eq!(MID.get(word + MID.one()), 10);
        assert!(MID.is_set(word) && !MID.is_set(MID.with(word, 0)));
    }
}

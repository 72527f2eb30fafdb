//! How kind a simulated crash is to what was not synced.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// What a crash does to changes that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CrashStyle {
    /// All are lost.
    LoseAll,
    /// All get through, as when only the process dies.
    KeepAll,
    /// Whole writes get through or not, in any order.
    Reorder,
    /// Writes get through whole, in part, or not at all, in any order; parts are 512-byte sectors.
    Tear,
}

/// The choices of one crash, all drawn from one seed.
pub(super) struct Luck {
    random: SmallRng,
    style: CrashStyle,
    write: WriteFate,
}

enum WriteFate {
    Lost,
    Kept,
    Torn,
}

impl Luck {
    /// Luck of a style that the seed chooses.
    pub(super) fn from_seed(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let style = match random.random_range(0..8) {
            0 => CrashStyle::LoseAll,
            1 => CrashStyle::KeepAll,
            2..5 => CrashStyle::Reorder,
            _ => CrashStyle::Tear,
        };
        Self {
            random,
            style,
            write: WriteFate::Lost,
        }
    }

    pub(super) fn with_style(style: CrashStyle, seed: u64) -> Self {
        Self {
            random: SmallRng::seed_from_u64(seed),
            style,
            write: WriteFate::Lost,
        }
    }

    /// How many of `count` ordered changes get through.
    pub(super) fn prefix(&mut self, count: usize) -> usize {
        match self.style {
            CrashStyle::LoseAll => 0,
            CrashStyle::KeepAll => count,
            // Both ends are where the bugs are: give each a third.
            CrashStyle::Reorder | CrashStyle::Tear => match self.random.random_range(0..3) {
                0 => 0,
                1 => count,
                _ => self.random.random_range(0..=count),
            },
        }
    }

    /// Turns to another write: whether it is lost, kept or torn.
    pub(super) fn next_write(&mut self) {
        self.write = match self.style {
            CrashStyle::LoseAll => WriteFate::Lost,
            CrashStyle::KeepAll => WriteFate::Kept,
            CrashStyle::Reorder => match self.random.random_range(0..2) {
                0 => WriteFate::Lost,
                _ => WriteFate::Kept,
            },
            CrashStyle::Tear => match self.random.random_range(0..3) {
                0 => WriteFate::Lost,
                1 => WriteFate::Kept,
                _ => WriteFate::Torn,
            },
        }
    }

    /// Which sectors of a chunk of the write get through.
    pub(super) fn sectors(&mut self) -> u8 {
        match self.write {
            WriteFate::Lost => 0,
            WriteFate::Kept => u8::MAX,
            WriteFate::Torn => self.random.random(),
        }
    }
}

//! Lock modes: one part for the key, one for the gap below it.
//!
//! The rules are the four tables below; everything else is derived from them when the crate is
//! compiled. Two modes are compatible when both their parts are, and the supremum of two modes is
//! taken part by part.

/// How a transaction holds the key itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub enum KeyMode {
    /// Not at all.
    None = 0,
    /// To read it, or to have read that it is absent.
    Shared = 1,
    /// To change it.
    Exclusive = 2,
}

/// How a transaction holds the open interval between the key and the boundary below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub enum GapMode {
    /// Not at all.
    None = 0,
    /// Has read that it is empty.
    Shared = 1,
    /// Is about to insert into it; any number may.
    Insert = 2,
    /// Has read that it is empty, and inserts.
    Exclusive = 3,
}

const KEY_PARTS: usize = 3;
const GAP_PARTS: usize = 4;

/// Whether two transactions may hold the key at once.
#[rustfmt::skip]
const KEY_COMPATIBLE: [[bool; KEY_PARTS]; KEY_PARTS] = [
    //               None   Shared Exclusive
    /* None      */ [true,  true,  true ],
    /* Shared    */ [true,  true,  false],
    /* Exclusive */ [true,  false, false],
];

/// What a transaction holds on the key that asked for both.
#[rustfmt::skip]
const KEY_SUPREMUM: [[u8; KEY_PARTS]; KEY_PARTS] = [
    //               None Shared Exclusive
    /* None      */ [0,   1,     2],
    /* Shared    */ [1,   1,     2],
    /* Exclusive */ [2,   2,     2],
];

/// Whether two transactions may hold the gap at once.
#[rustfmt::skip]
const GAP_COMPATIBLE: [[bool; GAP_PARTS]; GAP_PARTS] = [
    //               None   Shared Insert Exclusive
    /* None      */ [true,  true,  true,  true ],
    /* Shared    */ [true,  true,  false, false],
    /* Insert    */ [true,  false, true,  false],
    /* Exclusive */ [true,  false, false, false],
];

/// What a transaction holds on the gap that asked for both.
#[rustfmt::skip]
const GAP_SUPREMUM: [[u8; GAP_PARTS]; GAP_PARTS] = [
    //               None Shared Insert Exclusive
    /* None      */ [0,   1,     2,     3],
    /* Shared    */ [1,   1,     3,     3],
    /* Insert    */ [2,   3,     2,     3],
    /* Exclusive */ [3,   3,     3,     3],
];

/// A mode, packed: the key part in bits 0..2, the gap part in bits 2..4.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Mode(u8);

/// Packed modes, the unused ones with key part 3 included.
const PACKED: usize = 16;

/// Row: a mode; bit: the other mode. Set where the two are compatible.
static COMPATIBLE: [u16; PACKED] = compatible();
/// The supremum of two packed modes.
static SUPREMUM: [[u8; PACKED]; PACKED] = supremum();

impl Mode {
    /// Holds nothing.
    pub const NONE: Mode = Mode::new(KeyMode::None, GapMode::None);
    /// Reads the key.
    pub const READ: Mode = Mode::new(KeyMode::Shared, GapMode::None);
    /// Changes the key.
    pub const WRITE: Mode = Mode::new(KeyMode::Exclusive, GapMode::None);
    /// Reads the gap alone: the boundary just above a range.
    pub const READ_GAP: Mode = Mode::new(KeyMode::None, GapMode::Shared);
    /// Reads the key and the gap below it: a boundary inside a range.
    pub const READ_RANGE: Mode = Mode::new(KeyMode::Shared, GapMode::Shared);
    /// Changes the key and reads the gap below it: a boundary inside a range that is changed.
    pub const WRITE_RANGE: Mode = Mode::new(KeyMode::Exclusive, GapMode::Shared);
    /// Inserts into the gap.
    pub const INSERT: Mode = Mode::new(KeyMode::None, GapMode::Insert);

    /// The mode of these parts.
    pub const fn new(key: KeyMode, gap: GapMode) -> Mode {
        Mode(key as u8 | (gap as u8) << 2)
    }

    /// The key part.
    pub fn key(self) -> KeyMode {
        match self.0 & 3 {
            0 => KeyMode::None,
            1 => KeyMode::Shared,
            _ => KeyMode::Exclusive,
        }
    }

    /// The gap part.
    pub fn gap(self) -> GapMode {
        match self.0 >> 2 {
            0 => GapMode::None,
            1 => GapMode::Shared,
            2 => GapMode::Insert,
            _ => GapMode::Exclusive,
        }
    }

    /// Whether two transactions may hold these at once.
    #[inline]
    pub fn is_compatible(self, other: Mode) -> bool {
        COMPATIBLE[usize::from(self.0) % PACKED] >> other.0 & 1 == 1
    }

    /// The weakest mode that grants all that either grants.
    #[inline]
    pub fn supremum(self, other: Mode) -> Mode {
        Mode(SUPREMUM[usize::from(self.0) % PACKED][usize::from(other.0) % PACKED])
    }

    /// Whether holding `self` makes asking for `other` needless.
    #[inline]
    pub fn covers(self, other: Mode) -> bool {
        self.supremum(other) == self
    }

    /// Whether the key may be changed under this mode.
    #[inline]
    pub(crate) fn writes_key(self) -> bool {
        self.key() == KeyMode::Exclusive
    }

    /// Whether the gap has been read under this mode, so that others must not insert.
    #[inline]
    pub(crate) fn reads_gap(self) -> bool {
        matches!(self.gap(), GapMode::Shared | GapMode::Exclusive)
    }
}

impl std::fmt::Debug for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = ["-", "S", "X"][self.key() as usize];
        let gap = ["-", "S", "I", "X"][self.gap() as usize];
        write!(f, "key {key} gap {gap}")
    }
}

const fn compatible() -> [u16; PACKED] {
    let mut table = [0; PACKED];
    let mut a = 0;
    while a < PACKED {
        let mut b = 0;
        while b < PACKED {
            if a & 3 < KEY_PARTS
                && b & 3 < KEY_PARTS
                && KEY_COMPATIBLE[a & 3][b & 3]
                && GAP_COMPATIBLE[a >> 2][b >> 2]
            {
                table[a] |= 1 << b;
            }
            b += 1;
        }
        a += 1;
    }
    table
}

const fn supremum() -> [[u8; PACKED]; PACKED] {
    let mut table = [[0; PACKED]; PACKED];
    let mut a = 0;
    while a < PACKED {
        let mut b = 0;
        while b < PACKED {
            if a & 3 < KEY_PARTS && b & 3 < KEY_PARTS {
                table[a][b] = KEY_SUPREMUM[a & 3][b & 3] | GAP_SUPREMUM[a >> 2][b >> 2] << 2;
            }
            b += 1;
        }
        a += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [KeyMode; 3] = [KeyMode::None, KeyMode::Shared, KeyMode::Exclusive];
    const GAPS: [GapMode; 4] = [
        GapMode::None,
        GapMode::Shared,
        GapMode::Insert,
        GapMode::Exclusive,
    ];

    fn all() -> impl Iterator<Item = Mode> {
        KEYS.into_iter()
            .flat_map(|key| GAPS.into_iter().map(move |gap| Mode::new(key, gap)))
    }

    #[test]
    fn parts_survive_packing() {
        for key in KEYS {
            for gap in GAPS {
                let mode = Mode::new(key, gap);
                assert_eq!((mode.key(), mode.gap()), (key, gap));
            }
        }
    }

    /// What the parts mean, said a second way: who reads and who changes.
    #[test]
    fn every_pair_is_compatible_exactly_when_nobody_changes_what_the_other_uses() {
        let reads_key = |m: Mode| m.key() == KeyMode::Shared;
        let writes_key = |m: Mode| m.key() == KeyMode::Exclusive;
        let reads_gap = |m: Mode| matches!(m.gap(), GapMode::Shared | GapMode::Exclusive);
        let inserts = |m: Mode| matches!(m.gap(), GapMode::Insert | GapMode::Exclusive);
        for a in all() {
            for b in all() {
                let key_clash = writes_key(a) && (reads_key(b) || writes_key(b))
                    || writes_key(b) && reads_key(a);
                let gap_clash = inserts(a) && reads_gap(b) || inserts(b) && reads_gap(a);
                assert_eq!(
                    a.is_compatible(b),
                    !key_clash && !gap_clash,
                    "{a:?} / {b:?}"
                );
                assert_eq!(a.is_compatible(b), b.is_compatible(a), "{a:?} / {b:?}");
            }
        }
    }

    #[test]
    fn supremum_is_the_least_upper_bound_of_every_pair() {
        // `a` is at most `b` when whatever clashes with `a` clashes with `b`.
        let at_most = |a: Mode, b: Mode| a.supremum(b) == b;
        for a in all() {
            assert_eq!(a.supremum(a), a);
            for b in all() {
                let top = a.supremum(b);
                assert_eq!(top, b.supremum(a));
                assert!(at_most(a, top) && at_most(b, top));
                for other in all() {
                    assert_eq!(
                        top.is_compatible(other),
                        a.is_compatible(other) && b.is_compatible(other),
                        "{a:?} + {b:?} / {other:?}"
                    );
                    if at_most(a, other) && at_most(b, other) {
                        assert!(at_most(top, other));
                    }
                }
            }
        }
    }
}

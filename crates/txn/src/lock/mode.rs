//! Lock modes of rows, one part for the key and one for the gap below it, and of tables.
//!
//! The rules are the tables below; everything else is derived from them when the crate is compiled.
//! Two modes of rows are compatible when both their parts are, and their supremum is taken part by
//! part. A row and a table never share a name, so their modes never meet, but for the one that holds
//! nothing. What a lock on a table does for its rows is said by [`Mode::covers_row`].

/// How a transaction holds the key itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub enum KeyMode {
    /// Not at all.
    None = 0,
    /// To read it, or to have read that it is absent.
    Shared = 1,
    /// To read it now and change it later: beside readers, but only one at a time.
    Update = 2,
    /// To change it.
    Exclusive = 3,
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

/// How a transaction holds a table, or the whole database.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub enum TableMode {
    /// Reads some of its rows, and locks those.
    IntentShared = 1,
    /// Reads and changes some of its rows, and locks those.
    IntentExclusive = 2,
    /// Reads all of it.
    Shared = 3,
    /// Reads all of it now and changes it later: beside readers, but only one at a time.
    Update = 4,
    /// Reads all of it, and changes some of its rows, which it locks.
    SharedIntentExclusive = 5,
    /// Changes all of it.
    Exclusive = 6,
}

const KEY_PARTS: usize = 4;
const GAP_PARTS: usize = 4;
const TABLE_MODES: usize = 7;

/// Whether two transactions may hold the key at once. Why Update lets readers in: `docs/decisions/0007`.
#[rustfmt::skip]
const KEY_COMPATIBLE: [[bool; KEY_PARTS]; KEY_PARTS] = [
    //               None   Shared Update Exclusive
    /* None      */ [true,  true,  true,  true ],
    /* Shared    */ [true,  true,  true,  false],
    /* Update    */ [true,  true,  false, false],
    /* Exclusive */ [true,  false, false, false],
];

/// What a transaction holds on the key that asked for both.
#[rustfmt::skip]
const KEY_SUPREMUM: [[u8; KEY_PARTS]; KEY_PARTS] = [
    //               None Shared Update Exclusive
    /* None      */ [0,   1,     2,     3],
    /* Shared    */ [1,   1,     2,     3],
    /* Update    */ [2,   2,     2,     3],
    /* Exclusive */ [3,   3,     3,     3],
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

/// Whether two transactions may hold the table at once.
#[rustfmt::skip]
const TABLE_COMPATIBLE: [[bool; TABLE_MODES]; TABLE_MODES] = [
    //          None   IS     IX     S      U      SIX    X
    /* None */ [true,  true,  true,  true,  true,  true,  true ],
    /* IS   */ [true,  true,  true,  true,  true,  true,  false],
    /* IX   */ [true,  true,  true,  false, false, false, false],
    /* S    */ [true,  true,  false, true,  true,  false, false],
    /* U    */ [true,  true,  false, true,  false, false, false],
    /* SIX  */ [true,  true,  false, false, false, false, false],
    /* X    */ [true,  false, false, false, false, false, false],
];

/// What a transaction holds on the table that asked for both.
#[rustfmt::skip]
const TABLE_SUPREMUM: [[u8; TABLE_MODES]; TABLE_MODES] = [
    //         None IS IX S  U  SIX X
    /* None */ [0,  1, 2, 3, 4, 5,  6],
    /* IS   */ [1,  1, 2, 3, 4, 5,  6],
    /* IX   */ [2,  2, 2, 5, 5, 5,  6],
    /* S    */ [3,  3, 5, 3, 4, 5,  6],
    /* U    */ [4,  4, 5, 4, 4, 5,  6],
    /* SIX  */ [5,  5, 5, 5, 5, 5,  6],
    /* X    */ [6,  6, 6, 6, 6, 6,  6],
];

/// Up to which key part, and which gap parts (a bit each), a row needs no lock under a table's.
#[rustfmt::skip]
const TABLE_COVERS: [(u8, u8); TABLE_MODES] = [
    /* None */ (KeyMode::None as u8,      0b0001),
    /* IS   */ (KeyMode::None as u8,      0b0001),
    /* IX   */ (KeyMode::None as u8,      0b0001),
    /* S    */ (KeyMode::Shared as u8,    0b0011),
    /* U    */ (KeyMode::Update as u8,    0b0011),
    /* SIX  */ (KeyMode::Update as u8,    0b0011),
    /* X    */ (KeyMode::Exclusive as u8, 0b1111),
];

/// A mode, packed.
///
/// | bits | of a row          | of a table             |
/// |------|-------------------|------------------------|
/// | 0..2 | [`KeyMode`]       | [`TableMode`], 3 bits  |
/// | 2..4 | [`GapMode`]       |                        |
/// | 4    | clear             | set                    |
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Mode(u8);

/// The bit that tells a table's mode from a row's.
const OF_TABLE: u8 = 16;
/// Modes of rows; all are in use.
const ROW_MODES: usize = 16;
/// Packed modes, unused ones included.
pub(super) const PACKED: usize = 32;

/// Row: a mode; bit: the other mode. Set where the two are compatible.
static COMPATIBLE: [u32; PACKED] = compatible();
/// The supremum of two packed modes.
static SUPREMUM: [[u8; PACKED]; PACKED] = supremum();
/// Row: a table's mode; column: the mode wanted of one of its rows.
static ABOVE: [[Above; ROW_MODES]; TABLE_MODES + 1] = above();

/// What a lock on a row needs, given what is held on its table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Above {
    /// More on the table first.
    Lacks,
    /// A request of its own.
    Permits,
    /// Nothing: the lock on the table covers it.
    Covers,
}

impl Mode {
    /// Holds nothing.
    pub const NONE: Mode = Mode::new(KeyMode::None, GapMode::None);
    /// Reads the key.
    pub const READ: Mode = Mode::new(KeyMode::Shared, GapMode::None);
    /// Reads the key, to change it later.
    pub const UPDATE: Mode = Mode::new(KeyMode::Update, GapMode::None);
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
    /// Reads some rows of a table.
    pub const INTENT_SHARED: Mode = Mode::table(TableMode::IntentShared);
    /// Changes some rows of a table.
    pub const INTENT_EXCLUSIVE: Mode = Mode::table(TableMode::IntentExclusive);

    /// The mode of a row with these parts.
    pub const fn new(key: KeyMode, gap: GapMode) -> Mode {
        Mode(key as u8 | (gap as u8) << 2)
    }

    /// The mode of a table.
    pub const fn table(mode: TableMode) -> Mode {
        Mode(OF_TABLE | mode as u8)
    }

    /// The key part; none for a table's mode.
    pub fn key(self) -> KeyMode {
        match self.0 & (OF_TABLE | 3) {
            1 => KeyMode::Shared,
            2 => KeyMode::Update,
            3 => KeyMode::Exclusive,
            _ => KeyMode::None,
        }
    }

    /// The gap part; none for a table's mode.
    pub fn gap(self) -> GapMode {
        match self.0 >> 2 {
            1 => GapMode::Shared,
            2 => GapMode::Insert,
            3 => GapMode::Exclusive,
            _ => GapMode::None,
        }
    }

    /// The mode as that of a table, if it is one.
    pub fn as_table(self) -> Option<TableMode> {
        match self.0 ^ OF_TABLE {
            1 => Some(TableMode::IntentShared),
            2 => Some(TableMode::IntentExclusive),
            3 => Some(TableMode::Shared),
            4 => Some(TableMode::Update),
            5 => Some(TableMode::SharedIntentExclusive),
            6 => Some(TableMode::Exclusive),
            _ => None,
        }
    }

    /// Whether this mode of a table is one of those that never exclude each other.
    #[inline]
    pub(crate) fn is_intent(self) -> bool {
        self == Mode::INTENT_SHARED || self == Mode::INTENT_EXCLUSIVE
    }

    /// Whether this mode of a table excludes some of the intents of others.
    #[inline]
    pub(crate) fn is_strong(self) -> bool {
        self != Mode::NONE && !self.is_intent()
    }

    /// The intent to have on the table before a row is locked in this mode, or on the database before
    /// a table is.
    pub(crate) const fn intent(self) -> Mode {
        let reads = match self.0 ^ OF_TABLE {
            table @ 0..8 => table != 2 && table < 5,
            _ => self.0 & 3 <= KeyMode::Shared as u8 && self.0 >> 2 <= GapMode::Shared as u8,
        };
        if reads {
            Mode::INTENT_SHARED
        } else {
            Mode::INTENT_EXCLUSIVE
        }
    }

    /// What one who holds the table in this mode needs to have a row in mode `row`.
    #[inline]
    pub(crate) fn above(self, row: Mode) -> Above {
        ABOVE[usize::from(self.0 & 7)][usize::from(row.0 & 15)]
    }

    /// Whether a row needs no lock in mode `row` for one who holds its table in this mode.
    #[inline]
    pub fn covers_row(self, row: Mode) -> bool {
        self.above(row) == Above::Covers
    }

    /// Whether one who holds the table in this mode may lock a row in mode `row`, or need not.
    #[inline]
    pub fn permits_row(self, row: Mode) -> bool {
        self.above(row) != Above::Lacks
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
    pub(crate) const fn writes_key(self) -> bool {
        self.0 & (OF_TABLE | 3) == KeyMode::Exclusive as u8
    }

    /// Whether the gap has been read under this mode, so that others must not insert.
    #[inline]
    pub(crate) const fn reads_gap(self) -> bool {
        self.0 & (OF_TABLE | 4) == 4
    }

    /// Whether rows may be changed under this mode without a lock of their own.
    #[inline]
    pub(crate) fn writes_table(self) -> bool {
        self == Mode::table(TableMode::Exclusive)
    }

    /// The packed mode, for the words of others.
    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    /// The mode that `bits` gave.
    pub(crate) const fn from_bits(bits: u8) -> Mode {
        Mode(bits)
    }

    /// The mode of these bits, from outside; `None` if nothing is held so.
    pub(crate) fn of_bits(bits: u8) -> Option<Mode> {
        let mode = Mode(bits);
        let is_row = (1..ROW_MODES as u8).contains(&bits);
        (is_row || mode.as_table().is_some()).then_some(mode)
    }
}

impl std::fmt::Debug for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(mode) = self.as_table() {
            return f.write_str(["-", "IS", "IX", "S", "U", "SIX", "X"][mode as usize]);
        }
        let key = ["-", "S", "U", "X"][self.key() as usize];
        let gap = ["-", "S", "I", "X"][self.gap() as usize];
        write!(f, "key {key} gap {gap}")
    }
}

const fn compatible() -> [u32; PACKED] {
    let mut table = [0; PACKED];
    let mut a = 0;
    while a < PACKED {
        let mut b = 0;
        while b < PACKED {
            let both_rows = a < ROW_MODES && b < ROW_MODES;
            let (of_a, of_b) = (a & 7, b & 7);
            let both_tables = a >= ROW_MODES && b >= ROW_MODES;
            if a == 0
                || b == 0
                || both_rows
                    && KEY_COMPATIBLE[a & 3][b & 3]
                    && GAP_COMPATIBLE[a >> 2 & 3][b >> 2 & 3]
                || both_tables
                    && of_a < TABLE_MODES
                    && of_b < TABLE_MODES
                    && TABLE_COMPATIBLE[of_a][of_b]
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
            let (of_a, of_b) = (a & 7, b & 7);
            table[a][b] = if a == 0 || b == 0 {
                (a | b) as u8
            } else if a < ROW_MODES && b < ROW_MODES {
                KEY_SUPREMUM[a & 3][b & 3] | GAP_SUPREMUM[a >> 2][b >> 2] << 2
            } else if a >= ROW_MODES && b >= ROW_MODES && of_a < TABLE_MODES && of_b < TABLE_MODES {
                OF_TABLE | TABLE_SUPREMUM[of_a][of_b]
            } else {
                0
            };
            b += 1;
        }
        a += 1;
    }
    table
}

const fn above() -> [[Above; ROW_MODES]; TABLE_MODES + 1] {
    let mut table = [[Above::Lacks; ROW_MODES]; TABLE_MODES + 1];
    let mut of_table = 0;
    while of_table < TABLE_MODES {
        let (key_max, gaps) = TABLE_COVERS[of_table];
        let mut row = 0;
        while row < ROW_MODES {
            let intent = Mode(row as u8).intent().0 & 7;
            if row & 3 <= key_max as usize && gaps >> (row >> 2) & 1 == 1 {
                table[of_table][row] = Above::Covers;
            } else if TABLE_SUPREMUM[of_table][intent as usize] as usize == of_table {
                table[of_table][row] = Above::Permits;
            }
            row += 1;
        }
        of_table += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [KeyMode; 4] = [
        KeyMode::None,
        KeyMode::Shared,
        KeyMode::Update,
        KeyMode::Exclusive,
    ];
    const GAPS: [GapMode; 4] = [
        GapMode::None,
        GapMode::Shared,
        GapMode::Insert,
        GapMode::Exclusive,
    ];
    const TABLES: [TableMode; 6] = [
        TableMode::IntentShared,
        TableMode::IntentExclusive,
        TableMode::Shared,
        TableMode::Update,
        TableMode::SharedIntentExclusive,
        TableMode::Exclusive,
    ];

    fn rows() -> impl Iterator<Item = Mode> {
        KEYS.into_iter()
            .flat_map(|key| GAPS.into_iter().map(move |gap| Mode::new(key, gap)))
    }

    fn tables() -> impl Iterator<Item = Mode> {
        TABLES.into_iter().map(Mode::table)
    }

    #[test]
    fn parts_survive_packing() {
        for key in KEYS {
            for gap in GAPS {
                let mode = Mode::new(key, gap);
                assert_eq!((mode.key(), mode.gap()), (key, gap));
                assert_eq!(mode.as_table(), None);
                assert_eq!(mode.writes_key(), key == KeyMode::Exclusive);
            }
        }
        for table in TABLES {
            let mode = Mode::table(table);
            assert_eq!(mode.as_table(), Some(table));
            assert_eq!((mode.key(), mode.gap()), (KeyMode::None, GapMode::None));
            assert!(!mode.writes_key() && !mode.reads_gap());
            assert_eq!(Mode::from_bits(mode.bits()), mode);
        }
    }

    /// What the parts mean, said a second way: who reads, who will change, who changes.
    #[test]
    fn every_pair_of_rows_is_compatible_exactly_when_nobody_changes_what_the_other_uses() {
        let uses_key = |m: Mode| m.key() != KeyMode::None;
        let writes_key = |m: Mode| m.key() == KeyMode::Exclusive;
        let claims_key = |m: Mode| m.key() >= KeyMode::Update;
        let reads_gap = |m: Mode| matches!(m.gap(), GapMode::Shared | GapMode::Exclusive);
        let inserts = |m: Mode| matches!(m.gap(), GapMode::Insert | GapMode::Exclusive);
        for a in rows() {
            for b in rows() {
                let key_clash = writes_key(a) && uses_key(b)
                    || writes_key(b) && uses_key(a)
                    || claims_key(a) && claims_key(b);
                let gap_clash = inserts(a) && reads_gap(b) || inserts(b) && reads_gap(a);
                let clash = key_clash || gap_clash;
                assert_eq!(a.is_compatible(b), !clash, "{a:?} / {b:?}");
            }
        }
    }

    /// What the modes of tables mean, said a second way: what is done to some rows, and what to all.
    #[test]
    fn every_pair_of_tables_is_compatible_exactly_when_rows_can_settle_the_rest() {
        use TableMode::*;
        let is = |m: Mode, modes: &[TableMode]| modes.contains(&m.as_table().unwrap());
        let writes_some = |m| is(m, &[IntentExclusive, SharedIntentExclusive]);
        let reads_all = |m| is(m, &[Shared, Update, SharedIntentExclusive]);
        let claims_all = |m| is(m, &[Update]);
        let writes_all = |m| is(m, &[Exclusive]);
        for a in tables() {
            for b in tables() {
                let clash = writes_all(a)
                    || writes_all(b)
                    || reads_all(a) && writes_some(b)
                    || writes_some(a) && reads_all(b)
                    || claims_all(a) && claims_all(b);
                assert_eq!(a.is_compatible(b), !clash, "{a:?} / {b:?}");
            }
        }
    }

    #[test]
    fn supremum_is_the_least_upper_bound_of_every_pair() {
        let with_none = |modes: Vec<Mode>| [vec![Mode::NONE], modes].concat();
        for all in [rows().collect(), with_none(tables().collect())] {
            supremum_is_least(&all);
        }
    }

    fn supremum_is_least(all: &[Mode]) {
        let at_most = |a: Mode, b: Mode| a.supremum(b) == b;
        for &a in all {
            assert_eq!(a.supremum(a), a);
            for &b in all {
                let top = a.supremum(b);
                assert_eq!(top, b.supremum(a));
                assert!(at_most(a, top) && at_most(b, top));
                assert_eq!(a.is_compatible(b), b.is_compatible(a), "{a:?} / {b:?}");
                for &other in all {
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

    /// Whoever is let off a row's lock by the table's is as safe as with it: nobody who may hold the
    /// table beside it may do to the row what the lock would have forbidden.
    #[test]
    fn a_table_covers_a_row_only_if_every_row_that_others_may_lock_is_compatible() {
        for table in tables() {
            for row in rows().filter(|&row| table.covers_row(row)) {
                for beside in tables().filter(|&other| table.is_compatible(other)) {
                    for other in rows().filter(|&other| beside.permits_row(other)) {
                        assert!(
                            row.is_compatible(other),
                            "{table:?} covers {row:?}, but {beside:?} permits {other:?}"
                        );
                    }
                }
            }
        }
    }

    /// And the table's mode covers all that it can: what else it covered would not be safe.
    #[test]
    fn a_table_covers_every_row_mode_that_is_safe_to_cover_and_in_its_own_sense() {
        let read = |table| Mode::table(table).covers_row(Mode::READ_RANGE);
        let write = |table| Mode::table(table).covers_row(Mode::WRITE_RANGE);
        for table in TABLES {
            assert_eq!(read(table), table >= TableMode::Shared, "{table:?}");
            assert_eq!(write(table), table == TableMode::Exclusive, "{table:?}");
            assert!(!Mode::NONE.covers_row(Mode::READ) && !Mode::NONE.permits_row(Mode::READ));
        }
    }

    #[test]
    fn a_stronger_lock_on_a_table_permits_and_covers_no_less() {
        for weak in tables() {
            for strong in tables().filter(|strong| strong.covers(weak)) {
                for row in rows() {
                    assert!(!weak.permits_row(row) || strong.permits_row(row));
                    assert!(!weak.covers_row(row) || strong.covers_row(row));
                }
            }
        }
    }

    #[test]
    fn every_mode_names_the_intent_that_it_needs_above() {
        for row in rows() {
            let changes = row.key() >= KeyMode::Update || row.gap() >= GapMode::Insert;
            let intent = [Mode::INTENT_SHARED, Mode::INTENT_EXCLUSIVE][usize::from(changes)];
            assert_eq!(row.intent(), intent, "{row:?}");
            assert!(intent.permits_row(row));
        }
        for (table, changes) in TABLES
            .into_iter()
            .zip([false, true, false, false, true, true])
        {
            let intent = [Mode::INTENT_SHARED, Mode::INTENT_EXCLUSIVE][usize::from(changes)];
            assert_eq!(Mode::table(table).intent(), intent, "{table:?}");
        }
    }
}

//! What can go wrong, and from which level on it must not.

use clap::ValueEnum;

/// The isolation levels, weakest first: each forbids all that the former ones forbid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Level {
    /// Nothing uncommitted is seen, and nobody overwrites it (Adya's PL-2)
    ReadCommitted,
    /// Each reads one state, and of two who change a row one gives way (Adya's PL-SI)
    Snapshot,
    /// As if one after the other (Adya's PL-3)
    Serializable,
}

impl Level {
    /// As on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::ReadCommitted => "read-committed",
            Level::Snapshot => "snapshot",
            Level::Serializable => "serializable",
        }
    }
}

/// What a history can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Anomaly {
    /// Something was seen that nobody wrote.
    Garbage,
    /// A list held the same value twice.
    Duplicate,
    /// Two lists were seen of which neither begins with the other.
    IncompatibleOrder,
    /// A transaction did not see what it had written itself.
    Internal,
    /// Transactions overwrote each other in a circle.
    G0,
    /// Something was seen that an aborted transaction wrote.
    G1a,
    /// Something was seen that its writer then overwrote.
    G1b,
    /// Transactions saw or overwrote each other's writes in a circle.
    G1c,
    /// Two saw the same version and both replaced it.
    LostUpdate,
    /// The accounts of a bank did not add up.
    WrongTotal,
    /// A circle with one anti-dependency.
    GSingle,
    /// A circle with several anti-dependencies, no two side by side.
    LongFork,
    /// A circle with anti-dependencies side by side, all on rows that were seen.
    G2Item,
    /// The same, with one on what a scan saw.
    G2,
}

use Anomaly::*;

/// Each anomaly, the weakest level that forbids it, its name, and the name in words.
const TABLE: [(Anomaly, Level, &str, &str); 14] = [
    (
        Garbage,
        Level::ReadCommitted,
        "garbage",
        "read of what nobody wrote",
    ),
    (
        Duplicate,
        Level::ReadCommitted,
        "duplicate",
        "value twice in a list",
    ),
    (
        IncompatibleOrder,
        Level::ReadCommitted,
        "incompatible-order",
        "lists of no common order",
    ),
    (
        Internal,
        Level::ReadCommitted,
        "internal",
        "own write not seen",
    ),
    (G0, Level::ReadCommitted, "G0", "dirty write"),
    (G1a, Level::ReadCommitted, "G1a", "aborted read"),
    (G1b, Level::ReadCommitted, "G1b", "intermediate read"),
    (
        G1c,
        Level::ReadCommitted,
        "G1c",
        "circular information flow",
    ),
    (LostUpdate, Level::Snapshot, "lost-update", "lost update"),
    (
        WrongTotal,
        Level::Snapshot,
        "wrong-total",
        "a bank that does not add up",
    ),
    (GSingle, Level::Snapshot, "G-single", "read skew"),
    (
        LongFork,
        Level::Snapshot,
        "long-fork",
        "long fork (G-nonadjacent)",
    ),
    (G2Item, Level::Serializable, "G2-item", "write skew on rows"),
    (G2, Level::Serializable, "G2", "write skew on predicates"),
];

impl Anomaly {
    /// All of them, gravest first.
    pub fn all() -> impl Iterator<Item = Anomaly> {
        TABLE.iter().map(|row| row.0)
    }

    /// The weakest level that forbids it.
    pub fn forbidden_from(self) -> Level {
        self.row().1
    }

    /// The name in the literature.
    pub fn name(self) -> &'static str {
        self.row().2
    }

    /// The name in words.
    pub fn words(self) -> &'static str {
        self.row().3
    }

    fn row(self) -> &'static (Anomaly, Level, &'static str, &'static str) {
        &TABLE[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_anomaly_has_its_row() {
        for (at, anomaly) in Anomaly::all().enumerate() {
            assert_eq!(anomaly as usize, at);
            assert_eq!(anomaly.row().0, anomaly);
        }
    }

    #[test]
    fn stronger_levels_forbid_more() {
        let forbidden = |level| {
            Anomaly::all()
                .filter(|a| a.forbidden_from() <= level)
                .count()
        };
        assert_eq!(forbidden(Level::ReadCommitted), 8);
        assert_eq!(forbidden(Level::Snapshot), 12);
        assert_eq!(forbidden(Level::Serializable), 14);
    }
}

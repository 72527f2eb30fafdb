//! Which commit an answer depends on, and how safe that commit asked to be.

use longshore_base::Lsn;
pub use longshore_log::Level as CommitLevel;

/// The newest commit whose effects a transaction may have seen, with the level to wait for.
///
/// One word: records start at multiples of eight, so the level fits below the position. A commit that
/// asked for no safety makes nobody wait, but its position is kept: it is the newest change that somebody
/// may have seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dependency(u64);

/// Records start at multiples of this.
const RECORD_ALIGN: u64 = 8;

impl Dependency {
    /// Depends on nothing.
    pub const NONE: Dependency = Dependency(0);

    /// Depends on the commit record at `lsn`, which is waited for at `level`.
    pub fn new(lsn: Lsn, level: CommitLevel) -> Dependency {
        debug_assert!(lsn.get().is_multiple_of(RECORD_ALIGN));
        Dependency(lsn.get() | level as u64)
    }

    /// Depends on the commit record at `lsn` being on stable storage.
    pub fn sync(lsn: Lsn) -> Dependency {
        Dependency::new(lsn, CommitLevel::Sync)
    }

    /// The newest commit record, whether waited for or not; [`Lsn::ZERO`] when there is none.
    pub fn lsn(self) -> Lsn {
        Lsn::new(self.0 & !(RECORD_ALIGN - 1))
    }

    /// The level waited for.
    pub fn level(self) -> CommitLevel {
        match self.0 & (RECORD_ALIGN - 1) {
            0 => CommitLevel::None,
            1 => CommitLevel::Os,
            _ => CommitLevel::Sync,
        }
    }

    /// Whether there is nothing to wait for. There may be a position all the same.
    #[inline]
    pub fn is_none(self) -> bool {
        self.0 & (RECORD_ALIGN - 1) == CommitLevel::None as u64
    }

    /// The dependency that implies both: the later position at the stricter level.
    #[inline]
    pub fn and(self, other: Dependency) -> Dependency {
        let level = (self.0 & (RECORD_ALIGN - 1)).max(other.0 & (RECORD_ALIGN - 1));
        Dependency(self.0.max(other.0) & !(RECORD_ALIGN - 1) | level)
    }

    /// The same position at `level`.
    pub(crate) fn at(self, level: CommitLevel) -> Dependency {
        Dependency::new(self.lsn(), level)
    }

    pub(crate) fn word(self) -> u64 {
        self.0
    }

    pub(crate) fn from_word(word: u64) -> Dependency {
        Dependency(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_means_the_later_position_at_the_stricter_level() {
        let early = Dependency::sync(Lsn::new(64));
        let late = Dependency::new(Lsn::new(128), CommitLevel::Os);
        assert_eq!(early.and(late), Dependency::sync(Lsn::new(128)));
        assert_eq!(late.and(early), early.and(late));
        assert_eq!(late.and(Dependency::NONE), late);
        let lax = Dependency::new(Lsn::new(256), CommitLevel::None);
        assert!(lax.is_none());
        assert_eq!(lax.lsn(), Lsn::new(256));
        assert_eq!(early.and(lax), Dependency::sync(Lsn::new(256)));
        assert_eq!((late.lsn(), late.level()), (Lsn::new(128), CommitLevel::Os));
    }
}

//! The page: its sizes, its types, the header that all pages share, and the checksum.
//!
//! # Header
//!
//! | bytes  | field     | meaning                                                   |
//! |--------|-----------|-----------------------------------------------------------|
//! | 0..4   | checksum  | CRC32C over the page id and bytes 4.. of the page         |
//! | 4      | format    | version of the page format, [`FORMAT_VERSION`]            |
//! | 5      | type      | a [`PageType`]                                            |
//! | 6..8   | flags     | zero                                                      |
//! | 8..16  | page id   | where this page belongs                                   |
//! | 16..24 | page_lsn  | the last log record applied to the page                   |
//! | 24..28 | store     | the tree that owns the page                               |
//! | 28..32 | reserved  | zero                                                      |
//!
//! All numbers are little-endian. The checksum covers the id under which the page was asked for, so a
//! page written to, or read from, the wrong place is found. A page of zeros is *blank*: never
//! written, which is legal, with a `page_lsn` of zero.

use crate::ids::PageId;

/// Version of the page format that this build reads and writes.
pub const FORMAT_VERSION: u8 = 1;

/// Offsets of the header's fields, in bytes.
pub mod header {
    /// CRC32C of the page.
    pub const CHECKSUM: usize = 0;
    /// Version of the page format.
    pub const FORMAT: usize = 4;
    /// Page type.
    pub const TYPE: usize = 5;
    /// Page id.
    pub const ID: usize = 8;
    /// LSN of the last change.
    pub const LSN: usize = 16;
    /// Owning store.
    pub const STORE: usize = 24;
    /// Length of the header; the type's own content starts here.
    pub const SIZE: usize = 32;
}

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PageType {
    /// Never written.
    Blank = 0,
    /// The description of the file, page 0.
    Meta = 1,
    /// A stretch of the map of used pages.
    SpaceMap = 2,
    /// A node of a tree.
    Node = 3,
    /// A link in the chain of a large value.
    Overflow = 4,
}

impl PageType {
    /// The type that `raw` stands for, if any.
    pub const fn from_raw(raw: u8) -> Option<PageType> {
        match raw {
            0 => Some(PageType::Blank),
            1 => Some(PageType::Meta),
            2 => Some(PageType::SpaceMap),
            3 => Some(PageType::Node),
            4 => Some(PageType::Overflow),
            _ => None,
        }
    }
}

/// The size of every page of a database: a power of two from 4 to 64 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSize(u32);

impl PageSize {
    /// 8 KiB.
    pub const DEFAULT: PageSize = PageSize(8192);
    /// The smallest page, 4 KiB.
    pub const MIN: PageSize = PageSize(4096);
    /// The largest page, 64 KiB.
    pub const MAX: PageSize = PageSize(65536);

    /// The size of `bytes`, if that is a size that a page may have.
    pub const fn new(bytes: usize) -> Option<PageSize> {
        if bytes.is_power_of_two() && bytes >= 4096 && bytes <= 65536 {
            Some(PageSize(bytes as u32))
        } else {
            None
        }
    }

    /// The size in bytes.
    pub const fn bytes(self) -> usize {
        self.0 as usize
    }

    /// The size in 8-byte words.
    pub const fn words(self) -> usize {
        self.0 as usize / 8
    }
}

impl Default for PageSize {
    fn default() -> Self {
        PageSize::DEFAULT
    }
}

/// What [`check`] found in a page that is not damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageState {
    /// All zeros: never written.
    Blank,
    /// Header and checksum agree.
    Valid,
}

/// Why a page cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageDamage {
    /// The bytes are not those that were written.
    #[error("checksum mismatch: stored {stored:08x}, computed {computed:08x}")]
    Checksum {
        /// The checksum in the header.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// The bytes are whole, but belong to another page.
    #[error("holds page {found}")]
    Misplaced {
        /// The page whose bytes these are.
        found: PageId,
    },
    /// Written by a build with another page format.
    #[error("page format version {found}, this build reads {FORMAT_VERSION}")]
    Format {
        /// The version in the header.
        found: u8,
    },
    /// A type that this build does not know.
    #[error("unknown page type {found}")]
    Type {
        /// The type in the header.
        found: u8,
    },
}

/// Writes id, format version and checksum into the header: the last step before the page is written.
pub fn seal(id: PageId, page: &mut [u8]) {
    page[header::FORMAT] = FORMAT_VERSION;
    page[header::ID..header::ID + 8].copy_from_slice(&id.get().to_le_bytes());
    let sum = checksum(id, page);
    page[header::CHECKSUM..header::CHECKSUM + 4].copy_from_slice(&sum.to_le_bytes());
}

/// Tells whether `page`, read from where page `id` lives, may be used.
///
/// # Errors
/// A [`PageDamage`] that names the first thing found wrong.
pub fn check(id: PageId, page: &[u8]) -> Result<PageState, PageDamage> {
    let stored = u32_at(page, header::CHECKSUM);
    let computed = checksum(id, page);
    if stored != computed {
        if is_blank(page) {
            return Ok(PageState::Blank);
        }
        let found = PageId::new(u64_at(page, header::ID));
        if found != id && stored == checksum(found, page) {
            return Err(PageDamage::Misplaced { found });
        }
        return Err(PageDamage::Checksum { stored, computed });
    }
    if page[header::FORMAT] != FORMAT_VERSION {
        return Err(PageDamage::Format {
            found: page[header::FORMAT],
        });
    }
    match PageType::from_raw(page[header::TYPE]) {
        Some(_) => Ok(PageState::Valid),
        None => Err(PageDamage::Type {
            found: page[header::TYPE],
        }),
    }
}

/// The CRC32C of the page's id and of everything behind the checksum itself.
pub fn checksum(id: PageId, page: &[u8]) -> u32 {
    let of_id = crc32c::crc32c(&id.get().to_le_bytes());
    crc32c::crc32c_append(of_id, &page[header::FORMAT..])
}

/// Whether every byte is zero.
pub fn is_blank(page: &[u8]) -> bool {
    page.chunks(8)
        .all(|word| word.iter().all(|byte| *byte == 0))
}

fn u32_at(page: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(page[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(page: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(page[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sealed(id: u64, fill: u8) -> Vec<u8> {
        let mut page = vec![fill; PageSize::MIN.bytes()];
        page[header::TYPE] = PageType::Node as u8;
        seal(PageId::new(id), &mut page);
        page
    }

    #[test]
    fn zeros_are_blank_and_sealed_pages_valid() {
        let blank = vec![0; 4096];
        assert_eq!(check(PageId::new(5), &blank), Ok(PageState::Blank));
        assert_eq!(check(PageId::new(7), &sealed(7, 3)), Ok(PageState::Valid));
    }

    #[test]
    fn misplaced_page_is_named() {
        let found = PageId::new(7);
        assert_eq!(
            check(PageId::new(8), &sealed(7, 3)),
            Err(PageDamage::Misplaced { found })
        );
    }

    #[test]
    fn other_format_and_type_are_refused() {
        let mut page = sealed(7, 3);
        page[header::TYPE] = 77;
        seal(PageId::new(7), &mut page);
        assert_eq!(
            check(PageId::new(7), &page),
            Err(PageDamage::Type { found: 77 })
        );
        page[header::FORMAT] = 9;
        let sum = checksum(PageId::new(7), &page);
        page[..4].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(
            check(PageId::new(7), &page),
            Err(PageDamage::Format { found: 9 })
        );
    }

    #[test]
    fn page_sizes_are_powers_of_two_within_range() {
        let legal: Vec<usize> = (0..=131072)
            .filter(|b| PageSize::new(*b).is_some())
            .collect();
        assert_eq!(legal, [4096, 8192, 16384, 32768, 65536]);
    }

    proptest! {
        #[test]
        fn any_flipped_bit_is_found(bit in 0usize..4096 * 8, fill in any::<u8>()) {
            let mut page = sealed(7, fill);
            page[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(check(PageId::new(7), &page).is_err());
        }
    }
}

//! Keys and the versions that they had, by small numbers.

use super::format::Content;
use super::transactions::TxnId;
use std::collections::HashMap;

/// Names a key among those of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct KeyId(pub(super) u32);

/// Names a version among those of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct VersionId(pub(super) u32);

/// What has versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Name {
    /// A list or a register.
    Key(i64),
    /// A row that moves from place to place: its versions are its positions.
    Row(i64),
}

/// What a key holds; known from its first write, or from the first list read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Unknown,
    List,
    Register,
}

/// A key.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: Name,
    pub(super) shape: Shape,
    /// The longest list that was seen, and by whom.
    pub(super) longest: Vec<i64>,
    pub(super) longest_by: Option<TxnId>,
}

/// A version: an element of a list, the content of a register, the position of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version {
    pub(super) key: KeyId,
    pub(super) content: Content,
    /// Who wrote it; nobody, if it was only read.
    pub(super) writer: Option<TxnId>,
    /// Whether it is the last that its writer gave this key.
    pub(super) is_last: bool,
}

/// All keys and versions of a history.
#[derive(Debug, Default)]
pub(super) struct Values {
    pub(super) keys: Vec<Key>,
    pub(super) versions: Vec<Version>,
    key_ids: HashMap<Name, KeyId>,
    version_ids: HashMap<(KeyId, Content), VersionId>,
}

impl Values {
    /// The key of this name.
    pub(super) fn key(&mut self, name: Name) -> KeyId {
        let next = KeyId(self.keys.len() as u32);
        let id = *self.key_ids.entry(name).or_insert(next);
        if id == next {
            self.keys.push(Key {
                name,
                shape: Shape::Unknown,
                longest: Vec::new(),
                longest_by: None,
            });
        }
        id
    }

    /// The version of `key` that holds `content`.
    pub(super) fn version(&mut self, key: KeyId, content: Content) -> VersionId {
        let next = VersionId(self.versions.len() as u32);
        let id = *self.version_ids.entry((key, content)).or_insert(next);
        if id == next {
            self.versions.push(Version {
                key,
                content,
                writer: None,
                is_last: false,
            });
        }
        id
    }

    /// The version that appended `value`, if anybody did.
    pub(super) fn appended(&self, key: KeyId, value: i64) -> Option<VersionId> {
        self.version_ids
            .get(&(key, Content::Number(value)))
            .copied()
    }

    pub(super) fn at(&self, version: VersionId) -> &Version {
        &self.versions[version.0 as usize]
    }

    pub(super) fn key_at(&self, key: KeyId) -> &Key {
        &self.keys[key.0 as usize]
    }
}

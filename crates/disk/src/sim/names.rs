//! The directory of a simulated disk: names as they are, names as they are safe, and the way between.
//!
//! A crash lets changes of names through in the order they were made as far as they concern the same
//! names, and independently otherwise: a rename is atomic, and two new files can be lost one by one.

use super::style::Luck;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Index of a file among the disk's inodes.
pub(super) type InodeId = usize;
pub(super) type NameMap = BTreeMap<Arc<str>, InodeId>;

#[derive(Default)]
pub(super) struct Names {
    pub(super) current: NameMap,
    durable: NameMap,
    pending: Vec<Change>,
}

enum Change {
    Create { name: Arc<str>, inode: InodeId },
    Remove { name: Arc<str> },
    Rename { from: Arc<str>, to: Arc<str> },
}

impl Names {
    pub(super) fn settled(names: NameMap) -> Self {
        Self {
            current: names.clone(),
            durable: names,
            pending: Vec::new(),
        }
    }

    pub(super) fn create(&mut self, name: Arc<str>, inode: InodeId) {
        self.change(Change::Create { name, inode });
    }

    /// Removes a name and returns whose it was.
    pub(super) fn remove(&mut self, name: &str) -> Option<InodeId> {
        let (name, inode) = self.current.get_key_value(name)?;
        let (name, inode) = (name.clone(), *inode);
        self.change(Change::Remove { name });
        Some(inode)
    }

    /// Renames; returns `None` if there is no `from`, else whose name `to` was before.
    pub(super) fn rename(&mut self, from: &str, to: &str) -> Option<Option<InodeId>> {
        let from = self.current.get_key_value(from)?.0.clone();
        if &*from == to {
            return Some(None);
        }
        let replaced = self.current.get(to).copied();
        self.change(Change::Rename {
            from,
            to: to.into(),
        });
        Some(replaced)
    }

    pub(super) fn sync(&mut self) {
        for change in self.pending.drain(..) {
            change.apply(&mut self.durable);
        }
    }

    /// What a crash leaves of the directory, as luck has it.
    pub(super) fn crash(&self, luck: &mut Luck) -> NameMap {
        let mut names = self.durable.clone();
        let groups = self.groups();
        let mut kept = BTreeMap::new();
        for group in &groups {
            kept.entry(*group).or_insert_with(|| {
                luck.prefix(groups.iter().filter(|other| *other == group).count())
            });
        }
        for (change, group) in self.pending.iter().zip(&groups) {
            let left = kept.get_mut(group).expect("counted above");
            if *left > 0 {
                *left -= 1;
                change.apply(&mut names);
            }
        }
        names
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.current);
        self.pending.push(change);
    }

    /// Numbers the pending changes so that those connected by a name have the same number.
    fn groups(&self) -> Vec<usize> {
        let mut groups: Vec<usize> = (0..self.pending.len()).collect();
        let mut last_with_name = BTreeMap::new();
        for (index, change) in self.pending.iter().enumerate() {
            for name in change.names().into_iter().flatten() {
                if let Some(earlier) = last_with_name.insert(name, index) {
                    let (old, new) = (groups[earlier], groups[index]);
                    groups
                        .iter_mut()
                        .filter(|group| **group == old)
                        .for_each(|group| *group = new);
                }
            }
        }
        groups
    }
}

impl Change {
    fn apply(&self, names: &mut NameMap) {
        match self {
            Self::Create { name, inode } => {
                names.insert(name.clone(), *inode);
            }
            Self::Remove { name } => {
                names.remove(name);
            }
            Self::Rename { from, to } => {
                let inode = names
                    .remove(from)
                    .expect("earlier changes of this name were applied");
                names.insert(to.clone(), inode);
            }
        }
    }

    fn names(&self) -> [Option<&str>; 2] {
        match self {
            Self::Create { name, .. } | Self::Remove { name } => [Some(name), None],
            Self::Rename { from, to } => [Some(from), Some(to)],
        }
    }
}

//! Everything that a simulated disk knows, behind its one mutex.

use super::disk::SimOptions;
use super::image::{CHUNK, chunk_of};
use super::inode::Inode;
use super::names::{InodeId, NameMap, Names};
use super::plan::{CrashCount, Mischief, PlannedFault, SimIo};
use super::style::Luck;
use rand::SeedableRng;
use rand::rngs::SmallRng;

pub(super) struct State {
    pub(super) random: SmallRng,
    pub(super) names: Names,
    pub(super) inodes: Vec<Inode>,
    /// Inodes without name and handle, whose bytes a crash may still bring back.
    pub(super) unused: Vec<InodeId>,
    /// Inodes that no crash can bring back, to be taken again.
    pub(super) free: Vec<InodeId>,
    pub(super) capacity_chunks: u64,
    pub(super) used_chunks: u64,
    pub(super) ios: u64,
    pub(super) changes: u64,
    pub(super) trace: Option<Vec<SimIo>>,
    pub(super) is_crashed: bool,
    pub(super) crash: Option<CrashCount>,
    pub(super) faults: Vec<PlannedFault>,
    pub(super) faults_hit: u64,
    pub(super) mischief: Vec<Mischief>,
}

/// Making, crashing, and looking from outside.
impl State {
    pub(super) fn new(seed: u64, options: SimOptions) -> Self {
        Self::with_files(seed, options.capacity_bytes, NameMap::new(), Vec::new())
    }

    fn with_files(seed: u64, capacity: Option<u64>, names: NameMap, inodes: Vec<Inode>) -> Self {
        Self {
            random: SmallRng::seed_from_u64(seed),
            names: Names::settled(names),
            unused: Vec::new(),
            free: Vec::new(),
            capacity_chunks: capacity_in_chunks(capacity),
            used_chunks: inodes.iter().map(|inode| inode.current.chunks_used()).sum(),
            inodes,
            ios: 0,
            changes: 0,
            trace: None,
            is_crashed: false,
            crash: None,
            faults: Vec::new(),
            faults_hit: 0,
            mischief: Vec::new(),
        }
    }

    pub(super) fn crash_image(&self, luck: &mut Luck, seed: u64) -> State {
        let mut names = self.names.crash(luck);
        let mut inodes = Vec::with_capacity(names.len());
        for inode in names.values_mut() {
            inodes.push(Inode::settled(self.inodes[*inode].crash(luck)));
            *inode = inodes.len() - 1;
        }
        let mut state = Self::with_files(seed, None, names, inodes);
        state.capacity_chunks = self.capacity_chunks;
        state
    }

    pub(super) fn contents(&self, file: &str) -> Option<Vec<u8>> {
        let image = &self.inodes[*self.names.current.get(file)?].current;
        let mut bytes = vec![0; image.len() as usize];
        image.read(&mut bytes, 0);
        Some(bytes)
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.used_chunks * CHUNK as u64
    }

    pub(super) fn set_capacity(&mut self, bytes: Option<u64>) {
        self.capacity_chunks = capacity_in_chunks(bytes);
    }

    pub(super) fn flip_bit(&mut self, file: &str, offset: u64, bit: u8) {
        let inode = *self
            .names
            .current
            .get(file)
            .expect("the file to damage exists");
        let inode = &mut self.inodes[inode];
        assert!(
            offset < inode.current.len() && bit < 8,
            "no bit {bit} of byte {offset} in {file}"
        );
        self.used_chunks += inode.current.holes(chunk_of(offset), chunk_of(offset) + 1);
        inode.flip_bit(offset, bit);
    }
}

fn capacity_in_chunks(bytes: Option<u64>) -> u64 {
    bytes.map_or(u64::MAX, |bytes| bytes / CHUNK as u64)
}

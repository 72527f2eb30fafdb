//! I2: every disk answers the same calls as a ten-line model does.

use longshore_disk::{
    Disk, DiskErrorKind, DiskFile, FileDisk, FileIo, FileOptions, MemoryDisk, OpenMode, SimDisk,
    SimOptions,
};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

const NAMES: [&str; 3] = ["a", "b", "c"];
const HANDLES: usize = 3;

#[derive(Clone, Debug)]
enum Call {
    Open {
        handle: usize,
        name: usize,
        mode: OpenMode,
    },
    Close {
        handle: usize,
    },
    Write {
        handle: usize,
        offset: u64,
        len: usize,
        byte: u8,
    },
    Read {
        handle: usize,
        offset: u64,
        len: usize,
    },
    SetLen {
        handle: usize,
        len: u64,
    },
    Allocate {
        handle: usize,
        len: u64,
    },
    Sync {
        handle: usize,
    },
    Remove {
        name: usize,
    },
    Rename {
        from: usize,
        to: usize,
    },
    List,
    Exists {
        name: usize,
    },
    SyncDirectory,
}

/// What a call answered, in a form that can be compared.
#[derive(Debug, PartialEq)]
enum Answer {
    Nothing,
    Bytes(Vec<u8>),
    Names(Vec<String>),
    Is(bool),
    Failed(DiskErrorKind),
}

impl Answer {
    fn of<T>(result: Result<T, longshore_disk::DiskError>, answer: impl FnOnce(T) -> Self) -> Self {
        result.map_or_else(|error| Self::Failed(error.kind), answer)
    }

    fn done(result: Result<(), longshore_disk::DiskError>) -> Self {
        Self::of(result, |()| Self::Nothing)
    }
}

/// A disk under test with its open handles.
struct Subject {
    disk: Arc<dyn Disk>,
    handles: [Option<Arc<dyn DiskFile>>; HANDLES],
}

impl Subject {
    fn new(disk: impl Disk + 'static) -> Self {
        Self {
            disk: Arc::new(disk),
            handles: [const { None }; HANDLES],
        }
    }

    fn on(&self, handle: usize, call: impl FnOnce(&dyn DiskFile) -> Answer) -> Answer {
        self.handles[handle]
            .as_deref()
            .map_or(Answer::Nothing, call)
    }

    fn answer(&mut self, call: &Call) -> Answer {
        match *call {
            Call::Open { handle, name, mode } => {
                let opened = self.disk.open(NAMES[name], mode);
                Answer::of(opened, |file| {
                    self.handles[handle] = Some(file);
                    Answer::Nothing
                })
            }
            Call::Close { handle } => {
                self.handles[handle] = None;
                Answer::Nothing
            }
            Call::Write {
                handle,
                offset,
                len,
                byte,
            } => self.on(handle, |file| {
                Answer::done(file.write_at(&pattern(len, byte), offset))
            }),
            Call::Read {
                handle,
                offset,
                len,
            } => self.on(handle, |file| {
                let mut bytes = vec![0xEE; len];
                Answer::of(file.read_at(&mut bytes, offset), |count| {
                    bytes.truncate(count);
                    Answer::Bytes(bytes)
                })
            }),
            Call::SetLen { handle, len } => self.on(handle, |file| Answer::done(file.set_len(len))),
            Call::Allocate { handle, len } => {
                self.on(handle, |file| Answer::done(file.allocate(len)))
            }
            Call::Sync { handle } => self.on(handle, |file| Answer::done(file.sync())),
            Call::Remove { name } => Answer::done(self.disk.remove(NAMES[name])),
            Call::Rename { from, to } => Answer::done(self.disk.rename(NAMES[from], NAMES[to])),
            Call::List => Answer::of(self.disk.list(), Answer::Names),
            Call::Exists { name } => Answer::of(self.disk.exists(NAMES[name]), Answer::Is),
            Call::SyncDirectory => Answer::done(self.disk.sync_directory()),
        }
    }
}

fn pattern(len: usize, byte: u8) -> Vec<u8> {
    (0..len)
        .map(|at| byte.wrapping_add((at / 100) as u8))
        .collect()
}

type Bytes = Rc<RefCell<Vec<u8>>>;

/// The sequential truth.
#[derive(Default)]
struct Model {
    files: BTreeMap<&'static str, Bytes>,
    /// With whether the handle may write.
    handles: [Option<(Bytes, bool)>; HANDLES],
}

impl Model {
    fn open(&mut self, handle: usize, name: &'static str, mode: OpenMode) -> Answer {
        let is_there = self.files.contains_key(name);
        match mode {
            OpenMode::Create if is_there => return Answer::Failed(DiskErrorKind::AlreadyExists),
            OpenMode::Read | OpenMode::Write if !is_there => {
                return Answer::Failed(DiskErrorKind::NotFound);
            }
            _ => {}
        }
        let file = self.files.entry(name).or_default().clone();
        self.handles[handle] = Some((file, mode != OpenMode::Read));
        Answer::Nothing
    }

    fn change(&mut self, handle: usize, change: impl FnOnce(&mut Vec<u8>)) -> Answer {
        match &self.handles[handle] {
            None => Answer::Nothing,
            Some((_, false)) => Answer::Failed(DiskErrorKind::PermissionDenied),
            Some((file, true)) => {
                change(&mut file.borrow_mut());
                Answer::Nothing
            }
        }
    }

    fn answer(&mut self, call: &Call) -> Answer {
        match *call {
            Call::Open { handle, name, mode } => self.open(handle, NAMES[name], mode),
            Call::Close { handle } => {
                self.handles[handle] = None;
                Answer::Nothing
            }
            Call::Write {
                handle,
                offset,
                len,
                byte,
            } => self.change(handle, |file| {
                let end = offset as usize + len;
                if len > 0 {
                    file.resize(file.len().max(end), 0);
                    file[offset as usize..end].copy_from_slice(&pattern(len, byte));
                }
            }),
            Call::Read {
                handle,
                offset,
                len,
            } => match &self.handles[handle] {
                None => Answer::Nothing,
                Some((file, _)) => {
                    let file = file.borrow();
                    let from = (offset as usize).min(file.len());
                    Answer::Bytes(file[from..(from + len).min(file.len())].to_vec())
                }
            },
            Call::SetLen { handle, len } => {
                self.change(handle, |file| file.resize(len as usize, 0))
            }
            Call::Allocate { handle, len } => {
                self.change(handle, |file| file.resize(file.len().max(len as usize), 0))
            }
            Call::Sync { .. } | Call::SyncDirectory => Answer::Nothing,
            Call::Remove { name } => match self.files.remove(NAMES[name]) {
                Some(_) => Answer::Nothing,
                None => Answer::Failed(DiskErrorKind::NotFound),
            },
            Call::Rename { from, to } => match self.files.remove(NAMES[from]) {
                Some(file) => {
                    self.files.insert(NAMES[to], file);
                    Answer::Nothing
                }
                None => Answer::Failed(DiskErrorKind::NotFound),
            },
            Call::List => Answer::Names(self.files.keys().map(|name| name.to_string()).collect()),
            Call::Exists { name } => Answer::Is(self.files.contains_key(NAMES[name])),
        }
    }
}

/// Offsets and lengths that like the borders of sectors, blocks and chunks.
fn place(max: u64) -> impl Strategy<Value = u64> {
    let near = |unit: u64| {
        (0..=max / unit, -1i64..=1).prop_map(move |(n, by)| (n * unit).saturating_add_signed(by))
    };
    prop_oneof![
        3 => (0..=max / 4096).prop_map(|n| n * 4096),
        2 => near(512),
        1 => near(8192),
        2 => 0..=max,
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let (handle, name) = (|| 0..HANDLES, || 0..NAMES.len());
    let mode = prop_oneof![
        1 => Just(OpenMode::Read),
        1 => Just(OpenMode::Write),
        1 => Just(OpenMode::Create),
        4 => Just(OpenMode::OpenOrCreate),
    ];
    prop_oneof![
        4 => (handle(), name(), mode)
            .prop_map(|(handle, name, mode)| Call::Open { handle, name, mode }),
        1 => handle().prop_map(|handle| Call::Close { handle }),
        8 => (handle(), place(60_000), place(30_000), any::<u8>()).prop_map(
            |(handle, offset, len, byte)| Call::Write { handle, offset, len: len as usize, byte }
        ),
        8 => (handle(), place(80_000), place(80_000))
            .prop_map(|(handle, offset, len)| Call::Read { handle, offset, len: len as usize }),
        2 => (handle(), place(80_000)).prop_map(|(handle, len)| Call::SetLen { handle, len }),
        1 => (handle(), place(80_000)).prop_map(|(handle, len)| Call::Allocate { handle, len }),
        1 => handle().prop_map(|handle| Call::Sync { handle }),
        1 => name().prop_map(|name| Call::Remove { name }),
        1 => (name(), name()).prop_map(|(from, to)| Call::Rename { from, to }),
        1 => Just(Call::List),
        1 => name().prop_map(|name| Call::Exists { name }),
        1 => Just(Call::SyncDirectory),
    ]
}

fn check(disk: impl Disk + 'static, calls: &[Call]) -> Result<(), TestCaseError> {
    let (mut subject, mut model) = (Subject::new(disk), Model::default());
    for call in calls {
        prop_assert_eq!(subject.answer(call), model.answer(call), "{:?}", call);
    }
    for handle in 0..HANDLES {
        let whole = Call::Read {
            handle,
            offset: 0,
            len: 200_000,
        };
        prop_assert_eq!(subject.answer(&whole), model.answer(&whole), "at the end");
    }
    Ok(())
}

fn check_files(io: FileIo, calls: &[Call]) -> Result<(), TestCaseError> {
    let directory = tempfile::tempdir().unwrap();
    let disk = FileDisk::open(directory.path(), FileOptions { io, create: false }).unwrap();
    check(disk, calls)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn memory_disk_acts_like_the_model(calls in prop::collection::vec(call(), 1..80)) {
        check(MemoryDisk::new(), &calls)?;
    }

    #[test]
    fn simulated_disk_acts_like_the_model(calls in prop::collection::vec(call(), 1..80)) {
        check(SimDisk::new(0, SimOptions::default()), &calls)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn buffered_files_act_like_the_model(calls in prop::collection::vec(call(), 1..60)) {
        check_files(FileIo::Buffered, &calls)?;
    }

    #[test]
    fn direct_files_act_like_the_model(calls in prop::collection::vec(call(), 1..60)) {
        if crate::file::direct_io_works() {
            check_files(FileIo::Direct, &calls)?;
        }
    }
}

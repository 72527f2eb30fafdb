//! What is recorded is what was used.

use std::io::BufReader;
use std::path::Path;
use std::sync::Barrier;

use lab::format::{Access, Format, Kind};
use lab::record::{GATHERED, Recorder};
use longshore_base::{PageId, PageSize};
use longshore_pool::PageUse;

fn accesses(path: &Path) -> Vec<Access> {
    let file = std::fs::File::open(path).unwrap();
    let read = Format::Pages.read(BufReader::new(file));
    read.collect::<Result<_, _>>().unwrap()
}

#[test]
fn every_use_is_recorded_in_the_order_of_its_thread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pages");
    let recorder = Recorder::create(&path).unwrap();
    // Not whole buffers: the rest is written at the end, when the threads are gone.
    let (threads, each) = (4, 10 * GATHERED as u64 + 7);
    // All at once, or a thread takes the number of one that has ended.
    let start = Barrier::new(threads);
    std::thread::scope(|scope| {
        for thread in 0..threads as u64 {
            let (trace, start) = (recorder.trace(), &start);
            scope.spawn(move || {
                start.wait();
                for nth in 0..each {
                    let what = match nth % 3 {
                        0 => PageUse::Read,
                        1 => PageUse::Write,
                        _ => PageUse::Create,
                    };
                    trace.used(PageId::new(thread << 32 | nth), what);
                    if nth == 0 {
                        start.wait();
                    }
                }
            });
        }
    });
    let recorded = recorder.finish().unwrap();
    assert_eq!(recorded.accesses, threads as u64 * each);
    assert_eq!(recorded.threads, threads as u32);
    let accesses = accesses(&path);
    assert_eq!(accesses.len() as u64, recorded.accesses);
    for thread in 0..threads as u64 {
        let of_thread = accesses.iter().filter(|a| a.page >> 32 == thread);
        let numbers: Vec<u64> = of_thread.clone().map(|a| a.page as u32 as u64).collect();
        assert!(numbers.into_iter().eq(0..each), "thread {thread}");
        let first = of_thread.clone().next().unwrap();
        assert!(of_thread.clone().all(|a| a.thread == first.thread));
        let kinds = [Kind::Read, Kind::Write, Kind::Create];
        assert!(
            of_thread
                .zip(kinds.into_iter().cycle())
                .all(|(a, kind)| a.kind == kind)
        );
    }
}

#[test]
fn the_trace_begins_with_the_size_of_the_pages() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pages");
    let recorded = |sizes: &[PageSize]| {
        let recorder = Recorder::create(&path).unwrap();
        let trace = recorder.trace();
        sizes.iter().for_each(|size| trace.begins(*size));
        trace.used(PageId::new(7), PageUse::Read);
        assert_eq!(recorder.finish().unwrap().accesses, 1);
        assert_eq!(accesses(&path)[0].page, 7);
        let bytes = std::fs::read(&path).unwrap();
        u32::from_le_bytes(bytes[12..16].try_into().unwrap())
    };
    assert_eq!(recorded(&[PageSize::MIN]), 4096);
    assert_eq!(recorded(&[PageSize::MAX, PageSize::MIN]), 65536);
    assert_eq!(recorded(&[]), 0, "nobody said");
}

#[test]
fn nothing_used_is_nothing_written() {
    let folder = tempfile::tempdir().unwrap();
    let (former, new) = (folder.path().join("former"), folder.path().join("new"));
    std::fs::write(&former, "mine").unwrap();
    for path in [&former, &new] {
        let recorder = Recorder::create(path).unwrap();
        assert_eq!(recorder.finish().unwrap().accesses, 0);
    }
    assert_eq!(std::fs::read_to_string(&former).unwrap(), "mine");
    assert!(!new.exists());
    // Something shorter than what was there takes its place.
    std::fs::write(&former, [1; 10_000]).unwrap();
    let recorder = Recorder::create(&former).unwrap();
    recorder.trace().used(PageId::new(7), PageUse::Read);
    assert_eq!(recorder.finish().unwrap().accesses, 1);
    assert_eq!(accesses(&former).len(), 1);
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_work() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        eprintln!("skipped: this system has no /dev/full");
        return;
    }
    let recorder = Recorder::create(full).unwrap();
    let trace = recorder.trace();
    (0..1_000_000).for_each(|page| trace.used(PageId::new(page * 7919), PageUse::Read));
    let error = recorder.finish().unwrap_err().to_string();
    assert!(error.contains("/dev/full"), "{error}");
    let error = Recorder::create(Path::new("/nowhere/t.pages")).unwrap_err();
    assert!(error.to_string().contains("/nowhere/t.pages"), "{error}");
}

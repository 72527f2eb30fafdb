//! Space for records to come: refused ahead, never while appending under a claim, never on abort.

use crate::support::*;
use longshore_base::{Lsn, TxnId};
use longshore_log::{Claim, FullCause, Level, Log, LogError, LogOptions};

fn fill(log: &Log) -> (Vec<Claim>, LogError) {
    let mut claims = Vec::new();
    loop {
        match log.claim(1000) {
            Ok(claim) => claims.push(claim),
            Err(error) => return (claims, error),
        }
    }
}

fn use_up(log: &Log, claim: &mut Claim) {
    while claim.remaining() >= Log::record_bytes(100) {
        log.append(claim, 1, TxnId::new(1), Lsn::ZERO, &[&[7; 100]])
            .expect("it was claimed");
    }
}

#[test]
fn the_limit_refuses_claims_and_says_what_to_do() {
    let disk = sim();
    let log = create(&disk).unwrap();
    let (claims, error) = fill(&log);
    let LogError::Full {
        asked: 1000,
        cause: FullCause::Limit { bytes_max, .. },
        ..
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!(bytes_max, SMALL.bytes_max);
    for words in ["log_bytes_max", "checkpoint", "1000 bytes"] {
        assert!(error.to_string().contains(words), "{error}");
    }
    // The slices of 24 segments, two of which are the reserve.
    assert!(claims.len() >= 80, "only {} claims", claims.len());
    let used: u64 = segment_files(&disk).len() as u64 * SMALL.segment_bytes;
    assert!(used <= SMALL.bytes_max);
}

#[test]
fn a_full_disk_refuses_claims_and_says_so() {
    let disk = sim();
    let log = create(&disk).unwrap();
    disk.set_capacity(Some(disk.used_bytes() + 20_000));
    let (mut claims, error) = fill(&log);
    assert!(
        matches!(
            error,
            LogError::Full {
                cause: FullCause::Disk(_),
                ..
            }
        ),
        "{error}"
    );
    assert!(
        error.to_string().contains("free space on the disk"),
        "{error}"
    );
    // Every claim granted before can be used to its last byte, and made durable.
    for claim in &mut claims {
        use_up(&log, claim);
    }
    log.flush_all(Level::Sync).unwrap();
    assert!(log.claim(1000).unwrap_err().is_full());
    assert!(!segment_files(&disk).is_empty());
}

#[test]
fn dropped_claims_are_free_again() {
    let log = create(&sim()).unwrap();
    let (claims, _) = fill(&log);
    let count = claims.len();
    drop(claims);
    let (claims, _) = fill(&log);
    assert_eq!(claims.len(), count);
}

#[test]
fn abort_writes_its_undo_when_the_log_is_full() {
    let disk = sim();
    let log = create(&disk).unwrap();
    // The victim has claimed for forward and undo, and has written forward only.
    let mut victim = log.claim(2 * Log::record_bytes(100)).unwrap();
    log.append(&mut victim, 1, TxnId::new(1), Lsn::ZERO, &[&[1; 100]])
        .unwrap();
    let (mut others, _) = fill(&log);
    disk.set_capacity(Some(disk.used_bytes()));
    others.iter_mut().for_each(|claim| use_up(&log, claim));
    assert_eq!(victim.remaining(), Log::record_bytes(100));
    log.append(&mut victim, 2, TxnId::new(1), Lsn::ZERO, &[&[2; 100]])
        .unwrap();
    log.flush_all(Level::Sync).unwrap();
}

#[test]
fn the_reserve_is_there_when_everything_else_is_used() {
    let disk = sim();
    let log = create(&disk).unwrap();
    let (mut claims, _) = fill(&log);
    disk.set_capacity(Some(disk.used_bytes()));
    claims.iter_mut().for_each(|claim| use_up(&log, claim));
    let mut reserve = log.claim_reserve();
    assert_eq!(reserve.remaining(), u64::MAX);
    let mut drawn = 0;
    // Two segments' slices.
    while drawn < 2 * 4096 - 200 {
        log.append(&mut reserve, 3, TxnId::SYSTEM, Lsn::ZERO, &[&[3; 100]])
            .unwrap();
        drawn += Log::record_bytes(100);
    }
    log.flush_all(Level::Sync).unwrap();
}

#[test]
fn the_reserve_goes_beyond_the_limit_while_the_disk_has_room() {
    let log = create(&sim()).unwrap();
    let _claims = fill(&log).0;
    let mut reserve = log.claim_reserve();
    for _ in 0..2000 {
        log.append(&mut reserve, 3, TxnId::SYSTEM, Lsn::ZERO, &[&[3; 100]])
            .unwrap();
    }
    log.flush_all(Level::Sync).unwrap();
    assert_eq!(scan(&log, Lsn::ZERO).unwrap().len(), 2000);
}

#[test]
fn who_begins_leaves_room_to_those_at_work() {
    let disk = sim();
    let log = create(&disk).unwrap();
    let mut at_work = log.claim_to_begin(1000).unwrap();
    let mut begun = Vec::new();
    while let Ok(claim) = log.claim_to_begin(1000) {
        begun.push(claim);
    }
    // The oldest, though all the others came and took what they could, grows; nobody joins them meanwhile.
    at_work.ensure(at_work.remaining() + 900).unwrap();
    assert!(log.claim_to_begin(1).unwrap_err().is_full());
    drop(begun);
    log.claim_to_begin(1000).unwrap();
}

#[test]
fn truncation_makes_room_again() {
    let disk = sim();
    let log = create(&disk).unwrap();
    for round in 0..20 {
        let (mut claims, error) = fill(&log);
        assert!(error.is_full() && !claims.is_empty(), "round {round}");
        claims.iter_mut().for_each(|claim| use_up(&log, claim));
        drop(claims);
        log.flush_all(Level::Sync).unwrap();
        log.truncate(log.tail()).unwrap();
    }
    assert!(log.stats().disk_bytes <= SMALL.bytes_max);
    assert!(log.oldest_lsn().get() > 10 * SMALL.bytes_max / 2);
}

/// Undo at restart needs what the losers had claimed; the segments for it are still there.
#[test]
fn space_claimed_before_a_crash_is_there_after_it() {
    let disk = sim();
    let log = create(&disk).unwrap();
    let (claims, _) = fill(&log);
    let claimed: u64 = claims.iter().map(Claim::remaining).sum();
    append_all(&log, claims);
    let image = disk.crash_image(3);
    image.set_capacity(Some(image.used_bytes()));
    let log = open(&image, Lsn::ZERO).unwrap();
    let mut undo = log.claim_reserve();
    for _ in 0..claimed / 2 / Log::record_bytes(100) {
        log.append(&mut undo, 2, TxnId::new(1), Lsn::ZERO, &[&[2; 100]])
            .unwrap();
    }
    log.flush_all(Level::Sync).unwrap();
}

fn append_all(log: &Log, mut claims: Vec<Claim>) {
    for claim in &mut claims {
        log.append(claim, 1, TxnId::new(1), Lsn::ZERO, &[&[1; 100]])
            .unwrap();
    }
    log.flush_all(Level::Sync).unwrap();
}

#[test]
fn ensure_grows_in_chunks_and_leaves_the_claim_alone_when_refused() {
    let roomy = LogOptions {
        segment_bytes: 256 << 10,
        bytes_max: 1 << 20,
        ..SMALL
    };
    let log = Log::create(shared(&sim()), roomy, DATABASE, env()).unwrap();
    let mut claim = log.claim(0).unwrap();
    claim.ensure(100).unwrap();
    assert!(claim.remaining() >= 16 << 10, "a chunk");
    let _rest = fill(&log).0;
    let before = claim.remaining();
    assert!(claim.ensure(before + 5000).unwrap_err().is_full());
    assert_eq!(claim.remaining(), before, "as it was");
}

#[test]
fn a_record_longer_than_the_buffer_is_refused() {
    let log = create(&sim()).unwrap();
    let error = append(&log, 1, &[0; 5000]).unwrap_err();
    assert!(
        matches!(
            error,
            LogError::TooLarge {
                bytes: 5032,
                max: 4096
            }
        ),
        "{error}"
    );
    let longest = vec![1; log.record_bytes_max() as usize - 32];
    append(&log, 1, b"not at the start of the ring").unwrap();
    append(&log, 1, &longest).unwrap();
    append(&log, 1, &longest).unwrap();
    assert_eq!(bodies(&log)[2], longest);
}

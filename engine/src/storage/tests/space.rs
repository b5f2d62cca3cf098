//! The log's room on the disk: segments made ahead, a disk that is full, and what a crash leaves of both.

use tablemount_api::ErrorCode;

use super::*;
use crate::storage::disk::Disk as _;
use crate::storage::sim::Random;

const SEGMENT: u64 = 16 << 10;

/// Writes rows of about 3 kB from number `from` on, durably, until one is refused. Returns the next number and the refusal.
fn write_until_refused(subject: &Subject, from: usize) -> (usize, Error) {
    for number in from..from + 1000 {
        let mutations = vec![put("f", "q", 1, &"v".repeat(3000))];
        match subject.log(&format!("r{number:04}"), mutations) {
            Ok(_) => subject.commit(),
            Err(error) => return (number, error),
        }
    }
    panic!("a thousand rows fit a full disk");
}

fn rows(subject: &Subject) -> usize {
    let request = ReadRequest {
        cells: tablemount_api::CellContent::None,
        ..ReadRequest::default()
    };
    // The last line is the end.
    subject.read_lines(&request).expect("read").len() - 1
}

fn segments(disk: &SimDisk) -> Vec<String> {
    let logs = disk.list("logs").expect("list");
    disk.list(&format!("logs/{}", logs[0])).expect("list")
}

fn make_spare(subject: &Subject) -> Result<()> {
    subject.store.log().expect("log").make_spare()
}

#[test]
fn hazard_17_a_full_disk_refuses_writes_and_loses_nothing() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let subject = Subject::new(vec![versions("f", 1)]);
        make_spare(&subject).expect("spare");
        subject.disk.limit_to(random.below(4 * SEGMENT));
        let (acknowledged, refusal) = write_until_refused(&subject, 0);
        assert_eq!(refusal.code(), ErrorCode::ResourceExhausted);
        assert_eq!(
            refusal.to_string(),
            format!(
                "table \"t\", row \"r{acknowledged:04}\" (0 of 1 rows were written before it): the disk is full: data folder sim \
                 has no room for 16384 bytes of the commit log: no storage space; writes are refused until space returns"
            )
        );
        assert!(
            acknowledged >= 9,
            "the rest of a segment and a spare: {acknowledged}"
        );
        assert_eq!(rows(&subject), acknowledged, "reads go on");
        // A look that finds nothing changes nothing.
        make_spare(&subject).expect_err("full");
        assert_eq!(write_until_refused(&subject, acknowledged).0, acknowledged);
        // Space returns; it is seen at the next look.
        subject.disk.limit_to(SEGMENT + 100);
        make_spare(&subject).expect("room");
        let (acknowledged, _) = write_until_refused(&subject, acknowledged);
        let subject = subject.crash(&mut random);
        assert_eq!(rows(&subject), acknowledged, "seed {seed}");
    }
}

#[test]
fn a_record_larger_than_what_is_left_is_refused_alone() {
    let subject = Subject::new(vec![versions("f", 1)]);
    make_spare(&subject).expect("spare");
    subject.disk.limit_to(SEGMENT);
    let large = |size| vec![put("f", "q", 1, &"v".repeat(size))];
    let refusal = subject
        .log("large", large(40_000))
        .expect_err("refused")
        .to_string();
    assert!(refusal.contains("has no room for 49152 bytes"), "{refusal}");
    subject.write("small", large(3000));
    subject.write("fits", large(30_000));
    let subject = subject.crash(&mut Random::new(1));
    assert_eq!(rows(&subject), 2);
    subject.disk.limit_to(4 * SEGMENT);
    subject.write("large", large(40_000));
}

#[test]
fn a_group_may_outgrow_the_segment_and_the_spare() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let subject = Subject::new(vec![versions("f", 1)]);
        for number in 0..30 {
            let mutations = vec![put("f", "q", 1, &"v".repeat(random.below(4000) as usize))];
            subject.log(&format!("r{number}"), mutations).expect("log");
        }
        subject.commit();
        subject.write("after", vec![put("f", "q", 1, "v")]);
        let on_disk = segments(&subject.disk).len();
        assert!(on_disk <= 2, "one group is in one segment: {on_disk}");
        let bytes = subject.store.log().expect("log").bytes();
        let files = subject.disk.bytes();
        assert!(
            bytes < files && bytes > files - 10_000,
            "{bytes} of {files}"
        );
        assert_eq!(rows(&subject.crash(&mut random)), 31);
    }
}

#[test]
fn a_flush_makes_room_for_the_log_where_the_disk_has_some() {
    let subject = Subject::new(vec![versions("f", 1)]);
    subject.disk.limit_to(8 * SEGMENT - 100);
    let (acknowledged, _) = write_until_refused(&subject, 0);
    let (table, tablet) = subject
        .store
        .choose_flush()
        .expect("choose")
        .expect("a tablet");
    // First there is no room for that either, and nothing is left of the attempt.
    let objects = subject.disk.object_paths();
    subject.disk.limit_to(1000);
    let error = subject
        .store
        .flush(&table, &tablet)
        .expect_err("full")
        .to_string();
    assert!(
        error.starts_with("flush tablet 1: write tablets/00000001/sst/"),
        "{error}"
    );
    assert!(error.ends_with(": no storage space"), "{error}");
    assert_eq!(subject.disk.object_paths(), objects);
    assert_eq!(rows(&subject), acknowledged);
    // The file takes about what its part of the log does, which then goes.
    subject.disk.limit_to(9 * SEGMENT);
    subject.store.flush(&table, &tablet).expect("flush");
    subject.disk.limit_to(SEGMENT);
    make_spare(&subject).expect("room");
    let (more, _) = write_until_refused(&subject, acknowledged);
    assert!(more > acknowledged);
    assert_eq!(rows(&subject.crash(&mut Random::new(3))), more);
}

#[test]
fn a_compaction_that_finds_the_disk_full_leaves_all_as_it_was() {
    let subject = Subject::new(vec![versions("f", 1)]);
    for number in 0..40 {
        subject.write(
            &format!("r{number:04}"),
            vec![put("f", "q", 1, &"v".repeat(1000))],
        );
        if number % 10 == 9 {
            subject.flush();
        }
    }
    let objects = subject.disk.object_paths();
    subject.disk.limit_to(10_000);
    let compacted = subject.each(|store, table, tablet| store.compact_fully(table, tablet));
    let error = compacted.expect_err("full").to_string();
    assert!(
        error.starts_with("compact table \"t\", column family \"f\", tablet 1: ")
            && error.ends_with("no storage space"),
        "{error}"
    );
    assert_eq!(subject.disk.object_paths(), objects);
    assert_eq!(rows(&subject), 40);
    subject.disk.limit_to(100_000);
    subject.compact_fully();
    assert_eq!(rows(&subject), 40);
}

#[test]
fn starts_on_a_full_disk_take_no_more_of_it_and_lose_nothing() {
    for spare in [false, true] {
        let subject = Subject::new(vec![versions("f", 1)]);
        for number in 0..3 {
            subject.write(
                &format!("r{number}"),
                vec![put("f", "q", 1, &"v".repeat(3000))],
            );
        }
        if spare {
            make_spare(&subject).expect("spare");
        }
        let disk = subject.disk.crash(&mut Random::new(8));
        let full = |disk: &SimDisk| {
            open_at(disk, &subject.clock, false)
                .err()
                .expect("full")
                .to_string()
        };
        // Enough for a segment and the record that names it, but not for the file that the log is flushed to.
        disk.limit_to(if spare { 1000 } else { SEGMENT + 1000 });
        let first = full(&disk);
        assert!(first.starts_with("flush tablet 1: "), "{first}");
        let bytes = disk.bytes();
        for _ in 0..3 {
            full(&disk);
        }
        let records = 3 * 200;
        assert!(
            disk.bytes() <= bytes + records,
            "{} after {bytes}",
            disk.bytes()
        );
        disk.limit_to(3 * SEGMENT);
        let store = open_at(&disk, &subject.clock, false).expect("opens");
        let subject = Subject {
            disk,
            store,
            ..subject
        };
        assert_eq!(rows(&subject), 3);
    }
}

#[test]
fn a_start_without_room_for_a_segment_says_so() {
    let subject = Subject::new(vec![versions("f", 1)]);
    subject.write("r", vec![put("f", "q", 1, "v")]);
    let disk = subject.disk.crash(&mut Random::new(8));
    disk.limit_to(100);
    let error = open_at(&disk, &subject.clock, false)
        .err()
        .expect("full")
        .to_string();
    assert_eq!(
        error,
        "the disk is full: data folder sim has no room for 16384 bytes of the commit log: no storage space"
    );
    open_at(&disk, &subject.clock, true).expect("opens read-only");
}

#[test]
fn a_segment_made_ahead_is_gone_on_in_after_a_restart() {
    let subject = Subject::new(vec![versions("f", 1)]);
    subject.write("a", vec![put("f", "q", 1, "v")]);
    make_spare(&subject).expect("spare");
    let before = segments(&subject.disk);
    assert_eq!(before.len(), 2);
    let subject = subject.reopen();
    assert_eq!(segments(&subject.disk), before[1..]);
    subject.write("b", vec![put("f", "q", 1, "v")]);
    let subject = subject.crash(&mut Random::new(1));
    assert_eq!(rows(&subject), 2);
    assert_ne!(
        segments(&subject.disk),
        before[1..],
        "it was written to, so a new one is made"
    );
}

/// A process dies after it made a segment and before its name was durable; the next goes on in it; then the power goes.
#[test]
fn hazard_18_the_name_of_a_segment_gone_on_in_is_durable() {
    for seed in 0..20 {
        let subject = Subject::new(vec![versions("f", 1)]);
        subject.write("a", vec![put("f", "q", 1, "v")]);
        let before = segments(&subject.disk).len();
        // The segment, the zeros, their sync.
        subject.disk.fail_in(3);
        make_spare(&subject).expect_err("the folder's sync fails");
        subject.disk.fail_in(u64::MAX);
        assert_eq!(segments(&subject.disk).len(), before + 1);
        let store = open_at(&subject.disk, &subject.clock, false).expect("opens");
        let subject = Subject { store, ..subject };
        subject.write("b", vec![put("f", "q", 1, "v")]);
        let subject = subject.crash(&mut Random::new(seed));
        assert_eq!(rows(&subject), 2, "seed {seed}");
    }
}

#[test]
fn hazard_18_the_newest_segment_that_a_start_named_must_be_there() {
    let subject = Subject::new(vec![versions("f", 1)]);
    subject.write("a", vec![put("f", "q", 1, "v")]);
    let disk = subject.disk.crash(&mut Random::new(1));
    let old = segments(&disk);
    // The start makes a segment and names it, and fails in the flush, before the old segment goes.
    disk.limit_to(SEGMENT + 300);
    assert!(open_at(&disk, &subject.clock, false).is_err());
    let newest = segments(&disk).pop().expect("segment");
    assert!(!old.contains(&newest));
    let log = disk.list("logs").expect("list").remove(0);
    let path = format!("logs/{log}/{newest}");
    disk.limit_to(10 * SEGMENT);
    disk.remove(&path).expect("remove");
    let error = open_at(&disk, &subject.clock, false)
        .err()
        .expect("refused")
        .to_string();
    assert_eq!(
        error,
        format!(
            "log segment {path} is missing in sim; acknowledged writes may be in it: restore the file, or open read-only"
        )
    );
}

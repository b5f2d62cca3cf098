//! What a start finds: torn tails and corruption of the log, damaged files, foreign and old folders.

use super::*;
use crate::storage::sim::Random;

fn segment_paths(disk: &SimDisk) -> Vec<String> {
    use crate::storage::disk::Disk as _;
    let logs = disk.list("logs").expect("list");
    let folder = format!("logs/{}", logs[0]);
    disk.list(&folder)
        .expect("list")
        .into_iter()
        .map(|name| format!("{folder}/{name}"))
        .collect()
}

/// Offsets of groups in a segment.
fn groups(disk: &SimDisk, path: &str) -> Vec<usize> {
    use crate::storage::disk::Disk as _;
    let file = disk.open(path).expect("open");
    let bytes = file.read_at(0, file.length() as usize).expect("read");
    crate::storage::log::frame::candidates(&bytes, 0).collect()
}

#[test]
fn hazard_15_a_damaged_last_group_is_a_torn_tail() {
    let subject = Subject::new(vec![versions("f", 1)]);
    subject.write("a", vec![put("f", "q", 1, "v")]);
    subject.write("b", vec![put("f", "q", 1, "v")]);
    let path = segment_paths(&subject.disk).pop().expect("segment");
    subject.disk.damage(
        &path,
        *groups(&subject.disk, &path).last().expect("group") + 40,
    );
    let store = open_at(&subject.disk, &subject.clock, false).expect("opens");
    let subject = Subject { store, ..subject };
    assert_eq!(subject.cells("a", "f", "q").len(), 1);
    assert_eq!(
        subject.cells("b", "f", "q").len(),
        0,
        "never acknowledged, as far as the log tells"
    );
    // A second start, with the torn segment perhaps back, is no corruption either.
    let subject = subject.crash(&mut Random::new(2));
    assert_eq!(subject.cells("a", "f", "q").len(), 1);
}

#[test]
fn hazard_15_a_damaged_group_before_a_later_sync_is_corruption() {
    let subject = Subject::new(vec![versions("f", 1)]);
    for key in ["a", "b", "c", "d"] {
        subject.write(key, vec![put("f", "q", 1, "v")]);
    }
    let path = segment_paths(&subject.disk).pop().expect("segment");
    let at = groups(&subject.disk, &path)[1];
    subject.disk.damage(&path, at + 40);
    let error = open_at(&subject.disk, &subject.clock, false)
        .err()
        .expect("refused")
        .to_string();
    assert_eq!(
        error,
        format!(
            "log segment {path} at offset {at}: group 2 is damaged, and group 3 tells that it was durable; acknowledged writes \
             may be lost from there on: restore the file from a copy, or open read-only to read what comes before"
        )
    );
    let store = open_at(&subject.disk, &subject.clock, true).expect("opens read-only");
    let subject = Subject { store, ..subject };
    assert_eq!(subject.cells("a", "f", "q").len(), 1);
    assert_eq!(subject.cells("c", "f", "q").len(), 0);
    let refused = subject
        .log("a", vec![put("f", "q", 2, "v")])
        .expect_err("refused");
    assert_eq!(refused.to_string(), "the store is open read-only");
}

#[test]
fn damage_in_any_byte_of_the_log_loses_only_what_follows_or_is_refused() {
    let subject = Subject::new(vec![versions("f", 1)]);
    for i in 0..6 {
        subject.write(&format!("r{i}"), vec![put("f", "q", 1, "v")]);
    }
    let path = segment_paths(&subject.disk).pop().expect("segment");
    let end = groups(&subject.disk, &path).last().expect("group") + 160;
    for offset in (0..end).step_by(3) {
        let disk = subject.disk.crash(&mut Random::new(1));
        disk.damage(&path, offset);
        let Ok(store) = open_at(&disk, &subject.clock, false) else {
            continue;
        };
        let probe = Subject {
            disk,
            clock: subject.clock.clone(),
            store,
        };
        let kept: Vec<bool> = (0..6)
            .map(|i| !probe.cells(&format!("r{i}"), "f", "q").is_empty())
            .collect();
        // Padding and reserved bytes do not matter; a damaged last group cannot be told from a torn tail.
        assert!(
            kept[..5].iter().all(|kept| *kept),
            "offset {offset}: {kept:?}"
        );
    }
}

#[test]
fn a_valid_group_with_a_sequence_number_beyond_the_highest_is_corruption() {
    use crate::storage::disk::Disk as _;
    use crate::storage::log::frame::{GROUP_HEADER, SEGMENT_HEADER, SegmentHeader, seal};
    use crate::storage::log::{Entry, Op, Record};
    let subject = Subject::new(vec![versions("f", 1)]);
    let path = segment_paths(&subject.disk).pop().expect("segment");
    let file = subject.disk.open(&path).expect("open");
    let header = file.read_at(0, SEGMENT_HEADER).expect("read");
    let header = SegmentHeader::decode(&header).expect("a header");
    for first_sequence in [u64::MAX, 1 << 63] {
        let op = Op::DeleteFamily;
        let record = Record {
            tablet: 1,
            first_sequence,
            server_timestamp: Timestamp(0),
            row: Bytes::from_static(b"row"),
            entries: vec![Entry { family: 1, op }],
        };
        let mut frame = vec![0; GROUP_HEADER];
        record.encode(&mut frame);
        seal(&mut frame, &header, header.first_group, 0);
        let file = subject.disk.reopen(&path, 0).expect("open");
        file.write_at(SEGMENT_HEADER as u64, &frame).expect("write");
        let error = open_at(&subject.disk, &subject.clock, false).err();
        assert_eq!(
            error.expect("refused").to_string(),
            format!(
                "log segment {path} at offset 64: group 1 holds what is no record; acknowledged writes may be lost from there on: \
                 restore the file from a copy, or open read-only to read what comes before"
            )
        );
    }
    open_at(&subject.disk, &subject.clock, true).expect("opens read-only");
}

#[test]
fn a_missing_segment_is_refused() {
    use crate::storage::disk::Disk as _;
    let subject = Subject::new(vec![versions("f", 1)]);
    for i in 0..20 {
        subject.write(&format!("r{i}"), vec![put("f", "q", 1, &"v".repeat(3000))]);
    }
    let paths = segment_paths(&subject.disk);
    assert!(paths.len() >= 3, "{paths:?}");
    for missing in [paths[1].clone(), paths[paths.len() - 1].clone()] {
        let disk = subject.disk.crash(&mut Random::new(1));
        disk.remove(&missing).expect("remove");
        let opened = open_at(&disk, &subject.clock, false);
        if missing == paths[1] {
            let error = opened.err().expect("refused").to_string();
            assert!(
                error.starts_with(&format!("log segment {missing} is missing in sim")),
                "{error}"
            );
        }
    }
    for path in segment_paths(&subject.disk) {
        subject.disk.remove(&path).expect("remove");
    }
    let error = open_at(&subject.disk, &subject.clock, false)
        .err()
        .expect("refused")
        .to_string();
    assert!(
        error.contains("is missing in sim; acknowledged writes may be in it"),
        "{error}"
    );
}

#[test]
fn a_damaged_block_is_named_and_the_rest_stays_readable() {
    let subject = Subject::new(vec![versions("f", 1)]);
    for i in 0..200 {
        subject
            .log(
                &format!("r{i:03}"),
                vec![put("f", "q", 1, &"v".repeat(100))],
            )
            .expect("log");
    }
    subject.flush();
    let path = subject
        .disk
        .object_paths()
        .into_iter()
        .find(|path| path.contains("/sst/"))
        .expect("sst");
    subject.disk.damage(&path, 3000);
    let store = open_at(&subject.disk, &subject.clock, false).expect("opens");
    let subject = Subject { store, ..subject };
    let bad: Vec<String> = (0..200)
        .filter_map(|i| {
            let request = ReadRequest {
                row: Some(row(&format!("r{i:03}"))),
                ..ReadRequest::default()
            };
            subject
                .read_lines(&request)
                .err()
                .map(|error| error.to_string())
        })
        .collect();
    assert!(
        (1..20).contains(&bad.len()),
        "{} rows are in the damaged block",
        bad.len()
    );
    assert!(
        bad[0].starts_with(&format!("sst {path} at offset ")),
        "{}",
        bad[0]
    );
    assert!(
        bad[0].ends_with("a block's checksum does not match"),
        "{}",
        bad[0]
    );
}

#[test]
fn every_damaged_byte_of_an_sst_is_noticed_or_harmless() {
    let subject = Subject::new(vec![versions("f", 1)]);
    for i in 0..40 {
        subject
            .log(
                &format!("r{i:02}"),
                vec![put("f", "q", 1, "value"), delete_column("f", "old")],
            )
            .expect("log");
    }
    subject.flush();
    let good = subject.texts(&ReadRequest::default());
    let path = subject
        .disk
        .object_paths()
        .into_iter()
        .find(|path| path.contains("/sst/"))
        .expect("sst");
    use crate::storage::disk::Disk as _;
    let length = subject.disk.open(&path).expect("open").length() as usize;
    for offset in (0..length).step_by(7) {
        let disk = subject.disk.crash(&mut Random::new(1));
        disk.damage(&path, offset);
        let Ok(store) = open_at(&disk, &subject.clock, true) else {
            continue;
        };
        if let Ok(lines) = read_lines(&store, &ReadRequest::default()) {
            let texts: Vec<_> = lines
                .iter()
                .flat_map(|line| &line.cells)
                .map(text_of)
                .collect();
            assert_eq!(texts, good, "offset {offset}");
        }
    }
}

#[test]
fn what_a_crash_left_half_made_is_removed() {
    let subject = Subject::new(vec![versions("f", 1)]);
    let body = PutTable {
        families: vec![versions("f", 1)],
        ..PutTable::default()
    };
    let other = TableName::new("other").expect("valid");
    for calls in 0..3 {
        subject.disk.fail_in(calls);
        assert!(
            subject.store.put_table(&other, &body).is_err(),
            "fails at call {calls}"
        );
        subject.disk.fail_in(u64::MAX);
    }
    let count = subject.disk.object_paths().len();
    let subject = subject.crash(&mut Random::new(1));
    assert!(subject.disk.object_paths().len() < count);
    assert!(subject.store.table(&other).is_err());
    subject
        .store
        .put_table(&other, &body)
        .expect("and can be made");
}

#[test]
fn a_dropped_table_leaves_nothing_and_does_not_come_back() {
    let subject = Subject::new(vec![versions("f", 1)]);
    subject.write("r", vec![put("f", "q", 1, "v")]);
    subject.flush();
    subject.write("r", vec![put("f", "q", 2, "w")]);
    subject
        .store
        .drop_table(&table(), &tablemount_api::DropTable::default())
        .expect("drop");
    assert!(
        subject
            .disk
            .object_paths()
            .iter()
            .all(|path| !path.starts_with("tab")),
        "{:?}",
        subject.disk.object_paths()
    );
    let subject = subject.crash(&mut Random::new(4));
    assert!(subject.store.table(&table()).is_err());
    subject.put_table(vec![versions("f", 1)]);
    assert_eq!(subject.cells("r", "f", "q"), []);
}

#[test]
fn foreign_folders_and_other_formats_are_refused() {
    use object_store::ObjectStoreExt as _;
    let put_object = |path: &str, bytes: Vec<u8>| {
        let disk = SimDisk::new();
        use crate::storage::disk::Disk as _;
        let objects = disk.objects();
        futures::executor::block_on(objects.put(&path.into(), bytes.into())).expect("put");
        open_at(&disk, &TestClock::at(0), false)
            .err()
            .expect("refused")
            .to_string()
    };
    let mut other = crate::storage::objects::encode(&"x")
        .expect("encode")
        .to_vec();
    other[4] = 7;
    assert_eq!(
        put_object("store", other),
        "store has format 7; this version reads format 1"
    );
    assert_eq!(
        put_object("store", b"text".to_vec()),
        "store at offset 0: not an object of tablemount"
    );
    let missing = open_at(&SimDisk::new(), &TestClock::at(0), true)
        .err()
        .expect("refused")
        .to_string();
    assert_eq!(missing, "sim holds no store");
}

#[test]
fn a_creation_that_fails_anywhere_can_be_done_again() {
    let clock = TestClock::at(SECOND);
    for calls in 0..30 {
        for crash in [false, true] {
            let disk = SimDisk::new();
            disk.fail_in(calls);
            let first = open_at(&disk, &clock, false);
            disk.fail_in(u64::MAX);
            if first.is_ok() {
                assert!(calls > 8, "creation is at least that many calls");
                return;
            }
            let disk = if crash {
                disk.crash(&mut Random::new(calls))
            } else {
                disk
            };
            let store = open_at(&disk, &clock, false).expect("opens");
            let subject = Subject {
                disk,
                clock: clock.clone(),
                store,
            };
            subject.put_table(vec![versions("f", 1)]);
            subject.write("r", vec![put("f", "q", 1, "v")]);
            assert_eq!(
                subject
                    .crash(&mut Random::new(calls))
                    .cells("r", "f", "q")
                    .len(),
                1
            );
        }
    }
    panic!("creation takes more than 30 calls");
}

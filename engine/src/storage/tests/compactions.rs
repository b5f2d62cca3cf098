//! Compactions as they are performed: what goes, what runs beside what, and how they end early.

use tablemount_api::{DeleteRows, DropTable};

use super::*;
use crate::storage::compactor::Merge;

/// A value that compresses badly.
fn noise(seed: u64, bytes: usize) -> String {
    let mut random = crate::storage::sim::Random::new(seed);
    (0..bytes)
        .map(|_| char::from(b'a' + random.below(26) as u8))
        .collect()
}

/// Flushes a file with a cell of this size.
fn flush_file(subject: &Subject, key: &str, bytes: usize) {
    subject.write(key, vec![put("f", "q", 1, &noise(7, bytes))]);
    subject.flush();
}

fn files(subject: &Subject) -> Vec<u64> {
    let (_, tablet) = subject.store.tablets().remove(0);
    let state = tablet.state();
    let files = state.files.values().flatten();
    files.map(|file| file.meta.properties.entries).collect()
}

fn next(subject: &Subject) -> Merge {
    subject.store.next_merge(None).expect("a merge")
}

fn merge(subject: &Subject, merge: &Merge) {
    subject.store.merge(merge).expect("merge").expect("done");
}

fn objects(subject: &Subject) -> usize {
    subject.disk.object_paths().len()
}

#[test]
fn young_files_merge_beside_a_merge_of_older_ones() {
    let subject = Subject::new(vec![versions("f", 1)]);
    for i in 0..4 {
        flush_file(&subject, &format!("a{i}"), 1000);
    }
    let old = next(&subject);
    assert!(subject.store.next_merge(None).is_none());
    for i in 0..4 {
        flush_file(&subject, &format!("b{i}"), 1000);
    }
    let young = next(&subject);
    assert!(
        subject.store.next_merge(None).is_none(),
        "two at a time at the most"
    );
    merge(&subject, &young);
    assert_eq!(files(&subject), [1, 1, 1, 1, 4]);
    merge(&subject, &old);
    assert_eq!(files(&subject), [4, 4]);
    drop((old, young));
    for key in ["a0", "a3", "b0", "b3"] {
        assert_eq!(subject.cells(key, "f", "q").len(), 1, "{key}");
    }
}

#[test]
fn a_delete_in_young_files_outlives_their_merge_beside_older_ones() {
    let subject = Subject::new(vec![versions("f", 1)]);
    for i in 0..4 {
        flush_file(&subject, &format!("a{i}"), 1000);
    }
    let old = next(&subject);
    subject.write("a0", vec![delete_column("f", "q")]);
    for i in 0..4 {
        flush_file(&subject, &format!("b{i}"), 1000);
    }
    merge(&subject, &next(&subject));
    assert_eq!(subject.cells("a0", "f", "q"), []);
    merge(&subject, &old);
    assert_eq!(subject.cells("a0", "f", "q"), []);
    assert_eq!(subject.reopen().cells("a0", "f", "q"), []);
}

#[test]
fn what_is_all_past_the_age_rule_goes_without_being_read() {
    let subject = Subject::new(vec![age("f", HOUR)]);
    for key in ["a", "b"] {
        subject.write(key, vec![put_now("f", "q", "v")]);
        subject.flush();
    }
    for path in subject.disk.object_paths() {
        if path.contains("/sst/") {
            subject.disk.damage(&path, 3);
        }
    }
    let subject = subject.reopen();
    subject.clock.advance(HOUR + HOUR / 2);
    assert!(subject.store.next_merge(None).is_none(), "an hour's grace");
    subject.clock.advance(HOUR);
    let expired = next(&subject);
    merge(&subject, &expired);
    assert!(files(&subject).is_empty());
}

#[test]
fn what_is_past_the_age_rule_stays_under_what_is_not() {
    let subject = Subject::new(vec![age("f", HOUR)]);
    let now = subject.clock.now().0;
    subject.write("r", vec![put("f", "q", now + 5 * HOUR, "fresh")]);
    subject.flush();
    // A delete at a time that is past hides nothing of what is fresh, but wider ones in the same file may.
    subject.write(
        "r",
        vec![put("f", "p", now, "old"), delete_column("f", "q")],
    );
    subject.flush();
    subject.clock.advance(3 * HOUR);
    while let Some(next) = subject.store.next_merge(None) {
        merge(&subject, &next);
    }
    assert_eq!(subject.cells("r", "f", "q"), []);
}

#[test]
fn deletes_are_merged_with_what_they_delete() {
    let subject = Subject::new(vec![versions("f", 1)]);
    let each = |make: &dyn Fn(&str) -> Mutation, count: usize| {
        (0..count)
            .map(|i| make(&format!("q{i:03}")))
            .collect::<Vec<_>>()
    };
    subject.write("r", each(&|q| put("f", q, 1, "v"), 100));
    subject.flush();
    subject.write("r", each(&|q| delete_column("f", q), 30));
    subject.flush();
    assert!(subject.store.next_merge(None).is_none());
    subject.write("r", each(&|q| delete_column("f", q), 60));
    subject.flush();
    let dead = next(&subject);
    merge(&subject, &dead);
    assert_eq!(files(&subject), [40]);
}

#[test]
fn one_delete_of_many_rows_is_worth_a_merge() {
    let subject = Subject::new(vec![versions("f", 1)]);
    for i in 0..50 {
        subject.write(&format!("a{i:02}"), vec![put("f", "q", 1, "v")]);
    }
    subject.flush();
    let delete = |stop: Option<RowKey>| {
        let rows = DeleteRows {
            start: Some(row("a")),
            stop,
            ..DeleteRows::default()
        };
        let table = subject.store.table(&table()).expect("table");
        crate::delete_rows::log(&subject.store, &table, &rows).expect("log");
        subject.flush();
    };
    delete(Some(row("a49")));
    assert!(subject.store.next_merge(None).is_none(), "a row is left");
    delete(None);
    merge(&subject, &next(&subject));
    assert!(files(&subject).is_empty());
}

#[test]
fn a_merge_ends_when_the_store_stops_or_its_table_is_dropped() {
    for stop in [true, false] {
        let subject = Subject::new(vec![versions("f", 1)]);
        for i in 0..4 {
            flush_file(&subject, &format!("a{i}"), 200_000);
        }
        let running = next(&subject);
        let before = objects(&subject);
        let error = if stop {
            subject.store.stop();
            subject.store.merge(&running).expect_err("given up")
        } else {
            let all = DropTable::default();
            subject.store.drop_table(&table(), &all).expect("drop");
            subject.store.merge(&running).expect_err("given up")
        };
        let text = error.to_string();
        assert!(
            text.starts_with("compact table \"t\", column family \"f\", tablet 1: "),
            "{text}"
        );
        if stop {
            assert!(text.ends_with("the server is ending"), "{text}");
            assert_eq!(objects(&subject), before, "no file is left of it");
        } else {
            assert!(text.ends_with("its table was dropped meanwhile"), "{text}");
            drop(running);
            subject.store.remove_dropped().expect("remove");
            let left = subject.disk.object_paths();
            assert!(!left.iter().any(|path| path.contains("/sst/")), "{left:?}");
        }
    }
}

#[test]
fn a_damaged_file_does_not_keep_others_from_their_turn() {
    let subject = Subject::new(vec![versions("f", 1), versions("g", 1)]);
    for i in 0..4 {
        let key = format!("a{i}");
        subject.write(&key, vec![put("f", "q", 1, "v"), put("g", "q", 1, "v")]);
        subject.flush();
    }
    let broken = subject
        .disk
        .object_paths()
        .into_iter()
        .find(|path| path.contains("/sst/1/"))
        .expect("a file of f");
    subject.disk.damage(&broken, 3);
    let subject = subject.reopen();
    let (mut done, mut failures) = (Vec::new(), 0);
    while let Some(merge) = subject.store.next_merge(None) {
        match subject.store.merge(&merge) {
            Ok(merged) => done.push((
                merge.target.family.schema.name.to_string(),
                merged.is_some(),
            )),
            Err(error) => {
                assert!(error.to_string().contains(&broken), "{error}");
                failures += 1;
                let now = std::time::Instant::now();
                assert!(subject.store.jobs.failed(merge.place(), now));
            }
        }
    }
    assert_eq!((done, failures), (vec![("g".to_owned(), true)], 1));
    assert_eq!(files(&subject), [1, 1, 1, 1, 4]);
}

#[test]
fn on_demand_one_family_or_all_are_merged_and_counted() {
    let subject = Subject::new(vec![versions("f", 1), versions("g", 1)]);
    for time in 1..=3 {
        subject.write(
            "r",
            vec![put("f", "q", time, "v"), put("g", "q", time, "v")],
        );
        subject.flush();
    }
    let table = subject.store.table(&table()).expect("table");
    let bytes = |id: u64| -> u64 {
        let state = table.tablets[0].state();
        state.files[&id].iter().map(|file| file.meta.bytes).sum()
    };
    let before = bytes(1);
    let f = family("f");
    let done = subject
        .store
        .compact_table(&table, Some(&f))
        .expect("compact");
    assert_eq!((done.bytes_read, done.bytes_written), (before, bytes(1)));
    assert!(done.bytes_written < done.bytes_read);
    assert_eq!(files(&subject), [1, 1, 1, 1]);
    subject.store.compact_table(&table, None).expect("compact");
    assert_eq!(files(&subject), [1, 1]);
    let unknown = subject.store.compact_table(&table, Some(&family("h")));
    let error = unknown.expect_err("refused").to_string();
    assert!(
        error.starts_with("column family \"h\" not found"),
        "{error}"
    );
    let debt = table.family_debt(&table.schema().record.families[0], subject.clock.now());
    assert_eq!((debt.debt_bytes, debt.read_files), (0, 1));
    assert!(debt.write_amplification() > 1.0);
}

#[test]
fn on_demand_waits_for_what_runs_in_its_family() {
    let subject = Subject::new(vec![versions("f", 1)]);
    for i in 0..4 {
        flush_file(&subject, &format!("a{i}"), 1000);
    }
    let running = next(&subject);
    let (table, tablet) = subject.store.tablets().remove(0);
    std::thread::scope(|scope| {
        let demand = scope.spawn(|| subject.store.compact_family(&table, &tablet, 1));
        while !subject.store.jobs.lock().is_demanded((tablet.id, 1)) {
            std::thread::yield_now();
        }
        merge(&subject, &running);
        assert_eq!(files(&subject), [4]);
        drop(running);
        let done = demand.join().expect("joins").expect("compacts");
        assert!(done.bytes_read > 4000 && done.bytes_written > 4000);
    });
    assert_eq!(files(&subject), [4]);
}

#[test]
fn compactions_keep_to_their_rate_unless_writers_wait_for_them() {
    let mut options = options();
    options.compaction_bytes_per_second = 1 << 20;
    let (disk, clock) = (SimDisk::new(), TestClock::at(SECOND));
    let store = open::open(Arc::new(disk.clone()), clock.clone(), options, false).expect("open");
    let subject = Subject { disk, clock, store };
    subject.put_table(vec![versions("f", 1)]);
    let timed = |files: usize, bytes: usize| {
        (0..files).for_each(|i| flush_file(&subject, &format!("a{i}"), bytes));
        let running = next(&subject);
        let started = std::time::Instant::now();
        merge(&subject, &running);
        started.elapsed()
    };
    // Four files of 128 KiB are read and written: 1 MiB, of which a quarter is free.
    let paced = timed(4, 128 << 10);
    assert!(paced > Duration::from_millis(400), "{paced:?}");
    let free = timed(24, 256 << 10);
    assert!(free < Duration::from_secs(5), "12 MiB in {free:?}");
}

#[test]
fn merges_wait_until_the_disk_has_room_for_them() {
    let subject = Subject::new(vec![versions("f", 1)]);
    for i in 0..4 {
        flush_file(&subject, &format!("a{i}"), 50_000);
    }
    subject
        .disk
        .limit_to(100_000 + 2 * subject.store.options.segment_bytes);
    assert!(
        subject.store.next_merge(None).is_none(),
        "200 kB do not fit"
    );
    subject
        .disk
        .limit_to(300_000 + 2 * subject.store.options.segment_bytes);
    let one = next(&subject);
    flush_file(&subject, "b", 50_000);
    merge(&subject, &one);
    assert_eq!(files(&subject), [4, 1]);
}

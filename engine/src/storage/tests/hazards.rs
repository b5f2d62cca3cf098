//! The hazards of a single server, by their number in the design's list: scenarios in which a store like this loses or invents
//! data.

mod filters;

use tablemount_api::{CellCheck, MutateRequest, RowMutation};

use super::*;
use crate::storage::sim::{Random, Sync};

/// The same cells after each of: nothing, a flush, a full compaction, a reopening.
fn same_in_all_states(subject: Subject, key: &str, fam: &str, expected: &[(i64, &str)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(time, text)| (*time, (*text).to_owned()))
        .collect();
    let check = |subject: &Subject, state: &str| {
        assert_eq!(subject.cells(key, fam, "q"), expected, "{state}")
    };
    check(&subject, "in memtables");
    subject.flush();
    check(&subject, "flushed");
    subject.compact_fully();
    check(&subject, "compacted");
    check(&subject.reopen(), "reopened");
}

#[test]
fn hazard_01_a_collected_version_does_not_come_back_after_an_exact_delete() {
    for compact_first in [false, true] {
        let subject = Subject::new(vec![versions("f", 1)]);
        subject.write("r", vec![put("f", "q", 10, "old")]);
        subject.write("r", vec![put("f", "q", 20, "new")]);
        if compact_first {
            subject.flush();
            subject.compact_fully();
        }
        subject.write("r", vec![delete_cell("f", "q", 20)]);
        same_in_all_states(subject, "r", "f", &[]);
    }
}

#[test]
fn hazard_01_holds_for_three_versions_and_inside_one_mutation() {
    let subject = Subject::new(vec![versions("f", 2)]);
    for time in [10, 20, 30, 40] {
        subject.write("r", vec![put("f", "q", time, "v")]);
    }
    subject.write(
        "r",
        vec![delete_cell("f", "q", 40), put("f", "q", 25, "between")],
    );
    same_in_all_states(subject, "r", "f", &[(30, "v"), (25, "between")]);
}

#[test]
fn hazard_03_a_get_at_a_time_does_not_show_a_collected_version() {
    let subject = Subject::new(vec![versions("f", 1)]);
    subject.write("r", vec![put("f", "q", 10, "old")]);
    subject.flush();
    subject.write("r", vec![put("f", "q", 20, "new")]);
    subject.flush();
    let at = ReadRequest {
        row: Some(row("r")),
        at: Some(Timestamp(10)),
        ..ReadRequest::default()
    };
    assert_eq!(subject.texts(&at), []);
    subject.compact_fully();
    assert_eq!(subject.texts(&at), []);
}

#[test]
fn hazard_04_an_older_file_may_hold_the_newest_timestamp() {
    let subject = Subject::new(vec![versions("f", 3)]);
    subject.write("r", vec![put("f", "q", 90, "late")]);
    subject.flush();
    subject.write("r", vec![put("f", "q", 10, "early")]);
    subject.flush();
    let newest = ReadRequest {
        row: Some(row("r")),
        versions: Some(1),
        ..ReadRequest::default()
    };
    assert_eq!(subject.texts(&newest), [(90, "late".to_owned())]);
    same_in_all_states(subject, "r", "f", &[(90, "late"), (10, "early")]);
}

#[test]
fn hazard_05_wider_deletes_hide_wherever_a_seek_lands() {
    let subject = Subject::new(vec![versions("f", 1), versions("g", 1)]);
    for i in 0..500 {
        subject.write(
            "r",
            vec![
                put("f", &format!("q{i:03}"), 5, "v"),
                put("g", &format!("q{i:03}"), 5, "v"),
            ],
        );
    }
    subject.flush();
    subject.write(
        "r",
        vec![
            Mutation::DeleteFamily {
                family: family("f"),
            },
            delete_column("g", "q250"),
        ],
    );
    for flushed in [false, true] {
        let from = |q: &str, reverse| ReadRequest {
            row: Some(row("r")),
            qualifier_start: Some(qualifier(q)),
            reverse,
            ..ReadRequest::default()
        };
        for reverse in [false, true] {
            assert_eq!(
                subject.texts(&from("q200", reverse)).len(),
                299,
                "flushed {flushed}, reverse {reverse}"
            );
            assert_eq!(subject.texts(&from("q250", reverse)).len(), 249);
        }
        subject.flush();
    }
}

#[test]
fn hazard_06_a_partial_compaction_keeps_tombstones_that_are_needed() {
    let subject = Subject::new(vec![versions("f", 1)]);
    let filler = |n: usize| put("f", "filler", 1, &"x".repeat(n));
    let mut large: Vec<_> = (0..20)
        .map(|i| put("f", &format!("large{i}"), 1, &"y".repeat(5000)))
        .collect();
    large.push(put("f", "q", 10, "deleted"));
    subject.write("r", large);
    subject.flush();
    for i in 0..4 {
        subject.write(
            "r",
            vec![if i == 0 {
                delete_cell("f", "q", 10)
            } else {
                filler(100 + i)
            }],
        );
        subject.flush();
    }
    let (table, tablet) = subject.store.tablets().remove(0);
    assert!(
        subject.store.compact(&table, &tablet).expect("compact"),
        "the four small files merge"
    );
    assert_eq!(
        subject.store.table_stats(&table).files,
        2,
        "the large file was not part of it"
    );
    same_in_all_states(subject, "r", "f", &[]);
}

#[test]
fn hazard_07_a_family_made_again_shows_nothing_of_the_old_one() {
    for flush_first in [false, true] {
        let subject = Subject::new(vec![versions("f", 1), versions("g", 1)]);
        subject.write(
            "r",
            vec![put("f", "q", 10, "old"), put("g", "q", 10, "stays")],
        );
        if flush_first {
            subject.flush();
        }
        let put_table = |families, drop: &[&str]| {
            let drop_families = drop.iter().map(|name| family(name)).collect();
            let body = PutTable {
                families,
                drop_families,
                ..PutTable::default()
            };
            subject.store.put_table(&table(), &body).expect("put table");
        };
        put_table(vec![versions("g", 1)], &["f"]);
        put_table(vec![versions("g", 1), versions("f", 1)], &[]);
        assert_eq!(subject.cells("r", "f", "q"), []);
        let mut random = Random::new(7);
        let subject = subject.crash(&mut random);
        assert_eq!(subject.cells("r", "f", "q"), [], "after replay");
        assert_eq!(subject.cells("r", "g", "q"), [(10, "stays".to_owned())]);
        same_in_all_states(subject, "r", "f", &[]);
    }
}

#[test]
fn hazard_08_a_clock_that_steps_back_loses_nothing() {
    let subject = Subject::new(vec![versions("f", 1)]);
    subject.write("r", vec![put_now("f", "q", "first")]);
    subject.clock.advance(-5 * SECOND);
    subject.write("r", vec![put_now("f", "q", "second")]);
    assert_eq!(subject.cells("r", "f", "q")[0].1, "second");
    // Nor over a crash, when only the log knows what was given out, nor after a flush, when only the manifest does.
    let subject = subject.crash(&mut Random::new(1));
    subject.clock.advance(-5 * SECOND);
    subject.write("r", vec![put_now("f", "q", "third")]);
    let subject = subject.reopen();
    subject.clock.advance(-5 * SECOND);
    subject.write("r", vec![put_now("f", "q", "fourth")]);
    assert_eq!(subject.cells("r", "f", "q")[0].1, "fourth");
}

#[test]
fn hazard_08_a_clock_that_jumps_ahead_does_not_make_compaction_destroy_data() {
    let subject = Subject::new(vec![age("f", HOUR)]);
    subject.write("r", vec![put_now("f", "q", "v")]);
    subject.flush();
    subject.clock.advance(HOUR + HOUR / 2);
    assert_eq!(subject.cells("r", "f", "q"), [], "reads have no grace");
    subject.compact_fully();
    subject.clock.advance(-(HOUR + HOUR / 2));
    assert_eq!(
        subject.cells("r", "f", "q").len(),
        1,
        "compaction has an hour's grace"
    );
    subject.clock.advance(3 * HOUR);
    subject.compact_fully();
    assert_eq!(
        subject
            .store
            .table_stats(&subject.store.table(&table()).expect("table"))
            .families[0]
            .entries,
        0
    );
}

#[test]
fn hazard_09_an_increment_and_a_put_have_an_order() {
    use std::sync::Barrier;
    let subject = Subject::new(vec![versions("f", 1)]);
    for round in 0_i64..50 {
        let key = format!("r{round}");
        subject.write(&key, vec![increment("f", "q", 1)]);
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                barrier.wait();
                let ten = Base64(Bytes::copy_from_slice(&10_i64.to_be_bytes()));
                let mutation = Mutation::Put {
                    family: family("f"),
                    qualifier: qualifier("q"),
                    timestamp: None,
                    value: ten,
                };
                subject.log(&key, vec![mutation]).expect("put");
            });
            scope.spawn(|| {
                barrier.wait();
                subject
                    .log(&key, vec![increment("f", "q", 1)])
                    .expect("increment");
            });
        });
        subject.commit();
        let request = ReadRequest {
            row: Some(row(&key)),
            versions: Some(1),
            ..ReadRequest::default()
        };
        let lines = subject.read_lines(&request).expect("read");
        let bytes = lines[0].cells[0].value.clone().expect("value").0;
        let number = i64::from_be_bytes(bytes.as_ref().try_into().expect("8 bytes"));
        assert!(
            number == 10 || number == 11,
            "{number}: no order of put(10) and increment gives it"
        );
    }
}

#[test]
fn hazard_09_the_servers_time_is_given_under_the_rows_lock() {
    let subject = Subject::new(vec![versions("f", 1)]);
    let plan = |mutations| {
        let rows = vec![RowMutation {
            row: row("r"),
            check: None,
            mutations,
        }];
        Plan::check(&subject.store, &table(), MutateRequest { rows }).expect("check")
    };
    subject.write("r", vec![increment("f", "q", 1)]);
    let early = plan(vec![put_now("f", "q", "8 bytes!")]);
    subject.clock.advance(SECOND);
    subject.write("r", vec![increment("f", "q", 1)]);
    // Checked before the increment, logged after it: it is the newest.
    early.apply(&subject.store).expect("apply");
    subject.commit();
    assert_eq!(subject.cells("r", "f", "q")[0].1, "8 bytes!");
}

#[test]
fn hazard_10_increments_see_what_was_written_before_it_is_durable() {
    let subject = Subject::new(vec![versions("f", 1)]);
    for _ in 0..3 {
        subject
            .log("r", vec![increment("f", "q", 5)])
            .expect("increment");
    }
    assert_eq!(
        subject.cells("r", "f", "q"),
        [],
        "plain readers see only what is durable"
    );
    let (response, _) = subject
        .log("r", vec![increment("f", "q", 5)])
        .expect("increment");
    let value = response.results[0].cells[0].value.clone().expect("value").0;
    assert_eq!(value.as_ref(), 20_i64.to_be_bytes());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                (0..100).for_each(|_| {
                    drop(
                        subject
                            .log("r", vec![increment("f", "q", 1)])
                            .expect("increment"),
                    )
                })
            });
        }
    });
    let (response, _) = subject
        .log("r", vec![increment("f", "q", 0)])
        .expect("increment");
    assert_eq!(
        response.results[0].cells[0]
            .value
            .clone()
            .expect("value")
            .0
            .as_ref(),
        420_i64.to_be_bytes()
    );
}

#[test]
fn hazard_11_a_check_that_fails_answers_when_what_it_read_is_durable() {
    let subject = Subject::new(vec![versions("f", 1)]);
    let (_, written) = subject.log("r", vec![put("f", "q", 1, "a")]).expect("put");
    let check = CellCheck {
        family: family("f"),
        qualifier: qualifier("q"),
        value: Some(value("b")),
    };
    let mutation = RowMutation {
        row: row("r"),
        check: Some(check),
        mutations: vec![put("f", "q", 2, "c")],
    };
    let (response, group) = subject
        .log_all(MutateRequest {
            rows: vec![mutation],
        })
        .expect("check");
    assert!(!response.results[0].applied);
    assert!(
        group >= written,
        "the answer waits for group {written}, not {group}"
    );
}

#[test]
fn hazard_12_a_flush_keeps_what_plain_readers_see() {
    let subject = Subject::new(vec![versions("f", 1)]);
    subject.write("r", vec![put("f", "q", 10, "durable")]);
    subject
        .log("r", vec![put("f", "q", 10, "not yet")])
        .expect("log");
    assert_eq!(subject.cells("r", "f", "q"), [(10, "durable".to_owned())]);
    // A flush takes both, and makes both durable before one hides the other in a file.
    subject.flush();
    assert_eq!(subject.cells("r", "f", "q"), [(10, "not yet".to_owned())]);
    let subject = subject.crash(&mut Random::new(3));
    assert_eq!(subject.cells("r", "f", "q"), [(10, "not yet".to_owned())]);
}

#[test]
fn hazard_13_no_crash_shows_half_a_row_mutation() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let subject = Subject::new(vec![versions("f", 1), versions("g", 1)]);
        for i in 0..random.below(8) {
            let text = i.to_string();
            subject
                .log("r", vec![put("f", "q", 1, &text), put("g", "q", 1, &text)])
                .expect("log");
            match random.below(4) {
                0 => subject.commit(),
                1 => subject.flush(),
                _ => {}
            }
        }
        if random.chance(50) {
            subject.disk.fail_in(random.below(12));
            let _ = subject.each(|store, table, tablet| store.flush(table, tablet).map(drop));
            subject.disk.fail_in(u64::MAX);
        }
        let subject = subject.crash(&mut random);
        assert_eq!(
            subject.cells("r", "f", "q"),
            subject.cells("r", "g", "q"),
            "seed {seed}"
        );
    }
}

#[test]
fn hazard_14_replay_does_not_bring_back_what_was_compacted_away() {
    let subject = Subject::new(vec![versions("f", 1)]);
    // A second table's old record pins the segment.
    let other = TableName::new("other").expect("valid");
    let body = PutTable {
        families: vec![versions("f", 1)],
        ..PutTable::default()
    };
    subject.store.put_table(&other, &body).expect("put table");
    let pin = MutateRequest {
        rows: vec![RowMutation {
            row: row("pin"),
            check: None,
            mutations: vec![put("f", "q", 1, "v")],
        }],
    };
    Plan::check(&subject.store, &other, pin)
        .expect("check")
        .apply(&subject.store)
        .expect("apply");
    subject.write("r", vec![put("f", "q", 5, "deleted")]);
    subject.write("r", vec![delete_column("f", "q")]);
    let (table, tablet) = subject
        .store
        .tablets()
        .into_iter()
        .find(|(table, _)| table.name.as_str() == "t")
        .expect("table t");
    subject.store.flush(&table, &tablet).expect("flush");
    subject
        .store
        .compact_fully(&table, &tablet)
        .expect("compact");
    assert_eq!(
        subject.store.table_stats(&table).files,
        0,
        "put and delete are compacted away"
    );
    let subject = subject.crash(&mut Random::new(5));
    assert_eq!(subject.cells("r", "f", "q"), []);
}

/// Writes durably, crashes, and counts acknowledged cells that are gone or stores that do not open.
fn losses(ignored: Option<Sync>, seeds: std::ops::Range<u64>) -> usize {
    let lost = |seed: &u64| {
        let mut random = Random::new(*seed);
        let (disk, clock) = (SimDisk::new(), TestClock::at(SECOND));
        if let Some(sync) = ignored {
            disk.ignore(sync);
        }
        let store = open_at(&disk, &clock, false).expect("open");
        let subject = Subject { disk, clock, store };
        subject.put_table(vec![versions("f", 1)]);
        let count = 1 + random.below(20);
        for i in 0..count {
            // Large enough that the log goes over several segments.
            subject.write(
                &format!("r{i:02}"),
                vec![put("f", "q", 1, &"v".repeat(random.below(6000) as usize))],
            );
            if random.chance(15) {
                subject.flush();
            }
            if random.chance(15) {
                subject
                    .store
                    .log()
                    .and_then(|log| log.make_spare())
                    .expect("spare");
            }
        }
        if random.chance(50) {
            // The power goes while it is written, or before it is synced, or after.
            subject
                .log(
                    "s",
                    vec![put("f", "q", 1, &"v".repeat(random.below(30_000) as usize))],
                )
                .expect("log");
            subject.disk.fail_in(1 + random.below(2));
            let _ = subject.store.log().and_then(|log| log.commit());
        }
        let disk = subject.disk.crash(&mut random);
        let Ok(store) = open_at(&disk, &subject.clock, false) else {
            return true;
        };
        let subject = Subject {
            disk,
            clock: subject.clock.clone(),
            store,
        };
        let keys = ReadRequest {
            cells: tablemount_api::CellContent::None,
            prefix: Some(value("r")),
            ..ReadRequest::default()
        };
        let rows = subject
            .read_lines(&keys)
            .map(|lines| lines.len() as u64 - 1);
        rows.ok() != Some(count)
    };
    seeds.filter(lost).count()
}

#[test]
fn hazard_18_nothing_acknowledged_is_lost_at_a_crash() {
    assert_eq!(losses(None, 0..300), 0);
}

#[test]
fn hazard_18_each_sync_left_out_is_noticed() {
    for sync in [
        Sync::Group,
        Sync::Folder,
        Sync::Removal,
        Sync::Parent,
        Sync::Object,
    ] {
        assert!(
            losses(Some(sync), 0..40) > 0,
            "{sync:?} left out, and no crash lost anything"
        );
    }
}

#[test]
fn hazard_16_after_a_failed_sync_nothing_is_acknowledged() {
    let subject = Subject::new(vec![versions("f", 1)]);
    let (_, group) = subject.log("r", vec![put("f", "q", 1, "v")]).expect("log");
    subject.disk.fail_in(1);
    let log = subject.store.log().expect("log");
    assert!(
        log.commit().is_err(),
        "the write goes through, the sync fails"
    );
    assert!(!log.is_durable(group));
    subject.disk.fail_in(u64::MAX);
    let again = subject
        .log("r", vec![put("f", "q", 2, "w")])
        .expect_err("refused")
        .to_string();
    assert!(
        again.contains("the commit log failed and the server is ending"),
        "{again}"
    );
    assert_eq!(
        subject.cells("r", "f", "q"),
        [],
        "readers see only what is durable"
    );
}

#[test]
fn hazard_17_an_idle_tablet_does_not_pin_the_log() {
    let subject = Subject::new(vec![versions("f", 1)]);
    subject.write("idle", vec![put("f", "q", 1, "v")]);
    let other = TableName::new("other").expect("valid");
    let body = PutTable {
        families: vec![versions("f", 1)],
        ..PutTable::default()
    };
    subject.store.put_table(&other, &body).expect("put table");
    for i in 0..400 {
        let rows = vec![RowMutation {
            row: row("busy"),
            check: None,
            mutations: vec![put("f", "q", i, &"v".repeat(5000))],
        }];
        Plan::check(&subject.store, &other, MutateRequest { rows })
            .expect("check")
            .apply(&subject.store)
            .expect("apply");
        subject.commit();
        while let Some((table, tablet)) = subject.store.choose_flush().expect("choose") {
            subject.store.flush(&table, &tablet).expect("flush");
        }
    }
    let bytes = subject.store.log().expect("log").bytes();
    assert!(
        bytes <= options().log_budget_bytes + 2 * options().segment_bytes,
        "{bytes}"
    );
}

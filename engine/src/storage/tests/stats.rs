//! Statistics are what the store holds and did.

use tablemount_api::stats::{FamilyStats, ReplayStats, StallReason, TableStats};
use tablemount_api::{FamilySchema, Mutation};

use super::*;

fn plain(name: &str) -> FamilySchema {
    FamilySchema::new(family(name))
}

fn stats(subject: &Subject) -> TableStats {
    let table = subject.store.table(&table()).expect("table");
    subject.store.table_stats(&table)
}

fn of<'a>(stats: &'a TableStats, name: &str) -> &'a FamilyStats {
    let mut families = stats.families.iter();
    families
        .find(|one| one.family == family(name))
        .expect("the family")
}

#[test]
fn bytes_move_from_memtables_to_files() {
    let subject = Subject::new(vec![plain("f"), plain("g")]);
    subject.write("a", vec![put("f", "q", 1, "one"), put("g", "q", 1, "two")]);
    subject.write("b", vec![put("f", "q", 1, "three")]);
    let before = stats(&subject);
    assert_eq!(
        (before.files, before.disk_bytes, before.raw_bytes),
        (0, 0, 0)
    );
    assert!(of(&before, "f").memtable_bytes > of(&before, "g").memtable_bytes);
    assert_eq!(
        before
            .families
            .iter()
            .map(|family| family.memtable_bytes)
            .sum::<u64>(),
        before.memtable_bytes
    );
    assert_eq!(before.memtable_bytes, subject.store.stats().memtable_bytes);

    subject.flush();
    let after = stats(&subject);
    assert_eq!((after.files, after.memtable_bytes), (2, 0));
    assert_eq!((of(&after, "f").entries, of(&after, "g").entries), (2, 1));
    assert_eq!(
        (
            of(&after, "f").estimated_rows,
            of(&after, "g").estimated_rows
        ),
        (2, 1)
    );
    let on_disk: u64 = subject
        .store
        .objects
        .list("tablets")
        .expect("list")
        .into_iter()
        .filter(|(path, _)| path.contains("/sst/"))
        .map(|(_, bytes)| bytes)
        .sum();
    assert_eq!(after.disk_bytes, on_disk);
    assert_eq!(subject.store.stats().disk_bytes, on_disk);
    assert!(after.raw_bytes >= "aqonebqthreeaqtwo".len() as u64);
    assert_eq!(after.tablets[0].disk_bytes, on_disk);
}

#[test]
fn cells_written_are_puts_and_what_increments_wrote_since_the_start() {
    let subject = Subject::new(vec![plain("f"), plain("g")]);
    subject.write(
        "a",
        vec![
            put("f", "q", 1, "x"),
            put("f", "r", 1, "y"),
            put("g", "q", 1, "z"),
        ],
    );
    subject.write("a", vec![increment("g", "n", 5)]);
    subject.write("a", vec![Mutation::DeleteRow {}]);
    let written = stats(&subject);
    assert_eq!(
        (
            of(&written, "f").cells_written,
            of(&written, "g").cells_written
        ),
        (2, 2)
    );
    assert_eq!(written.tablets[0].writes, 3);
    subject.flush();
    assert_eq!(
        of(&stats(&subject), "f").cells_written,
        2,
        "a flush writes nothing new"
    );
    let again = subject.crash(&mut super::super::sim::Random::new(1));
    assert_eq!(of(&stats(&again), "f").cells_written, 0, "nor does a start");
    assert_eq!(stats(&again).tablets[0].writes, 0);
}

#[test]
fn reads_count_where_they_look() {
    let subject = Subject::new(vec![plain("f")]);
    subject.write("a", vec![put("f", "q", 1, "x")]);
    assert_eq!(stats(&subject).tablets[0].reads, 0);
    subject.cells("a", "f", "q");
    subject.cells("none", "f", "q");
    assert_eq!(stats(&subject).tablets[0].reads, 2);
}

#[test]
fn what_is_not_flushed_holds_the_log() {
    let subject = Subject::new(vec![plain("f")]);
    let tablet = |subject: &Subject| stats(subject).tablets.remove(0);
    assert_eq!(
        (
            tablet(&subject).oldest_unflushed_seconds,
            tablet(&subject).log_bytes_held
        ),
        (None, 0)
    );
    // Segments of 16 KiB: three.
    let large = "x".repeat(10 << 10);
    for key in ["a", "b", "c"] {
        subject.write(key, vec![put("f", "q", 1, &large)]);
    }
    let held = tablet(&subject);
    assert!(
        held.oldest_unflushed_seconds
            .is_some_and(|seconds| seconds < 600.0)
    );
    assert_eq!(held.log_bytes_held, subject.store.stats().log_bytes);
    assert_eq!(held.log_bytes_held, 3 * (16 << 10));
    let replay = subject.store.stats().replay;
    assert!(
        replay.bytes > 30 << 10 && replay.bytes <= 3 * (16 << 10),
        "{replay:?}"
    );

    subject.flush();
    let flushed = tablet(&subject);
    assert_eq!(
        (flushed.oldest_unflushed_seconds, flushed.log_bytes_held),
        (None, 0)
    );
    let server = subject.store.stats();
    assert!(server.replay.bytes <= server.log_bytes && server.log_bytes == 16 << 10);
    subject.write("d", vec![put("f", "q", 1, "small")]);
    assert_eq!(tablet(&subject).log_bytes_held, 16 << 10);
}

#[test]
fn a_start_that_replays_tells_its_rate() {
    let subject = Subject::new(vec![plain("f")]);
    assert_eq!(subject.store.stats().replay.bytes_per_second, None);
    let large = "x".repeat(1 << 20);
    subject.write("a", vec![put("f", "q", 1, &large)]);
    subject.write("b", vec![put("f", "q", 1, &large)]);
    let again = subject.crash(&mut super::super::sim::Random::new(1));
    let ReplayStats {
        bytes,
        bytes_per_second,
        estimated_millis,
    } = again.store.stats().replay;
    let rate = bytes_per_second.expect("2 MiB were replayed");
    assert_eq!(estimated_millis, Some(bytes * 1000 / rate));
}

#[test]
fn syncs_are_timed() {
    let subject = Subject::new(vec![plain("f")]);
    for key in ["a", "b", "c"] {
        subject.write(key, vec![put("f", "q", 1, "x")]);
    }
    let server = subject.store.stats();
    assert_eq!((server.log_syncs, server.log_sync.count), (3, 3));
    assert!(server.log_sync.p50_micros <= server.log_sync.p99_micros);
    assert!(server.log_sync.p99_micros <= server.log_sync.max_micros);
}

#[test]
fn an_in_memory_family_that_does_not_fit_says_so() {
    let in_memory = FamilySchema {
        in_memory: true,
        ..plain("m")
    };
    let subject = Subject::new(vec![in_memory, plain("f")]);
    subject.write("a", vec![put("m", "q", 1, "x"), put("f", "q", 1, "x")]);
    subject.flush();
    let loading = of(&stats(&subject), "m").in_memory.expect("in memory");
    assert!(!loading.fits && loading.held_bytes == 0, "{loading:?}");
    subject.store.hold_in_memory().expect("loaded");
    let small = stats(&subject);
    let memory = of(&small, "m").in_memory.expect("in memory");
    assert!(memory.fits && memory.held_bytes == memory.wanted_bytes && memory.held_bytes > 0);
    assert_eq!(of(&small, "f").in_memory, None);
    // The budget is 1 MiB.
    for key in 0..300 {
        subject.write(
            &format!("b{key}"),
            vec![put("m", "q", 1, &"x".repeat(8 << 10))],
        );
    }
    subject.flush();
    subject.store.hold_in_memory().expect("loaded");
    let memory = of(&stats(&subject), "m").in_memory.expect("in memory");
    assert!(
        !memory.fits && memory.held_bytes < memory.wanted_bytes,
        "{memory:?}"
    );
    assert_eq!(memory.held_bytes, subject.store.stats().in_memory_bytes);
}

#[test]
fn rows_are_estimated_too_high_until_files_merge() {
    let subject = Subject::new(vec![plain("f"), plain("g")]);
    for key in ["a", "b", "c"] {
        subject.write(
            key,
            vec![
                put("f", "q", 1, "x"),
                put("f", "r", 1, "x"),
                put("g", "q", 1, "x"),
            ],
        );
    }
    assert_eq!(of(&stats(&subject), "f").estimated_rows, 3, "in memtables");
    subject.flush();
    subject.write("a", vec![put("f", "q", 2, "x")]);
    subject.write("d", vec![put("f", "q", 2, "x")]);
    let estimated = |subject: &Subject| stats(subject).estimated_rows;
    assert_eq!(estimated(&subject), 5, "a counts twice");
    subject.flush();
    assert_eq!(estimated(&subject), 5);
    subject.compact_fully();
    assert_eq!(estimated(&subject), 4);
    assert_eq!(of(&stats(&subject), "g").estimated_rows, 3);
}

#[test]
fn blocks_that_are_read_are_counted_to_their_family() {
    let subject = Subject::new(vec![plain("f"), plain("g")]);
    for key in 0..100 {
        subject.write(
            &format!("r{key:03}"),
            vec![put("f", "q", 1, &"x".repeat(1000)), put("g", "q", 1, "x")],
        );
    }
    subject.flush();
    let before = of(&stats(&subject), "f").cache_bytes;
    subject.texts(&ReadRequest {
        families: vec![family("f")],
        ..ReadRequest::default()
    });
    let after = of(&stats(&subject), "f").cache_bytes;
    assert!(after > before + 90_000, "{before} {after}");
    assert!(of(&stats(&subject), "g").cache_bytes < 10_000);
    let server = subject.store.stats();
    assert!(server.cache_bytes >= after && server.cache_bytes <= server.cache_budget_bytes);
    assert!(server.cache_misses >= 25 && server.cache_hits < server.cache_misses);
    subject.texts(&ReadRequest {
        families: vec![family("f")],
        ..ReadRequest::default()
    });
    assert!(subject.store.stats().cache_hits >= 25);
    subject.compact_fully();
    assert!(
        of(&stats(&subject), "f").cache_bytes < 10_000,
        "the files read are gone"
    );
}

#[test]
fn what_slows_writers_down_is_told() {
    let subject = Subject::new(vec![plain("f")]);
    let stall = |subject: &Subject| stats(subject).tablets[0].stall;
    assert_eq!(stall(&subject), None);
    for i in 0..30 {
        subject.write("r", vec![put("f", "q", i, "x")]);
        subject.flush();
    }
    assert_eq!(stall(&subject), Some(StallReason::CompactionDebt));
    assert!(stats(&subject).estimated_debt_bytes > 0);
    subject.compact_fully();
    assert_eq!(
        (stall(&subject), stats(&subject).estimated_debt_bytes),
        (None, 0)
    );

    subject.disk.limit_to(0);
    let large = "x".repeat(3000);
    let refused = (0..100).find_map(|i| subject.log("r", vec![put("f", "q", i, &large)]).err());
    assert!(refused.is_some());
    assert_eq!(stall(&subject), Some(StallReason::DiskFull));
    subject.disk.limit_to(1 << 20);
    subject
        .store
        .log()
        .expect("log")
        .make_spare()
        .expect("room");
    assert_eq!(stall(&subject), None);
}

//! Random schedules against the model: writes, deletes of every kind, read-modify-writes, reads in both directions and at times,
//! flushes, compactions, schema changes, reopenings and crashes, from a seed. What is visible must be what the model shows.

mod gets;

use tablemount_api::{
    BloomFilter, CellCheck, CellContent, CompressionScope, DeleteRows, Hold, Position,
};

use super::*;
use crate::delete_rows;
use crate::memory_engine::MemoryEngine;
use crate::storage::compactor::Merge;
use crate::storage::sim::Random;

/// Schedules of a plain run; `TABLEMOUNT_MODEL_SCHEDULES` sets another number.
const SCHEDULES: u64 = 300;
const STEPS: u64 = 120;
/// Gets with each read.
const GETS: u64 = 4;

const ROWS: [&str; 7] = ["a", "a\0", "a\0b", "b", "ba", "m", "z\u{ff}"];
const QUALIFIERS: [&str; 5] = ["", "q", "q\0", "qq", "r"];

struct Schedule {
    random: Random,
    subject: Option<Subject>,
    /// Merges that began and are not done.
    merges: Vec<Merge>,
    /// What was written, and the part of it that is durable.
    written: MemoryEngine,
    durable: MemoryEngine,
}

fn families(random: &mut Random) -> Vec<FamilySchema> {
    use tablemount_api::Compression::{Lz4, None as Plain, Snappy, Zstd};
    let mut families = vec![
        FamilySchema::new(family("all")),
        versions("one", 1),
        versions("three", 3),
        age("young", HOUR),
    ];
    for family in &mut families {
        family.compression = *random.pick(&[Plain, Lz4, Snappy, Zstd]);
        family.compression_scope =
            *random.pick(&[CompressionScope::Block, CompressionScope::Record]);
        family.bloom_filter =
            *random.pick(&[BloomFilter::None, BloomFilter::Row, BloomFilter::RowColumn]);
        family.block_cache = random.chance(75);
        family.block_bytes = 1024;
        family.in_memory = random.chance(25);
    }
    families
}

impl Schedule {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let families = families(&mut random);
        let splits = if random.chance(50) {
            vec![row("a\0b"), row("m")]
        } else {
            vec![]
        };
        let body = PutTable {
            families,
            splits,
            ..PutTable::default()
        };
        let (disk, clock) = (SimDisk::new(), TestClock::at(1_700_000_000 * SECOND));
        let store = open_at(&disk, &clock, false).expect("open");
        store.put_table(&table(), &body).expect("put table");
        let model = || {
            let mut model = MemoryEngine::default();
            model
                .put_table(&table(), body.clone(), clock.now())
                .expect("put table");
            model
        };
        let (written, durable) = (model(), model());
        Self {
            random,
            subject: Some(Subject { disk, clock, store }),
            merges: Vec::new(),
            written,
            durable,
        }
    }

    fn subject(&self) -> &Subject {
        self.subject.as_ref().expect("open")
    }

    fn step(&mut self) {
        let step = 1000 + (self.random.next() % 10_000_000) as i64;
        self.subject().clock.advance(step);
        match self.random.below(100) {
            0..44 => self.mutate(),
            44 => self.delete_rows(),
            45..60 => self.commit(),
            60..88 => {
                self.read();
                (0..GETS).for_each(|_| self.get());
            }
            88..92 => self.flush(),
            92..94 => self.compact(),
            94..95 => self.compact_fully(),
            95..97 => self.change_schema(),
            97..98 => self.reopen(),
            98..99 => self.fail_and_crash(),
            _ => self.crash(),
        }
    }

    fn commit(&mut self) {
        self.subject().commit();
        self.durable = self.written.clone();
    }

    /// Also commits what was logged.
    fn flush(&mut self) {
        self.subject().flush();
        self.commit();
    }

    /// Begins merges, or ends those that began, whatever came between; at times the store is held or released.
    fn compact(&mut self) {
        let begin = self.random.chance(50);
        if self.random.chance(10) {
            let hold = Hold {
                held: !self.subject().store.held(),
                ..Hold::default()
            };
            self.subject().store.set_hold(&hold).expect("set hold");
        }
        if begin {
            let begun = self.subject().store.next_merge(None);
            self.merges.extend(begun);
        } else {
            self.end_merges();
            self.subject()
                .each(|store, table, tablet| store.compact(table, tablet).map(drop))
                .expect("compact");
        }
        let store = &self.subject().store;
        store.remove_dropped().expect("remove");
        store.hold_in_memory().expect("load");
    }

    fn end_merges(&mut self) {
        for merge in std::mem::take(&mut self.merges) {
            self.subject().store.merge(&merge).expect("merge");
        }
    }

    fn compact_fully(&mut self) {
        self.end_merges();
        self.subject().compact_fully();
    }

    fn reopen(&mut self) {
        self.flush();
        self.merges.clear();
        self.subject = self.subject.take().map(Subject::reopen);
    }

    /// What was not durable is gone, all of it, or all of it is there.
    fn crash(&mut self) {
        self.merges.clear();
        let mut random = self.random.clone();
        self.subject = self
            .subject
            .take()
            .map(|subject| subject.crash(&mut random));
        self.random = random;
        let now = self.subject().clock.now();
        let everything = ReadRequest::default();
        let found = cells(&self.subject().read_lines(&everything).expect("read"));
        let model =
            |model: &MemoryEngine| cells(&model.read(&table(), &everything, now).expect("read"));
        if found == model(&self.written) {
            self.durable = self.written.clone();
        } else {
            assert_eq!(found, model(&self.durable), "after a crash");
            self.written = self.durable.clone();
        }
    }

    /// Some call of a flush, compaction or commit fails, and all after it; then the power goes.
    fn fail_and_crash(&mut self) {
        self.merges.clear();
        let calls = self.random.below(25);
        let subject = self.subject.as_ref().expect("open");
        subject.disk.fail_in(calls);
        let _ = match self.random.below(3) {
            0 => subject.each(|store, table, tablet| store.flush(table, tablet).map(drop)),
            1 => subject.each(|store, table, tablet| store.compact_fully(table, tablet)),
            _ => subject.store.log().and_then(|log| log.commit().map(drop)),
        };
        self.crash();
    }

    fn change_schema(&mut self) {
        self.commit();
        let families = families(&mut self.random);
        let dropped = self.random.pick(&families).name.clone();
        let kept = families
            .iter()
            .filter(|family| family.name != dropped)
            .cloned()
            .collect();
        let drop_body = PutTable {
            families: kept,
            drop_families: vec![dropped],
            ..PutTable::default()
        };
        let now = self.subject().clock.now();
        for body in [
            drop_body,
            PutTable {
                families,
                ..PutTable::default()
            },
        ] {
            self.subject()
                .store
                .put_table(&table(), &body)
                .expect("put table");
            self.written
                .put_table(&table(), body, now)
                .expect("put table");
        }
        self.durable = self.written.clone();
    }

    fn mutate(&mut self) {
        let rows: Vec<_> = (0..1 + self.random.below(2))
            .map(|_| self.row_mutation())
            .collect();
        let (ours, _) = match self.subject().log_all(MutateRequest { rows: rows.clone() }) {
            Ok(done) => done,
            Err(Error::Invalid(message)) if message.contains("increment of a value") => {
                return self.half_done(rows);
            }
            Err(error) => panic!("{error}"),
        };
        let now = self.subject().clock.now();
        let theirs = self
            .written
            .mutate(&table(), MutateRequest { rows }, now)
            .expect("mutate");
        assert_eq!(ours, theirs);
    }

    /// An increment met a value that is no number: rows before it were written.
    fn half_done(&mut self, rows: Vec<RowMutation>) {
        let now = self.subject().clock.now();
        for row in rows {
            if self
                .written
                .mutate(&table(), MutateRequest { rows: vec![row] }, now)
                .is_err()
            {
                return;
            }
        }
        panic!("the model takes what the store refused");
    }

    fn row_mutation(&mut self) -> RowMutation {
        let random = &mut self.random;
        let check = random.chance(10).then(|| CellCheck {
            family: family("one"),
            qualifier: qualifier(random.word(&QUALIFIERS)),
            value: random.chance(50).then(|| value("1")),
        });
        let mutations = (0..1 + random.below(4)).map(|_| mutation(random)).collect();
        RowMutation {
            row: row(random.word(&ROWS)),
            check,
            mutations,
        }
    }

    /// Deletes a range of rows, a prefix, or all.
    fn delete_rows(&mut self) {
        let random = &mut self.random;
        let (a, b) = (row(random.word(&ROWS)), row(random.word(&ROWS)));
        let mut rows = DeleteRows::default();
        match random.below(4) {
            0 => rows.prefix = Some(value("a")),
            1 => rows.start = Some(a),
            2 if a < b => (rows.start, rows.stop) = (Some(a), Some(b)),
            2 => rows.stop = Some(a),
            _ => rows.all = random.chance(30),
        }
        if rows.validate().is_err() {
            return;
        }
        let store = &self.subject().store;
        let table_now = store.table(&table()).expect("table");
        delete_rows::log(store, &table_now, &rows).expect("log");
        let prefix = rows.prefix.as_ref().map(|prefix| prefix.0.clone());
        self.written.delete_rows(&table(), |key| {
            prefix.as_ref().is_none_or(|prefix| key.starts_with(prefix))
                && rows.start.as_ref().is_none_or(|start| start.bytes() <= key)
                && rows.stop.as_ref().is_none_or(|stop| key < stop.bytes())
        });
    }

    fn read(&mut self) {
        let request = read_request(&mut self.random);
        let now = self.subject().clock.now();
        let ours = pages(&request, |request| self.subject().read_lines(request));
        let theirs = pages(&request, |request| {
            self.durable.read(&table(), request, now)
        });
        assert_eq!(ours, theirs, "{request:?}");
    }
}

/// A timestamp that a mutation may have.
fn time(random: &mut Random) -> Timestamp {
    match random.below(3) {
        0 => Timestamp(random.below(8) as i64),
        1 => Timestamp(1_700_000_000 * SECOND + random.below(600) as i64 * SECOND),
        _ => Timestamp(1_700_000_000 * SECOND + random.below(6) as i64 * SECOND),
    }
}

fn mutation(random: &mut Random) -> Mutation {
    let name = family(random.word(&["all", "one", "three", "young"]));
    let q = qualifier(random.word(&QUALIFIERS));
    match random.below(20) {
        0..9 => {
            let text = random.below(5).to_string().repeat(
                1 + random.below(300) as usize % 37 * if random.chance(8) { 60 } else { 1 },
            );
            let timestamp = random.chance(70).then(|| time(random));
            Mutation::Put {
                family: name,
                qualifier: q,
                timestamp,
                value: value(&text),
            }
        }
        9..12 => Mutation::DeleteCell {
            family: name,
            qualifier: q,
            timestamp: time(random),
        },
        12 => Mutation::DeleteColumn {
            family: name,
            qualifier: q,
            min_timestamp: None,
            max_timestamp: None,
        },
        13..15 => {
            let (a, b) = (time(random), time(random));
            let (min, max) = (
                random.chance(70).then(|| a.min(b)),
                random.chance(70).then(|| a.max(b)),
            );
            Mutation::DeleteColumn {
                family: name,
                qualifier: q,
                min_timestamp: min,
                max_timestamp: max,
            }
        }
        15 => Mutation::DeleteFamily { family: name },
        16 => Mutation::DeleteRow {},
        17 => Mutation::Append {
            family: name,
            qualifier: q,
            value: value("1"),
        },
        _ => Mutation::Increment {
            family: name,
            qualifier: q,
            by: random.below(9) as i64,
        },
    }
}

fn read_request(random: &mut Random) -> ReadRequest {
    let mut maybe = |percent: u64| random.chance(percent);
    let (one, range, prefix, columns, time) =
        (maybe(30), maybe(40), maybe(15), maybe(40), maybe(40));
    let (reverse, limited) = (maybe(40), maybe(50));
    let key = |random: &mut Random| Some(row(random.word(&ROWS)));
    let mut request = ReadRequest {
        reverse,
        ..ReadRequest::default()
    };
    if one {
        request.row = key(random);
    }
    if range {
        request.start = key(random).filter(|_| random.chance(70));
        request.stop = key(random).filter(|_| random.chance(70));
    }
    if prefix {
        request.prefix = Some(value("a"));
    }
    if columns {
        request.families = vec![family(random.word(&["all", "one", "three", "young"]))];
        request.qualifier_start = random
            .chance(30)
            .then(|| qualifier(random.word(&QUALIFIERS)));
        request.qualifier_stop = random
            .chance(30)
            .then(|| qualifier(random.word(&QUALIFIERS)));
        request.qualifier = random
            .chance(30)
            .then(|| qualifier(random.word(&QUALIFIERS)));
        request.qualifier_prefix = random.chance(20).then(|| value("q"));
    }
    if time {
        let time = |random: &mut Random| Timestamp(random.below(9) as i64);
        request.at = random.chance(60).then(|| time(random));
        request.since = random.chance(40).then(|| time(random));
        request.versions = random.chance(60).then(|| 1 + random.below(3) as u32);
        request.columns_per_family = random.chance(40).then(|| 1 + random.below(2) as u32);
    }
    request.cells = *random.pick(&[
        CellContent::Values,
        CellContent::Values,
        CellContent::Lengths,
        CellContent::None,
    ]);
    if limited {
        request.row_limit = random.chance(50).then(|| 1 + random.below(4));
        request.cell_limit = random.chance(50).then(|| 1 + random.below(6));
    }
    request
}

type Flat = Vec<(RowKey, Option<Cell>)>;

/// All pages of a read, flat.
fn pages(request: &ReadRequest, read: impl Fn(&ReadRequest) -> Result<Vec<ReadLine>>) -> Flat {
    let (mut request, mut all) = (request.clone(), Vec::new());
    for _ in 0..10_000 {
        let mut lines = read(&request).expect("read");
        let end = lines.pop().and_then(|line| line.end).expect("an end");
        all.extend(cells(&lines));
        let next: Option<Position> = end.next;
        if next.is_none() {
            return all;
        }
        assert_ne!(next, request.after, "no progress");
        request.after = next;
    }
    panic!("a read without end: {request:?}");
}

fn cells(lines: &[ReadLine]) -> Flat {
    let rows = lines
        .iter()
        .filter_map(|line| Some((line.row.clone()?, &line.cells)));
    rows.flat_map(|(row, cells)| match cells.is_empty() {
        true => vec![(row, None)],
        false => cells
            .iter()
            .map(|cell| (row.clone(), Some(cell.clone())))
            .collect(),
    })
    .collect()
}

fn run(seed: u64) {
    let mut schedule = Schedule::new(seed);
    (0..STEPS).for_each(|_| schedule.step());
}

#[test]
fn visible_is_what_the_model_shows() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<u64>().expect("a number"))
    };
    if let Some(seed) = number("TABLEMOUNT_MODEL_SEED") {
        return run(seed);
    }
    let count = number("TABLEMOUNT_MODEL_SCHEDULES").unwrap_or(SCHEDULES);
    for seed in 0..count {
        if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
            eprintln!("schedule failed; run it again with TABLEMOUNT_MODEL_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

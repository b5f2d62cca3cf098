//! Tests of the store as a whole, on the simulated disk: hazards by name, and a random schedule against the model.

mod compactions;
mod dump;
mod everything;
mod fixture;
mod hazards;
mod hold;
mod linear;
mod model;
mod recovery;
mod rules;
mod space;
mod speed;
mod stats;
mod threads;
mod verify;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tablemount_api::{
    Base64, Cell, FamilyName, FamilySchema, GcClause, GcRule, MutateRequest, MutateResponse,
    Mutation, PutTable, Qualifier, ReadLine, ReadRequest, RowKey, RowMutation, TableName,
    Timestamp,
};

use super::ids::Ids;
use super::open;
use super::sim::SimDisk;
use super::store::{Options, Store};
use super::table::Table;
use super::tablet::Tablet;
use crate::clock::Clock;
use crate::read::page::{Batch, Page};
use crate::write::Plan;
use crate::{Error, Result};

/// A clock that a test turns.
#[derive(Default)]
pub(crate) struct TestClock(AtomicI64);

impl TestClock {
    fn at(micros: i64) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(micros)))
    }

    fn set(&self, micros: i64) {
        self.0.store(micros, Ordering::Relaxed);
    }

    fn advance(&self, micros: i64) {
        self.0.fetch_add(micros, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }
}

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3600 * SECOND;

/// A store on a simulated disk, without threads: commits, flushes and compactions happen when a test says so.
struct Subject {
    disk: SimDisk,
    clock: Arc<TestClock>,
    store: Store,
}

fn options() -> Options {
    Options {
        memtable_budget_bytes: 64 << 20,
        log_budget_bytes: 1 << 20,
        segment_bytes: 16 << 10,
        cache_bytes: 256 << 10,
        in_memory_budget_bytes: 1 << 20,
        compaction_threads: 2,
        compaction_bytes_per_second: 0,
        ids: Ids::default(),
    }
}

fn open_at(disk: &SimDisk, clock: &Arc<TestClock>, read_only: bool) -> Result<Store> {
    open::open(Arc::new(disk.clone()), clock.clone(), options(), read_only)
}

fn table() -> TableName {
    TableName::new("t").expect("valid")
}

fn family(name: &str) -> FamilyName {
    FamilyName::new(name).expect("valid")
}

fn row(key: &str) -> RowKey {
    RowKey::new(Bytes::copy_from_slice(key.as_bytes())).expect("valid")
}

fn qualifier(key: &str) -> Qualifier {
    Qualifier::new(Bytes::copy_from_slice(key.as_bytes())).expect("valid")
}

fn value(text: &str) -> Base64 {
    Base64(Bytes::copy_from_slice(text.as_bytes()))
}

fn versions(name: &str, max_versions: u32) -> FamilySchema {
    let clause = GcClause {
        max_versions: Some(max_versions),
        max_age_micros: None,
    };
    FamilySchema {
        gc_rule: GcRule(vec![clause]),
        block_bytes: 1024,
        ..FamilySchema::new(family(name))
    }
}

fn age(name: &str, micros: i64) -> FamilySchema {
    let clause = GcClause {
        max_versions: None,
        max_age_micros: Some(micros),
    };
    FamilySchema {
        gc_rule: GcRule(vec![clause]),
        ..FamilySchema::new(family(name))
    }
}

fn put(fam: &str, q: &str, timestamp: i64, text: &str) -> Mutation {
    let timestamp = Some(Timestamp(timestamp));
    Mutation::Put {
        family: family(fam),
        qualifier: qualifier(q),
        timestamp,
        value: value(text),
    }
}

fn put_now(fam: &str, q: &str, text: &str) -> Mutation {
    Mutation::Put {
        family: family(fam),
        qualifier: qualifier(q),
        timestamp: None,
        value: value(text),
    }
}

fn delete_cell(fam: &str, q: &str, timestamp: i64) -> Mutation {
    Mutation::DeleteCell {
        family: family(fam),
        qualifier: qualifier(q),
        timestamp: Timestamp(timestamp),
    }
}

fn delete_column(fam: &str, q: &str) -> Mutation {
    Mutation::DeleteColumn {
        family: family(fam),
        qualifier: qualifier(q),
        min_timestamp: None,
        max_timestamp: None,
    }
}

fn increment(fam: &str, q: &str, by: i64) -> Mutation {
    Mutation::Increment {
        family: family(fam),
        qualifier: qualifier(q),
        by,
    }
}

impl Store {
    /// Performs one merge of the tablet, if there is one to do. Returns whether it did.
    fn compact(&self, _table: &Table, tablet: &Tablet) -> Result<bool> {
        match self.next_merge(Some(tablet.id)) {
            Some(merge) => Ok(self.merge(&merge)?.is_some()),
            None => Ok(false),
        }
    }

    /// Merges all files of each family of the tablet into one, collecting all that the rules allow.
    fn compact_fully(&self, table: &Arc<Table>, tablet: &Arc<Tablet>) -> Result<()> {
        let families = table.schema().record.families.clone();
        families
            .iter()
            .try_for_each(|family| self.compact_family(table, tablet, family.id).map(drop))
    }
}

impl Subject {
    fn new(families: Vec<FamilySchema>) -> Self {
        let (disk, clock) = (SimDisk::new(), TestClock::at(1_700_000_000 * SECOND));
        let store = open_at(&disk, &clock, false).expect("open");
        let subject = Self { disk, clock, store };
        subject.put_table(families);
        subject
    }

    fn put_table(&self, families: Vec<FamilySchema>) {
        self.store
            .put_table(
                &table(),
                &PutTable {
                    families,
                    ..PutTable::default()
                },
            )
            .expect("put table");
    }

    /// Logs a row's mutations; returns the group that must be durable.
    fn log(&self, key: &str, mutations: Vec<Mutation>) -> Result<(MutateResponse, u64)> {
        self.log_all(MutateRequest {
            rows: vec![RowMutation {
                row: row(key),
                check: None,
                mutations,
            }],
        })
    }

    fn log_all(&self, request: MutateRequest) -> Result<(MutateResponse, u64)> {
        let applied = Plan::check(&self.store, &table(), request)?.apply(&self.store)?;
        applied
            .failure
            .map_or(Ok((applied.response, applied.group)), Err)
    }

    /// Writes a row's mutations durably.
    fn write(&self, key: &str, mutations: Vec<Mutation>) -> MutateResponse {
        let (response, group) = self.log(key, mutations).expect("log");
        self.store
            .log()
            .expect("log")
            .make_durable(group)
            .expect("commit");
        response
    }

    fn commit(&self) {
        while self.store.log().expect("log").commit().expect("commit") {}
    }

    fn flush(&self) {
        self.each(|store, table, tablet| store.flush(table, tablet).map(drop))
            .expect("flush");
    }

    fn compact_fully(&self) {
        self.each(|store, table, tablet| store.compact_fully(table, tablet))
            .expect("compact");
    }

    fn each(&self, act: impl Fn(&Store, &Arc<Table>, &Arc<Tablet>) -> Result<()>) -> Result<()> {
        self.store
            .tablets()
            .iter()
            .try_for_each(|(table, tablet)| act(&self.store, table, tablet))
    }

    fn read_lines(&self, request: &ReadRequest) -> Result<Vec<ReadLine>> {
        read_lines(&self.store, request)
    }

    /// All visible cells of a row's column, newest first, as (timestamp, text).
    fn cells(&self, key: &str, fam: &str, q: &str) -> Vec<(i64, String)> {
        let request = ReadRequest {
            row: Some(row(key)),
            families: vec![family(fam)],
            qualifier: Some(qualifier(q)),
            ..ReadRequest::default()
        };
        self.texts(&request)
    }

    fn texts(&self, request: &ReadRequest) -> Vec<(i64, String)> {
        let lines = self.read_lines(request).expect("read");
        lines
            .iter()
            .flat_map(|line| &line.cells)
            .map(text_of)
            .collect()
    }

    /// Reopens after a crash.
    fn crash(self, random: &mut super::sim::Random) -> Self {
        let disk = self.disk.crash(random);
        let store = open_at(&disk, &self.clock, false).expect("reopen");
        Self {
            disk,
            clock: self.clock,
            store,
        }
    }

    /// Closes in order and reopens.
    fn reopen(self) -> Self {
        self.flush();
        let store = open_at(&self.disk, &self.clock, false).expect("reopen");
        Self {
            disk: self.disk,
            clock: self.clock,
            store,
        }
    }
}

fn text_of(cell: &Cell) -> (i64, String) {
    let bytes = cell
        .value
        .as_ref()
        .map(|value| value.0.clone())
        .unwrap_or_default();
    (
        cell.timestamp.0,
        String::from_utf8_lossy(&bytes).into_owned(),
    )
}

fn read_lines(store: &Store, request: &ReadRequest) -> Result<Vec<ReadLine>> {
    read_table(store, &table(), request)
}

fn read_table(store: &Store, name: &TableName, request: &ReadRequest) -> Result<Vec<ReadLine>> {
    let lines: Arc<Mutex<Result<Vec<ReadLine>>>> = Arc::new(Mutex::new(Ok(Vec::new())));
    let sink = lines.clone();
    let take = Box::new(move |batch: Result<Batch>| {
        let mut lines = sink.lock();
        match (&mut *lines, batch) {
            (Ok(lines), Ok(batch)) => lines.extend(batch.lines),
            (lines, Err(error)) => *lines = Err(error),
            (Err(_), Ok(_)) => {}
        }
        Ok(())
    });
    Page::new(
        store,
        store.table(name)?,
        request,
        Duration::from_secs(60),
        take,
    )?
    .run(store);

    std::mem::replace(&mut *lines.lock(), Err(Error::Io("taken".to_owned())))
}

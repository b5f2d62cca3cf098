//! A store: one data folder's tables, commit log and workers.
//!
//! Owns the parts and their order of locks: a row's lock → the log's → a tablet's state; `admin` → a table's `changing` → `hold` → a
//! tablet's manifest.
//! Opening is in [`super::open`], flushes and compactions in [`super::maintain`], tables in [`super::admin`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use parking_lot::{Condvar, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tablemount_api::{TableName, Timestamp};
use tokio::sync::{Notify, Semaphore};
use uuid::Uuid;

use super::cache::Shared;
use super::catalog::Catalog;
use super::disk::Disk;
use super::hold::HoldState;
use super::ids::Ids;
use super::jobs::Jobs;
use super::log::{Appended, CommitLog, Record};
use super::objects::Objects;
use super::pressure::Brake;
use super::rate::Rate;
use super::resources::ResourcesState;
use super::sst::{DroppedFiles, FileMeta, Sst};
use super::stats::ServerActivity;
use super::table::Table;
use super::tablet::{Tablet, TabletState};
use crate::clock::Clock;
use crate::read::READ_BYTES;
use crate::write::MAX_ROW_BYTES;
use crate::{Error, Result};

/// Locks of rows, by hash: rows may share one.
const ROW_LOCKS: usize = 1024;

/// Limits of a store.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) memtable_budget_bytes: u64,
    pub(crate) log_budget_bytes: u64,
    pub(crate) segment_bytes: u64,
    pub(crate) cache_bytes: u64,
    pub(crate) in_memory_budget_bytes: u64,
    pub(crate) compaction_threads: usize,
    /// What compactions read and write, together; 0: no limit.
    pub(crate) compaction_bytes_per_second: u64,
    pub(crate) ids: Ids,
}

/// A store, open.
pub(crate) struct Store {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) objects: Objects,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Options,
    pub(crate) store_id: Uuid,
    pub(crate) epoch: u64,
    pub(crate) started: Timestamp,
    /// Absent when the store is open read-only.
    pub(crate) log: Option<Arc<CommitLog>>,
    /// The log's id, and its newest sequence number when it was read.
    pub(crate) log_id: Uuid,
    pub(crate) recovered_sequence: u64,
    pub(crate) tables: ArcSwap<BTreeMap<String, Arc<Table>>>,
    /// The catalog's number and content; held while tables are made, changed or dropped.
    pub(crate) admin: Mutex<(u64, Catalog)>,
    /// Held shared by whoever collects or removes, until that is done.
    pub(crate) hold: RwLock<HoldState>,
    pub(crate) resources: Mutex<ResourcesState>,
    pub(crate) next_file: AtomicU64,
    pub(crate) dropped: DroppedFiles,
    /// Block cache and open files.
    pub(crate) shared: Arc<Shared>,
    pub(crate) in_memory_bytes: Arc<AtomicU64>,
    holding: Mutex<()>,
    pub(crate) memtable_bytes: AtomicU64,
    pub(crate) work: Work,
    pub(crate) activity: ServerActivity,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) rate: Rate,
    pub(super) waits_for_room: AtomicBool,
    /// Slows all writers down.
    pub(crate) brake: Brake,
    /// Room for lines that wait for their readers.
    pub(crate) read_bytes: Arc<Semaphore>,
    rows: Vec<RwLock<()>>,
}

/// Wakes the workers and those who wait for them.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) state: Mutex<WorkState>,
    pub(crate) changed: Condvar,
    /// Tells writers that memtables were flushed.
    pub(crate) flushed: Notify,
}

#[derive(Default)]
pub(crate) struct WorkState {
    pub(crate) flush: bool,
    pub(crate) compact: bool,
    pub(crate) stop: bool,
}

impl Store {
    #[expect(clippy::too_many_arguments, reason = "the parts that opening found")]
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        objects: Objects,
        clock: Arc<dyn Clock>,
        options: Options,
        store_id: Uuid,
        epoch: u64,
        log_id: Uuid,
        catalog: (u64, Catalog),
    ) -> Self {
        let started = clock.now();
        let rate = Rate::new(options.compaction_bytes_per_second);
        Self {
            shared: Shared::new(disk.clone(), options.cache_bytes),
            disk,
            objects,
            clock,
            options,
            store_id,
            epoch,
            started,
            log: None,
            log_id,
            recovered_sequence: 0,
            tables: ArcSwap::default(),
            admin: Mutex::new(catalog),
            hold: RwLock::default(),
            resources: Mutex::default(),
            next_file: AtomicU64::new(1),
            dropped: DroppedFiles::default(),
            in_memory_bytes: Arc::default(),
            holding: Mutex::new(()),
            memtable_bytes: AtomicU64::new(0),
            work: Work::default(),
            activity: ServerActivity::new(),
            jobs: Arc::default(),
            rate,
            waits_for_room: AtomicBool::new(false),
            brake: Brake::default(),
            read_bytes: Arc::new(Semaphore::new(READ_BYTES)),
            rows: (0..ROW_LOCKS).map(|_| RwLock::new(())).collect(),
        }
    }

    /// The log, unless the store is read-only.
    pub(crate) fn log(&self) -> Result<&Arc<CommitLog>> {
        let read_only = || Error::Precondition("the store is open read-only".to_owned());
        self.log.as_ref().ok_or_else(read_only)
    }

    /// A table by name.
    pub(crate) fn table(&self, name: &TableName) -> Result<Arc<Table>> {
        let tables = self.tables.load();
        let table = tables.get(name.as_str()).cloned();
        table.ok_or_else(|| Error::NotFound(format!("table \"{name}\" not found")))
    }

    /// What plain reads see up to.
    pub(crate) fn durable_sequence(&self) -> u64 {
        self.log
            .as_ref()
            .map_or(self.recovered_sequence, |log| log.durable_sequence())
    }

    /// A row's lock, shared: for plain mutations.
    pub(crate) fn lock_shared(&self, tablet: u64, row: &[u8]) -> RwLockReadGuard<'_, ()> {
        self.rows[row_lock(tablet, row)].read()
    }

    /// A row's lock, exclusive: for what reads before it writes.
    pub(crate) fn lock_exclusive(&self, tablet: u64, row: &[u8]) -> RwLockWriteGuard<'_, ()> {
        self.rows[row_lock(tablet, row)].write()
    }

    /// All rows' locks, exclusive, in one order; nobody else holds more than one.
    pub(crate) fn lock_all(&self) -> Vec<RwLockWriteGuard<'_, ()>> {
        self.rows.iter().map(RwLock::write).collect()
    }

    /// A row's lock, shared, if nobody has it exclusively or waits to.
    pub(crate) fn try_lock_shared(
        &self,
        tablet: u64,
        row: &[u8],
    ) -> Option<RwLockReadGuard<'_, ()>> {
        self.rows[row_lock(tablet, row)].try_read()
    }

    /// Logs a row's mutation and puts it into the tablet's memtables. The caller holds the row's lock.
    pub(crate) fn append(&self, tablet: &Tablet, record: &mut Record) -> Result<Appended> {
        check_bytes(record)?;
        let appended = self
            .log()?
            .append(record, &mut |record| self.apply(tablet, record))?;
        self.look_at_memtables();
        Ok(appended)
    }

    /// Like [`Store::append`], but `None` where that waits.
    pub(crate) fn try_append(
        &self,
        tablet: &Tablet,
        record: &mut Record,
    ) -> Result<Option<Appended>> {
        check_bytes(record)?;
        let appended = self
            .log()?
            .try_append(record, &mut |record| self.apply(tablet, record))?;
        self.look_at_memtables();
        Ok(appended)
    }

    fn apply(&self, tablet: &Tablet, record: &Record) -> Result<()> {
        tablet.check_live()?;
        let bytes = tablet.state().active.apply(record);
        self.memtable_bytes.fetch_add(bytes, Ordering::Relaxed);
        tablet.activity.wrote(&record.entries);
        Ok(())
    }

    /// Asks for a flush once memtables need one, once however many find that.
    fn look_at_memtables(&self) {
        if self.memtable_bytes.load(Ordering::Relaxed) <= self.options.memtable_budget_bytes / 2 {
            return;
        }
        let asked = std::mem::replace(&mut self.work.state.lock().flush, true);
        if !asked {
            self.work.changed.notify_all();
        }
    }

    /// Whether writers must wait for flushes.
    pub(crate) fn memtables_full(&self) -> bool {
        self.memtable_bytes.load(Ordering::Relaxed) > self.options.memtable_budget_bytes
    }

    /// Tells the workers of something to do.
    pub(crate) fn wake(&self, set: impl FnOnce(&mut WorkState)) {
        set(&mut self.work.state.lock());
        self.work.changed.notify_all();
    }

    /// Tells all work to end.
    pub(crate) fn stop(&self) {
        self.wake(|work| work.stop = true);
        self.jobs.wake();
    }

    /// Whether it was told so.
    pub(crate) fn stopping(&self) -> bool {
        self.work.state.lock().stop
    }

    /// Waits, unless the store stops.
    pub(crate) fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut state = self.work.state.lock();
        while !state.stop && !self.work.changed.wait_until(&mut state, until).timed_out() {}
    }

    /// Opens an SST that a manifest names, or is to name.
    pub(crate) fn open_sst(&self, meta: FileMeta) -> Result<Arc<Sst>> {
        Sst::open(&self.shared, meta, self.dropped.clone())
    }

    /// Holds the files of in-memory families in memory, each family's newest first, as far as the budget goes; lets go of the
    /// others. In the background: what is not held is read through the cache.
    pub(crate) fn hold_in_memory(&self) -> Result<()> {
        let Some(_one) = self.holding.try_lock() else {
            return Ok(());
        };
        for (table, tablet) in self.tablets() {
            let (schema, state) = (table.schema(), tablet.state());
            for family in &schema.record.families {
                for file in state.files.get(&family.id).into_iter().flatten().rev() {
                    if family.schema.in_memory {
                        file.pin(&self.in_memory_bytes, self.options.in_memory_budget_bytes)?;
                    } else {
                        file.unpin();
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes flushed memtables off the budget's account.
    pub(crate) fn release(&self, state: &TabletState, upto: u64) {
        let gone = state
            .frozen
            .iter()
            .filter(|(_, sequence)| *sequence <= upto);
        let bytes: u64 = gone.map(|(set, _)| set.bytes()).sum();
        self.memtable_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.work.flushed.notify_waiters();
    }

    /// All tablets with their tables.
    pub(crate) fn tablets(&self) -> Vec<(Arc<Table>, Arc<Tablet>)> {
        let tables = self.tables.load();
        tables
            .values()
            .flat_map(|table| {
                table
                    .tablets
                    .iter()
                    .map(|tablet| (table.clone(), tablet.clone()))
            })
            .collect()
    }
}

fn check_bytes(record: &Record) -> Result<()> {
    let bytes = record.bytes();
    match bytes > MAX_ROW_BYTES {
        true => Err(Error::TooLarge(format!(
            "the mutations come to {bytes} bytes; limit is {MAX_ROW_BYTES}"
        ))),
        false => Ok(()),
    }
}

fn row_lock(tablet: u64, row: &[u8]) -> usize {
    let hash = crc32c::crc32c_append(tablet as u32, row);
    hash as usize % ROW_LOCKS
}

//! The engine's face to its edges: tables, reads, writes, statistics.

use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tablemount_api::stats::{ServerStats, TableStats};
use tablemount_api::{
    CompactResponse, DeleteRows, DropTable, FamilyName, Hold, MutateRequest, MutateResponse,
    Position, PutTable, Qualifier, ReadRequest, RowKey, TableInfo, TableName, ValueRequest,
};

use crate::clock::SystemClock;
use crate::delete_rows;
use crate::open_files;
use crate::read::direct::{self, Asked};
use crate::read::{self, CellRef, CellValue, ReadStream};
use crate::storage::disk::LocalDisk;
use crate::storage::ids::Ids;
use crate::storage::log::segment_bytes;
use crate::storage::open;
use crate::storage::store::{Options, Store};
use crate::storage::workers::{Workers, compaction_threads};
use crate::write;
use crate::{Error, Result};

/// How to open a store.
#[derive(Debug, Clone)]
pub struct Config {
    /// The data folder; created if absent.
    pub data: PathBuf,
    /// Open without writing anything; also opens a store whose log is corrupted, up to there.
    pub read_only: bool,
    /// Budget of all memtables, in bytes: above half of it the largest are flushed, above it writers wait.
    pub memtable_budget_bytes: u64,
    /// Budget of the commit log, in bytes: above it the tablets that hold its oldest segment are flushed. It is kept in
    /// segments of an eighth of it, 1 to 32 MiB, and never has fewer than two.
    pub log_budget_bytes: u64,
    /// Budget of the block cache, in bytes; indexes and filters of SSTs are in it.
    pub cache_bytes: u64,
    /// Budget of the files of in-memory families, in bytes: those beyond it are read from disk.
    pub in_memory_budget_bytes: u64,
    /// What compactions may read and write together, in bytes a second; 0, the default: as much as they can, since their
    /// threads give way to all others. Does not apply to flushes, nor while writers are slowed down because compactions are
    /// behind.
    pub compaction_bytes_per_second: u64,
}

impl Config {
    /// Default budgets: 128 MiB of memtables, 256 MiB of log, 256 MiB of block cache, 256 MiB of in-memory families.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            data: data.into(),
            read_only: false,
            memtable_budget_bytes: 128 << 20,
            log_budget_bytes: 256 << 20,
            cache_bytes: 256 << 20,
            in_memory_budget_bytes: 256 << 20,
            compaction_bytes_per_second: 0,
        }
    }
}

/// A tablet server on one store. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    open: Arc<Open>,
}

struct Open {
    store: Arc<Store>,
    workers: Workers,
}

impl Drop for Open {
    /// Without [`Engine::close`] the threads end too; nothing is flushed, the log has it.
    fn drop(&mut self) {
        stop(&self.store);
    }
}

fn stop(store: &Store) {
    store.stop();
    if let Ok(log) = store.log() {
        log.close();
    }
}

impl Engine {
    /// Opens or creates the store: locks the folder, recovers, is ready to serve when it returns.
    pub async fn open(config: Config) -> Result<Self> {
        open_files::raise_limit();
        let options = Options {
            memtable_budget_bytes: config.memtable_budget_bytes,
            log_budget_bytes: config.log_budget_bytes,
            segment_bytes: segment_bytes(config.log_budget_bytes),
            cache_bytes: config.cache_bytes,
            in_memory_budget_bytes: config.in_memory_budget_bytes,
            compaction_threads: compaction_threads(),
            compaction_bytes_per_second: config.compaction_bytes_per_second,
            ids: Ids::default(),
        };
        let open = move || {
            let disk = Arc::new(LocalDisk::open(&config.data, config.read_only)?);
            let store = Arc::new(open::open(
                disk,
                Arc::new(SystemClock),
                options,
                config.read_only,
            )?);
            let workers = Workers::start(&store)
                .map_err(|error| Error::Io(format!("start a thread: {error}")))?;
            Ok(Self {
                open: Arc::new(Open { store, workers }),
            })
        };
        blocking(open).await
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.open.store
    }

    /// Flushes and closes; later writes answer Unavailable.
    pub async fn close(&self) -> Result<()> {
        let open = self.open.clone();
        blocking(move || {
            let store = &open.store;
            if store.log.is_none() {
                return Ok(());
            }
            let flushed = store
                .tablets()
                .iter()
                .try_for_each(|(table, tablet)| store.flush(table, tablet).map(drop));
            stop(store);
            open.workers.join();
            flushed.and_then(|()| store.remove_dropped())
        })
        .await
    }

    /// Waits until the store can no longer make writes durable, and says why; the process must end then.
    pub async fn failed(&self) -> Error {
        let Ok(log) = self.store().log() else {
            return std::future::pending().await;
        };
        let mut failure = log.failure();
        let failure = failure.wait_for(Option::is_some).await;
        match failure.ok().and_then(|failure| failure.clone()) {
            Some(error) => error,
            None => std::future::pending().await,
        }
    }

    /// All tables by name.
    pub fn tables(&self) -> Vec<TableInfo> {
        self.store()
            .tables
            .load()
            .values()
            .map(|table| table.info())
            .collect()
    }

    /// One table.
    pub fn table(&self, table: &TableName) -> Result<TableInfo> {
        Ok(self.store().table(table)?.info())
    }

    /// Makes or changes a table. Validates the body.
    pub async fn put_table(&self, table: &TableName, body: PutTable) -> Result<TableInfo> {
        let (store, table) = (self.store().clone(), table.clone());
        blocking(move || store.put_table(&table, &body)).await
    }

    /// Drops a table and its data.
    pub async fn drop_table(&self, table: &TableName, query: DropTable) -> Result<()> {
        let (store, table) = (self.store().clone(), table.clone());
        blocking(move || store.drop_table(&table, &query)).await
    }

    /// Checks all rows, then writes them; durable when it returns.
    pub async fn mutate(
        &self,
        table: &TableName,
        request: MutateRequest,
    ) -> Result<MutateResponse> {
        write::mutate(self.store(), table, request).await
    }

    /// One page of a read. Checks the bounds at once; lines come through a bounded channel; dropping the stream ends the read.
    /// The page ends early after `time_budget`.
    pub fn read(
        &self,
        table: &TableName,
        request: ReadRequest,
        time_budget: Duration,
    ) -> Result<ReadStream> {
        read::read(self.store(), table, &request, time_budget)
    }

    /// One cell, with the part of its value that `part` chooses by its length; NotFound if there is none.
    pub async fn value(
        &self,
        table: &TableName,
        request: ValueRequest,
        part: impl Fn(u64) -> Range<u64> + Send + 'static,
    ) -> Result<CellValue> {
        read::value(self.store(), table, request, part).await
    }

    /// The newest cell of a column, on this thread, which may wait for a disk.
    pub fn get(
        &self,
        table: &TableName,
        row: &RowKey,
        family: &FamilyName,
        qualifier: &Qualifier,
    ) -> Result<Option<CellValue>> {
        let asked = Asked::newest(row, family, qualifier);
        let table = self.store().table(table)?;
        direct::get(self.store(), &table, asked, &|length| 0..length)
    }

    /// Calls `visit` with each cell in the request's bounds until it breaks or `time` is over, on this thread, which may wait
    /// for a disk; limits of rows and cells are the caller's. With `CellContent::None` it is called once a row, without
    /// qualifier and value. Returns where to go on; `None`: the bounds hold no more.
    pub fn visit(
        &self,
        table: &TableName,
        request: &ReadRequest,
        time: Duration,
        visit: &mut dyn FnMut(&CellRef<'_>) -> ControlFlow<()>,
    ) -> Result<Option<Position>> {
        let table = self.store().table(table)?;
        direct::visit(self.store(), table, request, time, visit)
    }

    /// Deletes all cells of a range of rows; durable when it returns.
    pub async fn delete_rows(&self, table: &TableName, rows: DeleteRows) -> Result<()> {
        delete_rows::delete_rows(self.store(), table, rows).await
    }

    /// Flushes a table's memtables and merges all files of each family, or of one, into one per tablet, once what is merged of
    /// them already is done. Goes on when the caller does not wait for it.
    pub async fn compact(
        &self,
        table: &TableName,
        family: Option<FamilyName>,
    ) -> Result<CompactResponse> {
        let (store, table) = (self.store().clone(), self.store().table(table)?);
        blocking(move || store.compact_table(&table, family.as_ref())).await
    }

    /// Whether the store is held: clean-up of files and collection by GC rules stand still.
    pub fn hold(&self) -> Hold {
        self.store().hold()
    }

    /// Holds or releases the store; durable when it returns. From then on nothing stored is forgotten until the release.
    pub async fn set_hold(&self, hold: Hold) -> Result<Hold> {
        let store = self.store().clone();
        blocking(move || store.set_hold(&hold)).await
    }

    /// Statistics of a table.
    pub async fn table_stats(&self, table: &TableName) -> Result<TableStats> {
        let (store, table) = (self.store().clone(), self.store().table(table)?);
        blocking(move || Ok(store.table_stats(&table))).await
    }

    /// Statistics of the server and of all tables.
    pub(crate) async fn all_stats(&self) -> Result<(ServerStats, Vec<TableStats>)> {
        let store = self.store().clone();
        blocking(move || Ok((store.stats(), store.all_table_stats()))).await
    }

    /// Statistics of the server.
    pub async fn server_stats(&self) -> Result<ServerStats> {
        let store = self.store().clone();
        blocking(move || Ok(store.stats())).await
    }
}

/// Runs what may wait for a disk on a thread for that.
async fn blocking<T: Send + 'static>(
    act: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(act)
        .await
        .map_err(|error| Error::Io(format!("a task ended: {error}")))?
}

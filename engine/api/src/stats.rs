//! Statistics: what tables, families, tablets and the server hold and do. Exact unless a field says estimate.
//!
//! Units stand in the names. What counts "since the start" counts from the start of the server's process, without what a
//! start replays from the log. Rates are over the last ten whole seconds.

use serde::{Deserialize, Serialize};

use crate::model::{FamilyName, RowKey, TableName, Timestamp};

/// `GET /v1/tables/{table}/stats`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TableStats {
    /// The table.
    pub table: TableName,
    /// Bytes of its SSTs.
    pub disk_bytes: u64,
    /// Bytes of keys and values in its SSTs before compression.
    pub raw_bytes: u64,
    /// Its SSTs.
    pub files: u64,
    /// Bytes of its memtables.
    pub memtable_bytes: u64,
    /// Bytes that compactions still have to write, an estimate.
    pub estimated_debt_bytes: u64,
    /// The most `estimatedRows` of its families.
    pub estimated_rows: u64,
    /// By family, in the order of their creation.
    pub families: Vec<FamilyStats>,
    /// By tablet, in row order.
    pub tablets: Vec<TabletStats>,
}

/// What one family of a table holds, over all tablets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FamilyStats {
    /// The family.
    pub family: FamilyName,
    /// Bytes of its SSTs.
    pub disk_bytes: u64,
    /// Bytes of keys and values in its SSTs before compression.
    pub raw_bytes: u64,
    /// Its SSTs.
    pub files: u64,
    /// Entries in its SSTs: cells, versions and tombstones not yet collected.
    pub entries: u64,
    /// Rows in its SSTs and writes in its memtables, added up: a row that is in several of them counts several times until
    /// compactions merge them.
    pub estimated_rows: u64,
    /// Bytes of its memtables.
    pub memtable_bytes: u64,
    /// Bytes of its blocks that are in the block cache or being read, and of its files' top indexes.
    pub cache_bytes: u64,
    /// Cells written since the start: puts, and what increments and appends wrote.
    pub cells_written: u64,
    /// Bytes that compactions still have to write, an estimate.
    pub estimated_debt_bytes: u64,
    /// The most files that a read may have to look into, in one tablet.
    pub read_files: u64,
    /// Bytes of SSTs written since the start by flushes and compactions, for each byte that flushes wrote; 1 before the first.
    pub write_amplification: f64,
    /// Bytes on disk for each byte of the largest files: about what a full compaction would leave. An estimate.
    pub estimated_space_amplification: f64,
    /// What is kept in memory because the family is `inMemory`; absent where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_memory: Option<InMemoryStats>,
}

/// How far an `inMemory` family is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InMemoryStats {
    /// Bytes that the family would take: what it takes, and for files that are not in memory what they take on disk, which is
    /// the least.
    pub wanted_bytes: u64,
    /// Bytes of it that are in memory.
    pub held_bytes: u64,
    /// Whether all of it is in memory. If not, the rest is read from disk: the server's budget for such families is too small,
    /// or the family is still being loaded.
    pub fits: bool,
}

/// What one tablet holds and does.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TabletStats {
    /// The tablet's id.
    pub id: u64,
    /// Its first row key, inclusive; absent: from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<RowKey>,
    /// Its end, exclusive; absent: to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<RowKey>,
    /// Bytes of its SSTs.
    pub disk_bytes: u64,
    /// Its SSTs.
    pub files: u64,
    /// Bytes of its memtables.
    pub memtable_bytes: u64,
    /// All mutations up to this sequence number are in SSTs.
    pub flushed_sequence: u64,
    /// Pages and values that looked into it since the start.
    pub reads: u64,
    /// Rows changed in it since the start.
    pub writes: u64,
    /// `reads` a second.
    pub reads_per_second: f64,
    /// `writes` a second.
    pub writes_per_second: f64,
    /// Seconds since the oldest record was logged that is in its memtables only; absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_unflushed_seconds: Option<f64>,
    /// Bytes of commit log segments that stay until it is flushed: from the oldest that it has a record in that is in
    /// memtables only, to the newest.
    pub log_bytes_held: u64,
    /// Bytes that compactions still have to write, an estimate.
    pub estimated_debt_bytes: u64,
    /// Why its writers are slowed down or wait; absent: they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall: Option<StallReason>,
}

/// `GET /v1/stats`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerStats {
    /// The store's id, given at its creation.
    pub store_id: String,
    /// Counts the starts of this server on this store.
    pub epoch: u64,
    /// The program's version.
    pub version: String,
    /// When the server started.
    pub started: Timestamp,
    /// Seconds since then, by a clock that nobody sets.
    pub uptime_seconds: u64,
    /// Whether the store was opened read-only.
    pub read_only: bool,
    /// Tables.
    pub tables: u64,
    /// Tablets.
    pub tablets: u64,
    /// Bytes of all SSTs.
    pub disk_bytes: u64,
    /// Bytes of all memtables.
    pub memtable_bytes: u64,
    /// Above this, writers wait for flushes.
    pub memtable_budget_bytes: u64,
    /// Bytes of in-memory families' files in memory.
    pub in_memory_bytes: u64,
    /// Files of in-memory families beyond this are read from disk.
    pub in_memory_budget_bytes: u64,
    /// Bytes in the block cache, and of top indexes, which take their room in it.
    pub cache_bytes: u64,
    /// What the block cache may hold.
    pub cache_budget_bytes: u64,
    /// Blocks that reads found in the block cache since the start, those of in-memory families aside.
    pub cache_hits: u64,
    /// Blocks that they did not find there.
    pub cache_misses: u64,
    /// Bytes of lines that wait for their readers.
    pub read_bytes: u64,
    /// Above this, pages wait for room.
    pub read_budget_bytes: u64,
    /// Bytes of commit log segments held.
    pub log_bytes: u64,
    /// Above this, the tablet that holds the oldest record is flushed.
    pub log_budget_bytes: u64,
    /// The newest sequence number known to be on disk.
    pub durable_sequence: u64,
    /// Fsyncs of the commit log since the start.
    pub log_syncs: u64,
    /// How long these took lately.
    pub log_sync: LatencyStats,
    /// What a start would have to read, were the server to end now without closing.
    pub replay: ReplayStats,
    /// Bytes that compactions still have to write, an estimate.
    pub estimated_debt_bytes: u64,
    /// Bytes of SSTs written since the start by flushes and compactions, for each byte that flushes wrote; 1 before the first.
    pub write_amplification: f64,
    /// Whether the store is held: no file goes and nothing is collected.
    pub held: bool,
}

/// Why writers are slowed down or wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum StallReason {
    /// Memtables near their budget, or over it: flushes do not keep up.
    MemtablesFull,
    /// A family has too many files: compactions do not keep up.
    CompactionDebt,
    /// The disk has no room for the commit log: writes are refused until it has.
    DiskFull,
}

impl StallReason {
    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::MemtablesFull => "memtablesFull",
            Self::CompactionDebt => "compactionDebt",
            Self::DiskFull => "diskFull",
        }
    }
}

/// How long something took during the present and the last whole minute since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LatencyStats {
    /// How many were measured in that time; with none, all else is 0.
    pub count: u64,
    /// Half took at most this, an estimate at most an eighth too high.
    pub p50_micros: u64,
    /// 99 of 100 took at most this, an estimate at most an eighth too high.
    pub p99_micros: u64,
    /// The longest, exactly.
    pub max_micros: u64,
}

/// What a start after a crash would have to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayStats {
    /// Bytes of commit log to read: what is written of the segments held.
    pub bytes: u64,
    /// Bytes a second at which this start replayed the log; absent if it found less than 1 MiB, too little to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<u64>,
    /// An estimate of the milliseconds that reading `bytes` would take at that rate; flushes of what was read come on top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_millis: Option<u64>,
}

//! Statistics: what tables, families, tablets and the server hold. Exact unless a field says estimate.

use serde::{Deserialize, Serialize};

use crate::model::{FamilyName, RowKey, TableName, Timestamp};

/// `GET /v1/tables/{table}/stats`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TableStats {
    /// The table.
    pub table: TableName,
    /// Sums over the families.
    pub disk_bytes: u64,
    /// By family, in the order of their creation.
    pub families: Vec<FamilyStats>,
    /// By tablet, in row order.
    pub tablets: Vec<TabletStats>,
}

/// What one family of a table holds, over all tablets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FamilyStats {
    /// The family.
    pub family: FamilyName,
    /// Bytes of its SSTs.
    pub disk_bytes: u64,
    /// Its SSTs.
    pub files: u64,
    /// Entries in its SSTs: cells, versions and tombstones not yet collected.
    pub entries: u64,
    /// Bytes of its memtables.
    pub memtable_bytes: u64,
    /// Bytes of SSTs kept in memory because the family is `inMemory`.
    pub in_memory_bytes: u64,
}

/// What one tablet holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
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
}

/// `GET /v1/stats`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
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
    /// Whether the store was opened read-only.
    pub read_only: bool,
    /// Tables.
    pub tables: u64,
    /// Tablets.
    pub tablets: u64,
    /// Bytes of all memtables.
    pub memtable_bytes: u64,
    /// Above this, writers wait for flushes.
    pub memtable_budget_bytes: u64,
    /// Bytes of commit log segments held.
    pub log_bytes: u64,
    /// Above this, the tablet that holds the oldest record is flushed.
    pub log_budget_bytes: u64,
    /// The newest sequence number known to be on disk.
    pub durable_sequence: u64,
    /// Fsyncs of the commit log since the start.
    pub log_syncs: u64,
}

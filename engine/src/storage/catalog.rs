//! The store's small records: the store itself, servers' epochs, the catalog of tables and tablets, schemas, tablet manifests.
//!
//! **Invariants**: the catalog is the commit point of creating and dropping a table, the schema that of changing it, the manifest
//! that of a flush and a compaction. What none of them names is garbage of a crash and goes at the next start.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tablemount_api::{FamilyInfo, Owner, RowKey, TableName, Timestamp};
use uuid::Uuid;

use super::sst::FileMeta;

/// `store`: made last when a store is created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoreRecord {
    pub(crate) store_id: Uuid,
}

pub(crate) const STORE: &str = "store";
pub(crate) const SERVERS: &str = "servers/engine";
pub(crate) const CATALOG: &str = "catalog";
pub(crate) const TABLES: &str = "tables";
pub(crate) const TABLETS: &str = "tablets";

/// `servers/engine/<epoch>`: one start of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerRecord {
    /// The commit log that holds what is not in SSTs.
    pub(crate) log: Uuid,
    /// The lowest segment number of which this start knew that it must exist.
    pub(crate) segment: u64,
}

/// `catalog/<n>`: all tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Catalog {
    /// The start of the server that wrote it.
    pub(crate) epoch: u64,
    /// The next tablet's id.
    pub(crate) next_tablet: u64,
    pub(crate) tables: BTreeMap<String, CatalogTable>,
}

/// A table in the catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CatalogTable {
    pub(crate) uid: Uuid,
    /// In row order: each begins where the one before ends.
    pub(crate) tablets: Vec<CatalogTablet>,
}

/// A tablet in the catalog: rows from `start` (inclusive, absent: all) to the next tablet's start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CatalogTablet {
    pub(crate) id: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<RowKey>,
}

/// `tables/<uid>/schema/<version>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SchemaRecord {
    pub(crate) epoch: u64,
    pub(crate) name: TableName,
    pub(crate) created: Timestamp,
    /// The next family's id.
    pub(crate) next_family: u64,
    /// In the order of their creation.
    pub(crate) families: Vec<FamilyInfo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<Owner>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) deletion_protection: bool,
}

/// `tablets/<id>/manifest/<n>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    /// Who writes to the tablet: the server's start and its log.
    pub(crate) epoch: u64,
    pub(crate) log: Uuid,
    /// All mutations up to this sequence number are in the files: replay starts above.
    pub(crate) flushed_sequence: u64,
    /// The highest timestamp the tablet has given out.
    pub(crate) server_timestamp: Timestamp,
    /// By family id, oldest file first.
    pub(crate) files: BTreeMap<u64, Vec<FileMeta>>,
}

/// The folder of a table's schemas.
pub(crate) fn schema_folder(table: Uuid) -> String {
    format!("{TABLES}/{table}/schema")
}

/// The folder of a tablet's manifests.
pub(crate) fn manifest_folder(tablet: u64) -> String {
    format!("{TABLETS}/{tablet:08}/manifest")
}

/// The path of an SST.
pub(crate) fn sst_path(tablet: u64, family: u64, epoch: u64, number: u64) -> String {
    format!("{TABLETS}/{tablet:08}/sst/{family}/{epoch}-{number:08}")
}

/// The epoch in an SST's path.
pub(crate) fn sst_epoch(path: &str) -> Option<u64> {
    path.rsplit('/').next()?.split('-').next()?.parse().ok()
}

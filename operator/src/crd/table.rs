//! `Table`: a table in a TableCluster, its column families and their settings.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tablemount_api::{InvalidModel, TableName};

/// What the table should be.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "tablemount.dev",
    version = "v1alpha1",
    kind = "Table",
    plural = "tables",
    shortname = "tmt",
    category = "tablemount",
    namespaced,
    status = "TableStatus",
    derive = "PartialEq",
    cel,
    doc = "A Table is a table in a TableCluster: its column families with their settings. The manifest wins: a schema changed by other means is set back. Deleting it keeps the table and its data unless deletionPolicy is Delete.",
    validation = Rule::new("has(self.spec.tableName) || size(self.metadata.name) <= 50")
        .message("metadata.name is over 50 characters, too long for a table: set spec.tableName"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        description = "Whether the table is as the manifest says",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        description = "Why it is or is not",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason"
    ),
    printcolumn(
        name = "Cluster",
        type_ = "string",
        description = "The TableCluster that holds it",
        json_path = ".spec.clusterRef.name"
    ),
    printcolumn(
        name = "Version",
        type_ = "integer",
        description = "The schema's version on the server",
        json_path = ".status.observedSchemaVersion"
    ),
    printcolumn(
        name = "Size",
        type_ = "string",
        description = "What its files take on disk",
        json_path = ".status.stats.size",
        priority = 1
    ),
    printcolumn(
        name = "Rows",
        type_ = "integer",
        description = "Its rows, an estimate",
        json_path = ".status.stats.estimatedRows",
        priority = 1
    ),
    printcolumn(
        name = "Table",
        type_ = "string",
        description = "The table's name on the server",
        json_path = ".status.tableName",
        priority = 1
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        description = "What the Ready condition says",
        json_path = ".status.conditions[?(@.type==\"Ready\")].message",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.clusterRef.name == oldSelf.clusterRef.name")
    .message("clusterRef cannot change: the data is there; make another Table and copy it with export and import"))]
#[x_kube(validation = Rule::new("has(self.tableName) == has(oldSelf.tableName) && (!has(self.tableName) || self.tableName == oldSelf.tableName)")
    .message("tableName cannot change: make another Table and copy the data with export and import"))]
pub struct TableSpec {
    /// The TableCluster that holds the table, in the same namespace. Cannot change.
    pub cluster_ref: ClusterRef,
    /// The table's name on the server: 1 to 50 letters, digits, '-', '_' and '.', starting with a letter, a digit or '_'.
    /// Default: metadata.name. Cannot change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50))]
    #[x_kube(validation = Rule::new("self.matches('^[a-zA-Z0-9_][-_.a-zA-Z0-9]*$')")
        .message("tableName must be letters, digits, '-', '_' and '.', starting with a letter, a digit or '_'"))]
    pub table_name: Option<String>,
    /// What becomes of the table and its data when this object is deleted: Retain (the default) keeps them, Delete drops
    /// them, if this object made or adopted the table.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// Take over a table of this name that exists already and that this object did not make, with its data. Its schema
    /// becomes the manifest's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopt_existing: bool,
    /// The column families: all that the table has. Removing one deletes its data, which needs a consent in allow.
    #[schemars(length(min = 1, max = 100))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub families: Vec<Family>,
    /// Row keys at which the table is divided from the start, in the form that paths have (%XX for bytes that are not
    /// text). They cannot be added to a table that exists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), inner(length(min = 1, max = 4096)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub splits: Vec<String>,
    /// Consents to changes that delete data. Each names what it allows; one that matches nothing pending has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub allow: Vec<Consent>,
}

/// A TableCluster in the same namespace.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRef {
    /// Its metadata.name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
}

/// What becomes of a table when its object is deleted.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeletionPolicy {
    /// It stays.
    #[default]
    Retain,
    /// It is dropped with its data.
    Delete,
}

/// A column family: columns stored together, and their settings.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Family {
    /// The name, unique in the table: 1 to 64 letters, digits, '-', '_' and '.'.
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(validation = Rule::new("self.matches('^[-_.a-zA-Z0-9]+$')").message("a column family's name must be letters, digits, '-', '_' and '.'"))]
    pub name: String,
    /// Keep at most this many versions of a column, the newest. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub max_versions: Option<i32>,
    /// Collect versions whose timestamp is older than this many seconds. Default: none. With maxVersions too, a version
    /// goes when either says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9_223_372_036_854i64))]
    pub max_age_seconds: Option<i64>,
    /// Keep the family's files in memory, as far as the server's budget for that goes. Default false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_memory: bool,
    /// How blocks are compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
    /// Uncompressed size of a data block in bytes, 1024 to 1048576. Small blocks suit single cells, large ones scans.
    /// Default 4096.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1024, max = 1_048_576))]
    pub block_size_bytes: Option<i32>,
    /// Which keys files have bloom filters of, by which reads skip files: None, Row (the default), or RowColumn, for rows of
    /// which single columns are read. A change applies online, to files written from then on; files that exist keep theirs
    /// until they are compacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bloom_filter: Option<BloomFilter>,
    /// Whether blocks that are read stay in the server's block cache. Default true; false suits what is scanned once, so that
    /// it does not displace other families. A change applies online, to reads from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_cache: Option<bool>,
    /// The longest value in bytes, up to 104857600 (100 MiB, the default).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 104_857_600))]
    pub max_value_bytes: Option<i32>,
}

/// How blocks are compressed.
#[derive(KubeSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compression {
    /// The algorithm: None (the default), Lz4 (fastest), Snappy or Zstd (smallest). Files that exist are rewritten as
    /// they are compacted.
    #[serde(rename = "type", default)]
    pub algorithm: CompressionType,
    /// What is compressed at a time: Block (the default, smallest), or Record, each value on its own, so that reading one cell
    /// decompresses no other. Without a type it has no effect. A change applies online, to files written from then on; files
    /// that exist keep theirs until they are compacted.
    #[serde(default)]
    pub scope: CompressionScope,
}

/// A compression algorithm.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CompressionType {
    /// As they are.
    #[default]
    None,
    /// LZ4: fastest.
    Lz4,
    /// Snappy.
    Snappy,
    /// Zstandard: smallest.
    Zstd,
}

/// What is compressed at a time.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CompressionScope {
    /// A block: smallest.
    #[default]
    Block,
    /// Each value on its own.
    Record,
}

/// Which keys files have bloom filters of.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BloomFilter {
    /// None.
    None,
    /// Row keys.
    #[default]
    Row,
    /// Row keys, and rows with qualifier.
    RowColumn,
}

/// A consent to one change that deletes data. Exactly one field is set.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.dropFamily) != has(self.tightenGC)").message("a consent has exactly one of dropFamily and tightenGC"))]
pub struct Consent {
    /// The column family that may be deleted with its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub drop_family: Option<String>,
    /// The column family whose maxVersions or maxAgeSeconds may be set lower, which collects versions kept until now.
    #[serde(default, rename = "tightenGC", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub tighten_gc: Option<String>,
}

/// What the table is.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TableStatus {
    /// Ready: the schema read back from the server is what the manifest says. If it is False, reason and message say what
    /// to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// The metadata.generation that this status tells of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The version of the schema on the server, which rises with every change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_schema_version: Option<i64>,
    /// The table's name on the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50))]
    pub table_name: Option<String>,
    /// Given to the table when it was made: a table dropped and made again has another. Absent while the table is not this
    /// object's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub table_uid: Option<String>,
    /// The column families as read back from the server, in the order of their creation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub families: Vec<FamilyStatus>,
    /// What the table holds, as of a few minutes ago at most while the server serves. Taken anew at most once a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<StatsStatus>,
    /// Changes between the server's schema and the manifest that wait for a consent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub pending_changes: Vec<PendingChange>,
}

/// A column family as read back from the server.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FamilyStatus {
    /// The name.
    #[schemars(length(max = 64))]
    pub name: String,
    /// Given at creation: a family dropped and made again has another.
    pub id: i64,
    /// Which versions are collected, in words.
    #[schemars(length(max = 2048))]
    pub gc_rule: String,
    /// How blocks are compressed.
    pub compression: CompressionType,
    /// What is compressed at a time.
    #[serde(default)]
    pub compression_scope: CompressionScope,
    /// Uncompressed size of a data block in bytes.
    pub block_size_bytes: i64,
    /// Which keys files have bloom filters of.
    #[serde(default)]
    pub bloom_filter: BloomFilter,
    /// Whether blocks that are read stay in the block cache.
    #[serde(default = "yes")]
    pub block_cache: bool,
    /// Whether its files are kept in memory.
    pub in_memory: bool,
    /// The longest value in bytes.
    pub max_value_bytes: i64,
}

/// What a table holds.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatsStatus {
    /// When these figures changed last, as far as was looked.
    pub observed: Time,
    /// diskBytes for people.
    #[schemars(length(max = 32))]
    pub size: String,
    /// Bytes of its files.
    pub disk_bytes: i64,
    /// Its files.
    pub files: i64,
    /// Rows, added up over files: a row that is in several files counts several times until they are merged.
    pub estimated_rows: i64,
    /// Bytes of cells that are in memory and the commit log, not in files yet.
    pub memtable_bytes: i64,
    /// Bytes that compactions still have to write, an estimate.
    pub estimated_debt_bytes: i64,
}

fn yes() -> bool {
    true
}

/// A change that has not been made yet.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingChange {
    /// What would change.
    #[schemars(length(max = 1024))]
    pub description: String,
    /// Online: at once and without cost. Rewrite: files are rewritten as they are compacted. Destructive: data is deleted,
    /// which needs a consent in spec.allow.
    pub class: ChangeClass,
}

/// What a change of a schema costs.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeClass {
    /// Made at once and without cost.
    Online,
    /// Files are rewritten as they are compacted.
    Rewrite,
    /// Data is deleted; needs a consent.
    Destructive,
}

impl Table {
    /// The table's name on the server: `spec.tableName`, else `metadata.name`.
    pub fn table_name(&self) -> Result<TableName, InvalidModel> {
        TableName::new(
            self.spec
                .table_name
                .clone()
                .unwrap_or_else(|| self.name_any()),
        )
    }
}

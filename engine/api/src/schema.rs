//! Table schemas: families and their settings, split keys, the owner marker; and the bodies that make, change and drop tables.
//!
//! **Invariants** (checked by [`PutTable::validate`]): at most 100 families with distinct names; split keys distinct, at most
//! 1,000; each setting within the bounds named in its doc.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::model::{FamilyName, RowKey, TableName, Timestamp};

/// Why a schema is refused. The message names object, value and limit.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct InvalidSchema(pub String);

/// How a family's blocks are compressed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Compression {
    /// As they are.
    #[default]
    None,
    /// LZ4 block format: fastest.
    Lz4,
    /// Snappy.
    Snappy,
    /// Zstandard, level 3: smallest.
    Zstd,
}

/// What is compressed at a time.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum CompressionScope {
    /// A block: smallest.
    #[default]
    Block,
    /// Each value on its own: reading one cell decompresses no other.
    Record,
}

/// Which keys a family's SSTs have bloom filters of. A filter lets a read of a row or column skip files that lack it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum BloomFilter {
    /// None.
    None,
    /// Row keys.
    #[default]
    Row,
    /// Row keys, and rows with qualifier: for rows of which single columns are read.
    RowColumn,
}

/// What a family's cells are merged by: each holds a 64-bit integer, 8 bytes big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum Aggregate {
    /// Their sum; wraps at the ends.
    Sum,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

impl Aggregate {
    /// What two inputs come to.
    pub fn merge(self, one: i64, other: i64) -> i64 {
        match self {
            Self::Sum => one.wrapping_add(other),
            Self::Min => one.min(other),
            Self::Max => one.max(other),
        }
    }
}

/// One reason to collect a version: all conditions that are set must hold.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GcClause {
    /// At least this many newer versions of the column exist. 1 or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_versions: Option<u32>,
    /// The timestamp is more than this many microseconds in the past. 1,000 or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age_micros: Option<i64>,
}

/// Which versions a family collects: those for which any clause holds. Without clauses everything is kept.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
pub struct GcRule(pub Vec<GcClause>);

impl GcRule {
    /// Whether the rule collects the version with `timestamp` that has `newer` newer versions in its column.
    ///
    /// The one function that reads and compactions decide by. Monotonic: if a version is collected, so is every older one.
    pub fn collects(&self, newer: u64, timestamp: Timestamp, now: Timestamp) -> bool {
        self.0.iter().any(|clause| {
            (clause.max_versions.is_some() || clause.max_age_micros.is_some())
                && clause.max_versions.is_none_or(|n| newer >= u64::from(n))
                && clause
                    .max_age_micros
                    .is_none_or(|age| timestamp.0 < now.0.saturating_sub(age))
        })
    }
}

/// A column family's name and settings.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FamilySchema {
    /// The name, unique in its table.
    pub name: FamilyName,
    /// What is collected; absent: nothing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gc_rule: GcRule,
    /// How blocks are compressed; applies to files written from then on.
    #[serde(default, skip_serializing_if = "is_default")]
    pub compression: Compression,
    /// What is compressed at a time; applies to files written from then on.
    #[serde(default, skip_serializing_if = "is_default")]
    pub compression_scope: CompressionScope,
    /// Bloom filters; applies to files written from then on.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bloom_filter: BloomFilter,
    /// Whether blocks that are read stay in the block cache.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub block_cache: bool,
    /// Uncompressed size of a data block, 1,024 to 1,048,576 bytes; default 4,096. Applies to files written from then on.
    #[serde(default = "default_block_bytes")]
    pub block_bytes: u32,
    /// Keep the family's files in memory, as far as the server's budget for that goes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub in_memory: bool,
    /// The longest value, 1 to 104,857,600 bytes (the default).
    #[serde(default = "default_max_value_bytes")]
    pub max_value_bytes: u32,
    /// Cells are changed by merging inputs into them, and only so. Cannot be changed afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<Aggregate>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn yes() -> bool {
    true
}

fn is_true(value: &bool) -> bool {
    *value
}

fn default_block_bytes() -> u32 {
    FamilySchema::DEFAULT_BLOCK_BYTES
}

fn default_max_value_bytes() -> u32 {
    FamilySchema::MAX_VALUE_BYTES
}

impl FamilySchema {
    /// Block size unless set.
    pub const DEFAULT_BLOCK_BYTES: u32 = 4096;
    /// Block sizes allowed.
    pub const BLOCK_BYTES: std::ops::RangeInclusive<u32> = 1024..=1_048_576;
    /// Default and ceiling of `max_value_bytes`: 100 MiB, Bigtable's limit of a cell.
    pub const MAX_VALUE_BYTES: u32 = 100 << 20;

    /// A family with default settings.
    pub fn new(name: FamilyName) -> Self {
        Self {
            name,
            gc_rule: GcRule::default(),
            compression: Compression::None,
            compression_scope: CompressionScope::Block,
            bloom_filter: BloomFilter::Row,
            block_cache: true,
            block_bytes: Self::DEFAULT_BLOCK_BYTES,
            in_memory: false,
            max_value_bytes: Self::MAX_VALUE_BYTES,
            aggregate: None,
        }
    }

    fn validate(&self) -> Result<(), InvalidSchema> {
        let name = &self.name;
        let refuse = |setting: &str, value: i64, limit: &str| {
            Err(InvalidSchema(format!(
                "column family \"{name}\": {setting} is {value}; it must be {limit}"
            )))
        };
        if !Self::BLOCK_BYTES.contains(&self.block_bytes) {
            return refuse("blockBytes", self.block_bytes.into(), "1024 to 1048576");
        }
        if !(1..=Self::MAX_VALUE_BYTES).contains(&self.max_value_bytes) {
            return refuse(
                "maxValueBytes",
                self.max_value_bytes.into(),
                "1 to 104857600",
            );
        }
        if self.gc_rule.0.len() > 20 {
            return refuse(
                "number of gcRule clauses",
                self.gc_rule.0.len() as i64,
                "at most 20",
            );
        }
        for clause in &self.gc_rule.0 {
            match *clause {
                GcClause {
                    max_versions: None,
                    max_age_micros: None,
                } => {
                    return Err(InvalidSchema(format!(
                        "column family \"{name}\": a gcRule clause has no condition"
                    )));
                }
                GcClause {
                    max_versions: Some(0),
                    ..
                } => return refuse("maxVersions", 0, "1 or more"),
                GcClause {
                    max_age_micros: Some(age),
                    ..
                } if age < 1000 => {
                    return refuse("maxAgeMicros", age, "1000 or more");
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Which object outside the engine declares a table, and alone may change its schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Owner {
    /// The Kubernetes cluster (UID of its namespace kube-system), or `up` for the embedded reconciler.
    pub cluster: String,
    /// The custom resource's namespace.
    pub namespace: String,
    /// The custom resource's name.
    pub name: String,
    /// The custom resource's UID.
    pub uid: String,
}

/// `PUT /v1/tables/{table}`: makes the table, or changes it to be so.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PutTable {
    /// All families. One that is absent here but exists must stand in `dropFamilies`, else the request is refused.
    pub families: Vec<FamilySchema>,
    /// Row keys at which tablets start. Of an existing table they cannot change yet: leave out or repeat.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub splits: Vec<RowKey>,
    /// Families whose data is to be deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drop_families: Vec<FamilyName>,
    /// The owner marker to set; absent: it stays as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// Whether the table is protected from being dropped; absent: as it is, at first not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_protection: Option<bool>,
    /// Only if the table's version is this; 0: only if there is no such table. Absent: whatever it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_version: Option<u64>,
}

impl PutTable {
    /// The most families of a table.
    pub const MAX_FAMILIES: usize = 100;
    /// The most split keys of a table.
    pub const MAX_SPLITS: usize = 1000;

    /// Checks what can be checked without the table as it is.
    pub fn validate(&self) -> Result<(), InvalidSchema> {
        if self.families.len() > Self::MAX_FAMILIES {
            return Err(InvalidSchema(format!(
                "{} column families; limit is {}",
                self.families.len(),
                Self::MAX_FAMILIES
            )));
        }
        if self.splits.len() > Self::MAX_SPLITS {
            return Err(InvalidSchema(format!(
                "{} splits; limit is {}",
                self.splits.len(),
                Self::MAX_SPLITS
            )));
        }
        let mut names: Vec<_> = self.families.iter().map(|family| &family.name).collect();
        names.sort();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(InvalidSchema(format!(
                "column family \"{}\" stands twice",
                twice[0]
            )));
        }
        let mut splits: Vec<_> = self.splits.iter().collect();
        splits.sort();
        if let Some(twice) = splits.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(InvalidSchema(format!(
                "split key {} stands twice",
                crate::name::encode(twice[0].bytes())
            )));
        }
        if let Some(both) = self
            .drop_families
            .iter()
            .find(|name| names.binary_search(name).is_ok())
        {
            return Err(InvalidSchema(format!(
                "column family \"{both}\" stands in families and in dropFamilies"
            )));
        }
        self.families.iter().try_for_each(FamilySchema::validate)
    }
}

/// `DELETE /v1/tables/{table}` query: drops the table and its data.
#[derive(
    Debug,
    Clone,
    PartialEq,
    Eq,
    Default,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
    utoipa::IntoParams,
)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DropTable {
    /// Only if the table's uid is this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_uid: Option<String>,
}

/// A family as the engine holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FamilyInfo {
    /// Given at creation, never reused: a family dropped and made again has another.
    pub id: u64,
    /// Name and settings.
    #[serde(flatten)]
    pub schema: FamilySchema,
}

/// A table as the engine holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TableInfo {
    /// The name.
    pub name: TableName,
    /// Given at creation: a table dropped and made again has another.
    pub uid: String,
    /// Rises by one with every change of the schema; 1 after creation.
    pub version: u64,
    /// When the table was made.
    pub created: Timestamp,
    /// The families, in the order of their creation.
    pub families: Vec<FamilyInfo>,
    /// The row keys at which tablets start, besides the first.
    pub splits: Vec<RowKey>,
    /// Which object outside the engine declares the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// Whether the table is protected from being dropped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deletion_protection: bool,
}

/// `GET /v1/tables`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TableList {
    /// All tables by name.
    pub tables: Vec<TableInfo>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clause(max_versions: Option<u32>, max_age_micros: Option<i64>) -> GcClause {
        GcClause {
            max_versions,
            max_age_micros,
        }
    }

    #[test]
    fn gc_rule_is_a_union_of_intersections() {
        let check = |clauses: &[GcClause], newer, age: i64, expected| {
            let rule = GcRule(clauses.to_vec());
            assert_eq!(
                rule.collects(newer, Timestamp(1_000_000 - age), Timestamp(1_000_000)),
                expected,
                "{rule:?}"
            );
        };
        check(&[], 1_000_000, 1_000_000, false);
        check(&[clause(Some(3), None)], 2, 0, false);
        check(&[clause(Some(3), None)], 3, 0, true);
        check(&[clause(None, Some(5000))], 0, 5000, false);
        check(&[clause(None, Some(5000))], 0, 5001, true);
        check(&[clause(Some(1), Some(5000))], 0, 9000, false);
        check(&[clause(Some(1), Some(5000))], 1, 4000, false);
        check(&[clause(Some(1), Some(5000))], 1, 9000, true);
        check(
            &[clause(Some(9), None), clause(Some(1), Some(5000))],
            9,
            0,
            true,
        );
        check(&[clause(None, Some(5000))], 0, -1_000_000, false);
    }

    #[test]
    fn bad_schemas_are_named() {
        let family = |name: &str| FamilySchema::new(FamilyName::new(name).expect("valid"));
        let check = |families: Vec<FamilySchema>, expected: &str| {
            let put = PutTable {
                families,
                ..PutTable::default()
            };
            assert_eq!(put.validate().unwrap_err().to_string(), expected);
        };
        let many = (0..101).map(|i| family(&format!("f{i}"))).collect();
        check(many, "101 column families; limit is 100");
        check(
            vec![family("a"), family("a")],
            "column family \"a\" stands twice",
        );
        check(
            vec![FamilySchema {
                block_bytes: 1,
                ..family("a")
            }],
            "column family \"a\": blockBytes is 1; it must be 1024 to 1048576",
        );
        check(
            vec![FamilySchema {
                gc_rule: GcRule(vec![clause(Some(0), None)]),
                ..family("a")
            }],
            "column family \"a\": maxVersions is 0; it must be 1 or more",
        );
    }
}

//! Files that are made when they are read: `@help`, `@schema.yaml`, `@stats.json`, `@stats`, `@config`.

use std::fmt::Write as _;

use bytes::Bytes;
use serde::Serialize;
use tablemount_api::name::encode;
use tablemount_api::time::rfc3339;
use tablemount_api::{
    BloomFilter, Compression, CompressionScope, FamilySchema, GcRule, Owner, TableInfo,
};

use crate::errno::Failure;
use crate::filesystem::Filesystem;
use crate::node::{Generated, Node};

impl Filesystem {
    /// The bytes of a generated file of `base`.
    pub(crate) async fn generate(&self, base: &Node, file: Generated) -> Result<Bytes, Failure> {
        match (file, base) {
            (Generated::Help, _) => Ok(help(base).into()),
            (Generated::Config, _) => Ok(pretty(&self.options)),
            (Generated::ServerStats, _) => Ok(pretty(&self.remote.server_stats().await?)),
            (Generated::TableStats, Node::Table { scope, .. }) => {
                Ok(pretty(&self.remote.table_stats(&scope.table).await?))
            }
            (Generated::Schema, Node::Table { scope, .. }) => {
                Ok(schema(&*self.facts.tables.ask(&scope.table).await?))
            }
            (Generated::Schema | Generated::TableStats | Generated::RowJson, _) => {
                Err(Failure::Absent)
            }
        }
    }
}

fn pretty(value: &impl Serialize) -> Bytes {
    // Serialising plain structures to memory does not fail.
    let mut text = serde_json::to_vec_pretty(value).unwrap_or_default();
    text.push(b'\n');
    text.into()
}

/// A table as a manifest would have it, so that it can be compared with one; what the server adds is the status.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Manifest<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    spec: Spec<'a>,
    status: Status<'a>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct Spec<'a> {
    families: Vec<FamilySettings<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    splits: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    table_uid: &'a str,
    observed_schema_version: u64,
    created: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'a Owner>,
}

/// A family's settings in the manifest's words; those that are as they are by default are left out.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct FamilySettings<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_versions: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_age_seconds: Option<i64>,
    /// A rule that a manifest cannot say, made by other means: as the server has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    gc_rule: Option<&'a GcRule>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    in_memory: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    compression: Option<CompressionSettings>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_size_bytes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bloom_filter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_cache: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_value_bytes: Option<u32>,
}

#[derive(Serialize)]
struct CompressionSettings {
    r#type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
}

impl CompressionSettings {
    /// Absent if the schema's are the default ones.
    fn new(schema: &FamilySchema) -> Option<Self> {
        let scope = (schema.compression_scope != CompressionScope::default())
            .then(|| format!("{:?}", schema.compression_scope));
        (schema.compression != Compression::None || scope.is_some()).then(|| Self {
            r#type: format!("{:?}", schema.compression),
            scope,
        })
    }
}

fn schema(info: &TableInfo) -> Bytes {
    let manifest = Manifest {
        api_version: "tablemount.dev/v1alpha1",
        kind: "Table",
        metadata: Metadata {
            name: info.name.as_str(),
        },
        spec: Spec {
            families: info
                .families
                .iter()
                .map(|family| settings(&family.schema))
                .collect(),
            splits: info.splits.iter().map(|key| encode(key.bytes())).collect(),
        },
        status: Status {
            table_uid: &info.uid,
            observed_schema_version: info.version,
            created: rfc3339(info.created),
            owner: info.owner.as_ref(),
        },
    };
    // Serialising plain structures to memory does not fail.
    serde_yaml::to_string(&manifest).unwrap_or_default().into()
}

fn settings(schema: &FamilySchema) -> FamilySettings<'_> {
    let unless = |value: u32, default: u32| (value != default).then_some(value);
    let bloom_filter = (schema.bloom_filter != BloomFilter::default())
        .then(|| format!("{:?}", schema.bloom_filter));
    let mut settings = FamilySettings {
        name: schema.name.as_str(),
        in_memory: schema.in_memory,
        compression: CompressionSettings::new(schema),
        block_size_bytes: unless(schema.block_bytes, FamilySchema::DEFAULT_BLOCK_BYTES),
        bloom_filter,
        block_cache: (!schema.block_cache).then_some(false),
        max_value_bytes: unless(schema.max_value_bytes, FamilySchema::MAX_VALUE_BYTES),
        ..FamilySettings::default()
    };
    for clause in &schema.gc_rule.0 {
        match (clause.max_versions, clause.max_age_micros) {
            (Some(versions), None) if settings.max_versions.is_none() => {
                settings.max_versions = Some(versions)
            }
            (None, Some(age)) if settings.max_age_seconds.is_none() && age % 1_000_000 == 0 => {
                settings.max_age_seconds = Some(age / 1_000_000);
            }
            _ => {
                let gc_rule = Some(&schema.gc_rule);
                return FamilySettings {
                    max_versions: None,
                    max_age_seconds: None,
                    gc_rule,
                    ..settings
                };
            }
        }
    }
    settings
}

fn help(base: &Node) -> String {
    let mut text = String::new();
    let (place, lines): (&str, &[(&str, &str)]) = match base {
        Node::Root => ("the mount point", ROOT_HELP),
        Node::Table { .. } => ("a table", TABLE_HELP),
        Node::Row(_) => ("a row", ROW_HELP),
        Node::Family { .. } => ("a column family in a row", FAMILY_HELP),
        _ => ("a column", COLUMN_HELP),
    };
    let _ = write!(
        text,
        "This is {place} of a Tablemount filesystem, which is read-only.\n\n{LAYOUT}\n"
    );
    text.push_str(
        "Names that start with @ are not listed, @help at the top aside, but can be used here:\n\n",
    );
    for (name, meaning) in lines {
        let _ = writeln!(text, "  {name:<24} {meaning}");
    }
    text.push_str(HELP_TAIL);
    text
}

const LAYOUT: &str = "  TABLE/ROW/FAMILY/QUALIFIER/TIMESTAMP   a version of a cell: its bytes; size and time are the cell's
  TABLE/ROW/FAMILY/QUALIFIER/latest      a link to the newest version

  ls -U mnt/blogtable | head             the first rows, without waiting for the rest
  cat mnt/blogtable/TT20080702120000/text/%empty/latest
";

const ROOT_HELP: &[(&str, &str)] = &[
    ("@help", "this text; every directory has one of its own"),
    ("@stats", "the server's statistics, JSON"),
    ("@config", "how this filesystem was mounted, JSON"),
];
const TABLE_HELP: &[(&str, &str)] = &[
    (
        "@schema.yaml",
        "column families and their settings, as in a manifest",
    ),
    ("@stats.json", "what the table takes, by family and tablet"),
    (
        "@latest/",
        "the same, one level shorter: QUALIFIER is a file with the newest value",
    ),
    ("@at/TIME/", "the same, showing only versions up to TIME"),
    ("@prefix/KEY/", "rows whose key starts with KEY"),
    (
        "@range/START/STOP/",
        "rows from START on and before STOP; %empty is an open end",
    ),
    ("@after/KEY/", "rows after KEY"),
    ("@limit/N/", "the first N rows"),
    ("@reverse/", "rows from the last to the first"),
    (
        "@tablet/ID",
        "a link to the range of a tablet; ls @tablet/ lists them",
    ),
    ("@more", "where a listing was cut: a link to the next page"),
];
const ROW_HELP: &[(&str, &str)] = &[
    (
        "@latest/",
        "the same, one level shorter: QUALIFIER is a file with the newest value",
    ),
    ("@at/TIME/", "the same, showing only versions up to TIME"),
    ("@row.json", "all cells of the row, JSON, one line a cell"),
];
const FAMILY_HELP: &[(&str, &str)] = &[
    (
        "@latest/",
        "the same, one level shorter: QUALIFIER is a file with the newest value",
    ),
    ("@at/TIME/", "the same, showing only versions up to TIME"),
    ("@prefix/Q/", "qualifiers that start with Q"),
    (
        "@range/START/STOP/",
        "qualifiers from START on and before STOP; %empty is an open end",
    ),
    ("@after/Q/", "qualifiers after Q"),
    ("@limit/N/", "the first N qualifiers"),
    ("@more", "where a listing was cut: a link to the next page"),
];
const COLUMN_HELP: &[(&str, &str)] = &[
    ("@at/TIME/", "the same, showing only versions up to TIME"),
    ("@more", "where a listing was cut: a link to the next page"),
];
const HELP_TAIL: &str = "
Views chain: @at/2008-07-02/@prefix/TT/@limit/50/ and diff -r @latest/@at/A @latest/@at/B.

TIME is a date (its end, UTC), a time such as 2008-07-02T12:00:00Z, or microseconds since 1970.
@at shows what is still kept with a timestamp up to TIME. It is not a snapshot: versions that were
collected or deleted since are gone, and timestamps are whatever the writer gave.

In names, %XX stands for a byte that cannot or should not stand in a file name, %x and hex digits for
bytes that are no text, %empty for nothing, %l...~digest~length for what is too long. 'tablemount key PATH'
and 'tablemount path TABLE KEY' convert. Any other spelling of a name is a link to the listed one.
The bytes themselves: extended attributes user.tablemount.key, .qualifier and .timestamp.

A directory with too many names lists some of them, then @more, and ends in the error 'File too large'.
What is shown may be up to two seconds old; what is opened, one second.
";

#[cfg(test)]
mod tests;

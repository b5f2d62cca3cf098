//! Files that are made when they are read: `@help`, `@schema.yaml`, `@stats.json`, `@stats`, `@config`.

use std::fmt::Write as _;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tablemount_api::name::encode;
use tablemount_api::{FamilySchema, TableInfo};

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

/// The table as a manifest would have it, so that it can be compared with one; what the server adds is the status.
fn schema(info: &TableInfo) -> Bytes {
    let families: Vec<_> = info
        .families
        .iter()
        .map(|family| family_manifest(&family.schema))
        .collect();
    let mut spec = json!({ "families": families });
    if !info.splits.is_empty() {
        spec["splits"] = info.splits.iter().map(|key| encode(key.bytes())).collect();
    }
    let manifest = json!({
        "apiVersion": "tablemount.dev/v1alpha1",
        "kind": "Table",
        "metadata": { "name": info.name.as_str() },
        "spec": spec,
        "status": {
            "tableUid": info.uid,
            "observedSchemaVersion": info.version,
            "created": tablemount_api::time::rfc3339(info.created),
            "owner": info.owner,
        },
    });
    serde_yaml::to_string(&manifest).unwrap_or_default().into()
}

/// A family's settings in the manifest's words; those that are as they are by default are left out.
fn family_manifest(schema: &FamilySchema) -> Value {
    let mut family = Map::new();
    let mut set = |key: &str, value: Value| family.insert(key.to_owned(), value);
    set("name", schema.name.as_str().into());
    // The manifest has one of each; a rule made by other means may have more, and is shown as the server has it.
    let simple = schema
        .gc_rule
        .0
        .iter()
        .all(|clause| clause.max_versions.is_some() != clause.max_age_micros.is_some());
    let versions: Vec<_> = schema
        .gc_rule
        .0
        .iter()
        .filter_map(|clause| clause.max_versions)
        .collect();
    let ages: Vec<_> = schema
        .gc_rule
        .0
        .iter()
        .filter_map(|clause| clause.max_age_micros)
        .collect();
    if simple
        && versions.len() <= 1
        && ages.len() <= 1
        && ages.iter().all(|age| age % 1_000_000 == 0)
    {
        versions
            .iter()
            .for_each(|versions| drop(set("maxVersions", (*versions).into())));
        ages.iter()
            .for_each(|age| drop(set("maxAgeSeconds", (age / 1_000_000).into())));
    } else {
        set("gcRule", json!(schema.gc_rule));
    }
    if schema.in_memory {
        set("inMemory", true.into());
    }
    if schema.compression != Default::default() {
        set(
            "compression",
            json!({ "type": format!("{:?}", schema.compression) }),
        );
    }
    if schema.block_bytes != FamilySchema::DEFAULT_BLOCK_BYTES {
        set("blockSizeBytes", schema.block_bytes.into());
    }
    if schema.max_value_bytes != FamilySchema::MAX_VALUE_BYTES {
        set("maxValueBytes", schema.max_value_bytes.into());
    }
    family.into()
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

const LAYOUT: &str = "\
  TABLE/ROW/FAMILY/QUALIFIER/TIMESTAMP   a version of a cell: its bytes; size and time are the cell's
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
Everything shown may be up to two seconds old; opening a file asks for its newest bytes.
";

#[cfg(test)]
mod tests;

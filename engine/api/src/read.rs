//! Reads: one request form for gets, scans and listings, answered in pages of lines.
//!
//! A page is NDJSON: lines with `row` and `cells` (a long row goes on in further lines with the same row), then exactly one
//! line with `end` or `error`. A stream that stops without either was cut off. `end.next` is where the next page starts;
//! absent, there is no more.

use std::fmt;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::ApiError;
use crate::model::{Base64, FamilyName, Qualifier, RowKey, Timestamp};
use crate::schema::PutTable;

/// `/v1/tables/{table}/read`. Row bounds intersect; so do column and time bounds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReadRequest {
    /// Only this row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<RowKey>,
    /// Rows from this key on, inclusive (the lowest key, also when reversed).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<RowKey>,
    /// Rows before this key, exclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<RowKey>,
    /// Rows whose key starts with this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Base64>,
    /// Rows from the highest key down. Cells inside a row keep their order.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reverse: bool,
    /// Go on after this position: the `next` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Position>,
    /// Only these families; empty: all. Output is in the order of their creation, whatever the order here.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "few_families"
    )]
    pub families: Vec<FamilyName>,
    /// Only this qualifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qualifier: Option<Qualifier>,
    /// Qualifiers from this one on, inclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qualifier_start: Option<Qualifier>,
    /// Qualifiers before this one, exclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qualifier_stop: Option<Qualifier>,
    /// Qualifiers that start with this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qualifier_prefix: Option<Base64>,
    /// Only versions with a timestamp of at most this ("get at a time").
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Only versions with a timestamp of at least this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The newest N versions of each column that pass `at` and `since`; absent: all that the family keeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions: Option<u32>,
    /// The first N columns of each family of each row; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns_per_family: Option<u32>,
    /// What to send of each cell.
    pub cells: CellContent,
    /// The page ends after this many rows. The server also ends a page at 10,000 rows with cells, 100,000 row keys, about
    /// 4 MiB, or half of the request's deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row_limit: Option<u64>,
    /// The page ends after this many cells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell_limit: Option<u64>,
}

/// Names up to the number of families that a table can have, without taking in more than that.
fn few_families<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<FamilyName>, D::Error> {
    struct Families;
    impl<'de> Visitor<'de> for Families {
        type Value = Vec<FamilyName>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "at most {} column family names", PutTable::MAX_FAMILIES)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<FamilyName>, A::Error> {
            let mut families = Vec::new();
            while let Some(family) = list.next_element()? {
                if families.len() == PutTable::MAX_FAMILIES {
                    return Err(A::Error::invalid_length(families.len() + 1, &self));
                }
                families.push(family);
            }
            Ok(families)
        }
    }
    deserializer.deserialize_seq(Families)
}

/// What a read sends of each cell.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum CellContent {
    /// Values.
    #[default]
    Values,
    /// The values' lengths.
    Lengths,
    /// No cells: row keys only. A row that has no cell left after all bounds is not listed.
    None,
}

/// A place in a table's order, after which a page goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Position {
    /// The last row seen.
    pub row: RowKey,
    /// The last cell seen of it; absent: the row is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<CellPosition>,
}

/// A cell's place inside its row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CellPosition {
    /// The column family.
    pub family: FamilyName,
    /// The qualifier.
    #[serde(default)]
    pub qualifier: Qualifier,
    /// The last version seen; absent: the column is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
}

/// A cell as it is sent: with `value` or with `length`, as asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cell {
    /// The column family.
    pub family: FamilyName,
    /// The qualifier.
    pub qualifier: Qualifier,
    /// Microseconds since the Unix epoch.
    pub timestamp: Timestamp,
    /// The value, if values were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Base64>,
    /// The value's length in bytes, if lengths were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
}

/// One line of a page: exactly one of `row` (with `cells`), `end` and `error`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ReadLine {
    /// The row that `cells` are of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<RowKey>,
    /// The row's cells, or a part of them: families in the order of their creation, qualifiers bytewise, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<Cell>,
    /// The page is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<PageEnd>,
    /// The page broke off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ApiError>,
}

/// The end of a page.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageEnd {
    /// Where to go on; absent: the bounds hold no more. Present does not promise that there is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Position>,
}

/// `/v1/tables/{table}/value`: one cell's bytes. The newest version that `at` and `timestamp` allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ValueRequest {
    /// The row.
    pub row: RowKey,
    /// The column family.
    pub family: FamilyName,
    /// The qualifier; absent is empty.
    #[serde(default)]
    pub qualifier: Qualifier,
    /// The newest version with a timestamp of at most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Exactly the version with this timestamp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
}

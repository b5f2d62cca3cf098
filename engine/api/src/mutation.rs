//! Writes: mutations of one row, applied in order and atomically.

use serde::{Deserialize, Serialize};

use crate::model::{Base64, FamilyName, Qualifier, RowKey, Timestamp};
use crate::read::Cell;

/// One change inside a row. JSON: `{"put": {"family": …, …}}` and so on; `{"deleteRow": {}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Mutation {
    /// Sets a cell. Without a timestamp the server gives one (its time in milliseconds × 1000, never falling).
    Put {
        /// The column family.
        family: FamilyName,
        /// The qualifier; absent is empty.
        #[serde(default)]
        qualifier: Qualifier,
        /// Microseconds; absent: the server's time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timestamp: Option<Timestamp>,
        /// The value, up to the family's `maxValueBytes`.
        value: Base64,
    },
    /// Deletes the version at exactly this timestamp.
    DeleteCell {
        /// The column family.
        family: FamilyName,
        /// The qualifier; absent is empty.
        #[serde(default)]
        qualifier: Qualifier,
        /// Which version, in microseconds.
        timestamp: Timestamp,
    },
    /// Deletes all versions of a column, or those from `minTimestamp` to `maxTimestamp`, both inclusive.
    DeleteColumn {
        /// The column family.
        family: FamilyName,
        /// The qualifier; absent is empty.
        #[serde(default)]
        qualifier: Qualifier,
        /// The oldest version to delete; absent: no bound.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min_timestamp: Option<Timestamp>,
        /// The newest version to delete; absent: no bound.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_timestamp: Option<Timestamp>,
    },
    /// Deletes all of the row's cells in one family.
    DeleteFamily {
        /// The column family.
        family: FamilyName,
    },
    /// Deletes the row's cells in all families.
    DeleteRow {},
    /// Adds to the newest value of a column, an 8-byte big-endian integer (absent: 0); wraps at the ends.
    Increment {
        /// The column family.
        family: FamilyName,
        /// The qualifier; absent is empty.
        #[serde(default)]
        qualifier: Qualifier,
        /// What to add.
        by: i64,
    },
    /// Appends bytes to the newest value of a column (absent: empty).
    Append {
        /// The column family.
        family: FamilyName,
        /// The qualifier; absent is empty.
        #[serde(default)]
        qualifier: Qualifier,
        /// What to append.
        value: Base64,
    },
    /// Merges an input into a cell of an aggregate family, by the family's way of merging.
    Merge {
        /// The column family.
        family: FamilyName,
        /// The qualifier; absent is empty.
        #[serde(default)]
        qualifier: Qualifier,
        /// Which cell, in microseconds; absent: the server's time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timestamp: Option<Timestamp>,
        /// The input: an 8-byte big-endian integer.
        value: Base64,
    },
}

/// A condition on a row's column, checked under the row's lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CellCheck {
    /// The column family.
    pub family: FamilyName,
    /// The qualifier; absent is empty.
    #[serde(default)]
    pub qualifier: Qualifier,
    /// What the newest value must be; absent: the column must have no cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Base64>,
}

/// All changes of one row: applied in order, all or none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RowMutation {
    /// The row.
    pub row: RowKey,
    /// Apply only if this holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CellCheck>,
    /// The changes, 1 to 100,000.
    pub mutations: Vec<Mutation>,
}

impl RowMutation {
    /// The most mutations of one row (Bigtable's limit).
    pub const MAX_MUTATIONS: usize = 100_000;
}

/// `POST /v1/tables/{table}/mutate`: rows change each atomically, but not together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MutateRequest {
    /// The rows. All are checked before the first is written.
    pub rows: Vec<RowMutation>,
}

/// What became of one row's mutation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RowResult {
    /// False only when the row's `check` did not hold: nothing was written.
    pub applied: bool,
    /// The cells that `increment` and `append` wrote, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<Cell>,
}

/// The answer to a [`MutateRequest`]: durable when it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MutateResponse {
    /// One result a row, in the request's order.
    pub results: Vec<RowResult>,
    /// The timestamp given to cells that brought none, of several rows the highest; absent when all brought one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
}

/// The answer to `PUT /v1/tables/{table}/value`: durable when it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PutValueResponse {
    /// The cell's timestamp.
    pub timestamp: Timestamp,
}

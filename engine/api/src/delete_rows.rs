//! Deleting rows by range.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::model::{Base64, RowKey};

/// Why a deletion of rows is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct InvalidDeleteRows(&'static str);

/// `POST /v1/tables/{table}/delete-rows`: deletes all cells of the rows in a range, a prefix, or the table. Exactly one of the
/// three. What is written later is not touched.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DeleteRows {
    /// From this row on, inclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<RowKey>,
    /// Before this row, exclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<RowKey>,
    /// Rows whose key starts with this; 1 byte or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Base64>,
    /// All rows of the table.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

impl DeleteRows {
    /// Checks that it says exactly one thing.
    pub fn validate(&self) -> Result<(), InvalidDeleteRows> {
        let range = self.start.is_some() || self.stop.is_some();
        let said = [range, self.prefix.is_some(), self.all];
        if said.into_iter().filter(|said| *said).count() != 1 {
            return Err(InvalidDeleteRows(
                "deleting rows takes one of: start or stop, prefix, all",
            ));
        }
        if self
            .prefix
            .as_ref()
            .is_some_and(|prefix| prefix.0.is_empty())
        {
            return Err(InvalidDeleteRows(
                "the prefix is empty; to delete all rows, say all",
            ));
        }
        match (&self.start, &self.stop) {
            (Some(start), Some(stop)) if stop <= start => Err(InvalidDeleteRows(
                "the range of rows is empty: stop is not above start",
            )),
            _ => Ok(()),
        }
    }
}

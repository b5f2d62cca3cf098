//! Compaction on demand.

use serde::{Deserialize, Serialize};

use crate::model::FamilyName;

/// `POST /v1/tables/{table}/compact`: what to compact.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CompactRequest {
    /// Only this family; absent: all of the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<FamilyName>,
}

/// What a compaction on demand did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactResponse {
    /// Bytes of the SSTs that were merged.
    pub bytes_read: u64,
    /// Bytes of the SSTs that took their place.
    pub bytes_written: u64,
}

//! Compaction on demand.

use serde::{Deserialize, Serialize};

/// What a compaction on demand did.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct CompactResponse {
    /// Bytes of the SSTs that were merged.
    pub bytes_read: u64,
    /// Bytes of the SSTs that took their place.
    pub bytes_written: u64,
}

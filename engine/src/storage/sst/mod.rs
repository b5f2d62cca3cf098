//! SSTs: immutable sorted files, one family of one tablet each.
//!
//! ```text
//! file   = data block … │ index block │ wide block │ properties (JSON) │ footer (56 B)
//! stored block = block's bytes, perhaps compressed │ codec u8 │ raw length u32 │ CRC-32C of all before u32
//! index  = block of: last key of a data block → offset u64, stored length u32
//! wide   = block of: wider delete's key → min i64, max i64
//! footer = index, wide, properties as (offset u64, stored length u32) each │ zeros to 44 │ format u32 │ CRC-32C u32 │ "TMSS"
//! ```
//!
//! **Invariants**: never overwritten, names are never reused; every block is checked when it is read, and damage is reported with
//! file and offset; no length from disk is trusted beyond the file's own length.

pub(crate) mod block;
mod compress;
mod reader;
mod writer;

use serde::{Deserialize, Serialize};
use tablemount_api::{Base64, Timestamp};

pub(crate) use reader::{DroppedFiles, Sst, SstCursor};
pub(crate) use writer::SstWriter;

const FOOTER: usize = 56;
const TRAILER: usize = 9;
const MAGIC: &[u8; 4] = b"TMSS";

/// What a file holds; stands in the file and in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Properties {
    /// Cells and tombstones.
    pub(crate) entries: u64,
    /// Wider deletes.
    pub(crate) wide_deletes: u64,
    /// Bytes of keys and values before compression.
    pub(crate) raw_bytes: u64,
    /// Lowest and highest key; empty if there are only wider deletes.
    pub(crate) min_key: Base64,
    pub(crate) max_key: Base64,
    pub(crate) min_timestamp: Timestamp,
    pub(crate) max_timestamp: Timestamp,
    pub(crate) min_sequence: u64,
    pub(crate) max_sequence: u64,
}

impl Properties {
    fn empty() -> Self {
        Self {
            entries: 0,
            wide_deletes: 0,
            raw_bytes: 0,
            min_key: Base64::default(),
            max_key: Base64::default(),
            min_timestamp: Timestamp::MAX,
            max_timestamp: Timestamp::MIN,
            min_sequence: u64::MAX,
            max_sequence: 0,
        }
    }
}

/// A file in a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileMeta {
    /// Its path in the store.
    pub(crate) path: String,
    pub(crate) bytes: u64,
    #[serde(flatten)]
    pub(crate) properties: Properties,
}

/// Where a block lies in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Handle {
    offset: u64,
    length: u32,
}

impl Handle {
    fn encode(self) -> [u8; 12] {
        let mut out = [0; 12];
        out[..8].copy_from_slice(&self.offset.to_le_bytes());
        out[8..].copy_from_slice(&self.length.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            offset: u64::from_le_bytes(*bytes.first_chunk()?),
            length: u32::from_le_bytes(*bytes.get(8..)?.first_chunk()?),
        })
    }
}

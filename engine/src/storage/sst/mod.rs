//! SSTs: immutable sorted files, one family of one tablet each.
//!
//! ```text
//! file      = cells section │ wide section │ ranges block │ properties (JSON) │ footer (64 B)
//! section   = data block, value chunk, index partition, filter … │ top index
//! stored block = block's bytes, perhaps compressed │ codec u8 │ raw length u32 │ CRC-32C of all before u32
//! partition = block of: fence → data block's offset u64, stored length u32
//! top index = block of: fence → partition's offset u64, stored length u32, its filter's offset u64, stored length u32 (0: none)
//! fence     = above all keys of what it stands for, at or below all that follow
//! ranges    = block of: from, encoded ‖ !sequence → to, encoded (empty: to the end)
//! footer    = top index of cells, of wider deletes, ranges, properties: offset u64, stored length u32 each (0: none)
//!             │ zeros to 52 │ format u32 │ CRC-32C of the 56 bytes before u32 │ "TMSS"
//! ```
//!
//! **Invariants**: never overwritten, names are never reused; every block is checked when it is read, and damage is reported with
//! file and offset; no length from disk is trusted beyond the file's own length.

pub(crate) mod audit;
pub(crate) mod block;
pub(crate) mod bloom;
mod compress;
mod cursor;
pub(crate) mod dump;
mod file;
pub(crate) mod reader;
mod section;
pub(crate) mod stored;
#[cfg(test)]
mod tests;
pub(crate) mod walk;
mod writer;

use serde::{Deserialize, Serialize};
use tablemount_api::{Base64, BloomFilter, Timestamp};

pub(crate) use bloom::hash;
pub(crate) use compress::{MAX_RAW, decompress};
pub(crate) use cursor::SstCursor;
pub(crate) use file::{DroppedFiles, Section, Sst};
pub(crate) use writer::SstWriter;

pub(crate) const FOOTER: usize = 64;
pub(crate) const TRAILER: usize = 9;
const MAGIC: &[u8; 4] = b"TMSS";
/// More than any file counts, of anything.
const MAX_COUNT: u64 = 1 << 48;
/// An index partition ends at this size.
const PARTITION_BYTES: usize = 4096;

/// What a file holds; stands in the file and in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Properties {
    /// Cells and tombstones.
    pub(crate) entries: u64,
    /// Of them tombstones.
    pub(crate) tombstones: u64,
    /// Distinct rows and columns of the entries.
    pub(crate) rows: u64,
    pub(crate) columns: u64,
    /// Deletes of a column or of the family in a row.
    pub(crate) wide_deletes: u64,
    /// Deletes of row ranges, as disjoint pieces.
    pub(crate) range_deletes: u64,
    /// Bytes of keys and values before compression.
    pub(crate) raw_bytes: u64,
    /// Lowest and highest key; empty if there are only wider deletes.
    pub(crate) min_key: Base64,
    pub(crate) max_key: Base64,
    /// The same of the wider deletes.
    pub(crate) min_wide_key: Base64,
    pub(crate) max_wide_key: Base64,
    pub(crate) min_timestamp: Timestamp,
    pub(crate) max_timestamp: Timestamp,
    /// Over entries and deletes.
    pub(crate) min_sequence: u64,
    pub(crate) max_sequence: u64,
    /// Over entries only.
    pub(crate) max_cell_sequence: u64,
    /// Of what the filters are.
    pub(crate) bloom_filter: BloomFilter,
}

impl Properties {
    pub(crate) fn empty(bloom_filter: BloomFilter) -> Self {
        Self {
            entries: 0,
            tombstones: 0,
            rows: 0,
            columns: 0,
            wide_deletes: 0,
            range_deletes: 0,
            raw_bytes: 0,
            min_key: Base64::default(),
            max_key: Base64::default(),
            min_wide_key: Base64::default(),
            max_wide_key: Base64::default(),
            min_timestamp: Timestamp::MAX,
            max_timestamp: Timestamp::MIN,
            min_sequence: u64::MAX,
            max_sequence: 0,
            max_cell_sequence: 0,
            bloom_filter,
        }
    }

    /// Whether the numbers may be those of a file: sums over files do not overflow.
    pub(crate) fn are_sane(&self) -> bool {
        let counts = [
            self.entries,
            self.tombstones,
            self.rows,
            self.columns,
            self.wide_deletes,
            self.range_deletes,
            self.raw_bytes,
        ];
        counts.iter().all(|count| *count <= MAX_COUNT)
    }

    pub(crate) fn saw_sequence(&mut self, sequence: u64) {
        self.min_sequence = self.min_sequence.min(sequence);
        self.max_sequence = self.max_sequence.max(sequence);
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
pub(crate) struct Handle {
    pub(crate) offset: u64,
    /// With its trailer; 0: there is no such block.
    pub(crate) length: u32,
}

impl Handle {
    pub(crate) const BYTES: usize = 12;

    /// Where the block ends.
    fn end(self) -> u64 {
        self.offset.saturating_add(u64::from(self.length))
    }

    fn encode(self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..8].copy_from_slice(&self.offset.to_le_bytes());
        out[8..].copy_from_slice(&self.length.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            offset: u64::from_le_bytes(*bytes.first_chunk()?),
            length: u32::from_le_bytes(*bytes.get(8..)?.first_chunk()?),
        })
    }
}

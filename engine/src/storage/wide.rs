//! Wider deletes: of a column (all versions or those of a time range) and of a family in a row. They hide cells with a lower
//! sequence number, and stand apart from cells, so that a seek into the middle of a row still meets them.
//!
//! ```text
//! key   = row (encoded) ‖ 00 ‖ !sequence                            a family's cells in the row
//!       = row (encoded) ‖ 01 ‖ escape(qualifier) 00 01 ‖ !sequence   a column's versions
//! value = min i64 │ max i64
//! ```

use tablemount_api::Timestamp;

use super::entry::Stored;
use super::keys;

/// Hides entries with a lower sequence number and a timestamp in `min..=max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WideDelete {
    pub(crate) min: Timestamp,
    pub(crate) max: Timestamp,
    pub(crate) sequence: u64,
}

impl WideDelete {
    /// Whether it hides the entry.
    pub(crate) fn hides(&self, timestamp: Timestamp, sequence: u64) -> bool {
        sequence < self.sequence && self.min <= timestamp && timestamp <= self.max
    }

    /// Whether it hides all that `other` hides.
    pub(crate) fn includes(&self, other: &Self) -> bool {
        other.sequence <= self.sequence && self.min <= other.min && other.max <= self.max
    }

    /// The value stored under its key.
    pub(crate) fn encode(&self) -> [u8; 16] {
        let mut out = [0; 16];
        out[..8].copy_from_slice(&self.min.0.to_le_bytes());
        out[8..].copy_from_slice(&self.max.0.to_le_bytes());
        out
    }

    /// From key and value; `None`: damaged.
    pub(crate) fn decode(key: &[u8], stored: Stored<'_>) -> Option<Self> {
        let time = |at: usize| {
            let bytes = stored.bytes.get(at..at + 8)?.first_chunk()?;
            Some(Timestamp(i64::from_le_bytes(*bytes)))
        };
        Some(Self {
            min: time(0)?,
            max: time(8)?,
            sequence: keys::sequence_of(key)?,
        })
    }
}

/// The key of a delete of the family's cells in `row` (encoded).
pub(crate) fn family_key(row: &[u8], sequence: u64) -> Vec<u8> {
    [row, &[0], &(!sequence).to_be_bytes()].concat()
}

/// The key of a delete in a column; `qualifier` encoded.
pub(crate) fn column_key(row: &[u8], qualifier: &[u8], sequence: u64) -> Vec<u8> {
    [row, &[1], qualifier, &(!sequence).to_be_bytes()].concat()
}

/// What a key's delete is of: the row, encoded, and the qualifier, encoded; no qualifier: the family. `None`: damaged.
pub(crate) fn parse(key: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let body = key.get(..key.len().checked_sub(8)?)?;
    let row = keys::first(body)?;
    match body[row.len()..].split_first()? {
        (0, []) => Some((row, None)),
        (1, qualifier) if keys::first(qualifier)?.len() == qualifier.len() => {
            Some((row, Some(qualifier)))
        }
        _ => None,
    }
}

//! Wider deletes: of a column (all versions or those of a time range) and of a family in a row. They hide cells with a lower
//! sequence number, and stand apart from cells, so that a seek into the middle of a row still meets them.
//!
//! ```text
//! key = row (encoded) ‖ 00 ‖ !sequence                          a family's cells in the row
//!     = row (encoded) ‖ 01 ‖ escape(qualifier) 00 01 ‖ !sequence   a column's versions
//! ```

use bytes::Bytes;
use tablemount_api::Timestamp;

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
}

/// The key of a delete of the family's cells in `row` (encoded).
pub(crate) fn family_key(row: &[u8], sequence: u64) -> Vec<u8> {
    [row, &[0], &(!sequence).to_be_bytes()].concat()
}

/// The key of a delete in a column; `qualifier` encoded.
pub(crate) fn column_key(row: &[u8], qualifier: &[u8], sequence: u64) -> Vec<u8> {
    [row, &[1], qualifier, &(!sequence).to_be_bytes()].concat()
}

/// The sequence number in a key.
pub(crate) fn sequence_of(key: &[u8]) -> Option<u64> {
    key.last_chunk().map(|tail| !u64::from_be_bytes(*tail))
}

/// Bounds of the keys of a row's family deletes.
pub(crate) fn family_bounds(row: &[u8]) -> (Vec<u8>, Vec<u8>) {
    ([row, &[0]].concat(), [row, &[1]].concat())
}

/// Bounds of the keys of all column deletes in a row.
pub(crate) fn columns_bounds(row: &[u8]) -> (Vec<u8>, Vec<u8>) {
    ([row, &[1]].concat(), [row, &[2]].concat())
}

/// Bounds of the keys of a column's deletes; `qualifier` encoded.
pub(crate) fn column_bounds(row: &[u8], qualifier: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let from = [row, &[1], qualifier].concat();
    let to = super::keys::above(&from);
    (from, to)
}

/// Wider deletes by key, as an SST holds them.
pub(crate) type WideList = Vec<(Bytes, WideDelete)>;

fn between<'a>(
    list: &'a WideList,
    from: &[u8],
    to: &'a [u8],
) -> impl Iterator<Item = &'a WideDelete> {
    let start = list.partition_point(|(key, _)| key.as_ref() < from);
    list[start..]
        .iter()
        .take_while(move |(key, _)| key.as_ref() < to)
        .map(|(_, delete)| delete)
}

/// The deletes of a sorted list whose keys lie in the bounds.
pub(crate) fn in_bounds(list: &WideList, from: &[u8], to: &[u8], out: &mut Vec<WideDelete>) {
    out.extend(between(list, from, to).copied());
}

/// Whether a delete of a sorted list in the bounds has a sequence number of at most `sequence`.
pub(crate) fn any_in_bounds(list: &WideList, from: &[u8], to: &[u8], sequence: u64) -> bool {
    between(list, from, to).any(|delete| delete.sequence <= sequence)
}

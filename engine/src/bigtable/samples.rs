//! SampleRowKeys: row keys that divide a table into parts of about the same size.

use bytes::Bytes;
use tablemount_api::RowKey;

use super::proto::v2;
use crate::storage::table::Table;
use crate::storage::tablet::Tablet;

/// Each tablet's end with the bytes up to there; the last is the empty key, the table's end.
pub(crate) fn samples(table: &Table) -> Vec<v2::SampleRowKeysResponse> {
    let mut offset = 0_u64;
    let sample = |tablet: &std::sync::Arc<Tablet>| {
        offset += stored_bytes(tablet);
        let stop = tablet.stop.as_ref().map(RowKey::bytes);
        v2::SampleRowKeysResponse {
            row_key: stop.cloned().unwrap_or_else(Bytes::new),
            offset_bytes: i64::try_from(offset).unwrap_or(i64::MAX),
        }
    };
    table.tablets.iter().map(sample).collect()
}

fn stored_bytes(tablet: &Tablet) -> u64 {
    let state = tablet.state();
    let files = state.files.values().flatten();
    files.map(|file| file.meta.bytes).sum::<u64>() + tablet.memtable_bytes()
}

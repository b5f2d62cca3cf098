//! Room on the disk for merges: a merge has its inputs and its output on the disk at once.
//!
//! **Invariants**: what compactions choose by themselves leaves the commit log's next segments and the memtables their room, so
//! merging never is what writes are refused for; one on demand, and what only removes files, is not asked.

use std::sync::atomic::Ordering;

use super::counters;
use super::store::Store;

/// Segments of the commit log that room is left for.
const SEGMENTS: u64 = 2;

impl Store {
    /// Bytes that merges may write beside those that run. A disk that does not tell has room.
    pub(super) fn merge_room(&self) -> u64 {
        let kept =
            self.memtable_bytes.load(Ordering::Relaxed) + SEGMENTS * self.options.segment_bytes;
        match self.disk.room() {
            Ok(room) => room.saturating_sub(kept),
            Err(error) => {
                tracing::debug!(%error, "the disk does not tell its room");
                u64::MAX
            }
        }
    }

    /// Takes note of whether merges wait for room.
    pub(super) fn merges_wait(&self, wait: bool) {
        counters::compactions_waiting_for_room(wait);
        let disk = self.disk.describe();
        match (self.waits_for_room.swap(wait, Ordering::Relaxed), wait) {
            (false, true) => tracing::warn!(disk, "compactions wait for room on the disk"),
            (true, false) => tracing::info!(disk, "compactions have room on the disk again"),
            _ => {}
        }
    }
}

//! The pace of a merge: between entries it looks whether it may go on, and waits where the rate of compactions says so.
//!
//! **Invariants**: a merge whose store stops or whose table is dropped ends within [`STEP_BYTES`] and a moment; the rate does
//! not apply while writers are slowed down because of compaction debt.

use std::sync::Arc;
use std::time::Instant;

use super::pressure::SLOW_FILES;
use super::sst::Sst;
use super::store::Store;
use super::tablet::Tablet;
use crate::Result;

/// So many bytes are moved between two looks.
const STEP_BYTES: u64 = 256 << 10;

/// Of one merge; of a flush it does nothing.
#[derive(Default)]
pub(super) struct Pace<'a> {
    of: Option<(&'a Store, &'a Tablet)>,
    /// Bytes on disk and before compression of the inputs: what is moved is counted as on disk.
    bytes: u64,
    raw_bytes: u64,
    moved: u64,
}

impl<'a> Pace<'a> {
    pub(super) fn new(store: &'a Store, tablet: &'a Tablet, files: &[Arc<Sst>]) -> Self {
        let raw = files.iter().map(|file| file.meta.properties.raw_bytes);
        Self {
            of: Some((store, tablet)),
            bytes: files.iter().map(|file| file.meta.bytes).sum(),
            raw_bytes: raw.sum(),
            moved: 0,
        }
    }

    /// So many bytes, before compression, were read or written.
    pub(super) fn moved(&mut self, raw_bytes: u64) -> Result<()> {
        let Some((store, tablet)) = self.of else {
            return Ok(());
        };
        self.moved += raw_bytes;
        if self.moved < STEP_BYTES {
            return Ok(());
        }
        let raw = u128::from(std::mem::take(&mut self.moved));
        let bytes = raw * u128::from(self.bytes) / u128::from(self.raw_bytes.max(1));
        store.check_goes_on(tablet)?;
        if !store.is_behind() {
            store.pause(store.rate.take(bytes as u64, Instant::now()));
        }
        store.check_goes_on(tablet)
    }
}

impl Store {
    /// Whether compactions are so far behind that writers are slowed down.
    fn is_behind(&self) -> bool {
        let tables = self.tables.load();
        let mut tablets = tables.values().flat_map(|table| &table.tablets);
        tablets.any(|tablet| tablet.most_files() > SLOW_FILES)
    }
}

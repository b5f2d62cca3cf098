//! What a family's cells and deletes are read from, at one moment: memtables and SSTs.
//!
//! **Invariants**: a source is left out only if its key range shows that it holds nothing of what is read; a filter or a time
//! bound delays or spares a look into cells, never one at wider deletes.

use std::sync::Arc;

use tablemount_api::{BloomFilter, Timestamp};

use super::deletes::Deletes;
use super::keys;
use super::memtable::Memtable;
use super::merge::{Cursor, MemtableCursor, MergeCursor, Part};
use super::sst::{Section, Sst, SstCursor, hash};
use crate::Result;

/// A family's sources.
pub(crate) struct Sources {
    /// Oldest first, as are files.
    pub(super) memtables: Vec<Arc<Memtable>>,
    pub(super) files: Vec<Arc<Sst>>,
    pub(super) sequence: u64,
}

/// What is read of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted<'a> {
    /// Keys `from..to`, encoded rows or columns.
    Range {
        from: &'a [u8],
        to: Option<&'a [u8]>,
    },
    /// Cells of one row, encoded.
    Row(&'a [u8]),
    /// Cells of one column, encoded with its row.
    Column(&'a [u8]),
}

impl Sources {
    /// The cells, merged, and by source the highest timestamp it may hold (`None`: not known). `keep`: blocks that are read
    /// stay in the cache.
    pub(crate) fn cells(
        &self,
        wanted: Wanted<'_>,
        keep: bool,
    ) -> Result<(MergeCursor, Vec<Option<Timestamp>>)> {
        let (from, to) = wanted.bounds();
        let memtables = self
            .memtables
            .iter()
            .filter(|memtable| !memtable.cells.is_empty());
        let mut cursors: Vec<Cursor> = memtables
            .map(|memtable| self.memtable(memtable, Part::Cells))
            .collect();
        let mut newest = vec![None; cursors.len()];
        for file in self
            .files
            .iter()
            .filter(|file| file.overlaps(from, to.as_deref()))
        {
            let probe = wanted.probe(file.meta.properties.bloom_filter);
            if let Some(cursor) = SstCursor::new(file, Section::Cells, probe, keep)? {
                cursors.push(Cursor::Sst(Box::new(cursor)));
                newest.push(Some(file.meta.properties.max_timestamp));
            }
        }
        Ok((MergeCursor::new(cursors), newest))
    }

    /// The wider deletes, merged; `None`: there are none.
    pub(crate) fn wide(&self, wanted: Wanted<'_>, keep: bool) -> Result<Option<MergeCursor>> {
        let (from, to) = wanted.row_bounds();
        let memtables = self
            .memtables
            .iter()
            .filter(|memtable| !memtable.wide.is_empty());
        let mut cursors: Vec<Cursor> = memtables
            .map(|memtable| self.memtable(memtable, Part::Wide))
            .collect();
        for file in self
            .files
            .iter()
            .filter(|file| file.overlaps_wide(from, to.as_deref()))
        {
            if let Some(cursor) = SstCursor::new(file, Section::Wide, None, keep)? {
                cursors.push(Cursor::Sst(Box::new(cursor)));
            }
        }
        Ok((!cursors.is_empty()).then(|| MergeCursor::new(cursors)))
    }

    /// All deletes wider than a cell.
    pub(crate) fn deletes(&self, wanted: Wanted<'_>, keep: bool) -> Result<Deletes> {
        let (from, to) = wanted.row_bounds();
        let mut ranges = Vec::new();
        for memtable in &self.memtables {
            memtable.ranges(self.sequence, from, to.as_deref(), &mut ranges);
        }
        let files = self.files.iter().filter(|file| !file.ranges.is_empty());
        let files: Vec<_> = files.cloned().collect();
        let wide = self.wide(wanted, keep)?;
        Ok(Deletes::new(wide, ranges, files, self.newest_cell()))
    }

    /// No cell has a higher sequence number.
    fn newest_cell(&self) -> u64 {
        let written = self.memtables.iter().map(|memtable| memtable.newest_cell());
        let filed = self
            .files
            .iter()
            .map(|file| file.meta.properties.max_cell_sequence);
        written.chain(filed).max().unwrap_or(0)
    }

    fn memtable(&self, memtable: &Arc<Memtable>, part: Part) -> Cursor {
        Cursor::Memtable(MemtableCursor::new(memtable.clone(), part, self.sequence))
    }
}

impl Wanted<'_> {
    fn bounds(&self) -> (&[u8], Option<Vec<u8>>) {
        match self {
            Self::Range { from, to } => (from, to.map(<[u8]>::to_vec)),
            Self::Row(encoded) | Self::Column(encoded) => (encoded, Some(keys::above(encoded))),
        }
    }

    /// Bounds of all keys that start with the rows in it, wider deletes' too.
    fn row_bounds(&self) -> (&[u8], Option<Vec<u8>>) {
        let (from, to) = self.bounds();
        let above_row = |to: Vec<u8>| keys::first(&to).map(keys::above).unwrap_or(to);
        (keys::first(from).unwrap_or(from), to.map(above_row))
    }

    /// The hash to look for in filters of this kind.
    fn probe(&self, filter: BloomFilter) -> Option<u64> {
        match (self, filter) {
            (_, BloomFilter::None) | (Self::Range { .. }, _) => None,
            (Self::Column(column), BloomFilter::RowColumn) => Some(hash(column)),
            (Self::Column(column), BloomFilter::Row) => keys::first(column).map(hash),
            (Self::Row(row), _) => Some(hash(row)),
        }
    }
}

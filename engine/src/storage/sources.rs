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
use super::ranges::RangeDelete;
use super::sst::{Section, Sst, SstCursor, hash};
use crate::Result;

/// A family's sources.
pub(crate) struct Sources<'a> {
    /// Oldest first, as are files.
    pub(super) memtables: Vec<Arc<Memtable>>,
    pub(super) files: &'a [Arc<Sst>],
    pub(super) sequence: u64,
}

/// Cells, merged, and by source the highest timestamp it may hold (`None`: not known).
pub(crate) type Cells = (MergeCursor, Vec<Option<Timestamp>>);

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

impl Sources<'_> {
    /// The cells. `keep`: blocks that are read stay in the cache.
    pub(crate) fn cells(&self, wanted: Wanted<'_>, keep: bool) -> Result<Cells> {
        let mut cursors = self.memtable_cells();
        let mut newest = vec![None; cursors.len()];
        for file in self.files_with(wanted) {
            let probe = wanted.probe(file.meta.properties.bloom_filter);
            if let Some(cursor) = SstCursor::new(file, Section::Cells, probe, keep)? {
                cursors.push(Cursor::Sst(Box::new(cursor)));
                newest.push(Some(file.meta.properties.max_timestamp));
            }
        }
        Ok((MergeCursor::new(cursors), newest))
    }

    /// The same of one column, encoded; `None`: there are none, deleted or not. Files are asked for it, the youngest first,
    /// until one may have it.
    pub(crate) fn column(&self, column: &[u8], keep: bool) -> Result<Option<Cells>> {
        let wanted = Wanted::Column(column);
        let mut cursors = self.memtable_cells();
        let mut newest = vec![None; cursors.len()];
        let mut any = false;
        for file in self.files_with(wanted).rev() {
            let probe = wanted.probe(file.meta.properties.bloom_filter);
            let found = match any {
                true => None,
                false => file.find(column, probe, keep)?,
            };
            any |= found.is_some();
            if !any {
                continue;
            }
            if let Some(cursor) = SstCursor::new(file, Section::Cells, probe, keep)? {
                cursors.push(Cursor::Sst(Box::new(cursor.found_at(found))));
                newest.push(Some(file.meta.properties.max_timestamp));
            }
        }
        Ok((!cursors.is_empty()).then(|| (MergeCursor::new(cursors), newest)))
    }

    fn memtable_cells(&self) -> Vec<Cursor> {
        let memtables = self.memtables.iter();
        memtables
            .filter(|memtable| !memtable.cells.is_empty())
            .map(|memtable| self.memtable(memtable, Part::Cells))
            .collect()
    }

    fn files_with(&self, wanted: Wanted<'_>) -> impl DoubleEndedIterator<Item = &Arc<Sst>> {
        self.files.iter().filter(move |file| {
            file.cell_keys()
                .is_some_and(|(min, max)| wanted.meets(min, max))
        })
    }

    /// The wider deletes, merged; `None`: there are none.
    pub(crate) fn wide(&self, wanted: Wanted<'_>, keep: bool) -> Result<Option<MergeCursor>> {
        let memtables = self
            .memtables
            .iter()
            .filter(|memtable| !memtable.wide.is_empty());
        let mut cursors: Vec<Cursor> = memtables
            .map(|memtable| self.memtable(memtable, Part::Wide))
            .collect();
        let meets = |file: &&Arc<Sst>| {
            file.wide_keys()
                .is_some_and(|(min, max)| wanted.rows_meet(min, max))
        };
        for file in self.files.iter().filter(meets) {
            if let Some(cursor) = SstCursor::new(file, Section::Wide, None, keep)? {
                cursors.push(Cursor::Sst(Box::new(cursor)));
            }
        }
        Ok((!cursors.is_empty()).then(|| MergeCursor::new(cursors)))
    }

    /// All deletes wider than a cell.
    pub(crate) fn deletes(&self, wanted: Wanted<'_>, keep: bool) -> Result<Deletes> {
        let mut ranges = Vec::new();
        for memtable in &self.memtables {
            memtable.ranges(self.sequence, |range| wanted.touched_by(range), &mut ranges);
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
    /// Whether keys of it may lie in `min..=max`.
    fn meets(&self, min: &[u8], max: &[u8]) -> bool {
        match self {
            Self::Range { from, to } => max >= *from && to.is_none_or(|to| min < to),
            Self::Row(encoded) | Self::Column(encoded) => {
                max >= *encoded && (min <= *encoded || min.starts_with(encoded))
            }
        }
    }

    /// The rows that it is about.
    fn rows(&self) -> Self {
        match *self {
            Self::Range { from, to } => Self::Range {
                from: keys::first(from).unwrap_or(from),
                to,
            },
            Self::Row(row) => Self::Row(row),
            Self::Column(column) => Self::Row(keys::first(column).unwrap_or(column)),
        }
    }

    /// Whether wider deletes over its rows may lie in `min..=max`.
    fn rows_meet(&self, min: &[u8], max: &[u8]) -> bool {
        let rows = self.rows();
        rows.meets(min, max) || rows.ends_in_row_of(min)
    }

    /// Whether the range delete is over a row of it.
    fn touched_by(&self, range: &RangeDelete) -> bool {
        match self.rows() {
            Self::Row(row) | Self::Column(row) => range.covers(row),
            Self::Range { from, to } => range.touches(from, to) || self.ends_in_row_of(&range.from),
        }
    }

    /// Whether the end of a range of columns is in the row that `key` is of: then the row is in the range.
    fn ends_in_row_of(&self, key: &[u8]) -> bool {
        let Self::Range { to: Some(to), .. } = self else {
            return false;
        };
        keys::first(to).is_some_and(|row| key.starts_with(row))
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

//! The wider deletes that a reader or a compaction meets: of row ranges, of a family in a row, of a column.
//!
//! **Invariants**: after `enter_row` and `enter_column`, `hide` answers by every delete of any source at or below the reader's
//! sequence number; each source is sought at most once a row or column, and not at all where its place shows that it has none.

use std::sync::Arc;

use tablemount_api::Timestamp;

use super::merge::{MergeCursor, damaged};
use super::ranges::RangeDelete;
use super::sst::Sst;
use super::wide::{self, WideDelete};
use crate::Result;

/// Wider deletes of all sources.
pub(crate) struct Deletes {
    /// All sources' wider deletes in one order.
    wide: MergeCursor,
    has_wide: bool,
    ranges: Vec<RangeDelete>,
    /// Files with range deletes.
    files: Vec<Arc<Sst>>,
    /// The highest sequence number of any cell, if that is known.
    newest_cell: u64,
    /// The row's place in `wide` is known up to here.
    row_has_column_deletes: bool,
    /// Cells of the row with a lower sequence number are deleted.
    row_delete: u64,
    /// The end of the range delete over the row; empty: there is none, or no end.
    range_end: Vec<u8>,
    rows_are_deleted: bool,
    column: Vec<WideDelete>,
    bound: Vec<u8>,
}

impl Deletes {
    /// Of these sources; none has a cell above `newest_cell`.
    pub(crate) fn new(
        wide: Option<MergeCursor>,
        ranges: Vec<RangeDelete>,
        files: Vec<Arc<Sst>>,
        newest_cell: u64,
    ) -> Self {
        Self {
            has_wide: wide.is_some(),
            wide: wide.unwrap_or_else(|| MergeCursor::new(Vec::new())),
            ranges,
            files,
            newest_cell,
            row_has_column_deletes: false,
            row_delete: 0,
            range_end: Vec::new(),
            rows_are_deleted: false,
            column: Vec::new(),
            bound: Vec::new(),
        }
    }

    /// Takes note of what is over the row, encoded.
    #[inline]
    pub(crate) fn enter_row(&mut self, row: &[u8]) -> Result<()> {
        self.row_delete = 0;
        self.rows_are_deleted = false;
        self.row_has_column_deletes = false;
        if !self.ranges.is_empty() || !self.files.is_empty() {
            self.find_range(row);
        }
        if self.has_wide {
            self.find_row_deletes(row)?;
        }
        Ok(())
    }

    fn find_range(&mut self, row: &[u8]) {
        let written = self.ranges.iter().filter(|range| range.covers(row));
        let filed = self.files.iter().filter_map(|file| file.ranges.over(row));
        let Some(newest) = written.chain(filed).max_by_key(|range| range.sequence) else {
            return;
        };
        self.row_delete = newest.sequence;
        self.rows_are_deleted = newest.sequence > self.newest_cell && newest.to.is_some();
        self.range_end.clear();
        self.range_end
            .extend_from_slice(newest.to.as_deref().unwrap_or_default());
    }

    /// The family's deletes come before the columns'; the place stays at the first of the columns.
    fn find_row_deletes(&mut self, row: &[u8]) -> Result<()> {
        self.go_to(row, None)?;
        while let Some(key) = self.wide.key().filter(|key| key.starts_with(row)) {
            let (_, qualifier) = wide::parse(key).ok_or_else(damaged)?;
            if qualifier.is_some() {
                self.row_has_column_deletes = true;
                return Ok(());
            }
            let delete = self.delete(key)?;
            self.row_delete = self.row_delete.max(delete.sequence);
            self.wide.next()?;
        }
        Ok(())
    }

    /// Takes note of what is over the column; `qualifier` is encoded.
    #[inline]
    pub(crate) fn enter_column(&mut self, row: &[u8], qualifier: &[u8]) -> Result<()> {
        self.column.clear();
        if !self.row_has_column_deletes {
            return Ok(());
        }
        self.go_to(row, Some(qualifier))?;
        loop {
            let Some(key) = self.wide.key() else {
                return Ok(());
            };
            if !key.starts_with(&self.bound) {
                return Ok(());
            }
            let delete = self.delete(key)?;
            self.column.push(delete);
            self.wide.next()?;
        }
    }

    fn delete(&self, key: &[u8]) -> Result<WideDelete> {
        let stored = self.wide.stored().ok_or_else(damaged)?;
        WideDelete::decode(key, stored).ok_or_else(damaged)
    }

    /// Goes to the first delete at or after a row, or a column of it; leaves `bound` at what was looked for.
    fn go_to(&mut self, row: &[u8], qualifier: Option<&[u8]>) -> Result<()> {
        let from = std::mem::take(&mut self.bound);
        let mut bound = Vec::with_capacity(row.len() + 1 + qualifier.map_or(0, <[u8]>::len));
        bound.extend_from_slice(row);
        if let Some(qualifier) = qualifier {
            bound.push(1);
            bound.extend_from_slice(qualifier);
        }
        // What was read since `from` was sought starts with it, so the place is right for all bounds between the two.
        let between = !from.is_empty()
            && from < bound
            && self.wide.key().is_none_or(|at| at >= bound.as_slice());
        if !between {
            self.wide.seek(&bound)?;
        }
        self.bound = bound;
        Ok(())
    }

    /// Whether a cell of the column is hidden.
    #[inline]
    pub(crate) fn hide(&self, timestamp: Timestamp, sequence: u64) -> bool {
        sequence < self.row_delete
            || self
                .column
                .iter()
                .any(|delete| delete.hides(timestamp, sequence))
    }

    /// Whether a range delete over the row is newer than all that is stored.
    pub(crate) fn rows_are_deleted(&self) -> bool {
        self.rows_are_deleted
    }

    /// The first row, encoded, behind that range delete.
    pub(crate) fn end_of_deleted_rows(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.range_end);
    }
}

//! One family's cells in one tablet, inside the bounds of a read.
//!
//! **Invariants**: visibility (and with it the count of versions) is decided before any bound here; bounds skip by seeking, not
//! by stepping, wherever a whole column or row is out.

use std::sync::Arc;

use bytes::Bytes;
use tablemount_api::{FamilyInfo, Timestamp};

use super::bounds::{CellBounds, Resume};
use crate::Result;
use crate::storage::keys;
use crate::storage::tablet::TabletState;
use crate::storage::visible::{FamilyCursor, Judge, Patience};

/// What all families of a read share.
pub(crate) struct ReadContext {
    pub(crate) cells: CellBounds,
    pub(crate) resume: Option<Resume>,
    pub(crate) sequence: u64,
    pub(crate) now: Timestamp,
    pub(crate) patience: Patience,
}

/// A cell inside the bounds; its row and column are the reader's.
pub(crate) struct FoundCell {
    pub(crate) timestamp: Timestamp,
    pub(crate) value: Bytes,
}

/// Reads one family.
pub(crate) struct FamilyReader {
    pub(crate) family: FamilyInfo,
    context: Arc<ReadContext>,
    cursor: FamilyCursor,
    row: Vec<u8>,
    column: Vec<u8>,
    columns: u32,
    versions: u32,
    /// The next cell, if it was looked for.
    found: Option<FoundCell>,
}

impl FamilyReader {
    pub(crate) fn new(
        family: FamilyInfo,
        context: Arc<ReadContext>,
        state: &TabletState,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> Result<Self> {
        let (merge, wide) = state.sources(family.id, context.sequence, from, to)?;
        let judge = Judge::new(
            wide,
            context.sequence,
            family.schema.gc_rule.clone(),
            context.now,
        );
        let cursor = FamilyCursor::new(merge, judge, context.patience);
        Ok(Self {
            family,
            context,
            cursor,
            row: Vec::new(),
            column: Vec::new(),
            columns: 0,
            versions: 0,
            found: None,
        })
    }

    /// Goes to the first cell from the row or column `from` on, and before `to`.
    pub(crate) fn seek(&mut self, from: &[u8], to: Option<Vec<u8>>) -> Result<()> {
        self.row.clear();
        self.column.clear();
        self.cursor.seek(from, to)?;
        self.advance()
    }

    /// The row that the next cell is in, encoded.
    pub(crate) fn next_row(&self) -> Option<&[u8]> {
        self.found.as_ref().map(|_| self.cursor.row())
    }

    /// The qualifier of the next cell, encoded.
    pub(crate) fn qualifier(&self) -> &[u8] {
        &self.cursor.column()[self.cursor.row().len()..]
    }

    /// The next cell; then looks for the one after.
    pub(crate) fn found(&self) -> Option<&FoundCell> {
        self.found.as_ref()
    }

    /// Goes past the row of the next cell.
    pub(crate) fn skip_row(&mut self) -> Result<()> {
        self.cursor.skip_row()?;
        self.advance()
    }

    /// The row below `encoded` in which this family stores anything. Seek before reading on.
    pub(crate) fn row_below(&mut self, encoded: &[u8]) -> Result<Option<Vec<u8>>> {
        self.cursor.row_below(encoded)
    }

    /// Looks for the next cell inside the bounds.
    pub(crate) fn advance(&mut self) -> Result<()> {
        self.found = None;
        while let Some(cell) = self.cursor.next()? {
            self.enter();
            match self.judge(cell.timestamp) {
                Step::Take => {
                    self.versions += 1;
                    self.found = Some(FoundCell {
                        timestamp: cell.timestamp,
                        value: cell.value,
                    });
                    return Ok(());
                }
                Step::Count => self.versions += 1,
                Step::NextCell => {}
                Step::NextColumn => self.cursor.skip_column()?,
                Step::NextRow => self.cursor.skip_row()?,
                Step::Seek(column) => self.cursor.seek_forward(&column)?,
            }
        }
        Ok(())
    }

    fn enter(&mut self) {
        if self.cursor.row() != self.row {
            self.row.clear();
            self.row.extend_from_slice(self.cursor.row());
            self.columns = 0;
        }
        if self.cursor.column() != self.column {
            self.column.clear();
            self.column.extend_from_slice(self.cursor.column());
            self.versions = 0;
        }
    }

    fn judge(&mut self, timestamp: Timestamp) -> Step {
        let bounds = &self.context.cells;
        let qualifier = &self.column[self.row.len()..];
        if qualifier < bounds.qualifier_from.as_slice() {
            return Step::Seek([&self.row, bounds.qualifier_from.as_slice()].concat());
        }
        if bounds
            .qualifier_to
            .as_ref()
            .is_some_and(|to| qualifier >= to.as_slice())
        {
            return Step::NextRow;
        }
        if timestamp > bounds.at {
            return Step::NextCell;
        }
        if timestamp < bounds.since || bounds.versions.is_some_and(|limit| self.versions >= limit) {
            return Step::NextColumn;
        }
        if self.versions == 0 {
            if bounds.columns.is_some_and(|limit| self.columns >= limit) {
                return Step::NextRow;
            }
            self.columns += 1;
        }
        let resumed = self
            .context
            .resume
            .as_ref()
            .filter(|resume| resume.row == self.row);
        resumed.map_or(Step::Take, |resume| self.judge_resumed(resume, timestamp))
    }

    /// What was on the page before is counted, but not taken again.
    fn judge_resumed(&self, resume: &Resume, timestamp: Timestamp) -> Step {
        if self.family.id != resume.family {
            return if self.family.id < resume.family {
                Step::NextRow
            } else {
                Step::Take
            };
        }
        let qualifier = &self.column[self.row.len()..];
        match qualifier.cmp(&resume.qualifier) {
            std::cmp::Ordering::Greater => Step::Take,
            std::cmp::Ordering::Less if self.context.cells.columns.is_some() => Step::NextColumn,
            std::cmp::Ordering::Less => {
                Step::Seek([self.row.as_slice(), &resume.qualifier].concat())
            }
            std::cmp::Ordering::Equal => match resume.timestamp {
                None => Step::NextColumn,
                Some(last) if timestamp >= last => Step::Count,
                Some(_) => Step::Take,
            },
        }
    }
}

/// What to do with a visible cell.
enum Step {
    Take,
    /// It was on the page before.
    Count,
    NextCell,
    NextColumn,
    NextRow,
    Seek(Vec<u8>),
}

/// Encoded bounds of the columns to read of one row.
pub(crate) fn columns_of(row: &[u8], bounds: &CellBounds) -> (Vec<u8>, Option<Vec<u8>>) {
    let column = |qualifier: &Vec<u8>| [row, qualifier.as_slice()].concat();
    let to = bounds
        .qualifier_to
        .as_ref()
        .map_or_else(|| keys::above(row), column);
    (column(&bounds.qualifier_from), Some(to))
}

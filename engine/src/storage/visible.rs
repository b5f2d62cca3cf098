//! Visibility: which of a family's stored entries a reader sees.
//!
//! **Invariants**: a cursor shows what [`Judge`] says, whatever order it is sought in; it stands at the cell that it returned
//! last, whose key and value it lends; it looks no longer than its patience without showing a cell, and then says where it is.

use std::ops::Range;
use std::time::Instant;

use bytes::Bytes;
use tablemount_api::Timestamp;

use super::entry::Stored;
use super::judge::{Judge, Verdict};
use super::keys;
use super::merge::{MergeCursor, damaged};
use crate::{Error, Result};

/// A cell that a reader sees, on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VisibleCell {
    pub(crate) timestamp: Timestamp,
    pub(crate) value: Bytes,
}

/// What a cursor found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// A cell; the cursor stands at it.
    Cell(Timestamp),
    /// Nothing more before the end.
    Nothing,
    /// Nothing for too long; all up to the version of this timestamp in the cursor's column is seen.
    NotYet(Timestamp),
}

/// The visible cells of one family in one tablet, in order.
pub(crate) struct FamilyCursor {
    merge: MergeCursor,
    judge: Judge,
    /// Keys from here on are not shown; empty: all are.
    end: Vec<u8>,
    above: Vec<u8>,
    /// The merge stands at the cell returned last.
    consumed: bool,
    steps: u32,
    until: Instant,
}

/// Entries looked at between looks at the clock.
const STEPS: u32 = 4096;

impl FamilyCursor {
    /// Looks on without a cell to show until `until`.
    pub(crate) fn new(merge: MergeCursor, judge: Judge, until: Instant) -> Self {
        Self {
            merge,
            judge,
            end: Vec::new(),
            above: Vec::new(),
            consumed: false,
            steps: 0,
            until,
        }
    }

    /// Goes to a row or column (encoded), or the first after it; shows nothing from `end` (encoded) on.
    pub(crate) fn seek(&mut self, encoded: &[u8], end: Option<&[u8]>) -> Result<()> {
        self.reset(end);
        self.merge.seek(encoded)
    }

    /// Goes to a column (encoded), of which alone cells are shown, the newest first; `newest` is by source the highest timestamp.
    pub(crate) fn seek_column(
        &mut self,
        column: &[u8],
        newest: &[Option<Timestamp>],
    ) -> Result<()> {
        self.reset(Some(column));
        keys::raise(&mut self.end);
        self.merge.seek_column(column, newest)
    }

    fn reset(&mut self, end: Option<&[u8]>) {
        self.judge.reset();
        self.end.clear();
        self.end.extend_from_slice(end.unwrap_or_default());
        self.consumed = false;
    }

    /// Goes on to a row or column that is not before the present place.
    pub(crate) fn seek_forward(&mut self, encoded: &[u8]) -> Result<()> {
        self.consumed = false;
        self.merge.seek_forward(encoded)
    }

    /// Goes past the column of the cell returned last.
    pub(crate) fn skip_column(&mut self) -> Result<()> {
        self.consumed = false;
        set_above(&mut self.above, self.judge.column());
        self.merge.skip_prefix(self.judge.column(), &self.above)
    }

    /// Goes past the row of the cell returned last.
    pub(crate) fn skip_row(&mut self) -> Result<()> {
        self.consumed = false;
        set_above(&mut self.above, self.judge.row());
        self.merge.skip_prefix(self.judge.row(), &self.above)
    }

    /// Looks for the next visible cell.
    pub(crate) fn next(&mut self) -> Result<Found> {
        if std::mem::take(&mut self.consumed) {
            self.merge.next()?;
        }
        loop {
            let Some((key, kind)) = self.merge.key_and_kind() else {
                return Ok(Found::Nothing);
            };
            if !self.end.is_empty() && key >= self.end.as_slice() {
                return Ok(Found::Nothing);
            }
            let (verdict, timestamp) = self.judge.judge(key, kind)?;
            match verdict {
                Verdict::Visible => {
                    self.consumed = true;
                    return Ok(Found::Cell(timestamp));
                }
                Verdict::Collected => self.skip_column()?,
                Verdict::RowsDeleted => {
                    let mut above = std::mem::take(&mut self.above);
                    self.judge.end_of_deleted_rows(&mut above);
                    self.above = above;
                    self.merge.seek_forward(&self.above)?;
                }
                Verdict::Hidden | Verdict::Tombstone => self.merge.next()?,
            }
            self.steps += 1;
            if self.steps >= STEPS {
                self.steps = 0;
                if Instant::now() >= self.until {
                    return Ok(Found::NotYet(timestamp));
                }
            }
        }
    }

    /// The next visible cell with its value; that it is long in coming is an error.
    pub(crate) fn next_cell(&mut self) -> Result<Option<VisibleCell>> {
        match self.next()? {
            Found::Nothing => Ok(None),
            Found::Cell(timestamp) => Ok(Some(VisibleCell {
                timestamp,
                value: self.value(None)?,
            })),
            Found::NotYet(_) => Err(Error::Deadline(
                "the read found nothing more within its deadline; narrow its bounds".to_owned(),
            )),
        }
    }

    /// What is stored of the cell returned last.
    #[inline]
    pub(crate) fn stored(&self) -> Stored<'_> {
        self.merge.stored().unwrap_or(Stored::TOMBSTONE)
    }

    /// Length of the value of the cell returned last.
    pub(crate) fn length(&self) -> Result<u64> {
        self.stored().value_length().ok_or_else(damaged)
    }

    /// The value of the cell returned last, or a part of it inside its length.
    pub(crate) fn value(&self, range: Option<Range<u64>>) -> Result<Bytes> {
        self.merge.value(range)
    }

    /// The row of the cell returned last, encoded.
    #[inline]
    pub(crate) fn row(&self) -> &[u8] {
        self.judge.row()
    }

    /// The column of the cell returned last, encoded with its row.
    #[inline]
    pub(crate) fn column(&self) -> &[u8] {
        self.judge.column()
    }

    /// How many rows and columns the cursor has come to: another number, another row or column, or the same sought again.
    #[inline]
    pub(crate) fn rows_and_columns(&self) -> (u64, u64) {
        (self.judge.rows(), self.judge.columns())
    }

    /// Starts a walk down over rows.
    pub(crate) fn start_down(&mut self) {
        self.merge.forget_below();
    }

    /// The row (encoded) of the last entry below `bound`, whether or not anything in it is visible. Bounds go down.
    pub(crate) fn row_below(&mut self, bound: &[u8]) -> Result<Option<&[u8]>> {
        self.merge.row_below(bound)
    }

    /// Goes into `row` at `from`; returns whether `row_below` found anything in it.
    pub(crate) fn enter_row(&mut self, row: &[u8], from: &[u8], end: &[u8]) -> Result<bool> {
        self.reset(Some(end));
        self.merge.enter_row(row, from)
    }
}

/// The lowest key above all that start with `encoded`, into a buffer.
fn set_above(above: &mut Vec<u8>, encoded: &[u8]) {
    above.clear();
    above.extend_from_slice(encoded);
    keys::raise(above);
}

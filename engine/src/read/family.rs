//! One family's cells in one tablet, inside the bounds of a read.
//!
//! **Invariants**: visibility (and with it the count of versions) is decided before any bound here; bounds skip by seeking, not
//! by stepping, wherever a whole column or row is out. A reader stands at the cell that it found last and lends it.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tablemount_api::{CellPosition, FamilyInfo, Qualifier, Timestamp};

use super::bounds::{CellBounds, Resume, decoded};
use crate::Result;
use crate::storage::entry::{Kind, Stored};
use crate::storage::judge::Judge;
use crate::storage::keys;
use crate::storage::sources::Wanted;
use crate::storage::tablet::TabletState;
use crate::storage::visible::{FamilyCursor, Found};

/// What all families of a read share.
pub(crate) struct ReadContext {
    pub(crate) cells: CellBounds,
    pub(crate) resume: Option<Resume>,
    pub(crate) sequence: u64,
    pub(crate) now: Timestamp,
    /// When a read that finds nothing more stops and says where it is.
    pub(crate) until: Instant,
}

/// Where a reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Cell(Timestamp),
    End,
    /// It looked for too long; all up to this version of the cursor's column is seen.
    Stalled(Timestamp),
}

/// Reads one family.
pub(crate) struct FamilyReader {
    pub(crate) family: FamilyInfo,
    context: Arc<ReadContext>,
    cursor: FamilyCursor,
    /// The row and the column that are counted, by the cursor's numbers.
    counted: (u64, u64),
    columns: u32,
    versions: u32,
    place: Place,
    from: Vec<u8>,
}

impl FamilyReader {
    pub(crate) fn new(
        family: FamilyInfo,
        context: Arc<ReadContext>,
        state: &TabletState,
        wanted: Wanted<'_>,
    ) -> Result<Self> {
        let sources = state.sources(family.id, context.sequence);
        let keep = family.schema.block_cache;
        let (merge, _) = sources.cells(wanted, keep)?;
        let deletes = sources.deletes(wanted, keep)?;
        let judge = Judge::new(deletes, family.schema.gc_rule.clone(), context.now);
        let cursor = FamilyCursor::new(merge, judge, context.until);
        Ok(Self {
            family,
            context,
            cursor,
            counted: (0, 0),
            columns: 0,
            versions: 0,
            place: Place::End,
            from: Vec::new(),
        })
    }

    /// Goes to the first cell from the row or column `from` on, and before `to`.
    pub(crate) fn seek(&mut self, from: &[u8], to: Option<&[u8]>) -> Result<()> {
        self.place = Place::End;
        let resumed = self.resumed(from).is_some();
        if resumed {
            self.first_column(from);
            self.cursor.seek(&self.from, to)?;
        } else {
            self.cursor.seek(from, to)?;
        }
        self.advance()
    }

    /// Where the page before ended, if that was in this row.
    fn resumed(&self, row: &[u8]) -> Option<&Resume> {
        let resume = self.context.resume.as_ref();
        resume.filter(|resume| row.starts_with(&resume.row))
    }

    /// Puts the first column of the row to look into in `self.from`: what the page before saw is left out.
    fn first_column(&mut self, row: &[u8]) {
        let mut from = std::mem::take(&mut self.from);
        from.clear();
        let bounds = &self.context.cells;
        match self.resumed(row) {
            // Columns are counted from the row's first.
            Some(resume) if bounds.columns.is_none() => {
                from.extend_from_slice(&resume.row);
                match self.family.id.cmp(&resume.family) {
                    Ordering::Less => keys::raise(&mut from),
                    Ordering::Equal => {
                        from.extend_from_slice((&bounds.qualifier_from).max(&resume.qualifier))
                    }
                    Ordering::Greater => from.extend_from_slice(&bounds.qualifier_from),
                }
            }
            Some(resume) => {
                from.extend_from_slice(&resume.row);
                from.extend_from_slice(&bounds.qualifier_from);
            }
            None => {
                from.extend_from_slice(row);
                from.extend_from_slice(&bounds.qualifier_from);
            }
        }
        self.from = from;
    }

    /// The row that the next cell is in, encoded; or in which a stalled reader looks for it.
    #[inline]
    pub(crate) fn next_row(&self) -> Option<&[u8]> {
        (self.place != Place::End).then(|| self.cursor.row())
    }

    /// The number of that row: another number, another row.
    #[inline]
    pub(crate) fn row_number(&self) -> u64 {
        self.cursor.rows_and_columns().0
    }

    /// Where to go on, if the reader stalled.
    pub(crate) fn stalled(&self) -> Result<Option<CellPosition>> {
        let Place::Stalled(timestamp) = self.place else {
            return Ok(None);
        };
        Ok(Some(CellPosition {
            family: self.family.schema.name.clone(),
            qualifier: Qualifier::new(decoded(self.qualifier())?)?,
            timestamp: Some(timestamp),
        }))
    }

    /// The qualifier of the next cell, encoded.
    #[inline]
    pub(crate) fn qualifier(&self) -> &[u8] {
        &self.cursor.column()[self.cursor.row().len()..]
    }

    /// The timestamp of the next cell.
    #[inline]
    pub(crate) fn timestamp(&self) -> Timestamp {
        match self.place {
            Place::Cell(timestamp) | Place::Stalled(timestamp) => timestamp,
            Place::End => Timestamp::MIN,
        }
    }

    /// The value of the next cell, sharing memory where it can.
    pub(crate) fn value(&self) -> Result<Bytes> {
        self.cursor.value(None)
    }

    /// The value of the next cell if it stands whole where it is stored.
    #[inline]
    pub(crate) fn plain_value(&self) -> Option<&[u8]> {
        match self.cursor.stored() {
            Stored {
                kind: Kind::Plain,
                bytes,
            } => Some(bytes),
            _ => None,
        }
    }

    /// Length of the value of the next cell.
    pub(crate) fn length(&self) -> Result<u64> {
        self.cursor.length()
    }

    /// Goes past the row of the next cell.
    pub(crate) fn skip_row(&mut self) -> Result<()> {
        self.cursor.skip_row()?;
        self.place = Place::End;
        self.advance()
    }

    /// Goes past the column of the next cell.
    pub(crate) fn skip_column(&mut self) -> Result<()> {
        self.cursor.skip_column()?;
        self.place = Place::End;
        self.advance()
    }

    /// Starts a walk down over rows.
    pub(crate) fn start_down(&mut self) {
        self.cursor.start_down();
    }

    /// Finds the row below `bound` (encoded; bounds go down) in which this family stores anything.
    pub(crate) fn row_below(&mut self, bound: &[u8]) -> Result<Option<&[u8]>> {
        self.cursor.row_below(bound)
    }

    /// Goes to the first cell inside the bounds in `row`, if `row_below` found anything in it; else to nothing.
    pub(crate) fn enter_row(&mut self, row: &[u8], end: &[u8]) -> Result<()> {
        self.place = Place::End;
        self.first_column(row);
        match self.cursor.enter_row(row, &self.from, end)? {
            true => self.advance(),
            false => Ok(()),
        }
    }

    /// Looks for the next cell inside the bounds.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<()> {
        // All versions that are wanted of the column were found: no need to look at the next.
        if matches!(self.place, Place::Cell(_))
            && self.context.cells.versions == Some(self.versions)
        {
            self.cursor.skip_column()?;
        }
        loop {
            let timestamp = match self.cursor.next()? {
                Found::Cell(timestamp) => timestamp,
                Found::Nothing => {
                    self.place = Place::End;
                    return Ok(());
                }
                Found::NotYet(timestamp) => {
                    self.place = Place::Stalled(timestamp);
                    return Ok(());
                }
            };
            self.enter();
            match self.judge(timestamp) {
                Step::Take => {
                    self.versions += 1;
                    self.place = Place::Cell(timestamp);
                    return Ok(());
                }
                Step::Count => self.versions += 1,
                Step::NextCell => {}
                Step::NextColumn => self.cursor.skip_column()?,
                Step::NextRow => self.cursor.skip_row()?,
                Step::Seek(column) => self.cursor.seek_forward(&column)?,
            }
        }
    }

    #[inline]
    fn enter(&mut self) {
        let (row, column) = self.cursor.rows_and_columns();
        if column == self.counted.1 {
            return;
        }
        if row != self.counted.0 {
            self.columns = 0;
        }
        self.counted = (row, column);
        self.versions = 0;
    }

    fn judge(&mut self, timestamp: Timestamp) -> Step {
        let bounds = &self.context.cells;
        // Comparing with an empty vector is slow: its address is none, which processors find out the long way.
        let from = Some(&bounds.qualifier_from).filter(|from| !from.is_empty());
        if from.is_some_and(|from| self.qualifier() < from.as_slice()) {
            return Step::Seek([self.cursor.row(), bounds.qualifier_from.as_slice()].concat());
        }
        if bounds
            .qualifier_to
            .as_ref()
            .is_some_and(|to| self.qualifier() >= to.as_slice())
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
            .filter(|resume| resume.row == self.cursor.row());
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
        match self.qualifier().cmp(&resume.qualifier) {
            Ordering::Greater => Step::Take,
            Ordering::Less if self.context.cells.columns.is_some() => Step::NextColumn,
            Ordering::Less => Step::Seek([self.cursor.row(), &resume.qualifier].concat()),
            Ordering::Equal => match resume.timestamp {
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
pub(crate) fn columns_of(row: &[u8], bounds: &CellBounds) -> (Vec<u8>, Vec<u8>) {
    let column = |qualifier: &Vec<u8>| [row, qualifier.as_slice()].concat();
    let to = bounds
        .qualifier_to
        .as_ref()
        .map_or_else(|| keys::above(row), column);
    (column(&bounds.qualifier_from), to)
}

//! Visibility: which of a family's stored entries a reader sees, and which a compaction keeps.
//!
//! One judge for both, [`Judge`]: of the entries at one (row, qualifier, timestamp) the highest sequence number wins, put or
//! tombstone; then wider deletes hide what has a lower sequence number; then the GC rule collects, counting from the newest.
//!
//! **Invariants**: what a reader sees is the same before and after any flush or compaction. Versions are counted before any
//! filter of the reader. A row's wider deletes are known before its first entry is judged, wherever a seek lands.

use std::sync::Arc;

use bytes::Bytes;
use tablemount_api::{GcRule, Timestamp};

use super::keys::{self, Parts};
use super::memtable::Memtable;
use super::merge::{MergeCursor, Stored};
use super::sst::Sst;
use super::wide::{self, WideDelete};
use crate::{Error, Result};

/// Where a family's wider deletes stand.
#[derive(Clone)]
pub(crate) enum WideSource {
    Memtable(Arc<Memtable>),
    Sst(Arc<Sst>),
}

impl WideSource {
    fn any(&self, bounds: &(Vec<u8>, Vec<u8>), sequence: u64) -> bool {
        match self {
            Self::Memtable(memtable) => memtable.any_wide(&bounds.0, &bounds.1, sequence),
            Self::Sst(sst) => sst.any_wide(&bounds.0, &bounds.1, sequence),
        }
    }

    fn collect(&self, bounds: &(Vec<u8>, Vec<u8>), out: &mut Vec<WideDelete>) {
        match self {
            Self::Memtable(memtable) => memtable.wide(&bounds.0, &bounds.1, out),
            Self::Sst(sst) => sst.wide(&bounds.0, &bounds.1, out),
        }
    }
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A cell that readers see.
    Visible,
    /// Overwritten, or hidden by a wider delete.
    Hidden,
    /// A tombstone that won.
    Tombstone,
    /// Collected by the GC rule, as are all older versions of the column.
    Collected,
}

/// Judges entries in key order.
pub(crate) struct Judge {
    wide: Vec<WideSource>,
    sequence: u64,
    gc_rule: GcRule,
    now: Timestamp,
    /// The row, encoded, and the column; empty before the first entry.
    row: Vec<u8>,
    column: Vec<u8>,
    /// Entries of the row with a lower sequence number are deleted.
    family_delete: u64,
    row_has_column_deletes: bool,
    column_deletes: Vec<WideDelete>,
    newer: u64,
    last_timestamp: Option<Timestamp>,
}

impl Judge {
    /// For a reader at `sequence`, or a compaction (`u64::MAX`); sources without wider deletes may be left out of `wide`.
    pub(crate) fn new(
        wide: Vec<WideSource>,
        sequence: u64,
        gc_rule: GcRule,
        now: Timestamp,
    ) -> Self {
        Self {
            wide,
            sequence,
            gc_rule,
            now,
            row: Vec::new(),
            column: Vec::new(),
            family_delete: 0,
            row_has_column_deletes: false,
            column_deletes: Vec::new(),
            newer: 0,
            last_timestamp: None,
        }
    }

    /// What the entry is. Inside a column entries must come without gaps from its newest on.
    pub(crate) fn judge(&mut self, parts: &Parts<'_>, stored: &Stored) -> Verdict {
        if parts.column != self.column {
            self.enter_column(parts);
        }
        if self.last_timestamp.replace(parts.timestamp) == Some(parts.timestamp) {
            return Verdict::Hidden;
        }
        if *stored == Stored::Tombstone {
            return Verdict::Tombstone;
        }
        let deleted = |delete: &WideDelete| delete.hides(parts.timestamp, parts.sequence);
        if parts.sequence < self.family_delete || self.column_deletes.iter().any(deleted) {
            return Verdict::Hidden;
        }
        if self.gc_rule.collects(self.newer, parts.timestamp, self.now) {
            return Verdict::Collected;
        }
        self.newer += 1;
        Verdict::Visible
    }

    /// The row being judged, encoded.
    pub(crate) fn row(&self) -> &[u8] {
        &self.row
    }

    /// The column being judged, encoded with its row.
    pub(crate) fn column(&self) -> &[u8] {
        &self.column
    }

    /// Forgets the place, so that a seek backwards is judged afresh.
    fn reset(&mut self) {
        self.row.clear();
        self.column.clear();
    }

    fn enter_column(&mut self, parts: &Parts<'_>) {
        if parts.row != self.row {
            self.enter_row(parts.row);
        }
        self.column.clear();
        self.column.extend_from_slice(parts.column);
        self.newer = 0;
        self.last_timestamp = None;
        self.column_deletes.clear();
        if self.row_has_column_deletes {
            let bounds = wide::column_bounds(parts.row, &parts.column[parts.row.len()..]);
            self.wide
                .iter()
                .for_each(|source| source.collect(&bounds, &mut self.column_deletes));
            self.column_deletes
                .retain(|delete| delete.sequence <= self.sequence);
        }
    }

    fn enter_row(&mut self, row: &[u8]) {
        self.row.clear();
        self.row.extend_from_slice(row);
        self.family_delete = 0;
        self.row_has_column_deletes = false;
        if self.wide.is_empty() {
            return;
        }
        let visible = |delete: &&WideDelete| delete.sequence <= self.sequence;
        let mut found = Vec::new();
        let bounds = wide::family_bounds(row);
        self.wide
            .iter()
            .for_each(|source| source.collect(&bounds, &mut found));
        self.family_delete = found
            .iter()
            .filter(visible)
            .map(|delete| delete.sequence)
            .max()
            .unwrap_or(0);
        let bounds = wide::columns_bounds(row);
        self.row_has_column_deletes = self
            .wide
            .iter()
            .any(|source| source.any(&bounds, self.sequence));
    }
}

/// A cell that a reader sees; its row and column are the cursor's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VisibleCell {
    pub(crate) timestamp: Timestamp,
    pub(crate) value: Bytes,
}

/// The visible cells of one family in one tablet, in order.
pub(crate) struct FamilyCursor {
    merge: MergeCursor,
    judge: Judge,
    /// Keys from here on are not shown.
    end: Option<Vec<u8>>,
    /// The merge stands at the cell returned last.
    consumed: bool,
    steps: u64,
    patience: Patience,
}

/// How long a cursor may go on without showing a cell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) until: std::time::Instant,
}

impl Patience {
    pub(crate) fn check(&self) -> Result<()> {
        if std::time::Instant::now() < self.until {
            return Ok(());
        }
        Err(Error::Deadline(
            "the read found nothing more within its deadline; narrow its bounds".to_owned(),
        ))
    }
}

impl FamilyCursor {
    pub(crate) fn new(merge: MergeCursor, judge: Judge, patience: Patience) -> Self {
        Self {
            merge,
            judge,
            end: None,
            consumed: false,
            steps: 0,
            patience,
        }
    }

    /// Goes to a row or column (encoded), or the first after it; shows nothing from `end` (encoded) on.
    pub(crate) fn seek(&mut self, encoded: &[u8], end: Option<Vec<u8>>) -> Result<()> {
        self.judge.reset();
        self.end = end;
        self.consumed = false;
        self.merge.seek(encoded)
    }

    /// Goes on to a row or column that is not before the present place.
    pub(crate) fn seek_forward(&mut self, encoded: &[u8]) -> Result<()> {
        self.consumed = false;
        self.merge.seek_forward(encoded)
    }

    /// Goes past the column of the cell returned last.
    pub(crate) fn skip_column(&mut self) -> Result<()> {
        let next = keys::above(self.judge.column());
        self.seek_forward(&next)
    }

    /// Goes past the row of the cell returned last.
    pub(crate) fn skip_row(&mut self) -> Result<()> {
        let next = keys::above(self.judge.row());
        self.seek_forward(&next)
    }

    /// The next visible cell.
    pub(crate) fn next(&mut self) -> Result<Option<VisibleCell>> {
        if std::mem::take(&mut self.consumed) {
            self.merge.next()?;
        }
        loop {
            let Some(key) = self.merge.key() else {
                return Ok(None);
            };
            if self.end.as_ref().is_some_and(|end| key >= end.as_slice()) {
                return Ok(None);
            }
            let parts = keys::parse(key)
                .ok_or_else(|| Error::Corrupt("a stored key is damaged".to_owned()))?;
            let Some(stored) = self.merge.stored() else {
                return Ok(None);
            };
            let timestamp = parts.timestamp;
            let verdict = self.judge.judge(&parts, &stored);
            self.steps += 1;
            if self.steps.is_multiple_of(4096) {
                self.patience.check()?;
            }
            match (verdict, stored) {
                (Verdict::Visible, Stored::Put(value)) => {
                    self.consumed = true;
                    return Ok(Some(VisibleCell { timestamp, value }));
                }
                (Verdict::Collected, _) => self.skip_column()?,
                _ => self.merge.next()?,
            }
        }
    }

    /// The row of the cell returned last, encoded.
    pub(crate) fn row(&self) -> &[u8] {
        self.judge.row()
    }

    /// The column of the cell returned last, encoded with its row.
    pub(crate) fn column(&self) -> &[u8] {
        self.judge.column()
    }

    /// The row (encoded) of the last entry below `encoded`, whether or not anything in it is visible. Seek before reading on.
    pub(crate) fn row_below(&mut self, encoded: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some(key) = self.merge.last_below(encoded)? else {
            return Ok(None);
        };
        let parts = keys::parse(&key)
            .ok_or_else(|| Error::Corrupt("a stored key is damaged".to_owned()))?;
        Ok(Some(parts.row.to_vec()))
    }
}

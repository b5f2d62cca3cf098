//! The judge: which of a family's stored entries a reader sees, and which a compaction keeps. One for both.
//!
//! Of the entries at one (row, qualifier, timestamp) the highest sequence number wins, put or tombstone; then wider deletes hide
//! what has a lower sequence number; then the GC rule collects, counting from the newest.
//!
//! **Invariants**: what a reader sees is the same before and after any flush or compaction. Versions are counted before any
//! filter of the reader. A row's wider deletes are known before its first entry is judged, wherever a seek lands.

use tablemount_api::{GcRule, Timestamp};

use super::deletes::Deletes;
use super::entry::Kind;
use super::keys;
use super::merge::damaged;
use crate::Result;

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
    /// Hidden by a range delete that is newer than all that is stored, as are all rows up to its end.
    RowsDeleted,
}

/// Judges entries in key order.
pub(crate) struct Judge {
    deletes: Deletes,
    gc_rule: GcRule,
    now: Timestamp,
    /// The column, encoded with its row, which is so many bytes of it; empty before the first entry.
    column: Vec<u8>,
    row: usize,
    /// How many rows and columns were entered.
    rows: u64,
    columns: u64,
    newer: u64,
    last_timestamp: Option<Timestamp>,
}

impl Judge {
    pub(crate) fn new(deletes: Deletes, gc_rule: GcRule, now: Timestamp) -> Self {
        Self {
            deletes,
            gc_rule,
            now,
            column: Vec::new(),
            row: 0,
            rows: 0,
            columns: 0,
            newer: 0,
            last_timestamp: None,
        }
    }

    /// What an entry of this kind is, and its timestamp. Inside a column entries must come without gaps from its newest on.
    #[inline]
    pub(crate) fn judge(&mut self, key: &[u8], kind: Kind) -> Result<(Verdict, Timestamp)> {
        if self.column.is_empty() || !key.starts_with(&self.column) {
            self.enter_column(key)?;
        }
        let (timestamp, sequence) = keys::tail(key).ok_or_else(damaged)?;
        Ok((self.verdict(timestamp, sequence, kind), timestamp))
    }

    #[inline]
    fn verdict(&mut self, timestamp: Timestamp, sequence: u64, kind: Kind) -> Verdict {
        if self.last_timestamp.replace(timestamp) == Some(timestamp) {
            return Verdict::Hidden;
        }
        if kind == Kind::Tombstone {
            return Verdict::Tombstone;
        }
        if self.deletes.hide(timestamp, sequence) {
            return if self.deletes.rows_are_deleted() {
                Verdict::RowsDeleted
            } else {
                Verdict::Hidden
            };
        }
        if self.gc_rule.collects(self.newer, timestamp, self.now) {
            return Verdict::Collected;
        }
        self.newer += 1;
        Verdict::Visible
    }

    /// The row being judged, encoded.
    pub(crate) fn row(&self) -> &[u8] {
        &self.column[..self.row]
    }

    /// The column being judged, encoded with its row.
    pub(crate) fn column(&self) -> &[u8] {
        &self.column
    }

    /// How many rows were entered so far: another number, another row.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// How many columns were entered so far.
    pub(crate) fn columns(&self) -> u64 {
        self.columns
    }

    /// The first row behind those that are deleted together.
    pub(crate) fn end_of_deleted_rows(&self, out: &mut Vec<u8>) {
        self.deletes.end_of_deleted_rows(out);
    }

    /// Forgets the place, so that a seek backwards is judged afresh.
    pub(crate) fn reset(&mut self) {
        self.row = 0;
        self.column.clear();
    }

    fn enter_column(&mut self, key: &[u8]) -> Result<()> {
        let parts = keys::parse(key).ok_or_else(damaged)?;
        if parts.row != self.row() {
            self.rows += 1;
            self.row = parts.row.len();
            self.deletes.enter_row(parts.row)?;
        }
        self.columns += 1;
        self.column.clear();
        self.column.extend_from_slice(parts.column);
        self.newer = 0;
        self.last_timestamp = None;
        self.deletes
            .enter_column(parts.row, &parts.column[parts.row.len()..])
    }
}

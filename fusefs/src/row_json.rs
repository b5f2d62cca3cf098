//! `@row.json`: a row's cells as JSON, one line a cell, written as it is read.
//!
//! The form is the engine's: `family`, `qualifier` and `value` in base64, `timestamp` in microseconds.
//!
//! **Invariants**: a page of cells is held at a time, never the row; a row whose JSON is longer than [`MAX_BYTES`] ends in
//! an error, never in what looks like its end.

use bytes::{Buf as _, Bytes, BytesMut};
use tablemount_api::{Position, ReadRequest};

use crate::errno::Failure;
use crate::fetch::{row_key, scoped};
use crate::filesystem::Filesystem;
use crate::node::Row;
use crate::open_file::part;

const MAX_BYTES: u64 = 1 << 30;
const CELLS_A_PAGE: u64 = 1000;

/// The JSON of a row, as far as it was read.
pub(crate) struct RowJson {
    row: Row,
    /// What was written and not read yet, and where it begins.
    written: BytesMut,
    start: u64,
    next: Option<Position>,
    ended: bool,
}

impl RowJson {
    pub(crate) fn new(row: Row) -> Self {
        Self { row, written: BytesMut::new(), start: 0, next: None, ended: false }
    }

    /// What lies at `offset`. Going back means beginning anew.
    pub(crate) async fn read(&mut self, filesystem: &Filesystem, offset: u64, size: usize) -> Result<Bytes, Failure> {
        if offset < self.start {
            *self = Self::new(self.row.clone());
        }
        while self.start + (self.written.len() as u64) < offset.saturating_add(size as u64) && !self.ended {
            self.write_page(filesystem).await?;
            let skip = usize::try_from(offset - self.start).unwrap_or(usize::MAX).min(self.written.len());
            self.written.advance(skip);
            self.start += skip as u64;
        }
        let skip = offset - self.start;
        Ok(part(&Bytes::copy_from_slice(&self.written), skip, size as u64))
    }

    async fn write_page(&mut self, filesystem: &Filesystem) -> Result<(), Failure> {
        if self.start + self.written.len() as u64 > MAX_BYTES {
            return Err(Failure::TooLong);
        }
        let request = ReadRequest {
            row: Some(row_key(&self.row.key)?),
            after: self.next.take(),
            cell_limit: Some(CELLS_A_PAGE),
            ..scoped(&self.row.scope)
        };
        let page = filesystem.remote.read_page(&self.row.scope.table, &request).await?;
        for cell in page.rows.iter().flat_map(|row| &row.cells) {
            // Serialising plain structures to memory does not fail.
            self.written.extend_from_slice(&serde_json::to_vec(cell).unwrap_or_default());
            self.written.extend_from_slice(b"\n");
        }
        self.ended = page.next.is_none();
        self.next = page.next;
        Ok(())
    }
}

//! `@row.json`: a row's cells as JSON, one line a cell, written as it is read.
//!
//! The form is the engine's: `family`, `qualifier` and `value` in base64, `timestamp` in microseconds.
//!
//! **Invariants**: a page of cells is held at a time, never the row; a row whose JSON is longer than [`MAX_BYTES`], or that
//! has a value longer than [`MAX_PAGE_BYTES`], ends in an error, never in what looks like its end.

use bytes::{Buf as _, Bytes, BytesMut};
use tablemount_api::{CellContent, Position, ReadRequest};
use tablemount_client::Page;

use crate::errno::Failure;
use crate::fetch::{row_key, scoped};
use crate::filesystem::Filesystem;
use crate::node::Row;

const MAX_BYTES: u64 = 1 << 30;
const CELLS_A_PAGE: u64 = 1000;
/// Values held at a time; a longer value cannot be shown.
const MAX_PAGE_BYTES: u64 = 4 << 20;

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
        Self {
            row,
            written: BytesMut::new(),
            start: 0,
            next: None,
            ended: false,
        }
    }

    /// What lies at `offset`. Going back means beginning anew.
    pub(crate) async fn read(
        &mut self,
        filesystem: &Filesystem,
        offset: u64,
        size: usize,
    ) -> Result<Bytes, Failure> {
        if offset < self.start {
            *self = Self::new(self.row.clone());
        }
        while self.start + (self.written.len() as u64) < offset.saturating_add(size as u64)
            && !self.ended
        {
            self.write_page(filesystem).await?;
            let skip = usize::try_from(offset - self.start)
                .unwrap_or(usize::MAX)
                .min(self.written.len());
            self.written.advance(skip);
            self.start += skip as u64;
        }
        let skip = usize::try_from(offset - self.start)
            .unwrap_or(usize::MAX)
            .min(self.written.len());
        let end = skip.saturating_add(size).min(self.written.len());
        Ok(Bytes::copy_from_slice(&self.written[skip..end]))
    }

    async fn write_page(&mut self, filesystem: &Filesystem) -> Result<(), Failure> {
        if self.start + self.written.len() as u64 > MAX_BYTES {
            return Err(Failure::TooLong);
        }
        let mut request = ReadRequest {
            row: Some(row_key(&self.row.key)?),
            after: self.next.clone(),
            cells: CellContent::Lengths,
            cell_limit: Some(CELLS_A_PAGE),
            ..scoped(&self.row.scope)
        };
        let table = &self.row.scope.table;
        let lengths = filesystem.remote.read_page(table, &request).await?;
        let cells = affordable(&lengths)?;
        if cells == 0 {
            self.ended = true;
            return Ok(());
        }
        request.cells = CellContent::Values;
        request.cell_limit = Some(cells);
        let page = filesystem.remote.read_page(table, &request).await?;
        for cell in page.rows.iter().flat_map(|row| &row.cells) {
            // Serialising plain structures to memory does not fail.
            self.written
                .extend_from_slice(&serde_json::to_vec(cell).unwrap_or_default());
            self.written.extend_from_slice(b"\n");
        }
        self.ended = page.next.is_none();
        self.next = page.next;
        Ok(())
    }
}

/// How many cells have values that together are small enough to hold; an error if the first is too long by itself.
fn affordable(lengths: &Page) -> Result<u64, Failure> {
    let mut cells = lengths
        .rows
        .iter()
        .flat_map(|row| &row.cells)
        .map(|cell| cell.length.unwrap_or_default())
        .peekable();
    if cells.peek().is_some_and(|length| *length > MAX_PAGE_BYTES) {
        return Err(Failure::TooLong);
    }
    let mut bytes = 0;
    Ok(cells
        .take_while(|length| {
            bytes += length;
            bytes <= MAX_PAGE_BYTES
        })
        .count() as u64)
}

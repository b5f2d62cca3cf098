//! Pages of a read.
//!
//! **Invariants**: a page without its end line is an error, never an end; following pages keeps the limits of the whole, and
//! a page that does not get ahead ends the reading with an error instead of going round.

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt as _, try_unfold};
use reqwest::Response;
use tablemount_api::{Cell, Position, ReadLine, ReadRequest, RowKey, TableName, Timestamp};

use crate::lines::{LineBuffer, MAX_LINE_BYTES};
use crate::transport::Transport;
use crate::{Client, Error};

/// A row's cells, or a part of them (consecutive chunks may have one row).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowChunk {
    /// The row.
    pub row: RowKey,
    /// Its cells, in order.
    pub cells: Vec<Cell>,
}

/// One page, collected: chunks of one row are joined.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The rows.
    pub rows: Vec<RowChunk>,
    /// Where to go on (`ReadRequest::after`); `None`: no more.
    pub next: Option<Position>,
}

impl Page {
    pub(crate) fn push(&mut self, chunk: RowChunk) {
        match self.rows.last_mut() {
            Some(last) if last.row == chunk.row => last.cells.extend(chunk.cells),
            _ => self.rows.push(chunk),
        }
    }
}

/// A cell's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// The cell's timestamp.
    pub timestamp: Timestamp,
    /// Length of the whole value.
    pub length: u64,
    /// The bytes asked for, as far as the value has them.
    pub bytes: Bytes,
}

/// The chunks of one page as they come.
pub struct PageStream {
    transport: Transport,
    response: Response,
    lines: LineBuffer,
    ended: bool,
    next: Option<Position>,
}

impl PageStream {
    pub(crate) fn new(transport: Transport, response: Response) -> Self {
        Self {
            transport,
            response,
            lines: LineBuffer::new(MAX_LINE_BYTES),
            ended: false,
            next: None,
        }
    }

    /// The next chunk; `None` after the end line, when [`PageStream::next_position`] is known.
    pub async fn next_chunk(&mut self) -> Result<Option<RowChunk>, Error> {
        while !self.ended {
            let Some(line) = self.next_line().await? else {
                return Err(self
                    .transport
                    .protocol_error("the page broke off before its end line"));
            };
            match line {
                ReadLine {
                    error: Some(error), ..
                } => return Err(Error::Refused(error)),
                ReadLine { end: Some(end), .. } => {
                    self.next = end.next;
                    self.ended = true;
                    // Reads the end of the body, so that the connection can be used again.
                    if self.next_line().await?.is_some() {
                        return Err(self
                            .transport
                            .protocol_error("the page goes on after its end line"));
                    }
                }
                ReadLine {
                    row: Some(row),
                    cells,
                    ..
                } => return Ok(Some(RowChunk { row, cells })),
                ReadLine { .. } => {
                    return Err(self
                        .transport
                        .protocol_error("a line of the page has neither row, end nor error"));
                }
            }
        }
        Ok(None)
    }

    /// Where the next page starts; `None`: no more, or the end was not reached yet.
    pub fn next_position(&self) -> Option<&Position> {
        self.next.as_ref()
    }

    async fn next_line(&mut self) -> Result<Option<ReadLine>, Error> {
        loop {
            let line = self.lines.next_line().map_err(|_| {
                self.transport.protocol_error(format!(
                    "a line of the page is longer than {MAX_LINE_BYTES} bytes"
                ))
            })?;
            if let Some(line) = line {
                return serde_json::from_slice(&line).map(Some).map_err(|error| {
                    self.transport
                        .protocol_error(format!("a line of the page is not as expected: {error}"))
                });
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.lines.push(&chunk),
                Ok(None) if self.lines.has_rest() => {
                    return Err(self
                        .transport
                        .protocol_error("the page broke off inside a line"));
                }
                Ok(None) => return Ok(None),
                Err(error) => return Err(self.transport.connection_error(&error)),
            }
        }
    }
}

/// What is left to read, over all pages.
struct ReadAll {
    client: Client,
    table: TableName,
    request: ReadRequest,
    rows_left: Option<u64>,
    last_row: Option<RowKey>,
    page: Option<PageStream>,
    done: bool,
}

impl ReadAll {
    async fn next(&mut self) -> Result<Option<RowChunk>, Error> {
        while !self.done {
            let page = match &mut self.page {
                Some(page) => page,
                None => self
                    .page
                    .insert(self.client.read_stream(&self.table, &self.request).await?),
            };
            let chunk = page.next_chunk().await?;
            match chunk {
                Some(chunk) if self.count(&chunk) => return Ok(Some(chunk)),
                Some(_) => self.done = true,
                None => {
                    let next = self.page.take().and_then(|page| page.next);
                    self.turn(next)?;
                }
            }
        }
        self.page = None;
        Ok(None)
    }

    /// Takes a chunk off what is left of the limits; false: its row is one too many.
    fn count(&mut self, chunk: &RowChunk) -> bool {
        if self.last_row.as_ref() != Some(&chunk.row) {
            match &mut self.rows_left {
                Some(0) => return false,
                Some(left) => *left -= 1,
                None => {}
            }
            self.last_row = Some(chunk.row.clone());
        }
        if let Some(left) = &mut self.request.cell_limit {
            *left = left.saturating_sub(chunk.cells.len() as u64);
        }
        true
    }

    /// Goes on to the next page, if there is one and the limits leave anything of it.
    fn turn(&mut self, next: Option<Position>) -> Result<(), Error> {
        let Some(next) = next else {
            self.done = true;
            return Ok(());
        };
        if self.request.after.as_ref() == Some(&next) {
            return Err(self
                .client
                .transport
                .protocol_error("the page ends where it started"));
        }
        // The next page counts the row that it goes on with once more.
        let goes_on = next.cell.is_some() && self.last_row.as_ref() == Some(&next.row);
        self.request.row_limit = self
            .rows_left
            .map(|left| left.saturating_add(u64::from(goes_on)));
        self.request.after = Some(next);
        self.done = self.request.row_limit == Some(0) || self.request.cell_limit == Some(0);
        Ok(())
    }
}

pub(crate) fn read_all(
    client: Client,
    table: TableName,
    request: ReadRequest,
) -> BoxStream<'static, Result<RowChunk, Error>> {
    let (rows_left, last_row, page) = (request.row_limit, None, None);
    let state = ReadAll {
        client,
        table,
        request,
        rows_left,
        last_row,
        page,
        done: false,
    };
    try_unfold(state, async |mut state| {
        Ok(state.next().await?.map(|chunk| (chunk, state)))
    })
    .boxed()
}

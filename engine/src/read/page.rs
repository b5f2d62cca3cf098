//! One page of a read: what a scan visits, as lines, until a limit.
//!
//! **Invariants**: memory is bounded by a line and the channel, whatever a row holds; a page ends only after a cell or a row, and
//! `next` names it; the last line is `end` or `error`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tablemount_api::{
    Base64, Cell, CellContent, PageEnd, Position, Qualifier, ReadLine, ReadRequest, RowKey,
};

use super::bounds::decoded;
use super::family::FamilyReader;
use super::scan::{Flow, Scan, Visitor};
use crate::storage::store::Store;
use crate::storage::table::Table;
use crate::{Error, Result};

const MAX_ROWS: u64 = 10_000;
const MAX_ROW_KEYS: u64 = 100_000;
const MAX_BYTES: usize = 4 << 20;
/// A line ends after so many cells or bytes, a batch of lines after so many lines.
const LINE_CELLS: usize = 1000;
const LINE_BYTES: usize = 256 << 10;
const BATCH_LINES: usize = 512;

/// The reader of the lines is gone.
pub(crate) struct Gone;

/// Takes lines, or the error that ends them; may block.
pub(crate) type Sink = Box<dyn FnMut(Result<Batch>) -> std::result::Result<(), Gone> + Send>;

/// Lines, and about what they take on the wire.
pub(crate) struct Batch {
    pub(crate) lines: Vec<ReadLine>,
    pub(crate) bytes: usize,
}

/// A page that is to be read.
pub(crate) struct Page {
    scan: Scan,
    lines: Lines,
}

/// What is sent of what the scan visits.
struct Lines {
    content: CellContent,
    row_limit: u64,
    cell_limit: u64,
    until: Instant,
    rows: u64,
    cells: u64,
    bytes: usize,
    line: ReadLine,
    line_bytes: usize,
    batch: Vec<ReadLine>,
    batch_bytes: usize,
    sink: Sink,
}

impl Page {
    /// Checks the request against the table.
    pub(crate) fn new(
        store: &Store,
        table: Arc<Table>,
        request: &ReadRequest,
        time_budget: Duration,
        sink: Sink,
    ) -> Result<Self> {
        let until = Instant::now() + time_budget;
        let most = if request.cells == CellContent::None {
            MAX_ROW_KEYS
        } else {
            MAX_ROWS
        };
        Ok(Self {
            scan: Scan::new(store, table, request, until)?,
            lines: Lines {
                content: request.cells,
                row_limit: request.row_limit.unwrap_or(most).min(most),
                cell_limit: request.cell_limit.unwrap_or(u64::MAX),
                until,
                rows: 0,
                cells: 0,
                bytes: 0,
                line: ReadLine::default(),
                line_bytes: 0,
                batch: Vec::new(),
                batch_bytes: 0,
                sink,
            },
        })
    }

    /// Reads the page and sends its lines; on a thread that may block.
    pub(crate) fn run(mut self, store: &Store) {
        let read = self.read(store);
        let lines = &mut self.lines;
        if let Ok(next) = &read {
            lines.batch.push(ReadLine {
                end: Some(PageEnd { next: next.clone() }),
                ..ReadLine::default()
            });
        }
        // That the reader of the lines is gone needs no answer.
        if lines.send().is_ok()
            && let Err(error) = read
        {
            let _ = (lines.sink)(Err(error));
        }
    }

    fn read(&mut self, store: &Store) -> Result<Option<Position>> {
        if self.lines.row_limit == 0 || self.lines.cell_limit == 0 {
            return Err(Error::Invalid(
                "a limit of a read is 0; it must be 1 or more".to_owned(),
            ));
        }
        let next = self.scan.run(store, &mut self.lines)?;
        self.lines.end_line()?;
        Ok(next)
    }
}

impl Visitor for Lines {
    fn row(&mut self, row: &[u8]) -> Result<Flow> {
        let key = RowKey::new(decoded(row)?)?;
        self.line_bytes = key.bytes().len() + 16;
        self.line.row = Some(key);
        Ok(Flow::Continue)
    }

    fn cell(&mut self, reader: &FamilyReader) -> Result<Flow> {
        let cell = self.cell_of(reader)?;
        self.cells += 1;
        self.line_bytes += cell_bytes(&cell);
        self.line.cells.push(cell);
        if self.cells >= self.cell_limit || self.bytes + self.line_bytes >= MAX_BYTES {
            return Ok(Flow::Stop);
        }
        if self.line.cells.len() >= LINE_CELLS || self.line_bytes >= LINE_BYTES {
            let row = self.line.row.clone();
            self.end_line()?;
            self.line_bytes = row.as_ref().map_or(0, |row| row.bytes().len()) + 16;
            self.line.row = row;
            if Instant::now() >= self.until {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }

    fn end_row(&mut self) -> Result<Flow> {
        self.end_line()?;
        self.rows += 1;
        let full =
            self.rows >= self.row_limit || self.bytes >= MAX_BYTES || Instant::now() >= self.until;
        Ok(if full { Flow::Stop } else { Flow::Continue })
    }
}

impl Lines {
    fn cell_of(&self, reader: &FamilyReader) -> Result<Cell> {
        let (value, length) = match self.content {
            CellContent::Values => (Some(Base64(reader.value()?)), None),
            CellContent::Lengths | CellContent::None => (None, Some(reader.length()?)),
        };
        Ok(Cell {
            family: reader.family.schema.name.clone(),
            qualifier: Qualifier::new(decoded(reader.qualifier())?)?,
            timestamp: reader.timestamp(),
            value,
            length,
        })
    }

    /// Puts the line into the batch, unless it is only the rest of a long row.
    fn end_line(&mut self) -> Result<()> {
        let line = std::mem::take(&mut self.line);
        let wanted = match self.content {
            CellContent::None => line.row.is_some(),
            CellContent::Values | CellContent::Lengths => !line.cells.is_empty(),
        };
        if !wanted {
            return Ok(());
        }
        self.bytes += self.line_bytes;
        self.batch_bytes += self.line_bytes;
        self.batch.push(line);
        if self.batch.len() >= BATCH_LINES || self.batch_bytes >= LINE_BYTES {
            self.send()
                .map_err(|Gone| Error::Unavailable("the reader went away".to_owned()))?;
        }
        Ok(())
    }

    fn send(&mut self) -> std::result::Result<(), Gone> {
        let (lines, bytes) = (
            std::mem::take(&mut self.batch),
            std::mem::take(&mut self.batch_bytes),
        );
        (self.sink)(Ok(Batch { lines, bytes }))
    }
}

/// About what the cell takes on the wire.
fn cell_bytes(cell: &Cell) -> usize {
    let value = cell.value.as_ref().map_or(0, |value| value.0.len());
    64 + (cell.qualifier.bytes().len() + value) * 4 / 3
}

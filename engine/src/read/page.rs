//! One page of a read: rows in order over the table's tablets, as lines, until a limit.
//!
//! **Invariants**: memory is bounded by a line and the channel, whatever a row holds; a page ends only after a cell or a row, and
//! `next` names it; the last line is `end` or `error`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tablemount_api::{
    Cell, CellContent, CellPosition, FamilyInfo, PageEnd, Position, Qualifier, ReadLine,
    ReadRequest, RowKey,
};

use super::bounds::{CellBounds, Resume, RowBounds, decoded, families};
use super::family::{FamilyReader, ReadContext, columns_of};
use crate::storage::keys;
use crate::storage::store::Store;
use crate::storage::table::Table;
use crate::storage::tablet::Tablet;
use crate::storage::visible::Patience;
use crate::{Error, Result};

const MAX_ROWS: u64 = 10_000;
const MAX_ROW_KEYS: u64 = 100_000;
const MAX_BYTES: usize = 4 << 20;
/// A line ends after so many cells or bytes, a batch of lines after so many lines.
const LINE_CELLS: usize = 1000;
const LINE_BYTES: usize = 256 << 10;
const BATCH_LINES: usize = 512;

/// A page that is to be read.
pub(crate) struct Page {
    table: Arc<Table>,
    families: Vec<FamilyInfo>,
    bounds: RowBounds,
    context: Arc<ReadContext>,
    content: CellContent,
    reverse: bool,
    row_limit: u64,
    cell_limit: u64,
    soft_end: Instant,
    rows: u64,
    cells: u64,
    bytes: usize,
    batch: Vec<ReadLine>,
    batch_bytes: usize,
    sink: Sink,
}

/// Why a row's reading stopped.
enum Stop {
    /// The row is done, or there is none.
    Row,
    /// The page is full; it goes on after this position.
    Page(Position),
}

/// The reader of the lines is gone.
pub(crate) struct Gone;

/// Takes lines, or the error that ends them; may block.
pub(crate) type Sink = Box<dyn FnMut(Result<Batch>) -> std::result::Result<(), Gone> + Send>;

/// Lines, and about what they take on the wire.
pub(crate) struct Batch {
    pub(crate) lines: Vec<ReadLine>,
    pub(crate) bytes: usize,
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
        let schema = table.schema();
        let now = Instant::now();
        let context = ReadContext {
            cells: CellBounds::of(request),
            resume: Resume::of(request, &schema)?,
            sequence: 0,
            now: store.clock.now(),
            patience: Patience {
                until: now + time_budget.mul_f64(1.8),
            },
        };
        let most = if request.cells == CellContent::None {
            MAX_ROW_KEYS
        } else {
            MAX_ROWS
        };
        Ok(Self {
            families: families(request, &schema)?,
            table,
            bounds: RowBounds::of(request),
            context: Arc::new(context),
            content: request.cells,
            reverse: request.reverse,
            row_limit: request.row_limit.unwrap_or(most).min(most),
            cell_limit: request.cell_limit.unwrap_or(u64::MAX),
            soft_end: now + time_budget,
            rows: 0,
            cells: 0,
            bytes: 0,
            batch: Vec::new(),
            batch_bytes: 0,
            sink,
        })
    }

    /// Reads the page and sends its lines; on a thread that may block.
    pub(crate) fn run(mut self, store: &Store) {
        let read = self.read(store);
        if let Ok(next) = &read {
            self.batch.push(ReadLine {
                end: Some(PageEnd { next: next.clone() }),
                ..ReadLine::default()
            });
        }
        // That the reader of the lines is gone needs no answer.
        if self.send().is_ok()
            && let Err(error) = read
        {
            let _ = (self.sink)(Err(error));
        }
    }

    fn read(&mut self, store: &Store) -> Result<Option<Position>> {
        if self.row_limit == 0 || self.cell_limit == 0 {
            return Err(Error::Invalid(
                "a limit of a read is 0; it must be 1 or more".to_owned(),
            ));
        }
        if self.bounds.is_empty() {
            return Ok(None);
        }
        let mut tablets = self.table.tablets.clone();
        if self.reverse {
            tablets.reverse();
        }
        for tablet in tablets {
            if let Some(next) = self.read_tablet(store, &tablet)? {
                return Ok(Some(next));
            }
        }
        Ok(None)
    }

    fn read_tablet(&mut self, store: &Store, tablet: &Tablet) -> Result<Option<Position>> {
        let mut bounds = self.bounds.clone();
        let bound = |key: &Option<RowKey>| key.as_ref().map(|key| keys::row(key.bytes()));
        bounds.narrow(bound(&tablet.start), bound(&tablet.stop));
        if bounds.is_empty() {
            return Ok(None);
        }
        tablet.activity.read();
        // The state before the sequence number: all that its SSTs hold is then at or below it.
        let state = tablet.state();
        let context = Arc::new(ReadContext {
            sequence: store.durable_sequence(),
            cells: self.context.cells.clone(),
            resume: self.context.resume.clone(),
            ..*self.context
        });
        let reader = |family: &FamilyInfo| {
            FamilyReader::new(
                family.clone(),
                context.clone(),
                &state,
                &bounds.from,
                bounds.to.as_deref(),
            )
        };
        let mut readers = self
            .families
            .iter()
            .map(reader)
            .collect::<Result<Vec<_>>>()?;
        if self.reverse {
            self.read_down(&mut readers, bounds)
        } else {
            self.read_up(&mut readers, &bounds)
        }
    }

    fn read_up(
        &mut self,
        readers: &mut [FamilyReader],
        bounds: &RowBounds,
    ) -> Result<Option<Position>> {
        // One row: start at its first column inside the bounds.
        let one_row = bounds
            .to
            .as_ref()
            .is_some_and(|to| keys::above(&bounds.from) == *to && bounds.from.ends_with(&[0, 1]));
        let (from, to) = match one_row {
            true => columns_of(&bounds.from, &self.context.cells),
            false => (bounds.from.clone(), bounds.to.clone()),
        };
        for reader in readers.iter_mut() {
            reader.seek(&from, to.clone())?;
        }
        while let Some(row) = readers
            .iter()
            .filter_map(|reader| reader.next_row())
            .min()
            .map(<[u8]>::to_vec)
        {
            if let Stop::Page(next) = self.read_row(readers, &row)? {
                return Ok(Some(next));
            }
        }
        Ok(None)
    }

    fn read_down(
        &mut self,
        readers: &mut [FamilyReader],
        bounds: RowBounds,
    ) -> Result<Option<Position>> {
        let above_all = || vec![u8::MAX; RowKey::MAX_BYTES + 1];
        let mut below = bounds.to.unwrap_or_else(above_all);
        loop {
            let mut row: Option<Vec<u8>> = None;
            for reader in readers.iter_mut() {
                row = row.max(reader.row_below(&below)?);
            }
            let Some(row) = row.filter(|row| *row >= bounds.from) else {
                return Ok(None);
            };
            self.context.patience.check()?;
            let (from, to) = columns_of(&row, &self.context.cells);
            for reader in readers.iter_mut() {
                reader.seek(&from, to.clone())?;
            }
            if readers.iter().any(|reader| reader.next_row().is_some())
                && let Stop::Page(next) = self.read_row(readers, &row)?
            {
                return Ok(Some(next));
            }
            below = row;
        }
    }

    /// Sends a row's cells, or its key.
    fn read_row(&mut self, readers: &mut [FamilyReader], row: &[u8]) -> Result<Stop> {
        let key = RowKey::new(decoded(row)?)?;
        let mut line = ReadLine {
            row: Some(key.clone()),
            ..ReadLine::default()
        };
        let mut line_bytes = key.bytes().len() + 16;
        for reader in readers.iter_mut() {
            while reader.next_row() == Some(row) {
                if self.content == CellContent::None {
                    reader.skip_row()?;
                    continue;
                }
                let cell = self.cell(reader)?;
                let (bytes, place) = (cell_bytes(&cell), position(&cell));
                self.cells += 1;
                line_bytes += bytes;
                line.cells.push(cell);
                if self.cells >= self.cell_limit || self.bytes + line_bytes >= MAX_BYTES {
                    return self.stop_inside(line, line_bytes, key, place);
                }
                if line.cells.len() >= LINE_CELLS || line_bytes >= LINE_BYTES {
                    let next = ReadLine {
                        row: Some(key.clone()),
                        ..ReadLine::default()
                    };
                    self.push(std::mem::replace(&mut line, next), line_bytes)?;
                    line_bytes = key.bytes().len() + 16;
                    if Instant::now() >= self.soft_end {
                        return Ok(Stop::Page(Position {
                            row: key,
                            cell: Some(place),
                        }));
                    }
                }
                reader.advance()?;
            }
        }
        if self.content == CellContent::None || !line.cells.is_empty() {
            self.push(line, line_bytes)?;
        }
        self.rows += 1;
        let full = self.rows >= self.row_limit
            || self.bytes >= MAX_BYTES
            || Instant::now() >= self.soft_end;
        Ok(if full {
            Stop::Page(Position {
                row: key,
                cell: None,
            })
        } else {
            Stop::Row
        })
    }

    fn stop_inside(
        &mut self,
        line: ReadLine,
        bytes: usize,
        row: RowKey,
        place: CellPosition,
    ) -> Result<Stop> {
        self.push(line, bytes)?;
        Ok(Stop::Page(Position {
            row,
            cell: Some(place),
        }))
    }

    fn cell(&self, reader: &FamilyReader) -> Result<Cell> {
        let Some(found) = reader.found() else {
            return Err(Error::Io("a cell went".to_owned()));
        };
        let (value, length) = match self.content {
            CellContent::Values => (Some(found.value.clone().into()), None),
            CellContent::Lengths | CellContent::None => (None, Some(found.value.len() as u64)),
        };
        Ok(Cell {
            family: reader.family.schema.name.clone(),
            qualifier: Qualifier::new(decoded(reader.qualifier())?)?,
            timestamp: found.timestamp,
            value,
            length,
        })
    }

    fn push(&mut self, line: ReadLine, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        self.batch_bytes += bytes;
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

fn position(cell: &Cell) -> CellPosition {
    CellPosition {
        family: cell.family.clone(),
        qualifier: cell.qualifier.clone(),
        timestamp: Some(cell.timestamp),
    }
}

/// About what the cell takes on the wire.
fn cell_bytes(cell: &Cell) -> usize {
    let value = cell.value.as_ref().map_or(0, |value| value.0.len());
    64 + (cell.qualifier.bytes().len() + value) * 4 / 3
}

//! A scan: rows in order over a table's tablets, cell by cell, to a visitor that says when to stop.
//!
//! **Invariants**: memory is bounded whatever a row holds; a scan that stopped names the position after which it goes on: after
//! a cell or a row that was visited, or, when it found nothing more for too long, after what it has seen; it always gets on.

use std::sync::Arc;
use std::time::Instant;

use tablemount_api::{
    CellContent, CellPosition, FamilyInfo, Position, Qualifier, ReadRequest, RowKey, Timestamp,
};

use super::bounds::{CellBounds, Resume, RowBounds, decoded, families};
use super::family::{FamilyReader, ReadContext, columns_of};
use crate::storage::keys;
use crate::storage::sources::Wanted;
use crate::storage::store::Store;
use crate::storage::table::{Schema, Table};
use crate::storage::tablet::{Tablet, TabletState};
use crate::{Error, Result};

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Continue,
    /// With the next column.
    NextColumn,
    /// With the next row.
    NextRow,
    Stop,
}

/// Takes what a scan finds.
pub(crate) trait Visitor {
    /// A row begins; `row` is encoded.
    fn row(&mut self, row: &[u8]) -> Result<Flow>;
    /// A cell of the row: the one that the reader stands at.
    fn cell(&mut self, reader: &FamilyReader) -> Result<Flow>;
    /// The row is done. Rows without a cell in the bounds are not visited; with [`CellContent::None`] cells are not.
    fn end_row(&mut self) -> Result<Flow>;
    /// The scan stops inside the row, since it found nothing more of it for too long.
    fn interrupted(&mut self) -> Result<()> {
        self.end_row().map(drop)
    }
}

/// A scan that is to be run.
pub(crate) struct Scan {
    table: Arc<Table>,
    families: Vec<FamilyInfo>,
    bounds: RowBounds,
    context: Arc<ReadContext>,
    keys_only: bool,
    reverse: bool,
    row: Vec<u8>,
}

/// Why a row's reading stopped.
enum Stop {
    /// The row is done.
    Row,
    /// The scan goes on after this position.
    Scan(Position),
}

impl Scan {
    /// Checks the request against the table. What finds nothing until `until` stops there.
    pub(crate) fn new(
        store: &Store,
        table: Arc<Table>,
        request: &ReadRequest,
        until: Instant,
    ) -> Result<Self> {
        let schema = table.schema();
        let context = ReadContext {
            cells: CellBounds::of(request),
            resume: Resume::of(request, &schema)?,
            sequence: 0,
            now: store.clock.now(),
            until,
        };
        Ok(Self {
            families: families(request, &schema)?,
            table,
            bounds: RowBounds::of(request),
            context: Arc::new(context),
            keys_only: request.cells == CellContent::None,
            reverse: request.reverse,
            row: Vec::new(),
        })
    }

    /// Visits rows and cells until the visitor stops or the bounds end (`None`).
    pub(crate) fn run(
        &mut self,
        store: &Store,
        visitor: &mut impl Visitor,
    ) -> Result<Option<Position>> {
        if self.bounds.is_empty() {
            return Ok(None);
        }
        let table = self.table.clone();
        let count = table.tablets.len();
        for i in 0..count {
            let tablet = &table.tablets[if self.reverse { count - 1 - i } else { i }];
            if let Some(next) = self.run_tablet(store, tablet, visitor)? {
                return Ok(Some(next));
            }
        }
        Ok(None)
    }

    fn run_tablet(
        &mut self,
        store: &Store,
        tablet: &Tablet,
        visitor: &mut impl Visitor,
    ) -> Result<Option<Position>> {
        let mut bounds = self.bounds.clone();
        let bound = |key: &Option<RowKey>| key.as_ref().map(|key| keys::row(key.bytes()));
        bounds.narrow(bound(&tablet.start), bound(&tablet.stop));
        if bounds.is_empty() {
            return Ok(None);
        }
        tablet.activity.read(Instant::now());
        // The state before the sequence number: all that its SSTs hold is then at or below it.
        let state = tablet.state();
        let context = Arc::new(ReadContext {
            sequence: store.durable_sequence(),
            cells: self.context.cells.clone(),
            resume: self.context.resume.clone(),
            ..*self.context
        });
        let one_row = bounds.one_row();
        let wanted = match one_row {
            true => Wanted::Row(&bounds.from),
            false => Wanted::Range {
                from: &bounds.from,
                to: bounds.to.as_deref(),
            },
        };
        let reader = |family: &FamilyInfo| {
            FamilyReader::new(family.clone(), context.clone(), &state, wanted)
        };
        let mut readers = self
            .families
            .iter()
            .map(reader)
            .collect::<Result<Vec<_>>>()?;
        if self.reverse && !one_row {
            return self.down(&mut readers, bounds, visitor);
        }
        // One row: start at its first column inside the bounds.
        let (from, to) = match one_row {
            true => {
                let (from, to) = columns_of(&bounds.from, &self.context.cells);
                (from, Some(to))
            }
            false => (bounds.from, bounds.to),
        };
        for reader in &mut readers {
            reader.seek(&from, to.as_deref())?;
        }
        self.up(&mut readers, visitor)
    }

    fn up(
        &mut self,
        readers: &mut [FamilyReader],
        visitor: &mut impl Visitor,
    ) -> Result<Option<Position>> {
        let mut row = std::mem::take(&mut self.row);
        while let Some(lowest) = readers.iter().filter_map(FamilyReader::next_row).min() {
            row.clear();
            row.extend_from_slice(lowest);
            if let Stop::Scan(next) = read_row(readers, &row, self.keys_only, visitor)? {
                return Ok(Some(next));
            }
        }
        self.row = row;
        Ok(None)
    }

    fn down(
        &mut self,
        readers: &mut [FamilyReader],
        bounds: RowBounds,
        visitor: &mut impl Visitor,
    ) -> Result<Option<Position>> {
        let above_all = || vec![u8::MAX; RowKey::MAX_BYTES + 1];
        let mut below = bounds.to.unwrap_or_else(above_all);
        let (mut row, mut end) = (Vec::new(), Vec::new());
        readers.iter_mut().for_each(FamilyReader::start_down);
        for rows in 1_u64.. {
            row.clear();
            for reader in readers.iter_mut() {
                if let Some(found) = reader.row_below(&below)?
                    && found > row.as_slice()
                {
                    row.clear();
                    row.extend_from_slice(found);
                }
            }
            // Comparing with an empty vector is slow: its address is none, which processors find out the long way.
            let from = Some(&bounds.from).filter(|from| !from.is_empty());
            if row.is_empty() || from.is_some_and(|from| row < *from) {
                return Ok(None);
            }
            end.clear();
            end.extend_from_slice(&row);
            match &self.context.cells.qualifier_to {
                Some(to) => end.extend_from_slice(to),
                None => keys::raise(&mut end),
            }
            for reader in readers.iter_mut() {
                reader.enter_row(&row, &end)?;
            }
            if readers.iter().any(|reader| reader.next_row().is_some())
                && let Stop::Scan(next) = read_row(readers, &row, self.keys_only, visitor)?
            {
                return Ok(Some(next));
            }
            std::mem::swap(&mut below, &mut row);
            if rows.is_multiple_of(256) && Instant::now() >= self.context.until {
                // All rows from `below` on are seen.
                return Ok(Some(Position {
                    row: RowKey::new(decoded(&below)?)?,
                    cell: None,
                }));
            }
        }
        Ok(None)
    }
}

/// Visits a row, encoded, as it was written, whether that is durable or not: the caller holds its lock.
pub(crate) fn visit_written(
    state: &TabletState,
    request: &ReadRequest,
    schema: &Schema,
    row: &[u8],
    (now, until): (Timestamp, Instant),
    visitor: &mut impl Visitor,
) -> Result<()> {
    let context = Arc::new(ReadContext {
        cells: CellBounds::of(request),
        resume: None,
        sequence: u64::MAX,
        now,
        until,
    });
    let reader = |family: FamilyInfo| {
        let mut reader = FamilyReader::new(family, context.clone(), state, Wanted::Row(row))?;
        let (from, to) = columns_of(row, &context.cells);
        reader.seek(&from, Some(&to))?;
        Ok(reader)
    };
    let families = families(request, schema)?;
    let mut readers = families
        .into_iter()
        .map(reader)
        .collect::<Result<Vec<_>>>()?;
    match read_row(&mut readers, row, false, visitor)? {
        Stop::Scan(Position { cell: Some(_), .. }) if Instant::now() >= until => Err(
            Error::Deadline("the row could not be read in time".to_owned()),
        ),
        _ => Ok(()),
    }
}

/// Visits a row that a reader stands in.
fn read_row(
    readers: &mut [FamilyReader],
    row: &[u8],
    keys_only: bool,
    visitor: &mut impl Visitor,
) -> Result<Stop> {
    let (mut begun, mut skipping) = (false, keys_only);
    for reader in readers.iter_mut() {
        if reader.next_row() != Some(row) {
            continue;
        }
        let number = reader.row_number();
        loop {
            if let Some(place) = reader.stalled()? {
                return stop_stalled(row, place, begun, keys_only, visitor);
            }
            if !std::mem::replace(&mut begun, true) {
                skipping |= visitor.row(row)? == Flow::NextRow;
            }
            let flow = match skipping {
                true => Flow::NextRow,
                false => visitor.cell(reader)?,
            };
            match flow {
                Flow::Continue => reader.advance()?,
                Flow::NextColumn => reader.skip_column()?,
                Flow::NextRow => {
                    // The other families' cells of the row are skipped too.
                    skipping = true;
                    reader.skip_row()?;
                }
                Flow::Stop => return stop_inside(reader, row),
            }
            if reader.next_row().is_none() || reader.row_number() != number {
                break;
            }
        }
    }
    if begun && visitor.end_row()? == Flow::Stop {
        return stop_after(row);
    }
    Ok(Stop::Row)
}

fn stop_stalled(
    row: &[u8],
    place: CellPosition,
    begun: bool,
    keys_only: bool,
    visitor: &mut impl Visitor,
) -> Result<Stop> {
    if begun {
        visitor.interrupted()?;
        if keys_only {
            return stop_after(row);
        }
    }
    Ok(Stop::Scan(Position {
        row: RowKey::new(decoded(row)?)?,
        cell: Some(place),
    }))
}

fn stop_inside(reader: &FamilyReader, row: &[u8]) -> Result<Stop> {
    Ok(Stop::Scan(Position {
        row: RowKey::new(decoded(row)?)?,
        cell: Some(CellPosition {
            family: reader.family.schema.name.clone(),
            qualifier: Qualifier::new(decoded(reader.qualifier())?)?,
            timestamp: Some(reader.timestamp()),
        }),
    }))
}

fn stop_after(row: &[u8]) -> Result<Stop> {
    Ok(Stop::Scan(Position {
        row: RowKey::new(decoded(row)?)?,
        cell: None,
    }))
}

//! Reads on the calling thread, without lines: one cell, or a visit of cells lent one after the other.
//!
//! **Invariants**: what is lent lives only as long as the call; a get looks into no file whose newest timestamp is older than the
//! cell that it found.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tablemount_api::{
    FamilyName, Position, Qualifier, ReadRequest, RowKey, Timestamp, ValueRequest, name,
};

use super::bounds::decoded;
use super::family::FamilyReader;
use super::scan::{Flow, Scan, Visitor};
use crate::storage::judge::Judge;
use crate::storage::keys;
use crate::storage::merge::damaged;
use crate::storage::sources::Wanted;
use crate::storage::store::Store;
use crate::storage::table::Table;
use crate::storage::visible::{FamilyCursor, Found};
use crate::{Error, Result};

/// How long a read of one cell may look.
const VALUE_TIME: Duration = Duration::from_secs(10);

/// A cell's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellValue {
    /// Its timestamp.
    pub timestamp: Timestamp,
    /// Length of the whole value in bytes.
    pub length: u64,
    /// Its bytes, or those that were asked for.
    pub value: Bytes,
}

/// A cell, lent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellRef<'a> {
    /// The row key.
    pub row: &'a [u8],
    /// The column family.
    pub family: &'a FamilyName,
    /// The qualifier.
    pub qualifier: &'a [u8],
    /// Microseconds since the Unix epoch.
    pub timestamp: Timestamp,
    /// The value.
    pub value: &'a [u8],
}

/// Which part of a value, given its length.
pub(crate) type Part<'a> = &'a dyn Fn(u64) -> std::ops::Range<u64>;

/// The cell that a get is of: the newest version of a column that `at` and `timestamp` allow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    row: &'a RowKey,
    family: &'a FamilyName,
    qualifier: &'a Qualifier,
    at: Option<Timestamp>,
    timestamp: Option<Timestamp>,
}

impl<'a> From<&'a ValueRequest> for Asked<'a> {
    fn from(request: &'a ValueRequest) -> Self {
        Self {
            row: &request.row,
            family: &request.family,
            qualifier: &request.qualifier,
            at: request.at,
            timestamp: request.timestamp,
        }
    }
}

impl<'a> Asked<'a> {
    /// The column's newest cell.
    pub(crate) fn newest(
        row: &'a RowKey,
        family: &'a FamilyName,
        qualifier: &'a Qualifier,
    ) -> Self {
        Self {
            row,
            family,
            qualifier,
            at: None,
            timestamp: None,
        }
    }
}

/// The cell, with the `part` of its value. `None`: there is none.
pub(crate) fn get(
    store: &Store,
    table: &Table,
    asked: Asked<'_>,
    part: Part<'_>,
) -> Result<Option<CellValue>> {
    let schema = table.schema();
    let family = schema.family(asked.family)?;
    let tablet = table.tablet(asked.row);
    let start = Instant::now();
    tablet.activity.read(start);
    let column = keys::column_of(asked.row.bytes(), asked.qualifier.bytes());
    // The state before the sequence number: all that its SSTs hold is then at or below it.
    let state = tablet.state();
    let sources = state.sources(family.id, store.durable_sequence());
    let keep = family.schema.block_cache;
    // Deletes need not be asked of what is not there.
    let Some((merge, newest)) = sources.column(&column, keep)? else {
        return Ok(None);
    };
    let deletes = sources.deletes(Wanted::Column(&column), keep)?;
    let judge = Judge::new(deletes, family.schema.gc_rule.clone(), store.clock.now());
    let mut cursor = FamilyCursor::new(merge, judge, start + VALUE_TIME);
    cursor.seek_column(&column, &newest)?;
    loop {
        let timestamp = match cursor.next()? {
            Found::Cell(timestamp) => timestamp,
            Found::Nothing => return Ok(None),
            Found::NotYet(_) => {
                return Err(Error::Deadline(format!(
                    "the cell was not found within {} s",
                    VALUE_TIME.as_secs()
                )));
            }
        };
        if asked.at.is_some_and(|at| timestamp > at)
            || asked.timestamp.is_some_and(|exact| timestamp > exact)
        {
            continue;
        }
        if asked.timestamp.is_some_and(|exact| timestamp < exact) {
            return Ok(None);
        }
        let length = cursor.length()?;
        let part = part(length);
        let whole = part == (0..length);
        return Ok(Some(CellValue {
            timestamp,
            length,
            value: cursor.value((!whole).then_some(part))?,
        }));
    }
}

/// The error of a cell that is not there.
pub(crate) fn not_found(table: &Table, request: &ValueRequest) -> Error {
    let (row, qualifier) = (
        name::encode(request.row.bytes()),
        name::encode(request.qualifier.bytes()),
    );
    let (table, family) = (&table.name, &request.family);
    Error::NotFound(format!(
        "cell {family}:{qualifier} not found in row \"{row}\" of table \"{table}\""
    ))
}

/// Calls `visit` with each cell inside the request's bounds (limits of rows and cells are the caller's), as long as it says so.
pub(crate) fn visit(
    store: &Store,
    table: Arc<Table>,
    request: &ReadRequest,
    time: Duration,
    visit: &mut dyn FnMut(&CellRef<'_>) -> ControlFlow<()>,
) -> Result<Option<Position>> {
    let mut scan = Scan::new(store, table, request, Instant::now() + time)?;
    let keys_only = request.cells == tablemount_api::CellContent::None;
    let name = FamilyName::new("none")?;
    let mut lending = Lending {
        row: Vec::new(),
        keys_only: keys_only.then_some(name),
        visit,
    };
    scan.run(store, &mut lending)
}

/// Lends cells to a function.
struct Lending<'a> {
    row: Vec<u8>,
    /// Set: rows without their cells are lent, under this family's name.
    keys_only: Option<FamilyName>,
    visit: &'a mut dyn FnMut(&CellRef<'_>) -> ControlFlow<()>,
}

impl Visitor for Lending<'_> {
    fn row(&mut self, row: &[u8]) -> Result<Flow> {
        self.row.clear();
        keys::unescape(row, &mut self.row).ok_or_else(damaged)?;
        Ok(Flow::Continue)
    }

    fn cell(&mut self, reader: &FamilyReader) -> Result<Flow> {
        let encoded = reader.qualifier();
        let unescaped;
        let qualifier = match keys::plain(encoded) {
            Some(plain) => plain,
            None => {
                unescaped = decoded(encoded)?;
                &unescaped
            }
        };
        let fetched;
        let value = match reader.plain_value() {
            Some(plain) => plain,
            None => {
                fetched = reader.value()?;
                &fetched
            }
        };
        Ok(flow((self.visit)(&CellRef {
            row: &self.row,
            family: &reader.family.schema.name,
            qualifier,
            timestamp: reader.timestamp(),
            value,
        })))
    }

    fn end_row(&mut self) -> Result<Flow> {
        let Some(family) = &self.keys_only else {
            return Ok(Flow::Continue);
        };
        Ok(flow((self.visit)(&CellRef {
            row: &self.row,
            family,
            qualifier: &[],
            timestamp: Timestamp(0),
            value: &[],
        })))
    }
}

fn flow(control: ControlFlow<()>) -> Flow {
    match control {
        ControlFlow::Continue(()) => Flow::Continue,
        ControlFlow::Break(()) => Flow::Stop,
    }
}

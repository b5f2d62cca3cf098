//! A scan's cells into a filter: what reads and checks share.

use crate::Result;
use crate::read::bounds::decoded;
use crate::read::family::FamilyReader;
use crate::read::scan::{Flow, Visitor};
use crate::storage::keys;
use crate::{Error, bigtable::filter};

use super::filter::{Cell, Emit, MAX_KEPT, Machine, Skip};

/// Feeds the cell that the reader stands at; `ids` are those of the table's families in their order.
#[inline]
pub(crate) fn feed(
    machine: &mut Machine,
    ids: &[u64],
    values: bool,
    reader: &FamilyReader,
    emit: &mut dyn Emit,
) -> Result<Flow> {
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
        _ if !values => &[],
        Some(plain) => plain,
        None => {
            fetched = reader.value()?;
            &fetched[..]
        }
    };
    let id = reader.family.id;
    let cell = Cell {
        family: ids
            .iter()
            .position(|known| *known == id)
            .unwrap_or(usize::MAX),
        qualifier,
        timestamp: reader.timestamp().0,
        value,
        label: None,
    };
    Ok(match machine.cell(cell, emit).map_err(too_large)? {
        Skip::Nothing => Flow::Continue,
        Skip::Column => Flow::NextColumn,
        Skip::Row => Flow::NextRow,
    })
}

fn too_large(_: filter::machine::RowTooLarge) -> Error {
    Error::Precondition(format!(
        "a row is larger than the {MAX_KEPT} bytes that a filter with a condition can look at"
    ))
}

/// Feeds one row.
pub(crate) struct RowVisit<'a, E> {
    machine: Machine,
    ids: Vec<u64>,
    row: &'a [u8],
    values: bool,
    emit: &'a mut E,
}

impl<'a, E: Emit> RowVisit<'a, E> {
    pub(crate) fn new(
        machine: Machine,
        ids: Vec<u64>,
        row: &'a [u8],
        values: bool,
        emit: &'a mut E,
    ) -> Self {
        Self {
            machine,
            ids,
            row,
            values,
            emit,
        }
    }
}

impl<E: Emit> Visitor for RowVisit<'_, E> {
    fn row(&mut self, _: &[u8]) -> Result<Flow> {
        Ok(match self.machine.begin_row(self.row) {
            true => Flow::Continue,
            false => Flow::NextRow,
        })
    }

    fn cell(&mut self, reader: &FamilyReader) -> Result<Flow> {
        feed(&mut self.machine, &self.ids, self.values, reader, self.emit)
    }

    fn end_row(&mut self) -> Result<Flow> {
        self.machine.end_row(self.emit);
        Ok(Flow::Continue)
    }
}

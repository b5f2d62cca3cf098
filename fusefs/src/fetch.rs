//! From a place that is not known to a read request, and from its page to a window: pure.
//!
//! **Invariant**: the window's edges lie where the page begins and ends, and so hold for what is absent too. A row that a
//! reverse page cuts is left out, since the part that was sent does not border on the rest.

use std::time::Instant;

use bytes::Bytes;
use tablemount_api::{
    CellContent, CellPosition, FamilyName, Position, Qualifier, ReadRequest, RowKey, TableInfo,
    Timestamp,
};
use tablemount_client::Page;

use crate::bounds::successor;
use crate::errno::Failure;
use crate::lookahead::Ahead;
use crate::place::{CellFact, Edge, Place};
use crate::tables::{family_id, family_name};
use crate::window::{Content, Scope, Window};

/// Cells asked for when one row is looked at.
const CELLS_OF_A_ROW: u64 = 1000;
/// Cells asked for at least when a place inside a row is looked at.
const CELLS_INSIDE: u64 = 256;
const MAX_CELLS: u64 = 20_000;
/// Row keys for each row that would be asked for with its cells.
const KEYS_PER_ROW: u64 = 5;

/// A request, and where its page begins (forward) or ends (reverse).
#[derive(Debug, Clone)]
pub(crate) struct Fetch {
    pub(crate) request: ReadRequest,
    begin: Edge,
    /// Where the page ends (forward) or begins (reverse) if it has no `next`; `None`: at the table's end (start).
    end: Option<Edge>,
}

impl Fetch {
    /// What to ask to learn about `place` and, as far as `ahead` says, about what comes after it.
    pub(crate) fn lengths(
        scope: &Scope,
        info: &TableInfo,
        place: &Place,
        ahead: Ahead,
    ) -> Result<Self, Failure> {
        let base = ReadRequest {
            cells: CellContent::Lengths,
            ..scoped(scope)
        };
        let Some(family) = place.family else {
            return Self::rows(scope, place, ahead, base);
        };
        let family = family_name(info, family).ok_or(Failure::Absent)?.clone();
        let mut request = ReadRequest {
            row: Some(row_key(&place.row)?),
            families: vec![family],
            cell_limit: Some(ahead.places.clamp(CELLS_INSIDE, MAX_CELLS)),
            ..base
        };
        let enclosing = match (&place.qualifier, place.timestamp) {
            (Some(exact), Some(timestamp)) => {
                request.qualifier = Some(qualifier(exact)?);
                request.at = Some(Timestamp(timestamp));
                Place {
                    timestamp: None,
                    ..place.clone()
                }
            }
            (Some(first), None) => {
                request.qualifier_start = Some(qualifier(first)?);
                Place {
                    qualifier: None,
                    ..place.clone()
                }
            }
            (None, _) => place.clone(),
        };
        Ok(Self {
            request,
            begin: place.before(),
            end: Some(enclosing.after()),
        })
    }

    fn rows(
        scope: &Scope,
        place: &Place,
        ahead: Ahead,
        base: ReadRequest,
    ) -> Result<Self, Failure> {
        if ahead.places == 1 {
            let request = ReadRequest {
                row: Some(row_key(&place.row)?),
                cell_limit: Some(CELLS_OF_A_ROW),
                ..base
            };
            return Ok(Self {
                request,
                begin: place.before(),
                end: Some(place.after()),
            });
        }
        let (begin, mut request) = if scope.reverse {
            // Above the highest key there is nothing to exclude.
            let stop = row_key(&successor(&place.row, RowKey::MAX_BYTES)).ok();
            (
                place.after(),
                ReadRequest {
                    reverse: true,
                    stop,
                    ..base
                },
            )
        } else {
            (
                place.before(),
                ReadRequest {
                    start: Some(row_key(&place.row)?),
                    ..base
                },
            )
        };
        if ahead.inside {
            request.row_limit = Some(ahead.places);
            request.cell_limit = Some(MAX_CELLS);
        } else {
            request.row_limit = Some(ahead.places * KEYS_PER_ROW);
            request.cells = CellContent::None;
        }
        Ok(Self {
            request,
            begin,
            end: None,
        })
    }

    /// What to ask for the values of the `cells` cells from the one at `place` on, of which `window` knows the lengths.
    pub(crate) fn values(
        scope: &Scope,
        info: &TableInfo,
        window: &Window,
        place: &Place,
        cells: u64,
    ) -> Result<Self, Failure> {
        let before = window
            .from(place)
            .and_then(|(before, _)| before)
            .filter(|before| before.row == place.row);
        let row = Place::row(place.row.clone());
        let mut fetch = if let Some(before) = before {
            Self::after_cell(scope, info, before, place)?
        } else if window.covers_start(&row) {
            Self {
                request: from_row(scope, place)?,
                begin: row.before(),
                end: None,
            }
        } else {
            let column = Place {
                timestamp: None,
                ..place.clone()
            };
            let first = if window.covers_start(&column) {
                &column
            } else {
                place
            };
            Self::lengths(scope, info, first, Ahead::ALONE)?
        };
        if scope.reverse {
            // What comes next is the row before; this row's values are all that lies ahead in one piece.
            fetch.request.row = Some(row_key(&place.row)?);
            fetch.request.start = None;
            fetch.end = Some(fetch.end.unwrap_or_else(|| row.after()));
        }
        fetch.request.cells = CellContent::Values;
        fetch.request.cell_limit = Some(cells);
        Ok(fetch)
    }

    /// What to ask for what begins at `place`, which comes after the cell `before`.
    fn after_cell(
        scope: &Scope,
        info: &TableInfo,
        before: &CellFact,
        place: &Place,
    ) -> Result<Self, Failure> {
        let family = family_name(info, before.family).ok_or(Failure::Absent)?;
        let cell = CellPosition {
            family: family.clone(),
            qualifier: qualifier(&before.qualifier)?,
            // Where a column shows one version only, it is done with that; else a page could show a second one.
            timestamp: (!scope.latest).then_some(Timestamp(before.timestamp)),
        };
        let after = Position {
            row: row_key(&place.row)?,
            cell: Some(cell),
        };
        let request = ReadRequest {
            after: Some(after),
            ..from_row(scope, place)?
        };
        Ok(Self {
            request,
            begin: place.before(),
            end: None,
        })
    }

    /// Whether `info` has all families of the page.
    pub(crate) fn is_known(&self, info: &TableInfo, page: &Page) -> bool {
        let mut cells = page.rows.iter().flat_map(|row| &row.cells);
        let mut last: Option<&FamilyName> = None;
        cells.all(|cell| {
            let seen = last == Some(&cell.family);
            last = Some(&cell.family);
            seen || family_id(info, &cell.family).is_some()
        })
    }

    /// What the page told.
    pub(crate) fn window(
        &self,
        scope: &Scope,
        info: &TableInfo,
        page: Page,
        fetched: Instant,
    ) -> Window {
        let reverse = self.request.reverse;
        let cut = page.next.as_ref().map(|next| cut(info, next, reverse));
        let far = cut.or_else(|| self.end.clone());
        let mut rows = page.rows;
        if reverse {
            rows.reverse();
            // The row that was cut comes first now.
            if page.next.is_some_and(|next| next.cell.is_some()) && !rows.is_empty() {
                rows.remove(0);
            }
        }
        let content = if self.request.cells == CellContent::None {
            Content::Keys(rows.into_iter().map(|row| row.row.into_bytes()).collect())
        } else {
            let values = self.request.cells == CellContent::Values;
            Content::Cells {
                cells: facts(info, rows),
                values,
            }
        };
        let (low, high) = if reverse {
            (far, Some(self.begin.clone()))
        } else {
            (Some(self.begin.clone()), far)
        };
        Window {
            scope: scope.clone(),
            fetched,
            low,
            high,
            content,
        }
    }
}

/// Where a page that goes on at `next` ends.
fn cut(info: &TableInfo, next: &Position, reverse: bool) -> Edge {
    let row = Place::row(next.row.bytes().clone());
    match (&next.cell, reverse) {
        (None, true) => row.before(),
        (None, false) | (Some(_), true) => row.after(),
        (Some(cell), false) => Place {
            // One that is not known comes after all that are.
            family: Some(family_id(info, &cell.family).unwrap_or(u64::MAX)),
            qualifier: Some(cell.qualifier.bytes().clone()),
            timestamp: cell.timestamp.map(|timestamp| timestamp.0),
            ..row
        }
        .after(),
    }
}

/// The cells of a page. A family that `info` does not know is one that went again meanwhile.
fn facts(info: &TableInfo, rows: Vec<tablemount_client::RowChunk>) -> Vec<CellFact> {
    let mut facts = Vec::with_capacity(rows.iter().map(|row| row.cells.len()).sum());
    for chunk in rows {
        let row = chunk.row.into_bytes();
        let mut last: Option<(FamilyName, Option<u64>)> = None;
        for cell in chunk.cells {
            let id = match &last {
                Some((name, id)) if *name == cell.family => *id,
                _ => {
                    let id = family_id(info, &cell.family);
                    last = Some((cell.family, id));
                    id
                }
            };
            let Some(family) = id else { continue };
            let value = cell.value.map(|value| value.0);
            facts.push(CellFact {
                row: row.clone(),
                family,
                qualifier: cell.qualifier.into_bytes(),
                timestamp: cell.timestamp.0,
                length: cell
                    .length
                    .unwrap_or_else(|| value.as_ref().map_or(0, |value| value.len() as u64)),
                value,
            });
        }
    }
    facts
}

/// A request for what lies in `scope` from the row of `place` on.
fn from_row(scope: &Scope, place: &Place) -> Result<ReadRequest, Failure> {
    Ok(ReadRequest {
        start: Some(row_key(&place.row)?),
        ..scoped(scope)
    })
}

/// A request for what lies in `scope`.
pub(crate) fn scoped(scope: &Scope) -> ReadRequest {
    ReadRequest {
        at: scope.at,
        versions: scope.latest.then_some(1),
        ..ReadRequest::default()
    }
}

/// A row key that the table could have; else nothing is there.
pub(crate) fn row_key(bytes: &Bytes) -> Result<RowKey, Failure> {
    RowKey::new(bytes.clone()).map_err(|_| Failure::Absent)
}

/// A qualifier that the table could have; else nothing is there.
pub(crate) fn qualifier(bytes: &Bytes) -> Result<Qualifier, Failure> {
    Qualifier::new(bytes.clone()).map_err(|_| Failure::Absent)
}

#[cfg(test)]
mod tests;

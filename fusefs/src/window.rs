//! What reads have told within the last second: stretches of a table's order, complete between two edges.
//!
//! All knowledge of rows and cells lies in such windows, whether one row was asked for, or two thousand ahead of a walker,
//! or a page of row keys was listed. A window answers what lies inside its edges, absence included.
//!
//! **Invariants**: a window older than [`TTL`] answers nothing; all windows together hold at most [`MAX_BYTES`] and number at
//! most [`MAX_WINDOWS`], the oldest go first; cells are in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tablemount_api::{TableName, Timestamp};

use crate::place::{CellFact, Edge, Place};

/// How long an answer holds.
pub(crate) const TTL: Duration = Duration::from_secs(1);
const MAX_BYTES: usize = 16 << 20;
/// What the allocator takes for itself, about.
const ALLOCATION_BYTES: usize = 32;
const MAX_WINDOWS: usize = 128;

/// What of a table is looked at: windows of one scope say nothing about another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) table: TableName,
    /// Only versions with at most this timestamp.
    pub(crate) at: Option<Timestamp>,
    /// Only the newest version of each column.
    pub(crate) latest: bool,
    /// Walkers come from the highest row down.
    pub(crate) reverse: bool,
}

/// What a window knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// Row keys, in order.
    Keys(Vec<Bytes>),
    /// Cells, with values or without.
    Cells { cells: Vec<CellFact>, values: bool },
}

/// A stretch of a table's order.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) scope: Scope,
    pub(crate) fetched: Instant,
    /// `None`: from the table's start.
    pub(crate) low: Option<Edge>,
    /// `None`: to the table's end.
    pub(crate) high: Option<Edge>,
    pub(crate) content: Content,
}

/// What a place holds, as far as a window knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum First {
    /// No cell.
    Nothing,
    /// Cells; this is the first.
    Cell(CellFact),
    /// Cells, but only that is known.
    Something,
}

impl Window {
    pub(crate) fn covers_start(&self, place: &Place) -> bool {
        self.low
            .as_ref()
            .is_none_or(|low| place.cmp_side(false, low).is_ge())
            && self
                .high
                .as_ref()
                .is_none_or(|high| place.cmp_side(false, high).is_lt())
    }

    fn covers(&self, place: &Place) -> bool {
        self.covers_start(place)
            && self
                .high
                .as_ref()
                .is_none_or(|high| place.cmp_side(true, high).is_le())
    }

    /// The first cell of `place`; `None`: not known.
    pub(crate) fn first_in(&self, place: &Place) -> Option<First> {
        if !self.covers_start(place) {
            return None;
        }
        match &self.content {
            Content::Keys(keys) if place.family.is_none() => match keys.binary_search(&place.row) {
                Ok(_) => Some(First::Something),
                Err(_) => Some(First::Nothing),
            },
            Content::Keys(keys) => keys
                .binary_search(&place.row)
                .is_err()
                .then_some(First::Nothing),
            Content::Cells { cells, .. } => match cells.get(index_after(cells, place, false)) {
                Some(cell) if cell.is_in(place) => Some(First::Cell(cell.clone())),
                Some(_) => Some(First::Nothing),
                None => self.covers(place).then_some(First::Nothing),
            },
        }
    }

    /// All cells of `place`; `None`: not known.
    pub(crate) fn all_in(&self, place: &Place) -> Option<&[CellFact]> {
        match &self.content {
            Content::Cells { cells, .. } if self.covers(place) => {
                // Empty if the engine broke its order, rather than a panic.
                cells
                    .get(index_after(cells, place, false)..index_after(cells, place, true))
                    .or(Some(&[]))
            }
            _ => None,
        }
    }

    /// The cells from the start of `place` on, and the one before them if the window has it.
    pub(crate) fn from(&self, place: &Place) -> Option<(Option<&CellFact>, &[CellFact])> {
        match &self.content {
            Content::Cells { cells, .. } if self.covers_start(place) => {
                let index = index_after(cells, place, false);
                Some((
                    index.checked_sub(1).map(|before| &cells[before]),
                    &cells[index..],
                ))
            }
            _ => None,
        }
    }

    fn is_fresh(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.fetched) < TTL
    }

    fn has_values(&self) -> bool {
        matches!(self.content, Content::Cells { values: true, .. })
    }

    fn bytes(&self) -> usize {
        match &self.content {
            Content::Keys(keys) => keys
                .iter()
                .map(|key| size_of::<Bytes>() + ALLOCATION_BYTES + key.len())
                .sum(),
            Content::Cells { cells, .. } => {
                let mut last: &[u8] = &[];
                cells
                    .iter()
                    .map(|cell| {
                        let row = if cell.row == last { 0 } else { cell.row.len() };
                        last = &cell.row;
                        row + ALLOCATION_BYTES + cell.bytes()
                    })
                    .sum()
            }
        }
    }
}

/// The index of the first cell after the edge before or after `place`.
fn index_after(cells: &[CellFact], place: &Place, after: bool) -> usize {
    cells.partition_point(|cell| !place.side_is_before(after, cell))
}

/// The windows of the last second.
#[derive(Default)]
pub(crate) struct Windows {
    newest_first: VecDeque<(usize, Arc<Window>)>,
    bytes: usize,
}

impl Windows {
    pub(crate) fn insert(&mut self, window: Arc<Window>) {
        let bytes = window.bytes();
        self.bytes += bytes;
        self.newest_first.push_front((bytes, window));
        while self.newest_first.len() > MAX_WINDOWS
            || (self.bytes > MAX_BYTES && self.newest_first.len() > 1)
        {
            self.drop_oldest();
        }
    }

    /// The first cell of `place`; `None`: not known.
    pub(crate) fn first_in(&mut self, scope: &Scope, place: &Place, now: Instant) -> Option<First> {
        self.find(scope, now, |window| window.first_in(place))
    }

    /// As [`Windows::first_in`], but a window that knows only row keys will not do.
    pub(crate) fn first_cell_in(
        &mut self,
        scope: &Scope,
        place: &Place,
        now: Instant,
    ) -> Option<First> {
        self.find(scope, now, |window| {
            window
                .first_in(place)
                .filter(|first| *first != First::Something)
        })
    }

    /// A window that knows all cells of `place`.
    pub(crate) fn all_in(
        &mut self,
        scope: &Scope,
        place: &Place,
        now: Instant,
    ) -> Option<Vec<CellFact>> {
        self.find(scope, now, |window| window.all_in(place).map(<[_]>::to_vec))
    }

    /// The first cell of `place` with its value; `None`: not known.
    pub(crate) fn value_in(&mut self, scope: &Scope, place: &Place, now: Instant) -> Option<First> {
        self.find(scope, now, |window| {
            window.has_values().then(|| window.first_in(place))?
        })
    }

    /// A window without values that knows what comes from the start of `place` on.
    pub(crate) fn from(
        &mut self,
        scope: &Scope,
        place: &Place,
        now: Instant,
    ) -> Option<Arc<Window>> {
        self.expire(now);
        let mut windows = self.newest_first.iter().map(|(_, window)| window);
        windows
            .find(|window| {
                window.scope == *scope && !window.has_values() && window.from(place).is_some()
            })
            .cloned()
    }

    fn find<T>(
        &mut self,
        scope: &Scope,
        now: Instant,
        ask: impl Fn(&Window) -> Option<T>,
    ) -> Option<T> {
        self.expire(now);
        self.newest_first
            .iter()
            .filter(|(_, window)| window.scope == *scope)
            .find_map(|(_, window)| ask(window))
    }

    fn expire(&mut self, now: Instant) {
        while self
            .newest_first
            .back()
            .is_some_and(|(_, window)| !window.is_fresh(now))
        {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some((bytes, _)) = self.newest_first.pop_back() {
            self.bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests;

//! What reads show, and how they are cut into pages.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;
use tablemount_api::{
    Base64, Cell, CellContent, CellPosition, FamilyInfo, FamilyName, GcRule, PageEnd, Position,
    Qualifier, ReadLine, ReadRequest, RowKey, Timestamp,
};

use super::Table;
use crate::{Error, Result};

const PAGE_ROWS: u64 = 10_000;
const PAGE_ROW_KEYS: u64 = 100_000;
const PAGE_BYTES: usize = 4 << 20;
const LINE_CELLS: usize = 1000;

/// A cell that a read shows.
struct Shown {
    family: FamilyName,
    family_id: u64,
    qualifier: Bytes,
    timestamp: i64,
    value: Bytes,
}

impl Table {
    fn families_of(&self, request: &ReadRequest) -> Result<Vec<&FamilyInfo>> {
        request
            .families
            .iter()
            .try_for_each(|name| self.family(name).map(|_| ()))?;
        let asked = |family: &&FamilyInfo| {
            request.families.is_empty() || request.families.contains(&family.schema.name)
        };
        Ok(self.info.families.iter().filter(asked).collect())
    }

    /// All cells of `row` inside the request's column and time bounds.
    fn shown(
        &self,
        row: &Bytes,
        request: &ReadRequest,
        families: &[&FamilyInfo],
        now: Timestamp,
    ) -> Vec<Shown> {
        let mut shown = Vec::new();
        for family in families {
            let first = (row.clone(), family.id, Bytes::new(), Reverse(i64::MAX));
            let cells = self
                .cells
                .range(first..)
                .take_while(|(key, _)| key.0 == *row && key.1 == family.id);
            let mut columns: BTreeMap<Bytes, Vec<(i64, Bytes)>> = BTreeMap::new();
            for ((_, _, qualifier, Reverse(timestamp)), value) in cells {
                columns
                    .entry(qualifier.clone())
                    .or_default()
                    .push((*timestamp, value.clone()));
            }
            columns.retain(|qualifier, versions| {
                *versions = shown_versions(
                    std::mem::take(versions),
                    request,
                    &family.schema.gc_rule,
                    now,
                );
                !versions.is_empty() && qualifier_in_bounds(qualifier, request)
            });
            for (qualifier, versions) in columns.into_iter().take(limit(request.columns_per_family))
            {
                shown.extend(versions.into_iter().map(|(timestamp, value)| Shown {
                    family: family.schema.name.clone(),
                    family_id: family.id,
                    qualifier: qualifier.clone(),
                    timestamp,
                    value,
                }));
            }
        }
        shown
    }

    fn next_row(&self, seen: Option<&Bytes>, request: &ReadRequest) -> Option<Bytes> {
        let at = |row: &Bytes| (row.clone(), 0, Bytes::new(), Reverse(i64::MAX));
        let (low, high) = row_bounds(request);
        let low_bound = match seen {
            Some(seen) if !request.reverse => at(&successor(seen)).max(at(&low)),
            _ => at(&low),
        };
        let high_bound = match (seen, high) {
            (Some(seen), high) if request.reverse => {
                Bound::Excluded(at(&high.map_or(seen.clone(), |high| high.min(seen.clone()))))
            }
            (_, Some(high)) => Bound::Excluded(at(&high)),
            (_, None) => Bound::Unbounded,
        };
        if matches!(&high_bound, Bound::Excluded(high) if *high <= low_bound) {
            return None;
        }
        let mut range = self.cells.range((Bound::Included(low_bound), high_bound));
        let found = if request.reverse {
            range.next_back()
        } else {
            range.next()
        };
        found.map(|(key, _)| key.0.clone())
    }

    pub(super) fn read(&self, request: &ReadRequest, now: Timestamp) -> Result<Vec<ReadLine>> {
        check_limits(request)?;
        let families = self.families_of(request)?;
        let mut page = PageBuilder::new(request);
        let mut seen = None;
        if let Some(Position { row, cell }) = &request.after {
            seen = Some(row.bytes().clone());
            if let Some(cell) = cell
                && in_bounds(row.bytes(), request)
            {
                let last = self.family(&cell.family)?.id;
                let mut cells = self.shown(row.bytes(), request, &families, now);
                cells.retain(|shown| is_after(shown, last, cell));
                if page.row(row, cells) {
                    return Ok(page.finish(true));
                }
            }
        }
        while let Some(row) = self.next_row(seen.as_ref(), request) {
            let cells = self.shown(&row, request, &families, now);
            if page.row(&RowKey::new(row.clone())?, cells) {
                return Ok(page.finish(true));
            }
            seen = Some(row);
        }
        Ok(page.finish(false))
    }
}

/// Collects a page's lines and knows when it is full.
struct PageBuilder<'a> {
    request: &'a ReadRequest,
    lines: Vec<ReadLine>,
    rows: u64,
    cells: u64,
    bytes: usize,
    last: Option<Position>,
}

impl<'a> PageBuilder<'a> {
    fn new(request: &'a ReadRequest) -> Self {
        Self {
            request,
            lines: Vec::new(),
            rows: 0,
            cells: 0,
            bytes: 0,
            last: None,
        }
    }

    /// Adds a row; true once the page is full.
    fn row(&mut self, row: &RowKey, shown: Vec<Shown>) -> bool {
        if shown.is_empty() {
            return false;
        }
        let keys_only = self.request.cells == CellContent::None;
        self.bytes += row.bytes().len();
        let mut cells = Vec::new();
        let mut cut = None;
        let all = shown.len();
        for (index, shown) in shown
            .into_iter()
            .enumerate()
            .take(if keys_only { 0 } else { all })
        {
            self.cells += 1;
            self.bytes += shown.qualifier.len() + 40;
            let cell = self.cell(shown);
            self.bytes += cell.value.as_ref().map_or(0, |value| value.0.len());
            if self.cells >= self.request.cell_limit.unwrap_or(u64::MAX) || self.bytes >= PAGE_BYTES
            {
                let position = CellPosition {
                    family: cell.family.clone(),
                    qualifier: cell.qualifier.clone(),
                    timestamp: Some(cell.timestamp),
                };
                cut = (index + 1 < all).then_some(position);
                cells.push(cell);
                break;
            }
            cells.push(cell);
        }
        self.rows += 1;
        let cut_off = cut.is_some();
        self.last = Some(Position {
            row: row.clone(),
            cell: cut,
        });
        self.push_lines(row, cells);
        let cap = if keys_only { PAGE_ROW_KEYS } else { PAGE_ROWS };
        cut_off
            || self.rows >= self.request.row_limit.unwrap_or(u64::MAX).min(cap)
            || self.cells >= self.request.cell_limit.unwrap_or(u64::MAX)
            || self.bytes >= PAGE_BYTES
    }

    fn cell(&self, shown: Shown) -> Cell {
        let lengths = self.request.cells == CellContent::Lengths;
        Cell {
            family: shown.family,
            qualifier: Qualifier::new(shown.qualifier).unwrap_or_default(),
            timestamp: Timestamp(shown.timestamp),
            length: lengths.then_some(shown.value.len() as u64),
            value: (!lengths).then_some(Base64(shown.value)),
        }
    }

    fn push_lines(&mut self, row: &RowKey, mut cells: Vec<Cell>) {
        loop {
            let rest = cells.split_off(cells.len().min(LINE_CELLS));
            self.lines.push(ReadLine {
                row: Some(row.clone()),
                cells,
                ..ReadLine::default()
            });
            if rest.is_empty() {
                return;
            }
            cells = rest;
        }
    }

    fn finish(mut self, more: bool) -> Vec<ReadLine> {
        let next = self.last.filter(|_| more);
        self.lines.push(ReadLine {
            end: Some(PageEnd { next }),
            ..ReadLine::default()
        });
        self.lines
    }
}

fn check_limits(request: &ReadRequest) -> Result<()> {
    let limits = [
        ("versions", request.versions.map(u64::from)),
        (
            "columnsPerFamily",
            request.columns_per_family.map(u64::from),
        ),
        ("rowLimit", request.row_limit),
        ("cellLimit", request.cell_limit),
    ];
    match limits.iter().find(|(_, limit)| *limit == Some(0)) {
        Some((name, _)) => Err(Error::Invalid(format!("{name} is 0; it must be 1 or more"))),
        None => Ok(()),
    }
}

/// A column's versions (newest first) that are left after the GC rule, `at` and `since`, and `versions`, in this order.
fn shown_versions(
    all: Vec<(i64, Bytes)>,
    request: &ReadRequest,
    rule: &GcRule,
    now: Timestamp,
) -> Vec<(i64, Bytes)> {
    let kept = all
        .into_iter()
        .enumerate()
        .filter(|(newer, (timestamp, _))| {
            !rule.collects(*newer as u64, Timestamp(*timestamp), now)
                && request.at.is_none_or(|at| *timestamp <= at.0)
                && request.since.is_none_or(|since| *timestamp >= since.0)
        });
    kept.map(|(_, version)| version)
        .take(limit(request.versions))
        .collect()
}

fn limit(limit: Option<u32>) -> usize {
    limit.map_or(usize::MAX, |limit| limit as usize)
}

fn qualifier_in_bounds(qualifier: &Bytes, request: &ReadRequest) -> bool {
    request
        .qualifier
        .as_ref()
        .is_none_or(|only| qualifier == only.bytes())
        && request
            .qualifier_start
            .as_ref()
            .is_none_or(|start| qualifier >= start.bytes())
        && request
            .qualifier_stop
            .as_ref()
            .is_none_or(|stop| qualifier < stop.bytes())
        && request
            .qualifier_prefix
            .as_ref()
            .is_none_or(|prefix| qualifier.starts_with(&prefix.0))
}

/// The lowest row key that the request allows, and the first above that it does not.
fn row_bounds(request: &ReadRequest) -> (Bytes, Option<Bytes>) {
    let lows = [
        request.row.as_ref().map(|row| row.bytes().clone()),
        request.start.as_ref().map(|start| start.bytes().clone()),
        request.prefix.as_ref().map(|prefix| prefix.0.clone()),
    ];
    let highs = [
        request.row.as_ref().map(|row| successor(row.bytes())),
        request.stop.as_ref().map(|stop| stop.bytes().clone()),
        request
            .prefix
            .as_ref()
            .and_then(|prefix| after_prefix(&prefix.0)),
    ];
    (
        lows.into_iter().flatten().max().unwrap_or_default(),
        highs.into_iter().flatten().min(),
    )
}

fn in_bounds(row: &Bytes, request: &ReadRequest) -> bool {
    let (low, high) = row_bounds(request);
    low <= *row && high.is_none_or(|high| *row < high)
}

/// The lowest byte string above `bytes`.
fn successor(bytes: &Bytes) -> Bytes {
    let mut next = bytes.to_vec();
    next.push(0);
    next.into()
}

/// The lowest byte string above all that start with `prefix`; `None`: there is none.
fn after_prefix(prefix: &Bytes) -> Option<Bytes> {
    let last = prefix.iter().rposition(|byte| *byte < 0xff)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(next.into())
}

fn is_after(shown: &Shown, last_family: u64, last: &CellPosition) -> bool {
    let column = (shown.family_id, &shown.qualifier);
    let last_column = (last_family, last.qualifier.bytes());
    column > last_column
        || (column == last_column && last.timestamp.is_some_and(|last| shown.timestamp < last.0))
}

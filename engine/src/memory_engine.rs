//! A table store in a `BTreeMap`: what reads, writes and schema changes mean, without files, threads or clocks.
//!
//! Owns: all tables and their cells, in memory. Time comes in as a parameter. Written to be obviously right, not fast.
//!
//! **Invariants**: cells stand in the order in which reads show them (row, family by creation, qualifier, newest version
//! first); a row's mutations apply in order, all or none; what the GC rule collects is never shown.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;
use tablemount_api::stats::{FamilyStats, TableStats, TabletStats};
use tablemount_api::{
    Base64, Cell, CellCheck, CellContent, CellPosition, DropTable, FamilyInfo, FamilyName, GcRule,
    MutateRequest, MutateResponse, Mutation, PageEnd, Position, PutTable, Qualifier, ReadLine,
    ReadRequest, RowKey, RowMutation, RowResult, TableInfo, TableName, Timestamp, ValueRequest,
    name,
};

use crate::{Error, Result};

type Key = (Bytes, u64, Bytes, Reverse<i64>);

const PAGE_ROWS: u64 = 10_000;
const PAGE_ROW_KEYS: u64 = 100_000;
const PAGE_BYTES: usize = 4 << 20;
const LINE_CELLS: usize = 1000;

/// All tables.
#[derive(Default, Clone)]
pub(crate) struct MemoryEngine {
    tables: BTreeMap<TableName, Table>,
    last_id: u64,
    last_timestamp: i64,
}

#[derive(Clone)]
struct Table {
    info: TableInfo,
    cells: BTreeMap<Key, Bytes>,
}

/// A cell that a read shows.
struct Shown {
    family: FamilyName,
    family_id: u64,
    qualifier: Bytes,
    timestamp: i64,
    value: Bytes,
}

impl MemoryEngine {
    pub(crate) fn tables(&self) -> Vec<TableInfo> {
        self.tables
            .values()
            .map(|table| table.info.clone())
            .collect()
    }

    pub(crate) fn table(&self, table: &TableName) -> Result<TableInfo> {
        Ok(self.find(table)?.info.clone())
    }

    pub(crate) fn put_table(
        &mut self,
        name: &TableName,
        body: PutTable,
        now: Timestamp,
    ) -> Result<TableInfo> {
        body.validate()?;
        check_version(
            name,
            self.tables.get(name).map(|table| table.info.version),
            body.if_version,
        )?;
        let old = self.tables.get(name).map(|table| table.info.clone());
        let new = match &old {
            None => self.created(name, body, now),
            Some(old) => self.changed(old, body)?,
        };
        let table = self.tables.entry(name.clone()).or_insert_with(|| Table {
            info: new.clone(),
            cells: BTreeMap::new(),
        });
        table
            .cells
            .retain(|key, _| new.families.iter().any(|family| family.id == key.1));
        table.info = new.clone();
        Ok(new)
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn created(&mut self, name: &TableName, body: PutTable, now: Timestamp) -> TableInfo {
        let mut splits = body.splits;
        splits.sort();
        TableInfo {
            name: name.clone(),
            uid: format!("{:08}", self.next_id()),
            version: 1,
            created: now,
            families: body
                .families
                .into_iter()
                .map(|schema| FamilyInfo {
                    id: self.next_id(),
                    schema,
                })
                .collect(),
            splits,
            owner: body.owner,
        }
    }

    fn changed(&mut self, old: &TableInfo, body: PutTable) -> Result<TableInfo> {
        let name = &old.name;
        let mut splits = body.splits;
        splits.sort();
        if !splits.is_empty() && splits != old.splits {
            let are: Vec<_> = old
                .splits
                .iter()
                .map(|key| name::encode(key.bytes()))
                .collect();
            let are = if are.is_empty() {
                "none".to_owned()
            } else {
                are.join(", ")
            };
            let message =
                format!("table \"{name}\": splits cannot change after creation (they are {are})");
            return Err(Error::Precondition(message));
        }
        let mut new = old.clone();
        new.families.clear();
        for family in &old.families {
            match body
                .families
                .iter()
                .find(|schema| schema.name == family.schema.name)
            {
                Some(schema) => new.families.push(FamilyInfo {
                    id: family.id,
                    schema: schema.clone(),
                }),
                None if body.drop_families.contains(&family.schema.name) => {}
                None => {
                    return Err(Error::Precondition(format!(
                        "table \"{name}\": column family \"{}\" is missing from the request; \
                         name it in dropFamilies to delete its data",
                        family.schema.name
                    )));
                }
            }
        }
        for schema in body.families {
            if !old
                .families
                .iter()
                .any(|family| family.schema.name == schema.name)
            {
                new.families.push(FamilyInfo {
                    id: self.next_id(),
                    schema,
                });
            }
        }
        new.owner = body.owner.or(new.owner);
        new.version += u64::from(new != *old);
        Ok(new)
    }

    pub(crate) fn drop_table(&mut self, name: &TableName, query: &DropTable) -> Result<()> {
        let uid = &self.find(name)?.info.uid;
        if let Some(expected) = query.if_uid.as_ref().filter(|expected| *expected != uid) {
            return Err(Error::Conflict(format!(
                "table \"{name}\" has uid {uid}, not {expected} (ifUid)"
            )));
        }
        self.tables.remove(name);
        Ok(())
    }

    pub(crate) fn mutate(
        &mut self,
        name: &TableName,
        request: MutateRequest,
        now: Timestamp,
    ) -> Result<MutateResponse> {
        let table = self.tables.get_mut(name).ok_or_else(|| not_found(name))?;
        request
            .rows
            .iter()
            .try_for_each(|row| table.validate(row))?;
        let given = Timestamp(self.last_timestamp.max(now.0.div_euclid(1000) * 1000));
        self.last_timestamp = given.0;
        let brought_none = |mutation: &Mutation| {
            matches!(
                mutation,
                Mutation::Put {
                    timestamp: None,
                    ..
                }
            )
        };
        let any_given = request
            .rows
            .iter()
            .flat_map(|row| &row.mutations)
            .any(brought_none);
        let results = request
            .rows
            .iter()
            .map(|row| table.apply_row(row, given, now))
            .collect::<Result<_>>()?;
        Ok(MutateResponse {
            results,
            timestamp: any_given.then_some(given),
        })
    }

    pub(crate) fn read(
        &self,
        name: &TableName,
        request: &ReadRequest,
        now: Timestamp,
    ) -> Result<Vec<ReadLine>> {
        self.find(name)?.read(request, now)
    }

    pub(crate) fn value(
        &self,
        name: &TableName,
        request: &ValueRequest,
        now: Timestamp,
    ) -> Result<(Timestamp, Bytes)> {
        let table = self.find(name)?;
        let read = ReadRequest {
            families: vec![request.family.clone()],
            qualifier: Some(request.qualifier.clone()),
            at: request.at.into_iter().chain(request.timestamp).min(),
            since: request.timestamp,
            versions: Some(1),
            ..ReadRequest::default()
        };
        let families = table.families_of(&read)?;
        match table
            .shown(request.row.bytes(), &read, &families, now)
            .into_iter()
            .next()
        {
            Some(cell) => Ok((Timestamp(cell.timestamp), cell.value)),
            None => {
                let column = column_text(&request.family, request.qualifier.bytes());
                let row = name::encode(request.row.bytes());
                Err(Error::NotFound(format!(
                    "table \"{name}\", row {row}: no such cell in column {column}"
                )))
            }
        }
    }

    pub(crate) fn table_stats(&self, name: &TableName) -> Result<TableStats> {
        Ok(self.find(name)?.stats())
    }

    fn find(&self, name: &TableName) -> Result<&Table> {
        self.tables.get(name).ok_or_else(|| not_found(name))
    }
}

impl Table {
    fn family(&self, name: &FamilyName) -> Result<&FamilyInfo> {
        self.info
            .families
            .iter()
            .find(|family| family.schema.name == *name)
            .ok_or_else(|| {
                let known: Vec<_> = self
                    .info
                    .families
                    .iter()
                    .map(|family| format!("\"{}\"", family.schema.name))
                    .collect();
                Error::NotFound(format!(
                    "column family \"{name}\" not found in table \"{}\" (families: {})",
                    self.info.name,
                    known.join(", ")
                ))
            })
    }

    fn validate(&self, row: &RowMutation) -> Result<()> {
        if !(1..=RowMutation::MAX_MUTATIONS).contains(&row.mutations.len()) {
            return Err(Error::Invalid(format!(
                "row {}: {} mutations; a row has 1 to {}",
                name::encode(row.row.bytes()),
                row.mutations.len(),
                RowMutation::MAX_MUTATIONS
            )));
        }
        if let Some(check) = &row.check {
            self.family(&check.family)?;
        }
        row.mutations
            .iter()
            .try_for_each(|mutation| match mutation {
                Mutation::Put { family, value, .. } | Mutation::Append { family, value, .. } => {
                    self.check_length(self.family(family)?, value.0.len())
                }
                Mutation::DeleteCell { family, .. }
                | Mutation::DeleteColumn { family, .. }
                | Mutation::DeleteFamily { family }
                | Mutation::Increment { family, .. } => self.family(family).map(|_| ()),
                Mutation::DeleteRow {} => Ok(()),
            })
    }

    fn check_length(&self, family: &FamilyInfo, length: usize) -> Result<()> {
        let limit = family.schema.max_value_bytes;
        if length <= limit as usize {
            return Ok(());
        }
        let (table, family) = (&self.info.name, &family.schema.name);
        Err(Error::TooLarge(format!(
            "value of {length} bytes in table \"{table}\", column family \"{family}\"; limit is {limit} (maxValueBytes)"
        )))
    }

    fn apply_row(
        &mut self,
        row: &RowMutation,
        given: Timestamp,
        now: Timestamp,
    ) -> Result<RowResult> {
        if let Some(check) = &row.check
            && !self.holds(&row.row, check, now)?
        {
            return Ok(RowResult {
                applied: false,
                cells: Vec::new(),
            });
        }
        let before = self.row(row.row.bytes());
        let mut cells = Vec::new();
        for mutation in &row.mutations {
            match self.apply(row.row.bytes(), mutation, given, now) {
                Ok(cell) => cells.extend(cell),
                Err(error) => {
                    self.remove(|key| key.0 == row.row.bytes(), row.row.bytes());
                    self.cells.extend(before);
                    return Err(error);
                }
            }
        }
        Ok(RowResult {
            applied: true,
            cells,
        })
    }

    fn holds(&self, row: &RowKey, check: &CellCheck, now: Timestamp) -> Result<bool> {
        let newest = self.newest(
            row.bytes(),
            self.family(&check.family)?,
            check.qualifier.bytes(),
            now,
        );
        Ok(newest.map(|(_, value)| value) == check.value.as_ref().map(|value| value.0.clone()))
    }

    fn apply(
        &mut self,
        row: &Bytes,
        mutation: &Mutation,
        given: Timestamp,
        now: Timestamp,
    ) -> Result<Option<Cell>> {
        match mutation {
            Mutation::Put {
                family,
                qualifier,
                timestamp,
                value,
            } => {
                let key = (
                    row.clone(),
                    self.family(family)?.id,
                    qualifier.bytes().clone(),
                );
                self.put(key, timestamp.unwrap_or(given), value.0.clone());
            }
            Mutation::DeleteCell {
                family,
                qualifier,
                timestamp,
            } => {
                self.delete_versions(row, family, qualifier, (*timestamp, *timestamp), now)?;
            }
            Mutation::DeleteColumn {
                family,
                qualifier,
                min_timestamp,
                max_timestamp,
            } => {
                let range = (
                    min_timestamp.unwrap_or(Timestamp::MIN),
                    max_timestamp.unwrap_or(Timestamp::MAX),
                );
                self.delete_versions(row, family, qualifier, range, now)?;
            }
            Mutation::DeleteFamily { family } => {
                let id = self.family(family)?.id;
                self.remove(|key| key.1 == id, row);
            }
            Mutation::DeleteRow {} => self.remove(|_| true, row),
            Mutation::Increment {
                family,
                qualifier,
                by,
            } => {
                let old = self
                    .newest(row, self.family(family)?, qualifier.bytes(), now)
                    .map(|(_, value)| value);
                let old = old.map_or(Ok(0), |value| integer(&value)).map_err(|length| {
                    Error::Precondition(format!(
                        "increment in table \"{}\", row {}, column {}: the value is {length} bytes; an integer has 8",
                        self.info.name,
                        name::encode(row),
                        column_text(family, qualifier.bytes())
                    ))
                })?;
                let value = Bytes::copy_from_slice(&old.wrapping_add(*by).to_be_bytes());
                return self
                    .rewrite(row, family, qualifier, value, (given, now))
                    .map(Some);
            }
            Mutation::Append {
                family,
                qualifier,
                value,
            } => {
                let old = self.newest(row, self.family(family)?, qualifier.bytes(), now);
                let mut joined = old.map(|(_, value)| value.to_vec()).unwrap_or_default();
                joined.extend_from_slice(&value.0);
                return self
                    .rewrite(row, family, qualifier, joined.into(), (given, now))
                    .map(Some);
            }
        }
        Ok(None)
    }

    fn put(
        &mut self,
        (row, family, qualifier): (Bytes, u64, Bytes),
        timestamp: Timestamp,
        value: Bytes,
    ) {
        self.cells
            .insert((row, family, qualifier, Reverse(timestamp.0)), value);
    }

    /// Writes what a read-modify-write made, at the server's time or the newest version's, whichever is later.
    fn rewrite(
        &mut self,
        row: &Bytes,
        family: &FamilyName,
        qualifier: &Qualifier,
        value: Bytes,
        (given, now): (Timestamp, Timestamp),
    ) -> Result<Cell> {
        let info = self.family(family)?;
        self.check_length(info, value.len())?;
        let newest = self.newest(row, info, qualifier.bytes(), now);
        let timestamp = newest.map_or(given, |(newest, _)| given.max(newest));
        let key = (row.clone(), info.id, qualifier.bytes().clone());
        self.put(key, timestamp, value.clone());
        let (family, qualifier) = (family.clone(), qualifier.clone());
        Ok(Cell {
            family,
            qualifier,
            timestamp,
            value: Some(Base64(value)),
            length: None,
        })
    }

    /// Deletes a column's versions from `range.0` to `range.1`, and with them those that the GC rule collects at this
    /// moment, so that none of these comes back.
    fn delete_versions(
        &mut self,
        row: &Bytes,
        family: &FamilyName,
        qualifier: &Qualifier,
        range: (Timestamp, Timestamp),
        now: Timestamp,
    ) -> Result<()> {
        let family = self.family(family)?;
        let rule = &family.schema.gc_rule;
        let mut deleted = Vec::new();
        for (newer, (key, _)) in self.column(row, family.id, qualifier.bytes()).enumerate() {
            let timestamp = Timestamp(key.3.0);
            if (range.0..=range.1).contains(&timestamp)
                || rule.collects(newer as u64, timestamp, now)
            {
                deleted.push(key.clone());
            }
        }
        for key in deleted {
            self.cells.remove(&key);
        }
        Ok(())
    }

    fn remove(&mut self, deleted: impl Fn(&Key) -> bool, row: &Bytes) {
        for key in self.row(row).into_keys().filter(deleted) {
            self.cells.remove(&key);
        }
    }

    fn row(&self, row: &Bytes) -> BTreeMap<Key, Bytes> {
        let first = (row.clone(), 0, Bytes::new(), Reverse(i64::MAX));
        let cells = self
            .cells
            .range(first..)
            .take_while(|(key, _)| key.0 == *row);
        cells
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    fn column<'a>(
        &'a self,
        row: &Bytes,
        family: u64,
        qualifier: &Bytes,
    ) -> impl Iterator<Item = (&'a Key, &'a Bytes)> {
        let key = |timestamp| (row.clone(), family, qualifier.clone(), Reverse(timestamp));
        self.cells.range(key(i64::MAX)..=key(i64::MIN))
    }

    fn newest(
        &self,
        row: &Bytes,
        family: &FamilyInfo,
        qualifier: &Bytes,
        now: Timestamp,
    ) -> Option<(Timestamp, Bytes)> {
        let (key, value) = self.column(row, family.id, qualifier).next()?;
        let timestamp = Timestamp(key.3.0);
        (!family.schema.gc_rule.collects(0, timestamp, now)).then(|| (timestamp, value.clone()))
    }

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

    fn read(&self, request: &ReadRequest, now: Timestamp) -> Result<Vec<ReadLine>> {
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

    fn stats(&self) -> TableStats {
        let bytes = |key: &Key, value: &Bytes| (key.0.len() + key.2.len() + 8 + value.len()) as u64;
        let families = self.info.families.iter().map(|family| FamilyStats {
            family: family.schema.name.clone(),
            disk_bytes: 0,
            files: 0,
            entries: 0,
            memtable_bytes: self
                .cells
                .iter()
                .filter(|(key, _)| key.1 == family.id)
                .map(|(k, v)| bytes(k, v))
                .sum(),
            in_memory_bytes: 0,
        });
        let starts = std::iter::once(None).chain(self.info.splits.iter().cloned().map(Some));
        let stops = self
            .info
            .splits
            .iter()
            .cloned()
            .map(Some)
            .chain(std::iter::once(None));
        let tablets = starts.zip(stops).enumerate().map(|(id, (start, stop))| {
            let inside = |key: &Key| {
                start.as_ref().is_none_or(|start| *start.bytes() <= key.0)
                    && stop.as_ref().is_none_or(|stop| key.0 < *stop.bytes())
            };
            let memtable_bytes = self
                .cells
                .iter()
                .filter(|(key, _)| inside(key))
                .map(|(k, v)| bytes(k, v))
                .sum();
            TabletStats {
                id: id as u64,
                start: start.clone(),
                stop: stop.clone(),
                disk_bytes: 0,
                files: 0,
                memtable_bytes,
                flushed_sequence: 0,
            }
        });
        TableStats {
            table: self.info.name.clone(),
            disk_bytes: 0,
            families: families.collect(),
            tablets: tablets.collect(),
        }
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

fn check_version(name: &TableName, is: Option<u64>, expected: Option<u64>) -> Result<()> {
    match (expected, is) {
        (None, _) | (Some(0), None) => Ok(()),
        (Some(expected), Some(is)) if expected == is => Ok(()),
        (Some(0), Some(is)) => Err(Error::Conflict(format!(
            "table \"{name}\" exists already, at version {is}; ifVersion is 0"
        ))),
        (Some(expected), Some(is)) => Err(Error::Conflict(format!(
            "table \"{name}\" is at version {is}; ifVersion is {expected}"
        ))),
        (Some(expected), None) => Err(Error::Conflict(format!(
            "table \"{name}\" does not exist; ifVersion is {expected}"
        ))),
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

fn integer(value: &[u8]) -> std::result::Result<i64, usize> {
    value
        .try_into()
        .map(i64::from_be_bytes)
        .map_err(|_| value.len())
}

fn column_text(family: &FamilyName, qualifier: &[u8]) -> String {
    format!("{family}:{}", name::encode(qualifier))
}

fn not_found(name: &TableName) -> Error {
    Error::NotFound(format!("table \"{name}\" not found"))
}

//! An engine in a `BTreeMap`, for tests: answers reads as the API says, counts them, and can be told to fail.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tablemount_api::stats::{ServerStats, TableStats, TabletStats};
use tablemount_api::{
    ApiError, Base64, Cell, CellContent, CellPosition, ErrorCode, FamilyInfo, FamilyName,
    FamilySchema, Position, Qualifier, ReadRequest, RowKey, TableInfo, TableName, Timestamp,
    ValueRequest,
};
use tablemount_client::{Error, Page, RowChunk, Value};

use crate::source::Source;

type Answer<'a, T> = BoxFuture<'a, Result<T, Error>>;
type Key = (Bytes, usize, Bytes, Reverse<i64>);

/// When the fake's tables were made.
pub(crate) const CREATED: Timestamp = Timestamp(1_700_000_000_000_000);
const PAGE_BYTES: usize = 4 << 20;

/// What the next requests come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mood {
    Answers,
    Hangs,
    Refuses(ErrorCode),
}

pub(crate) struct TestSource {
    tables: Mutex<BTreeMap<TableName, Table>>,
    mood: Mutex<Mood>,
    pub(crate) requests: AtomicU64,
    pub(crate) values: AtomicU64,
    pub(crate) probes: AtomicU64,
    pub(crate) log: Mutex<Vec<ReadRequest>>,
}

struct Table {
    info: TableInfo,
    cells: BTreeMap<Key, Bytes>,
}

impl TestSource {
    /// One table with these families.
    pub(crate) fn new(table: &str, families: &[&str]) -> Arc<Self> {
        let name = TableName::new(table).expect("valid");
        let family = |(index, name): (usize, &&str)| FamilyInfo {
            id: index as u64 + 10,
            schema: FamilySchema::new(FamilyName::new(name).expect("valid")),
        };
        let info = TableInfo {
            name: name.clone(),
            uid: "uid".to_owned(),
            version: 1,
            created: CREATED,
            families: families.iter().enumerate().map(family).collect(),
            splits: Vec::new(),
            owner: None,
            deletion_protection: false,
        };
        Arc::new(Self {
            tables: Mutex::new(BTreeMap::from([(
                name,
                Table {
                    info,
                    cells: BTreeMap::new(),
                },
            )])),
            mood: Mutex::new(Mood::Answers),
            requests: AtomicU64::new(0),
            values: AtomicU64::new(0),
            probes: AtomicU64::new(0),
            log: Mutex::default(),
        })
    }

    pub(crate) fn put(
        &self,
        row: impl Into<Bytes>,
        family: &str,
        qualifier: impl Into<Bytes>,
        timestamp: i64,
        value: impl Into<Bytes>,
    ) {
        let mut tables = self.tables.lock();
        let table = tables.values_mut().next().expect("a table");
        let family = table
            .family(&FamilyName::new(family).expect("valid"))
            .expect("family");
        table.cells.insert(
            (row.into(), family, qualifier.into(), Reverse(timestamp)),
            value.into(),
        );
    }

    pub(crate) fn add_family(&self, name: &str) {
        let mut tables = self.tables.lock();
        let families = &mut tables.values_mut().next().expect("a table").info.families;
        let schema = FamilySchema::new(FamilyName::new(name).expect("valid"));
        families.push(FamilyInfo {
            id: families.len() as u64 + 10,
            schema,
        });
    }

    pub(crate) fn delete_row(&self, row: &str) {
        let mut tables = self.tables.lock();
        let table = tables.values_mut().next().expect("a table");
        table.cells.retain(|key, _| key.0 != row);
    }

    pub(crate) fn set_mood(&self, mood: Mood) {
        *self.mood.lock() = mood;
    }

    /// Requests since the last time, probes aside.
    pub(crate) fn take_requests(&self) -> u64 {
        self.log.lock().clear();
        self.requests.swap(0, Ordering::Relaxed)
    }

    fn answer<'a, T: Send + 'a>(
        &'a self,
        work: impl FnOnce(&BTreeMap<TableName, Table>) -> Result<T, Error> + Send + 'a,
    ) -> Answer<'a, T> {
        async move {
            self.requests.fetch_add(1, Ordering::Relaxed);
            let mood = *self.mood.lock();
            match mood {
                Mood::Answers => work(&self.tables.lock()),
                Mood::Hangs => std::future::pending().await,
                Mood::Refuses(code) => Err(refused(code)),
            }
        }
        .boxed()
    }
}

fn refused(code: ErrorCode) -> Error {
    Error::Refused(ApiError {
        code,
        message: "refused by the test".to_owned(),
    })
}

fn get<'a>(tables: &'a BTreeMap<TableName, Table>, name: &TableName) -> Result<&'a Table, Error> {
    tables.get(name).ok_or_else(|| refused(ErrorCode::NotFound))
}

impl Source for TestSource {
    fn tables(&self) -> Answer<'_, Vec<TableInfo>> {
        self.answer(|tables| Ok(tables.values().map(|table| table.info.clone()).collect()))
    }

    fn table<'a>(&'a self, table: &'a TableName) -> Answer<'a, TableInfo> {
        self.answer(|tables| Ok(get(tables, table)?.info.clone()))
    }

    fn read_page<'a>(&'a self, table: &'a TableName, request: &'a ReadRequest) -> Answer<'a, Page> {
        self.log.lock().push(request.clone());
        self.answer(|tables| Ok(get(tables, table)?.read(request)))
    }

    fn value<'a>(
        &'a self,
        table: &'a TableName,
        request: &'a ValueRequest,
        range: Range<u64>,
    ) -> Answer<'a, Value> {
        self.values.fetch_add(1, Ordering::Relaxed);
        self.answer(move |tables| get(tables, table)?.value(request, range))
    }

    fn table_stats<'a>(&'a self, table: &'a TableName) -> Answer<'a, TableStats> {
        self.answer(|tables| {
            let tablet = |id, start: Option<&str>, stop: Option<&str>| TabletStats {
                id,
                start: start.map(|key| RowKey::new(key.to_owned()).expect("valid")),
                stop: stop.map(|key| RowKey::new(key.to_owned()).expect("valid")),
                ..TabletStats::default()
            };
            let tablets = vec![tablet(1, None, Some("m/n")), tablet(2, Some("m/n"), None)];
            Ok(TableStats {
                table: get(tables, table)?.info.name.clone(),
                disk_bytes: 0,
                raw_bytes: 0,
                files: 0,
                memtable_bytes: 0,
                estimated_debt_bytes: 0,
                estimated_rows: 0,
                families: Vec::new(),
                tablets,
            })
        })
    }

    fn server_stats(&self) -> Answer<'_, ServerStats> {
        self.answer(|_| Err(refused(ErrorCode::Internal)))
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.probes.fetch_add(1, Ordering::Relaxed);
        let mood = *self.mood.lock();
        async move {
            if mood == Mood::Hangs {
                std::future::pending().await
            } else {
                Ok(())
            }
        }
        .boxed()
    }
}

impl Table {
    fn family(&self, name: &FamilyName) -> Option<usize> {
        self.info
            .families
            .iter()
            .position(|family| family.schema.name == *name)
    }

    fn name(&self, family: usize) -> FamilyName {
        self.info.families[family].schema.name.clone()
    }

    fn value(&self, request: &ValueRequest, range: Range<u64>) -> Result<Value, Error> {
        let family = self.family(&request.family);
        let found = self
            .cells
            .iter()
            .find(|((row, f, qualifier, Reverse(timestamp)), _)| {
                row == request.row.bytes()
                    && Some(*f) == family
                    && qualifier == request.qualifier.bytes()
                    && request.timestamp.is_none_or(|exact| exact.0 == *timestamp)
                    && request.at.is_none_or(|at| *timestamp <= at.0)
            });
        let ((.., Reverse(timestamp)), value) =
            found.ok_or_else(|| refused(ErrorCode::NotFound))?;
        let part = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(value.len());
        let bytes = value.slice(part(range.start)..part(range.end));
        Ok(Value {
            timestamp: Timestamp(*timestamp),
            length: value.len() as u64,
            bytes,
        })
    }

    /// The cells that the request asks for, row by row in its direction.
    fn rows(&self, request: &ReadRequest) -> Vec<(Bytes, Vec<(&Key, &Bytes)>)> {
        let mut rows: Vec<(Bytes, Vec<(&Key, &Bytes)>)> = Vec::new();
        let (mut versions, mut columns) = (0, 0);
        let mut last: Option<&Key> = None;
        for (key, value) in self
            .cells
            .iter()
            .filter(|(key, _)| self.passes(key, request))
        {
            let same_family = last.is_some_and(|last| (&last.0, last.1) == (&key.0, key.1));
            let same_column = same_family && last.is_some_and(|last| last.2 == key.2);
            versions = if same_column { versions + 1 } else { 1 };
            columns = match (same_column, same_family) {
                (true, _) => columns,
                (false, true) => columns + 1,
                (false, false) => 1,
            };
            last = Some(key);
            if request.versions.is_some_and(|most| versions > most)
                || request
                    .columns_per_family
                    .is_some_and(|most| columns > most)
            {
                continue;
            }
            match rows.last_mut() {
                Some((row, cells)) if *row == key.0 => cells.push((key, value)),
                _ => rows.push((key.0.clone(), vec![(key, value)])),
            }
        }
        if request.reverse {
            rows.reverse();
        }
        rows
    }

    fn passes(
        &self,
        (row, family, qualifier, Reverse(timestamp)): &Key,
        request: &ReadRequest,
    ) -> bool {
        request.row.as_ref().is_none_or(|only| only.bytes() == row)
            && request
                .start
                .as_ref()
                .is_none_or(|start| row >= start.bytes())
            && request.stop.as_ref().is_none_or(|stop| row < stop.bytes())
            && request
                .prefix
                .as_ref()
                .is_none_or(|prefix| row.starts_with(&prefix.0))
            && (request.families.is_empty() || request.families.contains(&self.name(*family)))
            && request
                .qualifier
                .as_ref()
                .is_none_or(|only| only.bytes() == qualifier)
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
            && request.at.is_none_or(|at| *timestamp <= at.0)
    }

    fn is_after(&self, key: &Key, request: &ReadRequest) -> bool {
        let Some(after) = &request.after else {
            return true;
        };
        match key.0.cmp(after.row.bytes()) {
            std::cmp::Ordering::Equal => after.cell.as_ref().is_some_and(|cell| {
                let (family, qualifier) = (
                    self.family(&cell.family).expect("family"),
                    cell.qualifier.bytes(),
                );
                match cell.timestamp {
                    Some(timestamp) => {
                        (key.1, &key.2, key.3) > (family, qualifier, Reverse(timestamp.0))
                    }
                    None => (key.1, &key.2) > (family, qualifier),
                }
            }),
            order => (order == std::cmp::Ordering::Greater) != request.reverse,
        }
    }

    fn read(&self, request: &ReadRequest) -> Page {
        let mut page = Page::default();
        let (mut cells, mut bytes) = (0, 0);
        let row_limit =
            request
                .row_limit
                .unwrap_or(u64::MAX)
                .min(if request.cells == CellContent::None {
                    100_000
                } else {
                    10_000
                });
        for (row, found) in self.rows(request) {
            let left: Vec<_> = found
                .into_iter()
                .filter(|(key, _)| self.is_after(key, request))
                .collect();
            if left.is_empty() {
                continue;
            }
            let mut chunk = RowChunk {
                row: RowKey::new(row.clone()).expect("valid"),
                cells: Vec::new(),
            };
            for (key, value) in left {
                if request.cells == CellContent::None {
                    break;
                }
                chunk.cells.push(self.cell(key, value, request.cells));
                cells += 1;
                bytes += 100
                    + chunk
                        .cells
                        .last()
                        .and_then(|cell| cell.value.as_ref())
                        .map_or(0, |value| value.0.len());
                if request.cell_limit.is_some_and(|most| cells >= most) || bytes >= PAGE_BYTES {
                    page.next = Some(self.position(key));
                    page.rows.push(chunk);
                    return page;
                }
            }
            page.next = Some(Position {
                row: chunk.row.clone(),
                cell: None,
            });
            page.rows.push(chunk);
            if page.rows.len() as u64 >= row_limit {
                return page;
            }
        }
        page.next = None;
        page
    }

    fn cell(
        &self,
        (_, family, qualifier, Reverse(timestamp)): &Key,
        value: &Bytes,
        content: CellContent,
    ) -> Cell {
        Cell {
            family: self.name(*family),
            qualifier: Qualifier::new(qualifier.clone()).expect("valid"),
            timestamp: Timestamp(*timestamp),
            value: (content == CellContent::Values).then(|| Base64(value.clone())),
            length: (content == CellContent::Lengths).then_some(value.len() as u64),
        }
    }

    fn position(&self, (row, family, qualifier, Reverse(timestamp)): &Key) -> Position {
        let cell = CellPosition {
            family: self.name(*family),
            qualifier: Qualifier::new(qualifier.clone()).expect("valid"),
            timestamp: Some(Timestamp(*timestamp)),
        };
        Position {
            row: RowKey::new(row.clone()).expect("valid"),
            cell: Some(cell),
        }
    }
}

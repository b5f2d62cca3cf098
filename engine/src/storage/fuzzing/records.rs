//! The small objects, and stores that are opened with them.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tablemount_api::{FamilyInfo, ReadRequest, RowKey, TableName, Timestamp};
use uuid::Uuid;

use super::memory::Memory;
use crate::Result;
use crate::clock::Clock;
use crate::read::page::{Batch, Page};
use crate::storage::catalog::{
    CATALOG, Catalog, CatalogTable, CatalogTablet, Manifest, SERVERS, STORE, SchemaRecord,
    ServerRecord, StoreRecord, manifest_folder, schema_folder,
};
use crate::storage::disk::Disk;
use crate::storage::hold::HoldRecord;
use crate::storage::ids::Ids;
use crate::storage::log::frame::SegmentHeader;
use crate::storage::log::segment_path;
use crate::storage::objects::{self, encode, numbered};
use crate::storage::sst::FileMeta;
use crate::storage::store::{Options, Store};
use crate::storage::{open, verify};

const LOG: Uuid = Uuid::from_u128(7);
/// A read that takes longer than this is cut.
const READ: Duration = Duration::from_secs(1);
/// Rows of a table that are read on their own.
const ROWS: usize = 16;

/// An object's bytes; an object's JSON; and a store, a line an object: path, blank, JSON.
pub fn manifest(bytes: &[u8]) {
    let json = match serde_json::from_slice::<serde_json::Value>(bytes) {
        Ok(json) => encode(&json).ok(),
        Err(_) => None,
    };
    for object in [Some(Bytes::copy_from_slice(bytes)), json]
        .into_iter()
        .flatten()
    {
        record::<StoreRecord>(&object);
        record::<ServerRecord>(&object);
        record::<HoldRecord>(&object);
        record::<Catalog>(&object);
        record::<SchemaRecord>(&object);
        record::<Manifest>(&object);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let mut memory = Memory::default();
        put_log(&mut memory);
        for line in text.lines() {
            if let Some((path, json)) = line.split_once(' ')
                && let Ok(content) = serde_json::from_str::<serde_json::Value>(json)
                && let Ok(object) = encode(&content)
            {
                memory.put(path, object);
            }
        }
        read_all(Arc::new(memory), Timestamp(1));
    }
}

/// What is read as a record is written as what is read as the same.
fn record<T: DeserializeOwned + Serialize + PartialEq + Debug>(object: &[u8]) {
    if let Ok(record) = objects::open::<T>(object) {
        let written = encode(&record).expect("a record is JSON");
        assert_eq!(objects::open::<T>(&written), Ok(record));
    }
}

/// The names of a store's only table.
pub(super) struct Names {
    pub(super) table: TableName,
    pub(super) uid: Uuid,
}

/// Puts all that a store needs around one tablet, which has files of its family 1.
pub(super) fn put_store(
    memory: &mut Memory,
    names: &Names,
    families: Vec<FamilyInfo>,
    files: Vec<FileMeta>,
) {
    put_log(memory);
    let tablet = CatalogTablet { id: 1, start: None };
    let table = CatalogTable {
        uid: names.uid,
        tablets: vec![tablet],
    };
    let catalog = Catalog {
        epoch: 1,
        next_tablet: 2,
        tables: [(names.table.to_string(), table)].into(),
    };
    let schema = SchemaRecord {
        epoch: 1,
        name: names.table.clone(),
        created: Timestamp(0),
        next_family: 2,
        families,
        owner: None,
        deletion_protection: false,
    };
    let manifest = Manifest {
        epoch: 1,
        log: LOG,
        flushed_sequence: 0,
        server_timestamp: Timestamp::MIN,
        files: [(1, files)].into(),
    };
    put(memory, CATALOG, &catalog);
    put(memory, &schema_folder(names.uid), &schema);
    put(memory, &manifest_folder(1), &manifest);
}

/// A log without a group, and the records that name it.
fn put_log(memory: &mut Memory) {
    let header = SegmentHeader {
        log: LOG,
        first_group: 1,
    };
    let mut segment = header.encode().to_vec();
    segment.resize(4096, 0);
    memory.put(&segment_path(LOG, 1), segment);
    let server = ServerRecord {
        log: LOG,
        segment: 1,
    };
    put(memory, SERVERS, &server);
    let store = StoreRecord {
        store_id: Uuid::from_u128(2),
    };
    memory.put(STORE, encode(&store).expect("JSON"));
}

fn put<T: Serialize>(memory: &mut Memory, folder: &str, content: &T) {
    memory.put(&numbered(folder, 1), encode(content).expect("JSON"));
}

struct At(Timestamp);

impl Clock for At {
    fn now(&self) -> Timestamp {
        self.0
    }
}

/// Opens the store read-only, reads all of it up and down, verifies it, and merges its files.
pub(super) fn read_all(disk: Arc<dyn Disk>, now: Timestamp) {
    let _ = verify::verify(disk.clone(), &mut |_| {});
    let options = Options {
        memtable_budget_bytes: 1 << 20,
        log_budget_bytes: 1 << 20,
        segment_bytes: 4096,
        cache_bytes: 1 << 20,
        in_memory_budget_bytes: 1 << 20,
        compaction_threads: 1,
        compaction_bytes_per_second: 0,
        ids: Ids::default(),
    };
    let Ok(store) = open::open(disk, Arc::new(At(now)), options, true) else {
        return;
    };
    let names: Vec<_> = store.tables.load().keys().cloned().collect();
    for name in names {
        if let Ok(name) = TableName::new(&name) {
            read_table(&store, &name);
        }
    }
    let _ = (store.all_table_stats(), store.stats());
    for (table, tablet) in store.tablets() {
        for family in &table.schema().record.families {
            let _ = store.next_merge(Some(tablet.id));
            let _ = store.compact_family(&table, &tablet, family.id);
        }
    }
}

/// Reads a page up, one down, and of some rows that it met each on its own.
fn read_table(store: &Store, name: &TableName) {
    let all = |reverse| ReadRequest {
        reverse,
        ..ReadRequest::default()
    };
    let rows = read(store, name, &all(false));
    read(store, name, &all(true));
    for row in rows.into_iter().take(ROWS) {
        let request = ReadRequest {
            row: Some(row),
            ..ReadRequest::default()
        };
        read(store, name, &request);
    }
}

/// Reads a page; the rows in it.
fn read(store: &Store, name: &TableName, request: &ReadRequest) -> Vec<RowKey> {
    let rows = Arc::new(Mutex::new(Vec::new()));
    let met = rows.clone();
    let take = Box::new(move |batch: Result<Batch>| {
        let lines = batch.map(|batch| batch.lines).unwrap_or_default();
        met.lock()
            .extend(lines.into_iter().filter_map(|line| line.row));
        Ok(())
    });
    let page = store
        .table(name)
        .and_then(|table| Page::new(store, table, request, READ, take));
    if let Ok(page) = page {
        page.run(store);
    }
    std::mem::take(&mut *rows.lock())
}

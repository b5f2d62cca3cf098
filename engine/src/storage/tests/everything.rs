//! A store with all in it that a store can hold, the same each time but for the ids that it gives itself.
//!
//! Table `all`: every compression by block and by record, every filter, values that stand apart, several versions, every kind
//! of delete; in files of two flushes and a merge, and in the log. Table `split`: three tablets.

use std::path::Path;

use tablemount_api::{BloomFilter, Compression, CompressionScope, DeleteRows};

use super::*;
use crate::delete_rows;
use crate::storage::disk::LocalDisk;

/// When it is written, in microseconds.
pub(super) const TIME: i64 = 1_700_000_000 * SECOND;

/// Opens a folder's store, without threads.
pub(super) fn open_folder(folder: &Path) -> Store {
    let disk = Arc::new(LocalDisk::open(folder, false).expect("open the folder"));
    open::open(disk, TestClock::at(TIME), options(), false).expect("open the store")
}

/// Makes the store with so many rows; what was written last is in its log only.
pub(super) fn make(folder: &Path, rows: usize) -> Store {
    let store = open_folder(folder);
    put_tables(&store);
    write_rows(&store, rows, 0);
    flush(&store);
    write_rows(&store, rows, 1);
    delete_widely(&store);
    flush(&store);
    let (table, tablet) = store.tablets().remove(0);
    let merged = table.schema().record.families[1].id;
    store
        .compact_family(&table, &tablet, merged)
        .expect("compact");
    store.remove_dropped().expect("clean up");
    write_rows(&store, 5, 2);
    delete_widely(&store);
    store
}

pub(super) fn flush(store: &Store) {
    for (table, tablet) in store.tablets() {
        store.flush(&table, &tablet).expect("flush");
    }
}

fn families() -> Vec<FamilySchema> {
    let filters = [BloomFilter::Row, BloomFilter::RowColumn, BloomFilter::None];
    let scopes = [CompressionScope::Block, CompressionScope::Record];
    let compressions = [
        ("none", Compression::None),
        ("lz4", Compression::Lz4),
        ("snappy", Compression::Snappy),
        ("zstd", Compression::Zstd),
    ];
    let mut families = Vec::new();
    for scope in scopes {
        for (name, compression) in compressions {
            families.push(FamilySchema {
                compression,
                compression_scope: scope,
                bloom_filter: filters[families.len() % filters.len()],
                in_memory: families.len() == 3,
                ..versions(&format!("{name}-{scope:?}"), 3)
            });
        }
    }
    families
}

fn put_tables(store: &Store) {
    let all = PutTable {
        families: families(),
        ..PutTable::default()
    };
    let split = PutTable {
        families: vec![FamilySchema::new(family("f"))],
        splits: vec![row("row-0003"), row("row-0008")],
        ..PutTable::default()
    };
    for (name, body) in [("all", all), ("split", split)] {
        let name = TableName::new(name).expect("valid");
        store.put_table(&name, &body).expect("put table");
    }
}

fn key(i: usize) -> String {
    format!("row-{i:04}")
}

fn text(i: usize, round: usize) -> String {
    format!("value {i} of round {round} ").repeat(5)
}

/// Each row on its own; in the last round durable before the next.
fn write_rows(store: &Store, rows: usize, round: usize) {
    let time = |i: usize| (round * 10 + i) as i64;
    for i in 0..rows {
        let mut all = Vec::new();
        for schema in families() {
            let name = schema.name.as_str();
            all.push(put(name, "", time(0), &text(i, round)));
            all.push(put(name, "a\0b", time(i % 7), &text(i, round)));
            all.push(put(name, "short", time(1), "s"));
            if i % 5 == 1 {
                all.push(delete_cell(name, "a\0b", time(2)));
            }
            if i == 2 {
                // Apart from its block: in one chunk, and in three.
                all.push(put(name, "apart", time(0), &text(i, round).repeat(15)));
                if schema.compression == Compression::Zstd {
                    all.push(put(name, "large", time(0), &"large ".repeat(100_000)));
                }
            }
        }
        write(store, "all", &key(i), all);
        write(
            store,
            "split",
            &key(i),
            vec![put("f", "q", time(0), &text(i, round))],
        );
        if round == 2 {
            commit(store);
        }
    }
}

fn write(store: &Store, name: &str, key: &str, mutations: Vec<Mutation>) {
    let request = MutateRequest {
        rows: vec![RowMutation {
            row: row(key),
            check: None,
            mutations,
        }],
    };
    let name = TableName::new(name).expect("valid");
    let applied = Plan::check(store, &name, request).expect("sound");
    let applied = applied.apply(store).expect("logged");
    assert!(applied.failure.is_none(), "{:?}", applied.failure);
}

fn commit(store: &Store) {
    while store.log().expect("log").commit().expect("durable") {}
}

/// A column, a part of one, a family, a row, a range of rows, a prefix.
fn delete_widely(store: &Store) {
    for schema in families() {
        let name = schema.name.as_str();
        let column = |min, max| Mutation::DeleteColumn {
            family: family(name),
            qualifier: qualifier("a\0b"),
            min_timestamp: min,
            max_timestamp: max,
        };
        write(store, "all", &key(3), vec![column(None, None)]);
        let part = column(Some(Timestamp(3)), Some(Timestamp(5)));
        write(store, "all", &key(4), vec![part]);
        let whole = Mutation::DeleteFamily {
            family: family(name),
        };
        write(store, "all", &key(5), vec![whole]);
    }
    write(store, "all", &key(6), vec![Mutation::DeleteRow {}]);
    let range = DeleteRows {
        start: Some(row(&key(7))),
        stop: Some(row(&key(9))),
        ..DeleteRows::default()
    };
    let prefix = DeleteRows {
        prefix: Some(value("row-001")),
        ..DeleteRows::default()
    };
    for (table, rows) in [("all", &range), ("split", &range), ("all", &prefix)] {
        let table = TableName::new(table).expect("valid");
        let table = store.table(&table).expect("table");
        delete_rows::log(store, &table, rows).expect("logged");
        commit(store);
    }
}

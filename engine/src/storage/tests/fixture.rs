//! The checked-in store of on-disk format 1, `tests/fixtures/format-1`, with all in it that the format knows, and beside it
//! `cells.txt`: what a reader must see of it. `docs/format.md` is for those who write such a reader.
//!
//! The listing is the model's (`memory_engine`), not the store's. Time and ids are given, so what is written is the same each
//! time; `writes_the_fixture` (ignored) writes both anew.
//!
//! **Invariants**: a store that was checked in is never written again, unless nothing was released that could read it: a later
//! format gets a fixture of its own beside this.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tablemount_api::{
    BloomFilter, Compression, CompressionScope, DeleteRows, FamilyInfo, Hold, name::encode_whole,
};
use tempfile::TempDir;

use super::*;
use crate::delete_rows;
use crate::memory_engine::MemoryEngine;
use crate::storage::disk::LocalDisk;
use crate::verify::verify;

/// When it was written, in microseconds.
const TIME: i64 = 1_700_000_000 * SECOND;
/// Longer values are told by their checksum.
const SHOWN: usize = 32;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/format-1")
}

fn name(table: &str) -> TableName {
    TableName::new(table).expect("valid")
}

fn open_folder(folder: &Path, ids: &Ids, read_only: bool) -> Store {
    let disk = Arc::new(LocalDisk::open(folder, read_only).expect("open the folder"));
    let options = Options {
        segment_bytes: 8 << 10,
        ids: ids.clone(),
        ..options()
    };
    open::open(disk, TestClock::at(TIME), options, read_only).expect("open the store")
}

/// The store under way, and what must be seen of it.
struct Written {
    store: Store,
    model: MemoryEngine,
}

impl Written {
    fn put_table(&mut self, table: &str, body: &PutTable) {
        self.store.put_table(&name(table), body).expect("put table");
        self.model
            .put_table(&name(table), body.clone(), Timestamp(TIME))
            .expect("put table");
    }

    /// Durable when it returns, in a group of its own.
    fn write(&mut self, table: &str, key: &str, mutations: Vec<Mutation>) {
        let request = MutateRequest {
            rows: vec![RowMutation {
                row: row(key),
                check: None,
                mutations,
            }],
        };
        self.model
            .mutate(&name(table), request.clone(), Timestamp(TIME))
            .expect("sound");
        log(&self.store, table, request);
    }

    fn delete_rows(&mut self, table: &str, rows: &DeleteRows, within: impl Fn(&Bytes) -> bool) {
        self.model.delete_rows(&name(table), within);
        let table = self.store.table(&name(table)).expect("table");
        delete_rows::log(&self.store, &table, rows).expect("logged");
        commit(&self.store);
    }

    fn flush(&self) {
        for (table, tablet) in self.store.tablets() {
            self.store.flush(&table, &tablet).expect("flush");
        }
    }
}

fn log(store: &Store, table: &str, request: MutateRequest) {
    let applied = Plan::check(store, &name(table), request).expect("sound");
    let applied = applied.apply(store).expect("logged");
    assert!(applied.failure.is_none(), "{:?}", applied.failure);
    commit(store);
}

fn commit(store: &Store) {
    while store.log().expect("log").commit().expect("durable") {}
}

/// Every compression by block and by record, every filter, several sizes of blocks and rules.
fn families() -> Vec<FamilySchema> {
    let filters = [BloomFilter::Row, BloomFilter::RowColumn, BloomFilter::None];
    let compressions = [
        ("none", Compression::None),
        ("lz4", Compression::Lz4),
        ("snappy", Compression::Snappy),
        ("zstd", Compression::Zstd),
    ];
    let mut families = Vec::new();
    for scope in [CompressionScope::Block, CompressionScope::Record] {
        for (name, compression) in compressions {
            let number = families.len();
            families.push(FamilySchema {
                compression,
                compression_scope: scope,
                bloom_filter: filters[number % filters.len()],
                block_bytes: 1024 << (number % 3),
                block_cache: number != 1,
                in_memory: number == 2,
                ..versions(&format!("{name}-{scope:?}").to_lowercase(), 3)
            });
        }
    }
    families
}

/// Tables: `all`; `split`, in three tablets; `deep`, whose long rows make several index partitions of few bytes.
fn put_tables(written: &mut Written) {
    let deep = FamilySchema {
        compression: Compression::Zstd,
        bloom_filter: BloomFilter::RowColumn,
        ..versions("f", 1)
    };
    let split = vec![FamilySchema::new(family("f"))];
    for (table, families, splits) in [
        ("all", families(), vec![]),
        ("split", split, vec![row("row-03"), row("row-08\0")]),
        ("deep", vec![deep], vec![]),
    ] {
        let body = PutTable {
            families,
            splits,
            ..PutTable::default()
        };
        written.put_table(table, &body);
    }
}

fn key(i: usize) -> String {
    format!("row-{i:02}")
}

fn text(i: usize, round: usize) -> String {
    format!("value {i} of round {round}, ").repeat(4)
}

/// Rows `from..to`, with versions that are the round's own and some that were there.
fn write_rows(written: &mut Written, rows: std::ops::Range<usize>, round: usize) {
    let time = |i: usize| (round * 10 + i) as i64;
    for i in rows {
        let mut all = Vec::new();
        for schema in families() {
            let name = schema.name.as_str();
            all.push(put(name, "", time(0), &text(i, round)));
            all.push(put(name, "a\0b", time(i % 7), &text(i, round)));
            all.push(put(name, "short", 1, &round.to_string()));
            if i == 2 {
                // Longer than a block: in a chunk of its own.
                all.push(put(name, "apart", time(0), &text(i, round).repeat(60)));
            }
        }
        if i == 2 && round == 0 {
            all.push(put(
                "zstd-block",
                "large",
                5,
                &"three chunks ".repeat(50_000),
            ));
            all.push(put(
                "snappy-record",
                "large",
                -5,
                &"two chunks ".repeat(30_000),
            ));
            all.push(put_now("none-block", "now", "the server's time"));
        }
        written.write("all", &key(i), all);
        let text = text(i, round);
        let split = vec![put("f", "q", time(0), &text)];
        written.write("split", &format!("{}\0", key(i)), split);
    }
}

fn write_deep(written: &mut Written) {
    for i in 0..40 {
        let key = format!("{}{i:02}", "a long way to the row ".repeat(10));
        let value = "deep ".repeat(200 + i);
        let cells = ["", "q"].map(|qualifier| put("f", qualifier, 7, &value));
        written.write("deep", &key, cells.into());
    }
}

/// A version, a column, a time range of one, a family, a row; ranges of rows, from a row, to a row, by prefix.
fn delete(written: &mut Written, first: usize) {
    for schema in families() {
        let name = schema.name.as_str();
        let column = |min, max| Mutation::DeleteColumn {
            family: family(name),
            qualifier: qualifier("a\0b"),
            min_timestamp: min,
            max_timestamp: max,
        };
        let whole = Mutation::DeleteFamily {
            family: family(name),
        };
        let version = (first % 7) as i64 + 10;
        written.write("all", &key(first), vec![delete_cell(name, "a\0b", version)]);
        written.write("all", &key(first + 1), vec![column(None, None)]);
        let part = column(Some(Timestamp(3)), Some(Timestamp(12)));
        written.write("all", &key(first + 2), vec![part]);
        if schema.compression_scope == CompressionScope::Block {
            written.write("all", &key(first + 3), vec![whole]);
        }
    }
    written.write("all", &key(first + 4), vec![Mutation::DeleteRow {}]);
    let (from, to) = (key(first + 5), key(first + 6));
    let range = DeleteRows {
        start: Some(row(&from)),
        stop: Some(row(&to)),
        ..DeleteRows::default()
    };
    let inside = |key: &Bytes| (from.as_bytes()..to.as_bytes()).contains(&&key[..]);
    written.delete_rows("all", &range, inside);
    // Over a tablet's end.
    let range = DeleteRows {
        start: Some(row("row-07")),
        stop: Some(row("row-09")),
        ..DeleteRows::default()
    };
    let inside = |key: &Bytes| (&b"row-07"[..]..&b"row-09"[..]).contains(&&key[..]);
    written.delete_rows("split", &range, inside);
    let prefix = DeleteRows {
        prefix: Some(value("row-2")),
        ..DeleteRows::default()
    };
    written.delete_rows("all", &prefix, |key| key.starts_with(b"row-2"));
}

/// Writes the store and the listing.
fn write(folder: &Path) {
    let ids = Ids::Counted(Arc::default());
    let data = folder.join("store");
    let mut written = Written {
        store: open_folder(&data, &ids, false),
        model: MemoryEngine::default(),
    };
    put_tables(&mut written);
    write_deep(&mut written);
    write_rows(&mut written, 0..22, 0);
    written.flush();
    // The second start of the server.
    drop(written.store);
    written.store = open_folder(&data, &ids, false);
    write_rows(&mut written, 0..22, 1);
    delete(&mut written, 3);
    written.flush();
    merge(&written.store);
    hold_and_release(&written.store);
    // What follows is in the log only.
    write_rows(&mut written, 0..3, 2);
    write_rows(&mut written, 17..21, 2);
    delete(&mut written, 11);
    let listing = listing(&written.model, &written.store);
    fs::write(folder.join("cells.txt"), listing).expect("write the listing");
    torn(&written.store, &data);
}

/// One family's files become one.
fn merge(store: &Store) {
    let (table, tablet) = store.tablets().remove(0);
    let FamilyInfo { id, .. } = table.schema().record.families[1];
    store.compact_family(&table, &tablet, id).expect("compact");
    store.remove_dropped().expect("clean up");
}

fn hold_and_release(store: &Store) {
    for held in [true, false] {
        let hold = Hold {
            held,
            reason: held.then(|| "to see it in the fixture".to_owned()),
            ..Hold::default()
        };
        store.set_hold(&hold).expect("hold");
    }
}

/// A last group, of which not all came to the disk.
fn torn(store: &Store, data: &Path) {
    let request = MutateRequest {
        rows: vec![RowMutation {
            row: row("torn"),
            check: None,
            mutations: vec![put("none-block", "q", 1, "never acknowledged")],
        }],
    };
    log(store, "all", request);
    let folder = data.join(crate::storage::log::folder(store.log_id));
    let segments = files(&folder);
    let (last, mut bytes) = segments.into_iter().next_back().expect("a segment");
    let end = bytes.iter().rposition(|byte| *byte != 0).expect("a group");
    bytes[end - 5..].fill(0);
    fs::write(folder.join(last), bytes).expect("write the segment");
}

/// All files below a folder, by their paths in it.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = PathBuf::from(path.file_name().expect("a name"));
        if path.is_dir() {
            let inside = files(&path).into_iter();
            all.extend(inside.map(|(path, bytes)| (name.join(path), bytes)));
        } else {
            all.insert(name, fs::read(&path).expect("a file"));
        }
    }
    all
}

/// A line a cell: table, row, family, qualifier, timestamp, length, value or its checksum.
fn lines(out: &mut String, table: &str, lines: &[ReadLine]) {
    for line in lines {
        for cell in &line.cells {
            let row = line.row.as_ref().expect("a row");
            let row = encode_whole(row.bytes());
            let (family, qualifier) = (&cell.family, encode_whole(cell.qualifier.bytes()));
            let value = &cell.value.as_ref().expect("a value").0;
            let (time, length) = (cell.timestamp.0, value.len());
            let shown = match length {
                ..=SHOWN => encode_whole(value),
                _ => format!("crc32c {:08x}", crc32c::crc32c(value)),
            };
            writeln!(
                out,
                "{table} {row} {family} {qualifier} {time} {length} {shown}"
            )
            .expect("text");
        }
    }
}

const TABLES: [&str; 3] = ["all", "deep", "split"];

/// What the model shows.
fn listing(model: &MemoryEngine, store: &Store) -> String {
    let mut out = String::new();
    for table in TABLES {
        let everything = ReadRequest::default();
        let seen = model.read(&name(table), &everything, store.clock.now());
        lines(&mut out, table, &seen.expect("read"));
    }
    out
}

/// What the store shows.
fn seen(store: &Store) -> String {
    let mut out = String::new();
    for table in TABLES {
        let seen = read_table(store, &name(table), &ReadRequest::default()).expect("read");
        let end = seen.last().and_then(|line| line.end.clone());
        assert_eq!(end.expect("the end").next, None, "a page has all");
        lines(&mut out, table, &seen);
    }
    out
}

/// Lines that differ, of two listings.
#[track_caller]
fn check(seen: &str, expected: &str) {
    let (seen, expected): (Vec<_>, Vec<_>) = (seen.lines().collect(), expected.lines().collect());
    let missing = expected.iter().filter(|line| !seen.contains(line));
    let besides = seen.iter().filter(|line| !expected.contains(line));
    let (missing, besides): (Vec<_>, Vec<_>) = (missing.collect(), besides.collect());
    assert!(
        missing.is_empty() && besides.is_empty(),
        "missing {missing:#?}, besides {besides:#?}"
    );
    assert_eq!(seen, expected, "in this order");
}

#[track_caller]
fn check_sound(data: &Path) -> crate::verify::Summary {
    let mut findings = Vec::new();
    let summary = verify(data, &mut |finding| findings.push(finding)).expect("a store");
    assert_eq!(findings, []);
    summary
}

#[test]
fn a_store_of_format_1_is_sound_and_shows_what_it_must() {
    let copy = TempDir::new().expect("folder");
    for (path, bytes) in files(&fixture().join("store")) {
        let path = copy.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("create");
        fs::write(path, bytes).expect("write");
    }
    let summary = check_sound(copy.path());
    assert_eq!((summary.tables, summary.tablets), (3, 5));
    assert!(
        summary.files >= 17 && summary.log_groups > 60,
        "{summary:?}"
    );
    let expected = fs::read_to_string(fixture().join("cells.txt")).expect("the listing");
    assert!(expected.lines().count() > 500);
    let ids = Ids::default();
    let read_only = open_folder(copy.path(), &ids, true);
    check(&seen(&read_only), &expected);
    drop(read_only);
    // What the log has is flushed by this.
    let store = open_folder(copy.path(), &ids, false);
    check(&seen(&store), &expected);
    assert_eq!(check_sound(copy.path()).log_groups, 0);
    // And all of it is written anew.
    for (table, tablet) in store.tablets() {
        store.compact_fully(&table, &tablet).expect("compact");
    }
    store.remove_dropped().expect("clean up");
    check(&seen(&store), &expected);
    check_sound(copy.path());
}

#[test]
fn the_fixture_is_written_the_same_each_time_and_shows_what_the_model_does() {
    let folders = [(); 2].map(|()| TempDir::new().expect("folder"));
    let [first, second] = folders.each_ref().map(|folder| {
        write(folder.path());
        files(folder.path())
    });
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&first), names(&second));
    for (path, bytes) in &first {
        assert!(*bytes == second[path], "{}", path.display());
    }
    let expected = String::from_utf8(first[Path::new("cells.txt")].clone()).expect("text");
    let store = open_folder(&folders[0].path().join("store"), &Ids::default(), true);
    check(&seen(&store), &expected);
}

#[test]
#[ignore = "writes into the source: for a new format"]
fn writes_the_fixture() {
    let _ = fs::remove_dir_all(fixture().join("store"));
    write(&fixture());
}

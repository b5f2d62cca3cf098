//! The checked-in store of on-disk format 1, `tests/fixtures/format-1`, with all in it that the format knows, and beside it
//! `cells.txt`: what a reader must see of it. `docs/format.md` is for those who write such a reader.
//!
//! The listing is the model's (`memory_engine`), not the store's. Time and ids are given, so what is written is the same each
//! time; `writes_the_fixture` (ignored) writes both anew.
//!
//! **Invariants**: the fixture of a released format is never written again; a later format gets its own beside it.

mod writing;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tablemount_api::name::encode_whole;
use tempfile::TempDir;

use super::*;
use crate::memory_engine::MemoryEngine;
use crate::storage::disk::LocalDisk;
use crate::verify::verify;
use writing::write;

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
        summary.files >= 17 && summary.log_groups > 40,
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

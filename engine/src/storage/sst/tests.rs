//! Files that no writer writes: what is read of them ends, and is not written anew.

use std::sync::Arc;

use tablemount_api::{Compression, FamilyName, FamilySchema, Timestamp};

use super::block::{BlockBuilder, DATA_RESTARTS, INDEX_RESTARTS};
use super::reader::{Fault, Reader};
use super::walk::{Event, walk};
use super::*;
use crate::Result;
use crate::storage::cache::Shared;
use crate::storage::disk::Disk;
use crate::storage::entry::Kind;
use crate::storage::fuzzing::memory::Memory;
use crate::storage::keys;
use crate::storage::objects::Objects;
use crate::storage::wide::{self, WideDelete};

/// A stored block with these entries at the end of `file`.
fn store(file: &mut Vec<u8>, interval: usize, entries: &[(&[u8], Vec<u8>)]) -> Handle {
    let mut builder = BlockBuilder::new(interval);
    for (key, value) in entries {
        builder.push(key, Kind::Plain, value);
    }
    let mut raw = Vec::new();
    builder.finish(&mut raw);
    let offset = file.len() as u64;
    let length = stored::seal(file, Compression::None, &raw);
    Handle { offset, length }
}

#[test]
fn a_block_named_twice_is_walked_once() {
    let mut file = Vec::new();
    let entries: &[(&[u8], _)] = &[(b"a", b"1".to_vec()), (b"b", b"2".to_vec())];
    let block = store(&mut file, DATA_RESTARTS, entries).encode().to_vec();
    let names: &[(&[u8], _)] = &[(b"c", block.clone()), (b"d", block)];
    let partition = store(&mut file, INDEX_RESTARTS, names).encode();
    let value = [partition, Handle::default().encode()].concat();
    let names: &[(&[u8], _)] = &[(b"d", value.clone()), (b"e", value)];
    let top = store(&mut file, INDEX_RESTARTS, names);

    let mut memory = Memory::default();
    let bytes = file.len() as u64;
    memory.put("file", file);
    let shared = Shared::new(Arc::new(memory), 0);
    let reader = Reader::new(&shared, "file", bytes);
    let (mut entries, mut damage) = (0, Vec::new());
    let walked: std::result::Result<(), ()> = walk(&reader, top, &mut |event| {
        match event {
            Event::Entry { .. } => entries += 1,
            Event::Damage(fault) => damage.push(fault),
            Event::Block { .. } | Event::Partition { .. } => {}
        }
        Ok(())
    });
    walked.expect("to the end");
    assert_eq!(entries, 2);
    let behind = "names a block that does not follow the one before";
    let places = [partition_place(&partition), top.offset];
    assert_eq!(damage, places.map(|at| Fault::at(at, behind)));
}

fn partition_place(encoded: &[u8]) -> u64 {
    Handle::decode(encoded).expect("a place").offset
}

fn writer() -> SstWriter {
    let objects = Objects::new(Memory::default().objects());
    let schema = FamilySchema::new(FamilyName::new("f").expect("valid"));
    SstWriter::create(objects, "file".to_owned(), &schema).expect("create")
}

#[track_caller]
fn refused(pushed: Result<()>, expected: &str) {
    assert_eq!(pushed.expect_err("refused").to_string(), expected);
}

#[test]
fn keys_that_do_not_rise_are_not_written() {
    let row = keys::row(b"row");
    let key = |time| keys::key(&keys::column(&row, b"q"), Timestamp(time), 7);
    let mut cells = writer();
    cells.push_value(&key(2), b"v").expect("the first");
    cells.push_value(&key(1), b"v").expect("rises");
    for again in [1, 2] {
        refused(
            cells.push_value(&key(again), b"v"),
            "write sst file: keys do not rise: one that is read is damaged",
        );
    }
    let delete = WideDelete {
        min: Timestamp::MIN,
        max: Timestamp::MAX,
        sequence: 7,
    };
    let mut wide = writer();
    let key = |row: &[u8]| wide::family_key(&keys::row(row), 7);
    wide.push_wide(&key(b"row"), &delete).expect("the first");
    refused(
        wide.push_wide(&key(b"other"), &delete),
        "write sst file: deletes do not rise: one that is read is damaged",
    );
}

#[test]
fn properties_that_count_too_much_are_none() {
    let sane = Properties::empty(BloomFilter::Row);
    assert!(sane.are_sane());
    let raw_bytes = u64::MAX;
    assert!(!Properties { raw_bytes, ..sane }.are_sane());
}

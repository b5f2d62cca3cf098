//! An SST as text: all of a sound one, and what is left of a damaged one.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::everything::make;
use super::*;
use crate::dump;

fn dumped(path: &Path, values: bool) -> (String, Result<()>) {
    let mut out = Vec::new();
    let result = dump::sst(path, values, &mut out);
    (String::from_utf8(out).expect("text"), result)
}

/// A store, and the files of its first tablet's family.
fn files(rows: usize, family: u64) -> (TempDir, Vec<PathBuf>) {
    let folder = TempDir::new().expect("folder");
    let store = make(folder.path(), rows);
    let (_, tablet) = store.tablets().remove(0);
    let files = &tablet.state().files[&family];
    let files = files.iter().map(|file| folder.path().join(&file.meta.path));
    let files = files.collect();
    (folder, files)
}

#[test]
fn all_of_a_file_is_shown() {
    let (_folder, files) = files(12, 4);
    let (text, result) = dumped(&files[1], true);
    result.expect("sound");
    let holds = |line: &str| {
        assert!(
            text.lines().any(|has| has.trim() == line),
            "{line} not in\n{text}"
        )
    };
    let value = "value 0 of round 1 ".repeat(5).replace(' ', "%20");
    let line = text
        .lines()
        .find(|line| line.contains("row-0000 %empty 10 "));
    let line = line.expect("the first row");
    assert!(line.ends_with(&format!("put 95 {value}")), "{line}");
    assert!(text.contains("row-0001 a%00b "), "{text}");
    let tombstone = |line: &str| line.contains("row-0001 a%00b 12 ") && line.ends_with(" delete");
    assert!(text.lines().any(tombstone), "{text}");
    let large = text
        .lines()
        .find(|line| line.contains("row-0002 large 10 "));
    let large = large.expect("a large value");
    assert!(
        large.contains(" put 600000 large%20large%20"),
        "{}",
        &large[..80]
    );
    for part in [
        "cells: top index at ",
        "wide deletes: top index at ",
        "  partition at ",
        "    block at ",
        "properties:",
    ] {
        assert!(text.contains(part), "{part} not in\n{text}");
    }
    let (mut column, mut family, mut range) = (0, 0, 0);
    for line in text.lines().map(str::trim) {
        column += usize::from(line.starts_with("row-0003 column a%00b .. "));
        column += usize::from(line.starts_with("row-0004 column a%00b 3..5 "));
        family += usize::from(line.starts_with("row-0005 family .. "));
        family += usize::from(line.starts_with("row-0006 family .. "));
        range += usize::from(line.starts_with("rows from row-0007 to row-0009 "));
    }
    assert_eq!((column, family, range), (2, 2, 1), "{text}");
    holds("bloomFilter \"row\"");

    let (short, result) = dumped(&files[1], false);
    result.expect("sound");
    assert_eq!(short.lines().count(), text.lines().count());
    assert!(!short.contains("value%20"), "{short}");
}

#[test]
fn damage_is_told_and_the_rest_is_shown() {
    let (_folder, files) = files(40, 1);
    let entries = |text: &str| {
        text.lines()
            .filter(|line| line.starts_with("      row-"))
            .count()
    };
    let (whole, _) = dumped(&files[0], false);
    let mut bytes = fs::read(&files[0]).expect("read");
    let first = whole
        .lines()
        .find_map(|line| line.strip_prefix("    block at "));
    let first = first
        .and_then(|line| line.split(',').next())
        .expect("a block");
    bytes[first.parse::<usize>().expect("an offset") + 10] ^= 1;
    fs::write(&files[0], &bytes).expect("write");
    let (text, result) = dumped(&files[0], false);
    let told = format!("\ndamaged at offset {first}: a block's checksum does not match\n");
    assert!(text.contains(&told), "{text}");
    let left = entries(&text);
    assert!(
        left > entries(&whole) / 2 && left < entries(&whole),
        "{left}"
    );
    let error = result.expect_err("damaged").to_string();
    assert!(error.ends_with("is damaged in 1 places"), "{error}");
    for length in [0, 10, 64, bytes.len() - 1] {
        fs::write(&files[0], &bytes[..length]).expect("write");
        let (text, result) = dumped(&files[0], true);
        assert!(
            text.contains("damaged") && result.is_err(),
            "{length}: {text}"
        );
    }
    let error = dump::sst(Path::new("/nowhere/x"), false, &mut Vec::new()).expect_err("absent");
    assert_eq!(error.to_string(), "data folder /nowhere does not exist");
}

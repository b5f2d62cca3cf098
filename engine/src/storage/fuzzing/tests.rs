//! Runs the corpora of `engine/fuzz`, so that what a target needs stays there without cargo-fuzz.
//!
//! `writes_the_corpora` (ignored) cuts their first inputs out of the fixture of the on-disk format; others are what the fuzzer
//! found to be worth keeping, by their names.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::storage::cache::Shared;
use crate::storage::disk::{Disk, LocalDisk};
use crate::storage::sst::reader::Reader;
use crate::storage::sst::walk::{Event, walk};
use crate::storage::sst::{Handle, stored};

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target)
}

/// All inputs of a target, by name.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target);
    let mut inputs: Vec<_> = fs::read_dir(folder)
        .expect("a corpus")
        .map(|entry| {
            let path = entry.expect("an entry").path();
            (
                path.display().to_string(),
                fs::read(path).expect("an input"),
            )
        })
        .collect();
    inputs.sort();
    inputs
}

/// Every input, whole, cut short, and with bytes changed.
#[track_caller]
fn check(target: &str, run: fn(&[u8])) {
    let inputs = corpus(target);
    assert!(inputs.len() >= 10, "{} inputs", inputs.len());
    for (name, input) in inputs {
        println!("{name}");
        run(&input);
        let step = input.len().div_ceil(8).max(1);
        for at in (0..input.len()).step_by(step) {
            run(&input[..at]);
            let mut changed = input.clone();
            changed[at] ^= 0x41;
            run(&changed);
        }
    }
}

#[test]
fn blocks() {
    check("block", super::block);
}

#[test]
fn indexes() {
    check("index", super::index);
}

#[test]
fn whole_files() {
    check("footer", super::footer);
}

#[test]
fn logs() {
    check("log", super::log);
}

#[test]
fn manifests() {
    check("manifest", super::manifest);
}

/// Inputs of one target; those that are too long are left out.
struct Corpus {
    target: &'static str,
    most: usize,
    count: usize,
}

impl Corpus {
    fn new(target: &'static str, most: usize) -> Self {
        fs::create_dir_all(folder(target)).expect("create");
        Self {
            target,
            most,
            count: 0,
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        if bytes.len() <= self.most && self.count < 12 {
            let name = format!("fixture-{:02}", self.count);
            fs::write(folder(self.target).join(name), bytes).expect("write");
            self.count += 1;
        }
    }
}

/// Paths of files, relative to the folder.
fn files(root: &Path, folder: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(root.join(folder)).expect("a folder") {
        let entry = entry.expect("an entry");
        let path = format!("{folder}/{}", entry.file_name().display());
        match entry.path().is_dir() {
            true => paths.extend(files(root, &path)),
            false => paths.push(path),
        }
    }
    paths.sort();
    paths
}

#[test]
#[ignore = "writes into the source: for a new format"]
fn writes_the_corpora() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/format-1/store");
    write_files(&root);
    write_segments(&root);
    write_objects(&root);
}

/// Files, and of some a data block, stored and open, a partition and a top index.
fn write_files(root: &Path) {
    let disk: Arc<dyn Disk> = Arc::new(LocalDisk::open(root, true).expect("open"));
    let shared = Shared::new(disk.clone(), 0);
    let mut whole = Corpus::new("footer", 12 << 10);
    let mut blocks = Corpus::new("block", 4 << 10);
    let mut indexes = Corpus::new("index", 4 << 10);
    let mut paths = files(root, "tablets");
    paths.retain(|path| path.contains("/sst/"));
    // Of each family one, before others.
    paths.sort_by_key(|path| path.rsplit('/').next().map(str::to_owned));
    for path in paths {
        let file = disk.open(&path).expect("open");
        let bytes = file.read_at(0, file.length() as usize).expect("read");
        whole.add(&bytes);
        let reader = Reader::new(&shared, &path, file.length());
        let [cells, wide, ranges, _] = reader.footer().expect("sound");
        let stored = |handle: Handle| {
            let start = handle.offset as usize;
            bytes.slice(start..start + handle.length as usize)
        };
        let open = |handle: Handle| stored::open(&stored(handle)).expect("sound");
        let mut found: (Vec<Bytes>, Vec<Bytes>) = Default::default();
        for top in [cells, wide] {
            if top.length == 0 {
                continue;
            }
            found.1.push(open(top));
            let walked: Result<(), ()> = walk(&reader, top, &mut |event| {
                match event {
                    Event::Block { handle, .. } => found.0.extend([stored(handle), open(handle)]),
                    Event::Partition { handle, .. } => found.1.push(open(handle)),
                    Event::Entry { .. } | Event::Damage(_) => {}
                }
                Ok(())
            });
            walked.expect("walked");
        }
        if ranges.length > 0 {
            found.1.push(open(ranges));
        }
        // The checksum of a stored block is what a target makes.
        let block = &found.0[0];
        blocks.add(&block[..block.len() - 4]);
        blocks.add(&found.0[1]);
        let at = indexes.count % found.1.len();
        indexes.add(&found.1[at]);
    }
}

/// Of each segment the start, short and long; starts of two, one after the other.
fn write_segments(root: &Path) {
    let mut corpus = Corpus::new("log", 4 << 10);
    let segments = files(root, "logs");
    let start = |path: &String, length: usize| {
        let bytes = fs::read(root.join(path)).expect("read");
        bytes[..length].to_vec()
    };
    for path in &segments {
        for length in [384, 1024, 2048] {
            corpus.add(&start(path, length));
        }
    }
    for pair in segments.windows(2) {
        corpus.add(&[start(&pair[0], 1024), start(&pair[1], 1024)].concat());
    }
}

/// Objects, their JSON, and a store of them: a line an object.
fn write_objects(root: &Path) {
    let mut corpus = Corpus::new("manifest", 8 << 10);
    let mut store = String::new();
    let mut paths = vec!["/store".to_owned()];
    for folder in ["servers", "hold", "catalog", "tables", "tablets"] {
        paths.extend(files(root, folder));
    }
    paths.retain(|path| !path.contains("/sst/"));
    for path in paths {
        let bytes = fs::read(root.join(path.trim_start_matches('/'))).expect("read");
        let json = std::str::from_utf8(&bytes[16..]).expect("JSON");
        if path == "/store" {
            corpus.add(&bytes);
        }
        corpus.add(json.as_bytes());
        if path.starts_with("catalog") || path.starts_with("tables/") {
            store.push_str(&format!("{path} {json}\n"));
        }
    }
    let manifest = r#"{"epoch":1,"log":"00000000-0000-0000-0000-000000000007","flushedSequence":9,"serverTimestamp":5,"files":{"1":[]}}"#;
    for tablet in 1..6 {
        store.push_str(&format!(
            "tablets/{tablet:08}/manifest/000000000003 {manifest}\n"
        ));
    }
    fs::write(folder("manifest").join("store-00"), store).expect("write");
}

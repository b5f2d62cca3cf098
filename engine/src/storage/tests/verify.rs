//! The check of a store: a sound one is, whatever damages it is named with file and place, and nothing is changed by it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::everything::{make, open_folder};
use super::*;
use crate::storage::cache::Shared;
use crate::storage::catalog::{Manifest, manifest_folder};
use crate::storage::disk::{Disk, LocalDisk};
use crate::storage::objects;
use crate::storage::sst::reader::Reader;
use crate::storage::sst::stored;
use crate::storage::sst::walk::{Event, walk};
use crate::storage::sst::{FileMeta, Handle};
use crate::storage::workers::Workers;
use crate::verify::{Finding, Summary, verify};
use crate::write::mutate;

/// A closed store in a folder, and the files of one family of it.
struct Closed {
    folder: TempDir,
    files: Vec<FileMeta>,
    manifest: String,
}

impl Closed {
    fn new() -> Self {
        let folder = TempDir::new().expect("folder");
        let store = make(folder.path(), 700);
        let (_, tablet) = store.tablets().remove(0);
        let files = tablet.state().files[&1]
            .iter()
            .map(|file| file.meta.clone())
            .collect();
        let number = store
            .objects
            .newest_number(&manifest_folder(tablet.id))
            .expect("list");
        let manifest = objects::numbered(&manifest_folder(tablet.id), number.expect("one"));
        Self {
            folder,
            files,
            manifest,
        }
    }

    fn check(&self) -> (Vec<Finding>, Summary) {
        check(self.folder.path())
    }

    /// What is found, and that it is one thing.
    fn finding(&self) -> Finding {
        let (mut findings, summary) = self.check();
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(summary.findings, 1);
        findings.remove(0)
    }

    fn change(&self, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let path = self.folder.path().join(path);
        let mut bytes = fs::read(&path).expect("read");
        change(&mut bytes);
        fs::write(&path, bytes).expect("write");
    }

    /// Data blocks, partitions and filters of the first file's cells, and its properties.
    fn places(&self) -> (Vec<Handle>, Vec<Handle>, Vec<Handle>, Handle) {
        let disk: Arc<dyn Disk> =
            Arc::new(LocalDisk::open(self.folder.path(), true).expect("open"));
        let (shared, meta) = (Shared::new(disk, 0), &self.files[0]);
        let reader = Reader::new(&shared, &meta.path, meta.bytes);
        let [cells, .., properties] = reader.footer().expect("footer");
        let (mut blocks, mut partitions, mut filters) = (Vec::new(), Vec::new(), Vec::new());
        let walked: std::result::Result<(), ()> = walk(&reader, cells, &mut |event| {
            match event {
                Event::Partition { handle, filter, .. } => {
                    partitions.push(handle);
                    filters.push(filter);
                }
                Event::Block { handle, .. } => blocks.push(handle),
                Event::Entry { .. } => {}
                Event::Damage(fault) => panic!("{fault:?}"),
            }
            Ok(())
        });
        walked.expect("no error");
        (blocks, partitions, filters, properties)
    }
}

fn check(folder: &Path) -> (Vec<Finding>, Summary) {
    let mut findings = Vec::new();
    let summary = verify(folder, &mut |finding| findings.push(finding)).expect("a store");
    (findings, summary)
}

/// All that stands in a folder.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.display().to_string();
        if path.is_dir() {
            all.insert(name, Vec::new());
            all.extend(content(&path));
        } else {
            all.insert(name, fs::read(&path).expect("a file"));
        }
    }
    all
}

#[test]
fn a_store_with_everything_is_sound_and_stays_as_it_is() {
    let store = Closed::new();
    let before = content(store.folder.path());
    let (findings, summary) = store.check();
    assert_eq!(findings, []);
    assert_eq!((summary.tables, summary.tablets), (2, 4));
    assert!(
        summary.files >= 15 + 6 && summary.blocks > 100,
        "{summary:?}"
    );
    assert!(summary.entries > 4000, "{summary:?}");
    assert!(
        summary.log_groups >= 8 && summary.log_records > 20,
        "{summary:?}"
    );
    assert!(before == content(store.folder.path()), "nothing is changed");
    // Nor while a server has it open.
    let open = open_folder(store.folder.path());
    let before = content(store.folder.path());
    assert_eq!(check(store.folder.path()).0, []);
    assert!(before == content(store.folder.path()), "nothing is changed");
    drop(open);
}

#[test]
fn a_flipped_byte_is_found_in_every_kind_of_block() {
    let store = Closed::new();
    let (blocks, partitions, filters, properties) = store.places();
    assert!(
        partitions.len() > 1 && blocks.len() > 100,
        "{} blocks",
        blocks.len()
    );
    let path = store.files[0].path.clone();
    let places = [
        blocks[3],
        blocks[blocks.len() - 1],
        partitions[1],
        filters[1],
        properties,
    ];
    for Handle { offset, length } in places {
        let at = offset as usize + length as usize / 2;
        store.change(&path, |bytes| bytes[at] ^= 4);
        let finding = store.finding();
        assert_eq!(
            (finding.path.as_str(), finding.offset),
            (path.as_str(), Some(offset))
        );
        assert_eq!(finding.what, "a block's checksum does not match");
        assert_eq!(
            finding.to_string(),
            format!("{path} at offset {offset}: a block's checksum does not match")
        );
        store.change(&path, |bytes| bytes[at] ^= 4);
    }
    assert_eq!(store.check().0, []);
}

#[test]
fn a_damaged_footer_or_manifest_is_found() {
    let store = Closed::new();
    let FileMeta { path, bytes, .. } = store.files[0].clone();
    store.change(&path, |bytes| *bytes.last_mut().expect("bytes") ^= 1);
    let finding = store.finding();
    assert_eq!(
        (finding.path.as_str(), finding.offset),
        (path.as_str(), Some(bytes - 64))
    );
    assert_eq!(finding.what, "the footer's checksum does not match");
    store.change(&path, |bytes| *bytes.last_mut().expect("bytes") ^= 1);

    store.change(&store.manifest, |bytes| bytes[100] ^= 1);
    let finding = store.finding();
    assert_eq!((&finding.path, finding.offset), (&store.manifest, Some(0)));
    assert_eq!(finding.what, "checksum does not match");
}

#[test]
fn damage_in_a_synced_group_is_found_and_a_torn_tail_is_none() {
    let store = Closed::new();
    let logs = store.folder.path().join("logs");
    let log = fs::read_dir(logs)
        .expect("logs")
        .next()
        .expect("a log")
        .expect("an entry");
    let mut segments: Vec<_> = fs::read_dir(log.path())
        .expect("segments")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    segments.sort();
    let relative = |path: &Path| {
        let path = path.strip_prefix(store.folder.path()).expect("inside");
        path.to_str().expect("text").to_owned()
    };
    let first = relative(&segments[0]);
    store.change(&first, |bytes| bytes[64 + 40] ^= 1);
    let finding = store.finding();
    assert_eq!(
        (finding.path.as_str(), finding.offset),
        (first.as_str(), Some(64))
    );
    assert!(finding.what.contains("is damaged"), "{finding}");
    store.change(&first, |bytes| bytes[64 + 40] ^= 1);

    // The last byte of the last group: as if power had gone while it was written.
    let last = relative(segments.last().expect("one"));
    let groups = store.check().1.log_groups;
    store.change(&last, |bytes| {
        let end = bytes.iter().rposition(|byte| *byte != 0).expect("a group");
        bytes[end] ^= 1;
    });
    let (findings, summary) = store.check();
    assert_eq!(findings, []);
    assert_eq!(summary.log_groups, groups - 1);

    fs::remove_file(&segments[0]).expect("removed");
    if segments.len() > 2 {
        fs::remove_file(&segments[1]).expect("removed");
    }
    fs::remove_file(segments.last().expect("one")).expect("removed");
    let finding = store.finding();
    assert!(finding.what.contains("is missing"), "{finding}");
}

#[test]
fn a_missing_or_shortened_file_is_found() {
    let store = Closed::new();
    let FileMeta { path, bytes, .. } = store.files[0].clone();
    let place = store.folder.path().join(&path);
    let good = fs::read(&place).expect("read");
    store.change(&path, |bytes| bytes.truncate(bytes.len() - 10));
    let finding = store.finding();
    assert_eq!(
        (finding.path.as_str(), finding.offset),
        (path.as_str(), None)
    );
    let short = bytes - 10;
    assert_eq!(
        finding.what,
        format!("is {short} bytes; its manifest says {bytes}")
    );

    fs::remove_file(&place).expect("removed");
    let finding = store.finding();
    assert_eq!(
        (finding.path.as_str(), finding.offset),
        (path.as_str(), None)
    );
    assert_eq!(
        finding.what,
        format!("is missing; {} names it", store.manifest)
    );

    fs::write(&place, good).expect("written");
    let other = format!("{path}9");
    fs::copy(&place, store.folder.path().join(&other)).expect("copied");
    let (findings, summary) = store.check();
    assert_eq!((summary.findings, summary.notes), (0, 1));
    assert!(
        findings[0].note && findings[0].path == other,
        "{findings:?}"
    );
}

/// Gives the first file other properties, with a checksum that is right, and the manifest the same.
fn lie(store: &Closed, lie: impl Fn(&mut serde_json::Value)) {
    let (.., place) = store.places();
    let path = &store.files[0].path;
    store.change(path, |bytes| {
        let at = place.offset as usize..place.offset as usize + place.length as usize;
        let json = &bytes[at.start..at.end - 9];
        let mut properties = serde_json::from_slice(json).expect("properties");
        lie(&mut properties);
        let mut sealed = Vec::new();
        let json = serde_json::to_vec(&properties).expect("JSON");
        stored::seal(&mut sealed, tablemount_api::Compression::None, &json);
        assert_eq!(sealed.len(), at.len(), "as long as before");
        bytes[at].copy_from_slice(&sealed);
    });
    store.change(&store.manifest, |bytes| {
        let mut manifest: serde_json::Value = objects::open(bytes).expect("a manifest");
        lie(&mut manifest["files"]["1"][0]);
        *bytes = objects::encode(&manifest).expect("encoded").to_vec();
        let _: Manifest = objects::open(bytes).expect("a manifest");
    });
}

#[test]
fn properties_that_lie_are_found() {
    let store = Closed::new();
    let (.., place) = store.places();
    let is = store.files[0].properties.clone();
    for (name, is) in [
        ("entries", is.entries),
        ("rawBytes", is.raw_bytes),
        ("maxSequence", is.max_sequence),
        ("rows", is.rows),
    ] {
        let said = is ^ 1;
        lie(&store, |properties| properties[name] = said.into());
        let (findings, _) = store.check();
        let expected = format!("properties say {name} {said}; it is {is}");
        let found = findings.iter().find(|finding| finding.what == expected);
        let found = found.unwrap_or_else(|| panic!("{expected} not in {findings:?}"));
        assert_eq!(
            (&found.path, found.offset),
            (&store.files[0].path, Some(place.offset))
        );
        lie(&store, |properties| properties[name] = is.into());
    }
    assert_eq!(store.check().0, []);
    // The file's only.
    let manifest = fs::read(store.folder.path().join(&store.manifest)).expect("read");
    lie(&store, |properties| {
        properties["rows"] = (is.rows ^ 1).into()
    });
    fs::write(store.folder.path().join(&store.manifest), manifest).expect("written");
    let (findings, _) = store.check();
    let wrong = "properties are not those of the manifest";
    assert!(
        findings.iter().any(|finding| finding.what == wrong),
        "{findings:?}"
    );
}

#[test]
fn rows_outside_their_tablet_are_found() {
    let store = Closed::new();
    store.change("catalog/000000000003", |bytes| {
        let mut catalog: serde_json::Value = objects::open(bytes).expect("a catalog");
        let tablets = &mut catalog["tables"]["split"]["tablets"];
        tablets[1]["start"] = serde_json::json!(value("row-0001"));
        *bytes = objects::encode(&catalog).expect("encoded").to_vec();
    });
    let (findings, summary) = store.check();
    assert!(summary.findings > 0);
    let row = |finding: &Finding| finding.what == "a row is not of this tablet";
    assert!(findings.iter().any(row), "{findings:?}");
}

#[test]
fn a_store_under_load_is_sound_at_any_moment() {
    let folder = TempDir::new().expect("folder");
    let options = Options {
        memtable_budget_bytes: 256 << 10,
        segment_bytes: 64 << 10,
        ..options()
    };
    let disk = Arc::new(LocalDisk::open(folder.path(), false).expect("open"));
    let clock = Arc::new(crate::clock::SystemClock);
    let store = Arc::new(open::open(disk, clock, options, false).expect("open"));
    let body = PutTable {
        families: vec![versions("f", 1), versions("g", 2)],
        splits: vec![row("m")],
        ..PutTable::default()
    };
    store.put_table(&table(), &body).expect("put table");
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    let _runtime = runtime.enter();
    let workers = Workers::start(&store).expect("threads");
    let writers: Vec<_> = (0..4)
        .map(|writer| runtime.spawn(load(store.clone(), writer)))
        .collect();
    let newest = || {
        let tablets = store.tablets();
        let number = |id: u64| store.objects.newest_number(&manifest_folder(id));
        tablets
            .iter()
            .map(|(_, tablet)| number(tablet.id).expect("list").expect("one"))
            .sum::<u64>()
    };
    let (mut checks, mut manifests) = (0, newest());
    let deadline = std::time::Instant::now() + Duration::from_secs(120);
    // Only checks during which manifests changed count.
    while checks < 30 {
        assert!(std::time::Instant::now() < deadline, "{checks} checks");
        let (findings, summary) = check(folder.path());
        let damaged: Vec<_> = findings.iter().filter(|finding| !finding.note).collect();
        assert!(damaged.is_empty(), "{damaged:?}");
        let now = newest();
        checks += usize::from(now > manifests && summary.entries > 0);
        manifests = now;
    }
    writers.iter().for_each(tokio::task::JoinHandle::abort);
    store.stop();
    store.log().expect("log").close();
    workers.join();
}

async fn load(store: Arc<Store>, writer: usize) {
    for i in 0.. {
        let key = format!(
            "{}-{:03}",
            if i % 2 == 0 { "a" } else { "z" },
            (i * 7 + writer) % 500
        );
        let text = format!("{writer} {i} ").repeat(40);
        let mut mutations = vec![put_now("f", "q", &text), put_now("g", "q", &text)];
        if i % 9 == 0 {
            mutations = vec![Mutation::DeleteRow {}];
        }
        let rows = vec![RowMutation {
            row: row(&key),
            check: None,
            mutations,
        }];
        if mutate(&store, &table(), MutateRequest { rows })
            .await
            .is_err()
        {
            return;
        }
    }
}

//! Looking after stores: the check of a data folder and the dump of a file.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::support::{Server, run};

fn text(path: &Path) -> &str {
    path.to_str().expect("name")
}

/// The files below a folder, in their order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path),
            }
        }
    }
    found.sort();
    found
}

/// The only SST of a store.
fn sst(data: &Path) -> PathBuf {
    let mut found = files(&data.join("tablets"));
    found.retain(|path| text(path).contains("/sst/"));
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// The first segment of a store's log.
fn segment(data: &Path) -> PathBuf {
    files(&data.join("logs")).remove(0)
}

#[test]
fn a_store_is_checked_while_it_is_served_and_after() {
    let data = TempDir::new().expect("temporary folder");
    let mut server = Server::engine(data.path(), &[]);
    server.run(&["tables", "create", "t", "--family", "f"]).ok();
    server.run(&["put", "t", "row/1", "f:q=a b"]).ok();
    server.run(&["put", "t", "row2", "f:q=later"]).ok();
    let sound = run(["verify", text(data.path())]);
    let expected = "1 tables, 1 tablets, 0 files, 0 blocks, 0 entries; log: 2 groups, 2 records; 0 findings, 0 notes\n";
    assert_eq!(sound.ok(), expected);
    let segment = segment(data.path());
    let dump = run(["log", "dump", text(&segment)]);
    let record = dump
        .ok()
        .lines()
        .position(|line| line.contains(" row%2F1 sequence "));
    let record = record.unwrap_or_else(|| panic!("{dump:?}"));
    let entry = dump.text().lines().nth(record + 1).unwrap_or_default();
    assert!(
        entry.contains(" put q ") && entry.ends_with(" 3"),
        "{dump:?}"
    );
    let damaged = data.path().join("damaged");
    let mut bytes = fs::read(&segment).expect("read");
    bytes[70] ^= 1;
    fs::write(&damaged, bytes).expect("written");
    let dump = run(["log", "dump", text(&damaged)]);
    dump.failed(1, "log segment damaged is damaged in 1 places");
    assert!(dump.text().contains("\ndamaged at offset 64: "), "{dump:?}");
    assert!(dump.text().contains(" row2 sequence "), "{dump:?}");
    fs::remove_file(&damaged).expect("removed");
    assert!(server.process.terminate().success());

    let file = sst(data.path());
    let json = run(["verify", text(data.path()), "-o", "json"]);
    let report: serde_json::Value = serde_json::from_str(json.ok()).expect("JSON");
    assert_eq!(report["findings"], serde_json::json!([]));
    assert_eq!(
        (&report["summary"]["files"], &report["summary"]["entries"]),
        (&1.into(), &2.into())
    );

    let dump = run(["sst", "dump", text(&file), "--values"]);
    let line = dump.ok().lines().find(|line| line.contains("row%2F1 q "));
    assert!(
        line.is_some_and(|line| line.ends_with(" put 3 a%20b")),
        "{dump:?}"
    );
    let dump = run(["sst", "dump", text(&file)]);
    assert!(dump.ok().contains(" put 3\n"), "{dump:?}");

    let mut bytes = fs::read(&file).expect("read");
    bytes[3] ^= 1;
    fs::write(&file, bytes).expect("written");
    let damaged = run(["verify", text(data.path())]);
    assert_eq!(damaged.code, 1, "{damaged:?}");
    let relative = file.strip_prefix(data.path()).expect("inside");
    let finding = format!(
        "{} at offset 0: a block's checksum does not match",
        relative.display()
    );
    assert_eq!(damaged.text().lines().next(), Some(finding.as_str()));
    damaged.failed(
        1,
        &format!("{} is damaged: 1 finding", data.path().display()),
    );
    let json = run(["verify", text(data.path()), "-o", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(
        (json.code, &report["findings"][0]["offset"]),
        (1, &0.into())
    );
    let dump = run(["sst", "dump", text(&file)]);
    let name = relative
        .file_name()
        .and_then(|name| name.to_str())
        .expect("name");
    dump.failed(1, &format!("sst {name} is damaged in 1 places"));
    assert!(dump.text().contains("\ndamaged at offset 0: "), "{dump:?}");
}

#[test]
fn what_is_no_store_is_said() {
    let folder = TempDir::new().expect("temporary folder");
    let shown = folder.path().display();
    run(["verify", text(folder.path())]).failed(1, &format!("{shown} holds no store"));
    let absent = folder.path().join("absent");
    let message = format!("data folder {} does not exist", absent.display());
    run(["verify", text(&absent)]).failed(1, &message);
    for command in ["sst", "log"] {
        run([command, "dump", text(&absent)]).failed(1, &format!("{shown}/absent does not exist"));
    }
}

//! Stores that are damaged: what is wrong is said with file and place, the rest stays readable, nothing panics.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::support::{Outcome, Server, run};

/// Starts an engine that must not start, and returns its last words.
fn refused(data: &Path) -> String {
    let data = data.to_str().expect("name");
    let ports = ["--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"];
    let outcome = run([&["engine", "--data", data][..], &ports].concat());
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
    outcome.stderr.lines().last().unwrap_or_default().to_owned()
}

/// Changes a bit where `text` stands, in whatever file below `folder` holds it.
fn damage(folder: &Path, text: &str) -> PathBuf {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            let damaged = damage(&path, text);
            if damaged.is_file() {
                return damaged;
            }
            continue;
        }
        let mut bytes = fs::read(&path).expect("a file");
        if let Some(at) = bytes
            .windows(text.len())
            .position(|window| window == text.as_bytes())
        {
            bytes[at] ^= 1;
            fs::write(&path, bytes).expect("written");
            return path;
        }
    }
    PathBuf::new()
}

/// A store with a table of `rows` rows of which each has a value of its own.
fn store(rows: usize) -> (TempDir, Server) {
    let data = TempDir::new().expect("temporary folder");
    let server = Server::engine(data.path(), &[]);
    server.run(&["tables", "create", "t", "--family", "f"]).ok();
    for row in 0..rows {
        // One request each, so that each is durable before the next.
        let cell = format!("f:q=value-of-{row:04}-{}", "x".repeat(200));
        server
            .run(&["put", "t", &format!("row{row:04}"), &cell])
            .ok();
    }
    (data, server)
}

fn get(server: &Server, row: usize) -> Outcome {
    server.run(&["get", "t", &format!("row{row:04}"), "f:q", "--raw"])
}

#[test]
fn a_store_of_another_version_is_refused() {
    let (data, mut server) = store(1);
    assert!(server.process.terminate().success());
    let file = data.path().join("store");
    let mut bytes = fs::read(&file).expect("the store's object");
    bytes[4] = 7;
    fs::write(&file, bytes).expect("written");
    assert_eq!(
        refused(data.path()),
        "tablemount: store has format 7; this version reads format 1"
    );
}

#[test]
fn a_damaged_log_is_refused_and_can_be_looked_into() {
    let (data, mut server) = store(20);
    server.process.kill();
    let log = damage(&data.path().join("logs"), "value-of-0010-");
    assert!(log.is_file(), "{log:?}");
    let error = refused(data.path());
    let name = log
        .file_name()
        .and_then(|name| name.to_str())
        .expect("name");
    assert!(
        error.contains(name) && error.contains("offset") && error.contains("read-only"),
        "{error}"
    );
    let server = Server::engine(data.path(), &["--read-only"]);
    assert!(get(&server, 9).ok().starts_with("value-of-0009-"));
    assert_eq!(get(&server, 10).code, 3);
    assert_eq!(
        server
            .run(&["scan", "t", "--keys-only"])
            .ok()
            .lines()
            .count(),
        10
    );
}

#[test]
fn a_missing_log_is_refused() {
    let (data, mut server) = store(1);
    server.process.kill();
    fs::remove_dir_all(data.path().join("logs")).expect("removed");
    let error = refused(data.path());
    assert!(
        error.starts_with("tablemount: ") && error.contains("log"),
        "{error}"
    );
    assert!(
        !data.path().join("logs").exists(),
        "a missing log is not replaced"
    );
}

#[test]
fn a_damaged_block_is_reported_and_the_rest_is_readable() {
    let (data, mut server) = store(100);
    assert!(server.process.terminate().success());
    let sst = damage(&data.path().join("tablets"), "value-of-0050-");
    assert!(sst.is_file(), "{sst:?}");
    let server = Server::engine(data.path(), &[]);
    let lost = get(&server, 50);
    assert_eq!((lost.code, lost.stderr.lines().count()), (1, 1), "{lost:?}");
    let name = sst
        .file_name()
        .and_then(|name| name.to_str())
        .expect("name");
    assert!(
        lost.stderr.contains(name) && lost.stderr.contains("offset"),
        "{lost:?}"
    );
    for row in [0, 10, 90, 99] {
        assert!(
            get(&server, row)
                .ok()
                .starts_with(&format!("value-of-{row:04}-")),
            "{row}"
        );
    }
    // A scan that meets it fails, and is not taken for a short one.
    let scan = server.run(&["scan", "t"]);
    assert_eq!((scan.code, scan.stderr.lines().count()), (1, 1), "{scan:?}");
    assert!(
        scan.text().contains("row0000") && scan.stderr.contains(name),
        "{scan:?}"
    );
}

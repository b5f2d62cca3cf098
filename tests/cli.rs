//! The command line against a real engine process: what it prints, how it ends, what it refuses.

#[path = "cli/damage.rs"]
mod damage;
#[path = "cli/refusals.rs"]
mod refusals;
#[path = "cli/rows.rs"]
mod rows;
#[path = "cli/stats.rs"]
mod stats;
mod support;
#[path = "cli/upkeep.rs"]
mod upkeep;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use serde_json::{Value, json};
use support::shared::{create, server, tm};
use support::{Outcome, Server, run, run_with, tablemount};
use tempfile::TempDir;

#[test]
fn a_cell_is_written_read_and_deleted() {
    create("cell", &["info", "text:maxVersions=3"]);
    for (timestamp, value) in [
        ("10", "one"),
        ("20", "two"),
        ("30", "three"),
        ("40", "four"),
    ] {
        tm(&[
            "put",
            "cell",
            "row",
            &format!("text:={value}"),
            "--timestamp",
            timestamp,
        ])
        .ok();
    }
    tm(&["put", "cell", "row", "info:a=b=c:d", "--timestamp", "5"]).ok();
    assert_eq!(
        tm(&["get", "cell", "row"]).ok(),
        "row\n  info:a  5  b=c:d\n  text:   40  four\n"
    );
    assert_eq!(
        tm(&["get", "cell", "row", "text:", "--versions", "9"]).ok(),
        "row\n  text:  40  four\n  text:  30  three\n  text:  20  two\n"
    );
    assert_eq!(
        tm(&["get", "cell", "row", "text", "--at", "29"]).ok(),
        "row\n  text:  20  two\n"
    );
    assert_eq!(tm(&["get", "cell", "row", "text:", "--raw"]).ok(), "four");
    assert_eq!(tm(&["get", "cell", "row", "text", "--raw"]).ok(), "four");
    assert_eq!(
        tm(&["get", "cell", "row", "text:", "--raw", "--at", "30"]).ok(),
        "three"
    );

    tm(&["delete", "cell", "row", "text:", "--timestamp", "40"]).ok();
    assert_eq!(tm(&["get", "cell", "row", "text:", "--raw"]).ok(), "three");
    tm(&["delete", "cell", "row", "info"]).ok();
    assert_eq!(
        tm(&["get", "cell", "row"]).ok(),
        "row\n  text:  30  three\n"
    );
    tm(&["delete", "cell", "row"]).ok();
    tm(&["get", "cell", "row"]).failed(3, "row \"row\" not found in table \"cell\"");
}

#[test]
fn absence_has_a_code_of_its_own() {
    create("absent", &["f"]);
    tm(&["put", "absent", "a/b", "f:q=v", "--timestamp", "7"]).ok();
    tm(&["get", "absent", "x%00y"]).failed(3, "row \"x%00y\" not found in table \"absent\"");
    tm(&["get", "absent", "a/b", "f:x"])
        .failed(3, "row \"a%2Fb\" of table \"absent\" has no cell in f:x");
    tm(&["get", "absent", "a/b", "f:q", "--at", "6"]).failed(
        3,
        "row \"a%2Fb\" of table \"absent\" has no cell in f:q at or before 6",
    );
    tm(&["get", "absent", "a/b", "f:q", "--at", "6", "--raw"]).failed(
        3,
        "row \"a%2Fb\" of table \"absent\" has no cell in f:q at or before 6",
    );
    let missing = tm(&["get", "nowhere", "r"]);
    assert_eq!(missing.code, 3, "{missing:?}");
    assert!(
        missing
            .stderr
            .starts_with("tablemount: table \"nowhere\" not found"),
        "{missing:?}"
    );
    assert_eq!(tm(&["get", "nowhere", "r", "f:q", "--raw"]).code, 3);
    assert_eq!(tm(&["scan", "nowhere"]).code, 3);
    assert_eq!(tm(&["tables", "nowhere"]).code, 3);
    assert_eq!(
        tm(&["import", "nowhere", "-", "--format", "ndjson"]).code,
        3
    );
}

#[test]
fn keys_and_qualifiers_may_be_any_bytes() {
    create("bytes", &["f"]);
    let rows = [
        "a%2Fb",
        "a%00%0A%FF",
        "%2E",
        "%2E.",
        "%x00ff",
        "Zürich",
        "a b",
    ];
    for row in rows {
        tm(&[
            "put",
            "bytes",
            row,
            "f:=empty",
            "f:q%3Dq%FF=any",
            "--timestamp",
            "1",
        ])
        .ok();
        assert_eq!(
            tm(&["get", "bytes", row, "f:q%3Dq%FF", "--raw"]).ok(),
            "any",
            "{row}"
        );
        assert_eq!(
            tm(&["get", "bytes", row, "f:", "--raw"]).ok(),
            "empty",
            "{row}"
        );
    }
    // In byte order, in the canonical spelling.
    assert_eq!(
        tm(&["scan", "bytes", "--keys-only"]).ok(),
        "%x00ff\n%2E\n%2E.\nZürich\n%x61000aff\na%20b\na%2Fb\n"
    );
    let long = "k".repeat(65_536);
    tm(&["put", "bytes", &long, "f:=long"]).ok();
    assert_eq!(
        tm(&["scan", "bytes", "--prefix", "kkk", "--keys-only"]).ok(),
        format!("{long}\n")
    );
}

#[test]
fn values_come_from_files_and_stdin() {
    create("values", &["f"]);
    let folder = TempDir::new().expect("temporary folder");
    let file = folder.path().join("value");
    let name = file.to_str().expect("name");
    // Longer than what goes inside JSON, and any bytes.
    let large: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    std::fs::write(&file, &large).expect("written");
    tm(&[
        "put",
        "values",
        "large",
        "f:v",
        "--value-file",
        name,
        "--timestamp",
        "3",
    ])
    .ok();
    assert_eq!(
        tm(&["get", "values", "large", "f:v", "--raw"]).stdout,
        large
    );

    let url = &server().url;
    run_with(
        [
            "put",
            "values",
            "small",
            "f:v",
            "--value-file",
            "-",
            "--server",
            url,
        ],
        b"\xff\0\n",
    )
    .ok();
    assert_eq!(
        tm(&["get", "values", "small", "f:v", "--raw"]).stdout,
        b"\xff\0\n"
    );
    assert_eq!(tm(&["get", "values", "small", "f:v", "--raw"]).stderr, "");

    tm(&["put", "values", "r", "f:v=x", "--value-file", name]).failed(
        2,
        "with --value-file give one FAMILY:QUALIFIER, without a value",
    );
    tm(&["put", "values", "r", "f:v"]).failed(
        2,
        "\"f:v\" has no value; write FAMILY:QUALIFIER=VALUE or give --value-file",
    );
    let nowhere = folder.path().join("nowhere");
    let missing = tm(&[
        "put",
        "values",
        "r",
        "f:v",
        "--value-file",
        nowhere.to_str().expect("name"),
    ]);
    missing.failed(
        1,
        &format!(
            "read value from {}: No such file or directory (os error 2)",
            nowhere.display()
        ),
    );
}

#[test]
fn scans_take_ranges_and_directions() {
    create("scan", &["f", "g"]);
    for row in ["a", "b", "ba", "c", "d"] {
        tm(&["put", "scan", row, "f:x=1", "g:y=2", "--timestamp", "1"]).ok();
    }
    let keys = |flags: &[&str]| {
        let outcome = tm(&[&["scan", "scan", "--keys-only"], flags].concat());
        outcome
            .ok()
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(keys(&[]), "a b ba c d");
    assert_eq!(keys(&["--start", "b", "--stop", "d"]), "b ba c");
    assert_eq!(keys(&["--prefix", "b"]), "b ba");
    assert_eq!(keys(&["--reverse", "--limit", "2"]), "d c");
    assert_eq!(
        keys(&["--start", "b", "--reverse", "--stop", "d"]),
        "c ba b"
    );
    assert_eq!(
        tm(&["scan", "scan", "--column", "g", "--limit", "1"]).ok(),
        "a\n  g:y  1  2\n"
    );
    assert_eq!(
        tm(&[
            "scan", "scan", "--column", "f:x", "--limit", "1", "--output", "json"
        ])
        .ok(),
        "{\"row\":\"a\",\"cells\":[{\"family\":\"f\",\"qualifier\":\"x\",\"timestamp\":1,\"value\":\"1\"}]}\n"
    );
    assert_eq!(
        tm(&[
            "scan", "scan", "--column", "f:x", "--limit", "1", "-o", "yaml"
        ])
        .ok(),
        "---\nrow: a\ncells:\n- family: f\n  qualifier: x\n  timestamp: 1\n  value: '1'\n"
    );
    assert_eq!(tm(&["scan", "scan", "--prefix", "z"]).ok(), "");
}

#[test]
fn tables_are_listed_made_and_dropped() {
    create(
        "made",
        &[
            "info:inMemory",
            "text:maxVersions=3,compression=zstd,compressionScope=record,bloomFilter=rowColumn,blockCache=false",
        ],
    );
    let listed: Value = serde_json::from_str(tm(&["tables", "-o", "json"]).ok()).expect("JSON");
    let names: Vec<&str> = listed["tables"]
        .as_array()
        .expect("list")
        .iter()
        .filter_map(|t| t["name"].as_str())
        .collect();
    assert!(names.contains(&"made") && names.is_sorted(), "{names:?}");
    let text = tm(&["tables"]);
    let line = text
        .ok()
        .lines()
        .find(|line| line.starts_with("made "))
        .expect("line");
    assert!(line.contains("info,text"), "{line}");
    let described = tm(&["tables", "made"]);
    assert!(
        described
            .ok()
            .contains("text     3 versions   zstd by record   4096    rowColumn      no "),
        "{}",
        described.text()
    );
    let yaml = tm(&["tables", "made", "-o", "yaml"]);
    assert!(yaml.ok().starts_with("name: made\n"), "{yaml:?}");

    let again = tm(&["tables", "create", "made", "--family", "info"]);
    assert_eq!(again.code, 1, "{again:?}");
    assert!(again.stderr.contains("\"made\""), "{again:?}");
    tm(&["tables", "drop", "made"]).failed(
        2,
        "dropping a table needs --yes where there is no terminal to ask on",
    );
    tm(&["tables", "drop", "made", "--yes"]).ok();
    assert_eq!(tm(&["tables", "made"]).code, 3);
}

#[test]
fn a_reader_may_go_away() {
    create("pipe", &["f"]);
    let lines: String = (0..20_000)
        .map(|n| {
            format!("{{\"row\":\"{n:05}\",\"cells\":[{{\"family\":\"f\",\"value\":\"v\"}}]}}\n")
        })
        .collect();
    run_with(
        [
            "import",
            "pipe",
            "-",
            "--format",
            "ndjson",
            "--server",
            &server().url,
        ],
        lines.as_bytes(),
    )
    .ok();
    for subcommand in ["export", "scan"] {
        let mut child = server()
            .command(&[subcommand, "pipe"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("run");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout"))
            .read_line(&mut line)
            .expect("a line");
        assert!(line.contains("00000"), "{line}");
        let mut stderr = String::new();
        child
            .stderr
            .take()
            .expect("stderr")
            .read_to_string(&mut stderr)
            .expect("stderr");
        assert_eq!(
            (child.wait().expect("end").code(), stderr.as_str()),
            (Some(0), ""),
            "{subcommand}"
        );
    }
}

#[test]
fn a_store_is_kept_and_can_be_looked_into() {
    let data = TempDir::new().expect("temporary folder");
    let mut server = Server::engine(data.path(), &[]);
    server.run(&["tables", "create", "t", "--family", "f"]).ok();
    server.run(&["put", "t", "r", "f:q=v"]).ok();
    assert!(server.process.terminate().success());
    let mut server = Server::engine(data.path(), &["--read-only"]);
    assert_eq!(server.run(&["get", "t", "r", "f:q", "--raw"]).ok(), "v");
    assert_eq!(server.run(&["put", "t", "r", "f:q=w"]).code, 1);
    assert!(server.process.terminate().success());
    let server = Server::engine(data.path(), &[]);
    assert_eq!(server.run(&["get", "t", "r", "f:q", "--raw"]).ok(), "v");
}

#[test]
fn paths_and_keys_convert_both_ways() {
    assert_eq!(
        run(["path", "t", "a/b", "f", "", "15"]).ok(),
        "t/a%2Fb/f/%empty/15\n"
    );
    assert_eq!(
        run(["path", "--mount", "/mnt", "t", "%00%01"]).ok(),
        "/mnt/t/%x0001\n"
    );
    assert_eq!(
        run(["key", "t/a%2Fb/f/%empty/15"]).ok(),
        "table       t\nrow         a%2Fb\nfamily      f\nqualifier   %empty\ntimestamp   15\n"
    );
    assert_eq!(run(["key", "--raw", "t/%x00ff0a"]).stdout, b"\0\xff\n");
    let parts: Value =
        serde_json::from_str(run(["key", "-o", "json", "t/%FF/f"]).ok()).expect("JSON");
    assert_eq!(
        parts,
        json!({"table": "t", "rowBase64": "/w==", "family": "f"})
    );
    run(["key", "/no/mount/here"]).failed(
        1,
        "/no/mount/here lies in no mount of tables; give the path from the mount point on",
    );
}

#[test]
fn probes_and_shells_are_served() {
    let url = format!("{}/readyz", server().url);
    run(["healthcheck", "--url", &url]).ok();
    let missing = run([
        "healthcheck",
        "--url",
        &format!("{}/v1/tables/none", server().url),
    ]);
    missing.failed(
        1,
        &format!("{}/v1/tables/none: answered 404 Not Found", server().url),
    );
    let refused = run(["healthcheck", "--url", "http://127.0.0.1:1/"]);
    assert_eq!(
        (refused.code, refused.stderr.lines().count()),
        (1, 1),
        "{refused:?}"
    );
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            run(["completions", shell]).ok().contains("keys-only"),
            "{shell}"
        );
    }
}

#[test]
fn help_is_help_and_nothing_is_usage() {
    let help = run(["--help"]);
    assert!(help.ok().contains("Exit codes: 0 done"), "{help:?}");
    assert!(run(["import", "--help"]).ok().contains("Examples:"));
    let version = run(["--version"]);
    assert_eq!(
        version.ok(),
        format!("tablemount {}\n", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(run::<&str>([]).code, 2);
    run(["nonsense"]).failed(2, "unrecognized subcommand 'nonsense'");
}

#[test]
fn the_binary_knows_its_other_names() {
    use std::os::unix::process::CommandExt as _;
    let named = |name: &str, args: &[&str]| {
        let output = tablemount(args).arg0(name).output().expect("run");
        Outcome::from(output)
    };
    assert!(
        named("/bin/kubectl-tablemount", &["get", "--help"])
            .ok()
            .contains("Usage: kubectl tablemount get")
    );
    named("/sbin/mount.tablemount", &["http://x"]).failed(
        2,
        "mount.tablemount: usage: mount.tablemount SERVER MOUNTPOINT [-o OPTIONS]",
    );
    named("mount.tablemount", &["http://x", "/mnt", "-o", "sync"]).failed(
        2,
        "mount.tablemount: unknown option \"sync\" (options: allow_other, uid, gid, limit, token_file)",
    );
}

//! Loading files: nothing lost, nothing twice, and what was exported comes back byte for byte.

mod support;

use std::fmt::Write as _;
use std::path::Path;

use support::run_with;
use support::shared::{create, server, tm};
use tempfile::TempDir;

fn write(folder: &TempDir, name: &str, content: impl AsRef<[u8]>) -> String {
    let file = folder.path().join(name);
    std::fs::write(&file, content).expect("written");
    file.to_str().expect("name").to_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("name")
}

#[test]
fn many_rows_arrive_and_bad_lines_are_told() {
    const ROWS: usize = 50_000;
    create("many", &["info"]);
    let folder = TempDir::new().expect("temporary folder");
    let mut csv = "id,info:name,info:note\n".to_owned();
    for n in 0..ROWS {
        match n {
            7_000 => csv.push_str("row7000\n"),
            30_000 => csv.push_str(",nameless,\n"),
            _ => drop(writeln!(csv, "row{n:05},name {n},{}", "x".repeat(n % 50))),
        }
    }
    let file = write(&folder, "many.csv", &csv);
    let outcome = tm(&["import", "many", &file]);
    assert_eq!(outcome.code, 4, "{}", outcome.stderr);
    assert!(
        outcome.text().starts_with("49,998 rows, 2 bad lines in "),
        "{}",
        outcome.text()
    );
    let stderr: Vec<&str> = outcome.stderr.lines().collect();
    assert_eq!(
        stderr,
        [
            format!("tablemount: {file} line 7002: 1 fields; the header has 3"),
            format!(
                "tablemount: {file} line 30002: row key is empty; a row key has 1 to 65536 bytes"
            ),
            "tablemount: 49,998 rows, 2 bad lines; the bad lines were left out".to_owned(),
        ]
    );
    assert_eq!(
        tm(&["scan", "many", "--keys-only"]).ok().lines().count(),
        ROWS - 2
    );
    assert_eq!(
        tm(&["get", "many", "row49999", "info:note", "--raw"]).ok(),
        "x".repeat(49)
    );
    // An empty field is no cell.
    assert_eq!(tm(&["get", "many", "row00050", "info:note"]).code, 3);
    assert_eq!(
        tm(&["get", "many", "row00050", "info:name", "--raw"]).ok(),
        "name 50"
    );
}

#[test]
fn every_bad_line_is_told_with_its_number() {
    create("bad", &["f"]);
    let lines = "{\"row\":\"\"}\n".repeat(100);
    let url = &server().url;
    let outcome = run_with(
        ["import", "bad", "-", "--format", "ndjson", "--server", url],
        lines.as_bytes(),
    );
    assert_eq!(outcome.code, 4, "{outcome:?}");
    assert_eq!(outcome.stderr.lines().count(), 101, "{outcome:?}");
    assert!(
        outcome.stderr.contains("stdin line 100: row key is empty"),
        "{outcome:?}"
    );
    assert!(
        outcome
            .stderr
            .ends_with("0 rows, 100 bad lines; the bad lines were left out\n"),
        "{outcome:?}"
    );
}

#[test]
fn an_import_can_be_repeated() {
    create("again", &["f"]);
    let folder = TempDir::new().expect("temporary folder");
    let file = write(
        &folder,
        "again.csv",
        "id,f:a\nr1,x\nr2,y\nr1,later line wins\n",
    );
    let import = ["import", "again", &file, "--default-timestamp", "5000"];
    for _ in 0..3 {
        assert!(tm(&import).ok().starts_with("3 rows in "));
    }
    let all = tm(&["export", "again"]);
    assert_eq!(
        all.ok(),
        "{\"row\":\"r1\",\"cells\":[{\"family\":\"f\",\"qualifier\":\"a\",\"timestamp\":5000,\"value\":\"later line wins\"}]}\n\
         {\"row\":\"r2\",\"cells\":[{\"family\":\"f\",\"qualifier\":\"a\",\"timestamp\":5000,\"value\":\"y\"}]}\n"
    );
}

#[test]
fn an_import_that_stops_says_how_to_go_on() {
    create("stop", &["f"]);
    let folder = TempDir::new().expect("temporary folder");
    // A quote that is never closed, in more than the longest record.
    let mut csv = b"id,f:a\nr1,x\nr2,\"".to_vec();
    csv.resize(212 << 20, b'y');
    let file = write(&folder, "stop.csv", &csv);
    let outcome = tm(&["import", "stop", &file, "--default-timestamp", "7"]);
    outcome.failed(
        1,
        &format!(
            "{file}: record from line 3 on: over 220200960 bytes; is a quote not closed?; the import stopped after 1 row; \
             repeat it with --default-timestamp 7 to write the same cells and the rest"
        ),
    );
    assert_eq!(tm(&["get", "stop", "r1", "f:a", "--raw"]).ok(), "x");
}

#[test]
fn any_bytes_come_back_from_an_export() {
    create("from", &["f", "g"]);
    let mut lines = String::new();
    let keys = ["plain", "a/b", "\\u0000\\n", "%41", "Zürich", ","];
    for (n, key) in keys.iter().enumerate() {
        let _ = writeln!(
            lines,
            r#"{{"row":"{key}","cells":[{{"family":"f","qualifier":"q,\"{n}","timestamp":{n},"value":"v\n{n}"}},
               {{"family":"g","timestamp":3,"valueBase64":"/wA="}},{{"family":"g","timestamp":2,"value":""}}]}}"#
        );
    }
    let lines = lines.replace(",\n               {", ",{");
    let lines = lines
        + r#"{"rowBase64":"/w==","cells":[{"family":"f","qualifierBase64":"/g==","timestamp":1,"value":"\r\n"}]}"#;
    let folder = TempDir::new().expect("temporary folder");
    tm(&["import", "from", &write(&folder, "from.ndjson", &lines)]).ok();
    let all = tm(&["export", "from"]);
    assert_eq!(all.ok().lines().count(), keys.len() + 1, "{}", all.text());
    for format in ["ndjson", "csv"] {
        let table = format!("to-{format}");
        create(&table, &["f", "g"]);
        let exported = tm(&["export", "from", "--format", format]);
        let file = write(&folder, &format!("all.{format}"), &exported.stdout);
        tm(&["import", &table, &file]).ok();
        assert_eq!(tm(&["export", &table]).ok(), all.text(), "{format}");
    }
}

#[test]
fn long_rows_and_large_values_come_back() {
    create("large", &["f"]);
    create("large2", &["f"]);
    let folder = TempDir::new().expect("temporary folder");
    let big = "b".repeat(5 << 20);
    let mut line = format!(
        "{{\"row\":\"r\",\"cells\":[{{\"family\":\"f\",\"qualifier\":\"big\",\"timestamp\":1,\"value\":\"{big}\"}}"
    );
    for n in 0..120_000 {
        let _ = write!(
            line,
            ",{{\"family\":\"f\",\"qualifier\":\"q{n:06}\",\"timestamp\":1,\"value\":\"{n}\"}}"
        );
    }
    line.push_str("]}\n");
    assert!(
        tm(&["import", "large", &write(&folder, "large.ndjson", &line)])
            .ok()
            .starts_with("1 row in ")
    );
    assert_eq!(
        tm(&["get", "large", "r", "f:big", "--raw"]).stdout.len(),
        big.len()
    );
    let exported = tm(&["export", "large"]);
    let file = write(&folder, "exported.ndjson", &exported.stdout);
    tm(&["import", "large2", &file]).ok();
    assert!(
        tm(&["export", "large2"]).stdout == exported.stdout,
        "the copy differs"
    );
    assert_eq!(
        tm(&["get", "large2", "r", "f:q119999", "--raw"]).ok(),
        "119999"
    );
}

#[test]
fn files_that_cannot_be_placed_are_refused() {
    create("place", &["info"]);
    let folder = TempDir::new().expect("temporary folder");
    let file = write(&folder, "x.csv", "id,name\nr,v\n");
    let import = |flags: &[&str]| tm(&[&["import", "place", &file], flags].concat());
    import(&[]).failed(
        1,
        &format!(
            "{file}: column \"name\" is not FAMILY:QUALIFIER; give --family for such columns, --column name=FAMILY:QUALIFIER or \
             --skip name"
        ),
    );
    import(&["--family", "Info"]).failed(
        1,
        &format!(
            "{file}: column family \"Info\" not found in table \"place\" (families: \"info\")"
        ),
    );
    import(&["--row", "key"]).failed(
        1,
        &format!("{file}: column \"key\" not found (columns: \"id\", \"name\")"),
    );
    import(&["--timestamp-format", "%Y"]).failed(2, "--timestamp-format needs --timestamp COL");
    import(&["--format", "ndjson", "--row", "id"]).failed(
        2,
        "--row, --family, --column, --skip, --timestamp and --timestamp-format are for csv",
    );
    import(&["--column", "name=info"])
        .failed(2, "invalid value 'name=info' for '--column <COL=FAMILY:QUALIFIER>': it is not COL=FAMILY:QUALIFIER");
    let other = write(&folder, "x.txt", "");
    tm(&["import", "place", &other]).failed(
        2,
        &format!("the name of {other} does not tell its form; give --format csv or ndjson"),
    );
    let nowhere = folder.path().join("no.csv");
    tm(&["import", "place", text(&nowhere)]).failed(
        1,
        &format!(
            "{}: No such file or directory (os error 2)",
            nowhere.display()
        ),
    );
    tm(&["import", "place", text(folder.path()), "--format", "csv"]).failed(
        1,
        &format!("{} is a directory; give a file", folder.path().display()),
    );
    assert_eq!(tm(&["scan", "place"]).ok(), "");
    import(&["--family", "info"]).ok();
    assert_eq!(tm(&["get", "place", "r", "info:name", "--raw"]).ok(), "v");
}

//! What is refused, and in which words: bad input, no access, what an engine cannot start with.

use tempfile::TempDir;

use super::support::shared::{create, server, tm};
use super::support::{Outcome, Server, run};

#[test]
fn bad_input_is_one_line() {
    create("bad", &["info", "small:maxValueBytes=4"]);
    let check = |args: &[&str], code, message: &str| tm(args).failed(code, message);
    let table = "table name \"a/b\" is not 1 to 50 of letters, digits, '-', '_' and '.', starting with a letter, a digit or '_'";
    check(
        &["get", "a/b", "r"],
        2,
        &format!("invalid value 'a/b' for '<TABLE>': {table}"),
    );
    check(
        &["put", "bad", "", "info:q=v"],
        2,
        "invalid value '' for '<ROW>': \"\" is not a name: empty; the empty byte string is %empty",
    );
    check(
        &["put", "bad", "%empty", "info:q=v"],
        2,
        "invalid value '%empty' for '<ROW>': row key is empty; a row key has 1 to 65536 bytes",
    );
    let long = "k".repeat(65_537);
    check(
        &["put", "bad", &long, "info:q=v"],
        2,
        &format!(
            "invalid value '{}…' for '<ROW>': row key is 65537 bytes; limit is 65536",
            "k".repeat(60)
        ),
    );
    check(
        &["put", "bad", "r", "info"],
        2,
        "\"info\" is not FAMILY:QUALIFIER=VALUE",
    );
    check(
        &["put", "bad", "r", "info:%zz=v"],
        2,
        "\"%zz\" is not a name: after % come two hex digits, or x, l, empty",
    );
    check(
        &["put", "bad", "r", "info:q=v", "--timestamp", "-1"],
        2,
        "invalid value '-1' for '--timestamp <MICROS>': \"-1\" is not a timestamp; it is a number of microseconds from 0 to \
         9223372036854775807",
    );
    check(
        &["get", "bad", "r", "--at", "yesterday"],
        2,
        "invalid value 'yesterday' for '--at <TIME>': \"yesterday\" is not a time; give microseconds since 1970, a date such as \
         2008-07-02 (its end, UTC) or a time such as 2008-07-02T12:00:00Z",
    );
    check(
        &["delete", "bad", "r", "info", "--timestamp", "1"],
        2,
        "--timestamp deletes one version of a column; name FAMILY:QUALIFIER",
    );

    let unknown =
        "column family \"Info\" not found in table \"bad\" (families: \"info\", \"small\")";
    check(&["put", "bad", "r", "Info:q=v"], 3, unknown);
    check(&["get", "bad", "r", "Info"], 3, unknown);
    check(&["get", "bad", "r", "Info:q", "--raw"], 3, unknown);
    check(&["scan", "bad", "--column", "Info"], 3, unknown);
    let long = tm(&["put", "bad", "r", "info:a=kept?", "small:q=12345"]);
    assert_eq!((long.code, long.stderr.lines().count()), (1, 1), "{long:?}");
    let parts = ["\"small\"", "5 bytes", "limit", "4"];
    assert!(
        parts.iter().all(|part| long.stderr.contains(part)),
        "{long:?}"
    );
    // Nothing half-done.
    check(
        &["get", "bad", "r"],
        3,
        "row \"r\" not found in table \"bad\"",
    );
}

#[test]
fn an_engine_that_is_not_there_is_named() {
    let outcome = run(["get", "t", "r", "--server", "http://127.0.0.1:1"]);
    assert_eq!(outcome.code, 1);
    assert!(
        outcome
            .stderr
            .starts_with("tablemount: http://127.0.0.1:1: "),
        "{outcome:?}"
    );
    assert!(outcome.stderr.contains("onnection refused"), "{outcome:?}");
    let scheme = run(["tables", "--server", "ftp://x"]);
    assert_eq!(
        (scheme.code, scheme.stderr.lines().count()),
        (1, 1),
        "{scheme:?}"
    );
}

#[test]
fn access_follows_the_flags() {
    let folder = TempDir::new().expect("temporary folder");
    let token = folder.path().join("token");
    std::fs::write(&token, "sesame\n").expect("written");
    let token_file = ["--token-file", token.to_str().expect("name")];
    let server = Server::engine(
        &folder.path().join("data"),
        &[&["--anonymous", "read-only"], &token_file[..]].concat(),
    );
    let create = ["tables", "create", "t", "--family", "f"];
    let refused = server.run(&create);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(!refused.stderr.contains("sesame"));
    server.run(&[&create[..], &token_file].concat()).ok();
    server
        .run(&[&["put", "t", "r", "f:q=v"], &token_file[..]].concat())
        .ok();
    assert_eq!(server.run(&["get", "t", "r", "f:q", "--raw"]).ok(), "v");
    assert_eq!(server.run(&["put", "t", "r", "f:q=w"]).code, 1);

    let closed = Server::engine(&folder.path().join("closed"), &["--anonymous", "none"]);
    let refused = closed.run(&["tables"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("anonymous"), "{refused:?}");
}

#[test]
fn what_an_engine_cannot_start_with_is_one_line() {
    let folder = TempDir::new().expect("temporary folder");
    let engine = |data: &str, http: &str| {
        run([
            "engine",
            "--data",
            data,
            "--http",
            http,
            "--grpc",
            "127.0.0.1:0",
        ])
    };
    let data = folder.path().join("data");
    let data = data.to_str().expect("name");
    let last = |outcome: &Outcome| outcome.stderr.lines().last().unwrap_or_default().to_owned();

    engine("s3://bucket/x", "127.0.0.1:0").failed(
        2,
        "invalid value 's3://bucket/x' for '--data <DIR|URL>': object stores (s3://) are not supported yet; give a directory or \
         a file:// URL",
    );
    engine(data, "8080")
        .failed(2, "invalid value '8080' for '--http <ADDR>': it is not HOST:PORT, such as 127.0.0.1:8080 or 0.0.0.0:8080");

    let taken = server().url.strip_prefix("http://").expect("URL");
    let outcome = engine(data, taken);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert_eq!(
        last(&outcome),
        format!("tablemount: http: listen on {taken}: the port is in use by another process")
    );
    assert!(
        !std::path::Path::new(data).exists(),
        "nothing is made before the address is ours"
    );

    let file = folder.path().join("file");
    std::fs::write(&file, "x").expect("written");
    let outcome = engine(file.to_str().expect("name"), "127.0.0.1:0");
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(
        last(&outcome).starts_with("tablemount: ") && last(&outcome).contains("file"),
        "{outcome:?}"
    );

    let used = Server::engine(&folder.path().join("used"), &[]);
    let outcome = engine(
        folder.path().join("used").to_str().expect("name"),
        "127.0.0.1:0",
    );
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(last(&outcome).contains("used"), "{outcome:?}");
    assert_eq!(used.run(&["tables"]).code, 0);
}

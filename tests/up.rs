//! `tablemount up` with the examples: tables from manifests, their data, the mount, changes by SIGHUP, an orderly end.

mod support;

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use support::{Mountpoint, Process, Server, can_mount, eventually, root, run, tablemount};
use tempfile::TempDir;

fn text(path: &Path) -> &str {
    path.to_str().expect("name")
}

/// Waits until `up` has said this of a table.
fn condition(server: &Server, from: usize, line: &str) {
    server
        .process
        .stdout
        .wait(from, |said| said.starts_with(line).then_some(()));
}

fn load(server: &Server) {
    let data = root().join("crds/examples/data");
    let file = |name: &str| data.join(name).to_str().expect("name").to_owned();
    for (table, name) in [
        ("blogtable", "blog.ndjson"),
        ("usertable", "users.ndjson"),
        ("map", "map.ndjson"),
    ] {
        server.run(&["import", table, &file(name)]).ok();
    }
    let stocks = file("stocks.csv");
    let flags = [
        "--row",
        "symbol",
        "--column",
        "price=price:close",
        "--timestamp",
        "date",
        "--timestamp-format",
        "%b %d %Y",
    ];
    let loaded = server.run(&[&["import", "stocks", &stocks], &flags[..]].concat());
    assert!(loaded.ok().starts_with("560 rows in "), "{loaded:?}");
}

#[test]
fn the_examples_hold_what_they_say() {
    let folder = TempDir::new().expect("temporary folder");
    let examples = root().join("crds/examples");
    let server = Server::up(&folder.path().join("data"), &["-f", text(&examples)]);
    for table in ["blogtable", "usertable", "map", "stocks"] {
        condition(
            &server,
            0,
            &format!("table \"default/{table}\": Ready (Applied): "),
        );
    }
    load(&server);
    load(&server);

    let get = |args: &[&str]| server.run(&[&["get", "map", "aaaaa"], args].concat());
    assert_eq!(get(&["A:foo", "--raw"]).ok(), "y");
    assert_eq!(get(&["A:foo", "--at", "10", "--raw"]).ok(), "m");
    get(&["A:foo", "--at", "2", "--raw"]).failed(
        3,
        "row \"aaaaa\" of table \"map\" has no cell in A:foo at or before 2",
    );
    assert_eq!(
        get(&["B:", "--versions", "all"]).ok(),
        "aaaaa\n  B:  6  w\n  B:  3  o\n  B:  1  w\n"
    );
    assert_eq!(
        server.run(&["scan", "map", "--keys-only"]).ok(),
        "1\naaaaa\naaaab\nxyz\nzzzzz\n"
    );

    let text_of = |flags: &[&str]| {
        server.run(&[&["get", "blogtable", "TT20080702120000", "text:"], flags].concat())
    };
    assert_eq!(
        text_of(&["--raw"]).ok(),
        "A table is a sorted map of maps: row, family, qualifier, time.\n"
    );
    assert_eq!(
        text_of(&["--raw", "--at", "2008-07-02"]).ok(),
        "A table is a sorted map.\n"
    );
    assert_eq!(text_of(&["--versions", "all"]).ok().lines().count(), 1 + 3);
    // A fourth version takes the first one with it.
    server
        .run(&[
            "put",
            "blogtable",
            "TT20080702120000",
            "text:=Fourth.",
            "--timestamp",
            "1215300000000000",
        ])
        .ok();
    assert!(
        !text_of(&["--versions", "all"])
            .ok()
            .contains("A table is a map.")
    );
    assert_eq!(
        server
            .run(&["scan", "blogtable", "--prefix", "TT", "--keys-only"])
            .ok()
            .lines()
            .count(),
        2
    );

    let price =
        |at: &str| server.run(&["get", "stocks", "AAPL", "price:close", "--at", at, "--raw"]);
    assert_eq!(price("2008-07-02").ok(), "158.95");
    assert_eq!(price("2008-06-30").ok(), "167.44");
    assert_eq!(price("1999-12-31").code, 3);
    let tables = server.run(&["tables"]);
    assert!(tables.ok().contains("default/stocks"), "{tables:?}");
    server
        .run(&["tables", "drop", "stocks", "--yes"])
        .failed(1, "table \"stocks\" is declared by the manifest of default/stocks; drop it there (deletionPolicy: Delete)");
}

#[test]
fn the_mount_shows_the_examples_and_ends_with_the_process() {
    if !can_mount() {
        return;
    }
    let folder = TempDir::new().expect("temporary folder");
    let mount = Mountpoint::new(&folder.path().join("mnt"));
    let examples = root().join("crds/examples");
    let flags = ["-f", text(&examples), "--mount", text(&mount.0)];
    let mut server = Server::up(&folder.path().join("data"), &flags);
    eventually("the mount", || {
        mount.0.join("stocks").is_dir().then_some(())
    });
    load(&server);
    let read = |path: &str| fs::read_to_string(mount.0.join(path)).expect("readable");
    let names = |path: &str| {
        let mut names: Vec<_> = fs::read_dir(mount.0.join(path))
            .expect("a directory")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("a name")
            })
            .collect();
        names.sort();
        names
    };
    assert_eq!(read("map/aaaaa/A/foo/latest"), "y");
    assert_eq!(read("map/aaaaa/A/foo/4"), "m");
    assert_eq!(read("map/aaaaa/B/%empty/latest"), "w");
    assert_eq!(names("map/aaaaa/A"), ["bar", "foo"]);
    assert_eq!(
        names("blogtable/TT20080702120000"),
        [
            "comment_author",
            "comment_text",
            "comment_title",
            "info",
            "text"
        ]
    );
    assert_eq!(
        read("stocks/@at/2008-07-02/AAPL/price/close/latest"),
        "158.95"
    );
    assert_eq!(names("stocks/GOOG/price/close").len(), 68 + 1);
    // What `path` prints is there, and `key` knows the mount.
    let path = run([
        "path",
        "--mount",
        text(&mount.0),
        "blogtable",
        "TT20080702120000",
        "info",
        "author",
    ]);
    let path = path.ok().trim_end();
    assert!(Path::new(path).is_dir(), "{path}");
    assert!(run(["key", path]).ok().contains("qualifier   author"));

    assert!(
        server.process.terminate().success(),
        "{:#?}",
        server.process.stderr.all()
    );
    assert_eq!(fs::read_dir(&mount.0).expect("unmounted").count(), 0);
}

/// Whether a process runs that has `argument` on its command line.
fn runs_with(argument: &Path) -> bool {
    let with = |entry: fs::DirEntry| {
        // It may end while it is looked at.
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0)
            .any(|word| word == argument.as_os_str().as_encoded_bytes())
    };
    fs::read_dir("/proc")
        .expect("processes")
        .filter_map(Result::ok)
        .any(with)
}

#[test]
fn a_mount_in_the_background_ends_with_umount() {
    use std::os::unix::process::CommandExt as _;
    if !can_mount() {
        return;
    }
    let folder = TempDir::new().expect("temporary folder");
    let mount = Mountpoint::new(&folder.path().join("mnt"));
    let server = Server::engine(&folder.path().join("data"), &[]);
    server.run(&["tables", "create", "t", "--family", "f"]).ok();
    let mut by_flag = server.command(&["mount", "--background", text(&mount.0)]);
    let mut by_fstab = tablemount([
        server.url.as_str(),
        text(&mount.0),
        "-o",
        "rw,_netdev,x-y=z",
    ]);
    by_fstab.arg0("mount.tablemount");
    for command in [&mut by_flag, &mut by_fstab] {
        // The mount holds what it inherits: its log goes nowhere here.
        let status = command
            .stderr(std::process::Stdio::null())
            .status()
            .expect("run");
        assert!(status.success(), "{status}");
        assert!(mount.0.join("t").is_dir() && runs_with(&mount.0));
        let unmounted = std::process::Command::new("umount")
            .arg(&mount.0)
            .status()
            .expect("umount");
        assert!(unmounted.success());
        eventually("end of the mount", || (!runs_with(&mount.0)).then_some(()));
    }
    let nowhere = folder.path().join("nowhere");
    let refused = server.run(&["mount", "--background", text(&nowhere)]);
    assert_eq!(
        (refused.code, refused.stderr.lines().count()),
        (1, 1),
        "{refused:?}"
    );
    assert!(refused.stderr.contains("does not exist"), "{refused:?}");
}

const TABLE: &str = "apiVersion: tablemount.dev/v1alpha1
kind: Table
metadata: { name: NAME }
spec:
  clusterRef: { name: any }
  deletionPolicy: POLICY
  families: FAMILIES
";

fn manifest(name: &str, policy: &str, families: &str) -> String {
    TABLE
        .replace("NAME", name)
        .replace("POLICY", policy)
        .replace("FAMILIES", families)
}

#[test]
fn manifests_are_read_again_on_sighup_and_at_the_next_start() {
    let folder = TempDir::new().expect("temporary folder");
    let (data, file) = (
        folder.path().join("data"),
        folder.path().join("tables.yaml"),
    );
    let flags = ["-f", text(&file)];
    let first = manifest("kept", "Retain", "[{name: a}]");
    fs::write(
        &file,
        format!("{first}---\n{}", manifest("gone", "Delete", "[{name: a}]")),
    )
    .expect("written");
    let mut server = Server::up(&data, &flags);
    condition(&server, 0, "table \"default/gone\": Ready (Applied): ");
    server.run(&["put", "kept", "r", "a:q=v"]).ok();

    // A family more, a table less.
    let said = server.process.stdout.count();
    fs::write(&file, manifest("kept", "Retain", "[{name: a}, {name: b}]")).expect("written");
    server.process.signal(Signal::HUP);
    condition(
        &server,
        said,
        "table \"default/kept\": Ready (Applied): 2 column families",
    );
    condition(
        &server,
        said,
        "table \"default/gone\": no longer declared; \"gone\" was dropped (deletionPolicy: Delete)",
    );
    server.run(&["put", "kept", "r", "b:q=w"]).ok();
    assert_eq!(server.run(&["tables", "gone"]).code, 3);

    // A change that deletes data wants consent; the old schema serves.
    let said = server.process.stdout.count();
    fs::write(&file, manifest("kept", "Retain", "[{name: b}]")).expect("written");
    server.process.signal(Signal::HUP);
    condition(
        &server,
        said,
        "table \"default/kept\": not Ready (ConsentRequired): ",
    );
    assert_eq!(server.run(&["get", "kept", "r", "a:q", "--raw"]).ok(), "v");

    // A typo changes nothing.
    let logged = server.process.stderr.count();
    fs::write(
        &file,
        manifest("kept", "Retain", "[{name: a, maxVersion: 1}, {name: b}]"),
    )
    .expect("written");
    server.process.signal(Signal::HUP);
    let error = server.process.stderr.wait(logged, |line| {
        line.starts_with("tablemount: ").then(|| line.to_owned())
    });
    assert!(
        error.starts_with(
            "tablemount: the manifests were not applied, the tables stay as they are: "
        ),
        "{error}"
    );
    assert!(error.contains("maxVersion"), "{error}");
    assert!(server.process.terminate().success());

    // Nor does it let the next start pass.
    let mut command = tablemount([
        "up",
        "--data",
        text(&data),
        "--http",
        "127.0.0.1:0",
        "--grpc",
        "127.0.0.1:0",
    ]);
    let mut failed = Process::start(command.args(flags));
    assert_eq!(failed.wait().code(), Some(1));
    let error = failed.stderr.all().last().cloned().unwrap_or_default();
    assert!(
        error.contains("tables.yaml") && error.contains("\"kept\"") && error.contains("maxVersion"),
        "{error}"
    );

    // A table that is not declared any more stays.
    fs::write(&file, manifest("other", "Retain", "[{name: a}]")).expect("written");
    let server = Server::up(&data, &flags);
    condition(
        &server,
        0,
        "table \"default/kept\": not declared in these files; \"kept\" stays with its data",
    );
    assert_eq!(server.run(&["get", "kept", "r", "b:q", "--raw"]).ok(), "w");
}

#[test]
fn what_up_cannot_start_with_is_one_line() {
    let folder = TempDir::new().expect("temporary folder");
    let data = folder.path().join("data");
    let up = |flags: &[&str]| {
        let fixed = [
            "up",
            "--data",
            text(&data),
            "--http",
            "127.0.0.1:0",
            "--grpc",
            "127.0.0.1:0",
        ];
        let outcome = run([&fixed[..], flags].concat());
        assert_eq!(outcome.code, 1, "{outcome:?}");
        outcome.stderr.lines().last().unwrap_or_default().to_owned()
    };
    let nowhere = folder.path().join("none.yaml");
    assert_eq!(
        up(&["-f", text(&nowhere)]),
        format!(
            "tablemount: {}: No such file or directory (os error 2)",
            nowhere.display()
        )
    );
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).expect("made");
    assert_eq!(
        up(&["-f", text(&empty)]),
        format!(
            "tablemount: {}: no manifests (*.yaml, *.yml, *.json) in this directory",
            empty.display()
        )
    );
    let twice = folder.path().join("twice");
    fs::create_dir(&twice).expect("made");
    for name in ["a.yaml", "b.yaml"] {
        fs::write(twice.join(name), manifest("t", "Retain", "[{name: a}]")).expect("written");
    }
    assert_eq!(
        up(&["-f", text(&twice)]),
        format!(
            "tablemount: {}: Table \"default/t\" stands in another file too",
            twice.join("b.yaml").display()
        )
    );
    assert!(
        !data.exists(),
        "nothing is made before the manifests are good"
    );

    let good = twice.join("a.yaml");
    let mount = folder.path().join("mnt");
    let error = up(&["-f", text(&good), "--mount", text(&mount)]);
    assert!(
        error.starts_with("tablemount: mount point ") && error.contains("does not exist"),
        "{error}"
    );
    fs::create_dir(&mount).expect("made");
    fs::write(mount.join("x"), "").expect("written");
    let error = up(&["-f", text(&good), "--mount", text(&mount)]);
    assert!(error.contains("not empty"), "{error}");
}

#[test]
fn manifests_come_from_stdin_too() {
    let folder = TempDir::new().expect("temporary folder");
    let file = folder.path().join("tables.yaml");
    fs::write(&file, manifest("t", "Retain", "[{name: a}]")).expect("written");
    let data = folder.path().join("data");
    let mut command = tablemount([
        "up",
        "-f",
        "-",
        "--http",
        "127.0.0.1:0",
        "--grpc",
        "127.0.0.1:0",
        "--data",
        text(&data),
    ]);
    let process = Process::start_with(
        &mut command,
        fs::File::open(&file).expect("readable").into(),
    );
    process.stdout.wait(0, |line| {
        line.starts_with("table \"default/t\": Ready (Applied): ")
            .then_some(())
    });
}

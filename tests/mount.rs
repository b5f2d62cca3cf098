//! The filesystem through real mounts: coreutils, find, grep, cp, tar over an engine, and how many requests they cost.
//!
//! What does not need a kernel is tested in the crate; here is what only the kernel and real programs show.

mod support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::io::Errno;
use rustix::process::Signal;
use support::{Mountpoint, Outcome, Process, Server, can_mount, eventually, run, tablemount};
use tablemount_api::{
    Base64, FamilyName, FamilySchema, MutateRequest, Mutation, PutTable, Qualifier, RowKey,
    RowMutation, TableName, Timestamp,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// An engine and a mount of it.
struct Mounted {
    // Dropped in this order: the mount before its directory.
    process: Process,
    point: Mountpoint,
    server: Server,
    folder: TempDir,
}

impl Mounted {
    fn new() -> Self {
        let folder = TempDir::new().expect("temporary folder");
        let server = Server::engine(&folder.path().join("data"), &[]);
        let point = Mountpoint::new(&folder.path().join("mnt"));
        let process = mount(&server, &point, &[]);
        Self {
            process,
            point,
            server,
            folder,
        }
    }

    fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.point.0.join(below)
    }

    /// Runs a shell line in the mount point.
    fn sh(&self, line: &str) -> Outcome {
        let output = Command::new("sh")
            .args(["-c", line])
            .current_dir(&self.point.0)
            .env("LC_ALL", "C")
            .output();
        output.expect("sh").into()
    }

    /// A table with the family `f`, and its cells at timestamp 5.
    fn table(&self, name: &str, cells: impl Iterator<Item = (Bytes, Bytes, Bytes)>) {
        let name = TableName::new(name).expect("valid");
        let family = FamilyName::new("f").expect("valid");
        let client = self.server.client();
        let body = PutTable {
            families: vec![FamilySchema::new(family.clone())],
            ..PutTable::default()
        };
        let mut rows = cells
            .map(|(row, qualifier, value)| RowMutation {
                row: RowKey::new(row).expect("valid"),
                check: None,
                mutations: vec![Mutation::Put {
                    family: family.clone(),
                    qualifier: Qualifier::new(qualifier).expect("valid"),
                    timestamp: Some(Timestamp(5)),
                    value: Base64(value),
                }],
            })
            .peekable();
        let runtime = Runtime::new().expect("runtime");
        runtime
            .block_on(client.put_table(&name, &body))
            .expect("table");
        while rows.peek().is_some() {
            let request = MutateRequest {
                rows: rows.by_ref().take(5000).collect(),
            };
            runtime
                .block_on(client.mutate(&name, &request))
                .expect("write");
        }
    }

    /// Requests that the engine has answered, those for metrics and probes aside.
    fn requests(&self) -> u64 {
        let runtime = Runtime::new().expect("runtime");
        let url = format!("{}/metrics", self.server.url);
        let text = runtime.block_on(async { reqwest::get(url).await?.text().await });
        text.expect("metrics")
            .lines()
            .filter(|line| {
                line.starts_with("tablemount_http_requests_total") && line.contains("\"/v1")
            })
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok())
            .sum()
    }

    /// How many requests a shell line costs, how many seconds it took, and what it printed.
    fn cost(&self, line: &str) -> (u64, u64, String) {
        let (before, start) = (self.requests(), Instant::now());
        let printed = self.sh(line).ok().trim().to_owned();
        let (requests, took) = (self.requests() - before, start.elapsed());
        eprintln!("{requests} requests, {took:?}: {line}");
        (requests, took.as_secs(), printed)
    }
}

fn mount(server: &Server, point: &Mountpoint, flags: &[&str]) -> Process {
    let mut command = server.command(&["mount"]);
    let process = Process::start(command.args(flags).arg(&point.0));
    process
        .stdout
        .wait(0, |line| line.starts_with("mounted ").then_some(()));
    process
}

fn is_mounted(path: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mountinfo");
    mounts
        .lines()
        .any(|line| line.split(' ').nth(4) == path.to_str())
}

/// Rows `000000` and on, each with one cell.
fn numbered(rows: u64, value: &[u8]) -> impl Iterator<Item = (Bytes, Bytes, Bytes)> {
    let value = Bytes::copy_from_slice(value);
    (0..rows).map(move |row| (format!("{row:06}").into(), "q".into(), value.clone()))
}

#[test]
fn odd_keys_come_back_byte_for_byte() {
    if !can_mount() {
        return;
    }
    let mounted = Mounted::new();
    let keys: Vec<Vec<u8>> = [
        &b"a/b"[..],
        b"a\0b",
        b"a\nb",
        b"\xff\xfe",
        b".",
        b"..",
        b"-rf",
        b" ",
        b"@at",
        b"latest",
        b"*?[$`'\"\\",
    ]
    .iter()
    .map(|key| key.to_vec())
    .chain([
        "Zürich \u{202e}".into(),
        vec![b'k'; 65_536],
        vec![0; 65_536],
    ])
    .collect();
    let cells = keys.iter().enumerate().map(|(index, key)| {
        let qualifier = match index {
            0 => Bytes::new(),
            _ => Bytes::copy_from_slice(&key[..key.len().min(32_768)]),
        };
        let value = [&key[..], b" is the value"].concat();
        (Bytes::from(key.clone()), qualifier, Bytes::from(value))
    });
    mounted.table("odd", cells);

    let names = mounted.sh("ls -U odd");
    assert_eq!(names.ok().lines().count(), keys.len());
    let mut found = Vec::new();
    for name in names.ok().lines() {
        let row = mounted.path("odd").join(name);
        let mut key = vec![0; 65_537];
        let length = rustix::fs::getxattr(&row, "user.tablemount.key", &mut key[..]).expect("key");
        key.truncate(length);
        let output = Command::new("sh")
            .args(["-c", "cat -- \"$0\"/f/*/latest"])
            .arg(&row)
            .output();
        let value = output.expect("cat").stdout;
        assert_eq!(value, [&key[..], b" is the value"].concat(), "{name}");
        found.push(key);
    }
    let mut sorted = keys.clone();
    sorted.sort();
    assert_eq!(found, sorted);

    // Whole, through programs that copy.
    let copy = mounted.folder.path().join("copy");
    let line = format!(
        "cp -r odd {0} && tar cf {0}.tar odd && mkdir {0}2 && tar xf {0}.tar -C {0}2 && diff -r --no-dereference {0} {0}2/odd && diff -r --no-dereference odd {0}",
        copy.display()
    );
    mounted.sh(&line).ok();
    let raw = [OsStr::new("odd"), OsStr::from_bytes(b"\xff\xfe")];
    let target = fs::read_link(mounted.path(raw.iter().collect::<PathBuf>())).expect("a link");
    assert_eq!(target, Path::new("%xfffe"));
}

#[test]
fn files_look_like_files() {
    if !can_mount() {
        return;
    }
    let mounted = Mounted::new();
    mounted.table("t", numbered(3, b"value"));
    assert_eq!(mounted.sh("ls").ok(), "@help\nt\n");
    assert_eq!(
        mounted.sh("find t/000000").ok(),
        "t/000000\nt/000000/f\nt/000000/f/q\nt/000000/f/q/latest\nt/000000/f/q/5\n"
    );
    let file = mounted.path("t/000000/f/q/5");
    let metadata = fs::metadata(&file).expect("stat");
    assert_eq!(
        (
            metadata.len(),
            metadata.mtime(),
            metadata.mtime_nsec(),
            metadata.mode()
        ),
        (5, 0, 5000, 0o100_444)
    );
    let directory = fs::metadata(mounted.path("t/000000")).expect("stat");
    assert_eq!((directory.mode(), directory.nlink()), (0o040_555, 1));
    assert_eq!(
        fs::read_link(mounted.path("t/000000/f/q/latest")).expect("link"),
        Path::new("5")
    );
    assert_eq!(mounted.sh("cat t/@latest/*/f/q").ok(), "valuevaluevalue");
    assert!(
        mounted
            .sh("cat @help t/000000/@help")
            .ok()
            .contains("not a snapshot")
    );
    assert!(
        mounted
            .sh("cat t/@schema.yaml")
            .ok()
            .contains("kind: Table")
    );
    assert!(
        mounted
            .sh("cat @stats t/@stats.json")
            .ok()
            .contains("\"diskBytes\"")
    );

    // Nothing can be changed.
    let changed = fs::write(&file, "x").expect_err("read-only");
    assert_eq!(changed.raw_os_error(), Some(Errno::ROFS.raw_os_error()));
    assert!(fs::create_dir(mounted.path("t/new")).is_err());

    // What other programs want to know.
    let statfs = rustix::fs::statvfs(&mounted.point.0).expect("statvfs");
    assert_eq!(statfs.f_namemax, 255);
    assert!(
        mounted
            .sh("df .")
            .ok()
            .lines()
            .any(|line| line.starts_with("tablemount "))
    );
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mountinfo");
    let own = mounts
        .lines()
        .find(|line| line.split(' ').nth(4) == mounted.point.0.to_str());
    let own = own.expect("mounted");
    assert!(
        own.contains("- fuse.tablemount tablemount ro,") && own.contains("default_permissions"),
        "{own}"
    );
    let mut buffer = [0; 100];
    let absent = rustix::fs::getxattr(&file, "user.other", &mut buffer[..]);
    assert_eq!(absent.expect_err("absent"), Errno::NODATA);
    let length = rustix::fs::getxattr(&file, "user.tablemount.timestamp", &mut buffer[..]);
    assert_eq!(&buffer[..length.expect("timestamp")], b"5");
    let mut names = [0; 200];
    let length = rustix::fs::listxattr(&file, &mut names[..]).expect("names");
    assert!(
        names[..length].starts_with(b"user.tablemount.key\0user.tablemount.qualifier\0"),
        "{names:?}"
    );
    assert_eq!(
        rustix::fs::getxattr(&file, "user.tablemount.key", &mut buffer[..3]).expect_err("small"),
        Errno::RANGE
    );
}

#[test]
fn long_values_come_whole() {
    if !can_mount() {
        return;
    }
    let mounted = Mounted::new();
    let value: Vec<u8> = (0..9_000_001_u32).map(|i| (i / 5) as u8).collect();
    let cells = [("long", &value[..]), ("none", b"")];
    mounted.table(
        "t",
        cells
            .into_iter()
            .map(|(row, value)| (row.into(), "q".into(), Bytes::copy_from_slice(value))),
    );
    assert!(fs::read(mounted.path("t/long/f/q/5")).expect("read") == value);
    let (requests, ..) = mounted.cost("cat t/long/f/q/5 > /dev/null");
    assert!(requests <= 3 + 2, "{requests} requests");
    assert_eq!(fs::read(mounted.path("t/none/f/q/5")).expect("read"), b"");
    assert_eq!(
        mounted
            .sh("tail -c +9000000 t/long/f/q/5 | wc -c")
            .ok()
            .trim(),
        "2"
    );
}

#[test]
fn programs_cost_few_requests() {
    const ROWS: u64 = 50_000;
    if !can_mount() {
        return;
    }
    let mounted = Mounted::new();
    let value = [b'v'; 200];
    mounted.table("t", numbered(ROWS, &value));
    let bytes = ROWS * value.len() as u64;

    let (requests, ..) = mounted.cost("cat t/040000/f/q/5");
    assert!(requests <= 3, "{requests} requests for a cold cat");
    for listing in ["ls t", "ls -U t", "ls -f t"] {
        let (requests, _, names) = mounted.cost(&format!("{listing} | wc -l"));
        assert!(names.parse::<u64>().expect("number") >= ROWS);
        assert!(requests <= ROWS / 1000, "{requests} requests for {listing}");
    }

    let copy = mounted.folder.path().join("copy");
    let copy = copy.display();
    for (line, printed, values) in [
        ("ls -l t | wc -l".to_owned(), ROWS + 1, 0),
        ("find t | wc -l".to_owned(), 5 * ROWS + 1, 0),
        ("grep -rc v t | wc -l".to_owned(), ROWS, bytes),
        ("grep -rl v t/@latest | wc -l".to_owned(), ROWS, bytes),
        ("tar cf - t | tar t | wc -l".to_owned(), 5 * ROWS + 1, bytes),
        (
            format!("cp -r t {copy} && find {copy} | wc -l"),
            5 * ROWS + 1,
            bytes,
        ),
        (
            "diff -r t/@latest/@at/10 t/@latest/@at/1970-01-01 | wc -l".to_owned(),
            0,
            2 * bytes,
        ),
    ] {
        let (requests, seconds, found) = mounted.cost(&line);
        assert_eq!(found, printed.to_string(), "{line}");
        // What was fetched ahead is good for a second: a machine that takes longer than it should asks again.
        let trees = values.div_ceil(bytes).max(1);
        let each = ROWS / 500 + 3 * seconds.saturating_sub(25);
        let most = trees * each + values / (4 << 20);
        assert!(
            requests <= most,
            "{requests} requests, {most} allowed: {line}"
        );
    }
}

#[test]
fn a_big_table_is_listed_in_little_memory() {
    const ROWS: u64 = 100_000;
    if !can_mount() {
        return;
    }
    let mounted = Mounted::new();
    mounted.table("t", numbered(ROWS, b"value"));
    let (requests, _, names) = mounted.cost("ls -U t | wc -l");
    assert_eq!(names, ROWS.to_string());
    assert!(requests <= ROWS / 1000, "{requests} requests");
    mounted.sh("find t | wc -l").ok();
    let status = fs::read_to_string(format!("/proc/{}/status", mounted.process.id()));
    let status = status.expect("status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak: u64 = peak
        .and_then(|peak| peak.trim().strip_suffix(" kB")?.parse().ok())
        .expect("peak");
    eprintln!("peak of the mount process: {} MiB", peak / 1024);
    assert!(peak < 200 * 1024, "{peak} kB");
    // The inode table shrinks again after find, since the kernel is asked to forget.
    let last = mounted.sh("ls t/099999/f/q");
    assert_eq!(last.ok(), "5\nlatest\n");
}

#[test]
fn listings_over_the_limit_say_so() {
    if !can_mount() {
        return;
    }
    let Mounted {
        process,
        point,
        server,
        folder,
    } = Mounted::new();
    drop((process, point));
    let point = Mountpoint::new(&folder.path().join("limited"));
    let process = mount(&server, &point, &["--limit", "10"]);
    let mounted = Mounted {
        process,
        point,
        server,
        folder,
    };
    mounted.table("t", numbered(25, b"value"));
    let listed = mounted.sh("ls t");
    assert_eq!(listed.code, 2, "{listed:?}");
    assert!(listed.stderr.contains("File too large"), "{listed:?}");
    let names: Vec<&str> = listed.text().lines().collect();
    // ls sorts; @ comes after digits in ASCII.
    assert_eq!((names.len(), names[0], names[10]), (11, "000000", "@more"));
    assert_eq!(
        mounted.sh("ls t/@more/@more/").ok(),
        "000020\n000021\n000022\n000023\n000024\n"
    );
    let copy = mounted.folder.path().join("copy");
    assert_ne!(mounted.sh(&format!("cp -r t {}", copy.display())).code, 0);
    assert_ne!(mounted.sh("find t > /dev/null").code, 0);
}

#[test]
fn a_server_that_goes_is_an_error_soon_and_is_found_again() {
    if !can_mount() {
        return;
    }
    let mut mounted = Mounted::new();
    mounted.table("t", numbered(3, b"value"));
    assert_eq!(mounted.sh("cat t/000000/f/q/5").ok(), "value");
    let address = mounted.server.url.trim_start_matches("http://").to_owned();
    let errno = |mounted: &Mounted| match fs::read_dir(mounted.path("t")) {
        Ok(entries) => entries
            .filter_map(Result::err)
            .find_map(|error| error.raw_os_error()),
        Err(error) => error.raw_os_error(),
    };

    // Stopped: connections are taken, nothing answers.
    mounted.server.process.signal(Signal::STOP);
    let start = Instant::now();
    let stopped = eventually("an error", || errno(&mounted));
    assert_eq!(stopped, Errno::TIMEDOUT.raw_os_error());
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "{:?}",
        start.elapsed()
    );
    let again = Instant::now();
    for _ in 0..20 {
        assert_eq!(errno(&mounted), Some(Errno::TIMEDOUT.raw_os_error()));
    }
    assert!(
        again.elapsed() < Duration::from_secs(2),
        "{:?}",
        again.elapsed()
    );
    mounted.server.process.signal(Signal::CONT);
    eventually("the server", || errno(&mounted).is_none().then_some(()));

    // Killed: connections are refused.
    mounted.server.process.kill();
    let killed = eventually("an error", || errno(&mounted));
    assert_eq!(killed, Errno::IO.raw_os_error());

    // Back, at the same address.
    let data = mounted.folder.path().join("data");
    let mut command = tablemount(["engine", "--http", &address, "--grpc", "127.0.0.1:0"]);
    let _back = Process::start(command.arg("--data").arg(&data));
    eventually("the server", || errno(&mounted).is_none().then_some(()));
    assert_eq!(mounted.sh("cat t/000002/f/q/5").ok(), "value");
}

#[test]
fn unmounting_ends_the_process_and_ending_the_process_unmounts() {
    if !can_mount() {
        return;
    }
    let mut mounted = Mounted::new();
    assert!(is_mounted(&mounted.point.0));
    assert!(mounted.process.terminate().success());
    assert!(!is_mounted(&mounted.point.0));

    // In use: detached.
    let mut process = mount(&mounted.server, &mounted.point, &[]);
    let mut user = Command::new("sleep")
        .arg("60")
        .current_dir(&mounted.point.0)
        .spawn()
        .expect("sleep");
    assert!(process.terminate().success());
    assert!(!is_mounted(&mounted.point.0));
    user.kill().expect("kill");
    user.wait().expect("wait");

    let mut process = mount(&mounted.server, &mounted.point, &[]);
    let umount = Command::new("umount").arg(&mounted.point.0).status();
    assert!(umount.expect("umount").success());
    assert!(process.wait().success());
}

#[test]
fn what_a_dead_process_left_is_cleared() {
    if !can_mount() {
        return;
    }
    let mut mounted = Mounted::new();
    mounted.table("t", numbered(1, b"value"));
    mounted.process.kill();
    let error = fs::read_dir(&mounted.point.0).expect_err("dead");
    assert_eq!(error.raw_os_error(), Some(Errno::NOTCONN.raw_os_error()));
    mounted.process = mount(&mounted.server, &mounted.point, &[]);
    assert_eq!(mounted.sh("cat t/000000/f/q/5").ok(), "value");
}

#[test]
fn obstacles_to_mounting_are_named() {
    if !can_mount() {
        return;
    }
    let mounted = Mounted::new();
    let path = mounted.folder.path().display().to_string();
    let refused = |point: &str, message: &str| {
        let server = ["mount", "--server", mounted.server.url.as_str(), point];
        run(server).failed(1, message);
    };
    refused(
        &format!("{path}/missing"),
        &format!(
            "mount point \"{path}/missing\" does not exist; make it first: mkdir -p '{path}/missing'"
        ),
    );
    fs::write(format!("{path}/file"), "").expect("write");
    refused(
        &format!("{path}/file"),
        &format!("mount point \"{path}/file\" is not a directory"),
    );
    for not_empty in [format!("{path}/data"), format!("{path}/mnt")] {
        refused(
            &not_empty,
            &format!(
                "mount point \"{not_empty}\" is not empty, or something is mounted there; give an empty directory"
            ),
        );
    }
}

#[test]
fn changes_show_within_two_seconds() {
    if !can_mount() {
        return;
    }
    let mounted = Mounted::new();
    mounted.table("t", numbered(1, b"old"));
    let file = mounted.path("t/000000/f/q/latest");
    assert_eq!(fs::read(&file).expect("read"), b"old");
    let put = ["put", "t", "000000", "f:q=new", "--timestamp", "9"];
    mounted.server.run(&put).ok();
    let start = Instant::now();
    eventually("the new value", || {
        (fs::read(&file).expect("read") == b"new").then_some(())
    });
    assert!(
        start.elapsed() < Duration::from_millis(2500),
        "{:?}",
        start.elapsed()
    );
    // At the same timestamp, with another length: what is opened is what is there now.
    let put = [
        "put",
        "t",
        "000000",
        "f:q=a longer value",
        "--timestamp",
        "9",
    ];
    mounted.server.run(&put).ok();
    eventually("the longer value", || {
        (fs::read(&file).expect("read") == b"a longer value").then_some(())
    });
}

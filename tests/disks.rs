//! Disks that cannot take what is written: a small tmpfs that fills up and gets room again, and one that is read-only.

#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use futures::StreamExt as _;
use support::{Mountpoint, Server, can_mount, run};
use tablemount_api::{
    ApiError, Base64, CellContent, ErrorCode, FamilyName, MutateRequest, Mutation, Qualifier,
    ReadRequest, RowKey, RowMutation, TableName,
};
use tablemount_client::Client;
use tempfile::TempDir;

const DISK: &str = "40m";
const BALLAST: usize = 16 << 20;
const VALUE: usize = 40_000;

/// A tmpfs of [`DISK`]. Unmounted when dropped.
struct Disk {
    mounted: Mountpoint,
    _folder: TempDir,
}

impl Disk {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let disk = Self {
            mounted: Mountpoint::new(&folder.path().join("disk")),
            _folder: folder,
        };
        disk.mount(&["-t", "tmpfs", "-o", &format!("size={DISK}"), "tmpfs"]);
        disk
    }

    fn mount(&self, arguments: &[&str]) {
        let mut mount = Command::new("mount");
        let mounted = mount.args(arguments).arg(&self.mounted.0).status().unwrap();
        assert!(mounted.success(), "mount {arguments:?}");
    }

    fn data(&self) -> PathBuf {
        self.mounted.0.join("data")
    }
}

fn table() -> TableName {
    TableName::new("t").unwrap()
}

fn key(number: u64) -> RowKey {
    RowKey::new(format!("r{number:06}")).unwrap()
}

/// No two alike, so that nothing compresses them away.
fn value(number: u64) -> Vec<u8> {
    let mut state = number + 1;
    let byte = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    std::iter::repeat_with(byte).take(VALUE).collect()
}

async fn write(client: &Client, number: u64) -> Result<(), ApiError> {
    let put = Mutation::Put {
        family: FamilyName::new("f").unwrap(),
        qualifier: Qualifier::new("q").unwrap(),
        timestamp: None,
        value: Base64(value(number).into()),
    };
    let row = RowMutation {
        row: key(number),
        check: None,
        mutations: vec![put],
    };
    let request = MutateRequest { rows: vec![row] };
    match client.mutate(&table(), &request).await {
        Ok(_) => Ok(()),
        Err(tablemount_client::Error::Refused(error)) => Err(error),
        Err(error) => panic!("{number}: {error}"),
    }
}

/// Writes from `from` on until it is refused; returns the number that was, and why.
async fn fill(client: &Client, from: u64) -> (u64, ApiError) {
    for number in from..from + 10_000 {
        if let Err(error) = write(client, number).await {
            return (number, error);
        }
    }
    panic!("the disk holds more than it has");
}

/// The rows are those that were acknowledged, with their values.
async fn check(client: &Client, acknowledged: u64) {
    let mut rows = client.read_all(&table(), ReadRequest::default());
    let mut number = 0;
    while let Some(chunk) = rows.next().await {
        let chunk = chunk.unwrap();
        assert_eq!(chunk.row, key(number));
        let found = &chunk.cells[0].value.as_ref().unwrap().0;
        assert!(*found == value(number), "row {number}");
        number += 1;
    }
    assert_eq!(number, acknowledged);
}

fn engine(data: &Path) -> Server {
    Server::engine(data, &["--log-budget", "16MiB"])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_writes_until_space_returns() {
    if !can_mount() {
        return;
    }
    let disk = Disk::new();
    let ballast = disk.mounted.0.join("ballast");
    fs::write(&ballast, vec![1; BALLAST]).unwrap();
    let data = disk.data();
    let mut server = engine(&data);
    let client = server.client();
    server.run(&["tables", "create", "t", "--family", "f"]).ok();

    let (acknowledged, refusal) = fill(&client, 0).await;
    assert_eq!(refusal.code, ErrorCode::ResourceExhausted);
    let shown = data.display();
    let row =
        format!("table \"t\", row \"r{acknowledged:06}\" (0 of 1 rows were written before it)");
    assert_eq!(
        refusal.message,
        format!(
            "{row}: the disk is full: data folder {shown} has no room for 2097152 bytes of the commit log: No space left on \
             device (os error 28); writes are refused until space returns"
        )
    );
    assert!(acknowledged * VALUE as u64 > 4 << 20, "{acknowledged}");
    check(&client, acknowledged).await;
    assert_eq!(write(&client, acknowledged).await, Err(refusal));

    fs::remove_file(&ballast).unwrap();
    let accepted = async {
        while write(&client, acknowledged).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(support::DEADLINE, accepted)
        .await
        .unwrap();
    let (acknowledged, _) = fill(&client, acknowledged + 1).await;
    assert!(acknowledged * VALUE as u64 > 12 << 20, "{acknowledged}");
    check(&client, acknowledged).await;

    // The end of a process on a full disk, and a start on one with room.
    server.process.kill();
    disk.mount(&["-o", "remount,size=80m"]);
    let mut server = engine(&data);
    check(&server.client(), acknowledged).await;
    write(&server.client(), acknowledged).await.unwrap();
    check(&server.client(), acknowledged + 1).await;
    assert!(server.process.terminate().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_folder_is_named_and_can_be_read() {
    if !can_mount() {
        return;
    }
    let disk = Disk::new();
    let data = disk.data();
    let mut server = engine(&data);
    server.run(&["tables", "create", "t", "--family", "f"]).ok();
    write(&server.client(), 0).await.unwrap();
    // Killed, so that the log must be read too.
    server.process.kill();
    disk.mount(&["-o", "remount,ro"]);

    let shown = data.to_str().unwrap();
    let ports = ["--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"];
    let refused = run([&["engine", "--data", shown][..], &ports].concat());
    assert_eq!(refused.code, 1, "{refused:?}");
    assert_eq!(
        refused.stderr.lines().last().unwrap_or_default(),
        format!(
            "tablemount: data folder {shown} cannot be written: open {shown}/lock: Read-only file system (os error 30); \
             --read-only opens a store to read"
        )
    );
    let below = format!("{shown}/sub");
    let refused = run([&["engine", "--data", &below][..], &ports].concat());
    assert_eq!(
        refused.stderr.lines().last().unwrap_or_default(),
        format!(
            "tablemount: data folder {below} cannot be written: create {below}: Read-only file system (os error 30); \
             --read-only opens a store to read"
        )
    );

    let mut server = Server::engine(&data, &["--read-only"]);
    check(&server.client(), 1).await;
    let error = write(&server.client(), 1).await.unwrap_err();
    assert_eq!(error.message, "the store is open read-only");
    let keys = ReadRequest {
        cells: CellContent::None,
        ..ReadRequest::default()
    };
    let page = server.client().read_page(&table(), &keys).await.unwrap();
    assert_eq!(page.rows.len(), 1);
    assert!(server.process.terminate().success());
}

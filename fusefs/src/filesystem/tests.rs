//! The filesystem without FUSE, over a fake engine that counts requests.

mod failures;
mod listings;
mod requests;
mod views;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use super::*;
use crate::test_source::{CREATED, TestSource};

/// The filesystem as a program sees it: paths, names, bytes.
struct Tree {
    filesystem: Filesystem,
    source: Arc<TestSource>,
    clock: Arc<AtomicU64>,
}

fn options() -> Options {
    Options {
        server: "http://test".to_owned(),
        listing_limit: 1_000_000,
        uid: 0,
        gid: 0,
        dir_mode: 0o555,
        file_mode: 0o444,
        metadata_timeout: Duration::from_secs(30),
        value_timeout: Duration::from_secs(30),
        concurrent_requests: 64,
        probe_every: Duration::from_millis(20),
    }
}

fn tree_with(source: Arc<TestSource>, options: Options) -> Tree {
    let (crowded, _) = sync_channel(1);
    let inodes = Arc::new(Inodes::new(crowded));
    let clock = Arc::new(AtomicU64::new(0));
    let held = Clock::held(clock.clone());
    let filesystem = Filesystem::new(
        source.clone(),
        options,
        inodes,
        held,
        SystemTime::UNIX_EPOCH,
    );
    Tree {
        filesystem,
        source,
        clock,
    }
}

fn tree(source: Arc<TestSource>) -> Tree {
    tree_with(source, options())
}

/// The map table of the examples, and a few more cells.
fn map() -> Tree {
    let source = TestSource::new("map", &["A", "B"]);
    source.put("aaaaa", "A", "foo", 15, "y");
    source.put("aaaaa", "A", "foo", 4, "mm");
    source.put("aaaaa", "A", "bar", 15, "d");
    source.put("aaaaa", "B", "", 6, "w");
    source.put("aaaaa", "B", "", 3, "o");
    source.put("aaaaa", "B", "", 1, "w");
    source.put("aaaab", "A", "foo", 2, "x");
    source.put("xyz", "B", "q", 7, "");
    tree(source)
}

impl Tree {
    /// What is known grows older.
    fn advance(&self, time: Duration) {
        self.clock
            .fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// What the kernel does for a path: one lookup a name.
    async fn lookup(&self, path: &str) -> Result<(u64, Stat), Failure> {
        let mut found = (ROOT, self.filesystem.getattr(ROOT).await?);
        for name in path.split('/').filter(|name| !name.is_empty()) {
            found = self.filesystem.lookup(found.0, OsStr::new(name)).await?;
        }
        Ok(found)
    }

    async fn list(&self, number: u64) -> Result<Vec<(String, u64, Stat)>, Failure> {
        let handle = self.filesystem.opendir(number)?;
        let mut entries = Vec::new();
        let mut offset = 0;
        let result = loop {
            let (before, from) = (entries.len(), offset);
            let mut next = offset;
            let mut room = 100;
            let add = |entry: &Entry<'_>| {
                if room == 0 {
                    return true;
                }
                room -= 1;
                next = entry.offset;
                if !entry.name.starts_with('.') {
                    entries.push((entry.name.to_owned(), entry.number, entry.stat));
                }
                false
            };
            if let Err(failure) = self
                .filesystem
                .readdir(number, handle, from, from == 0, add)
                .await
            {
                break Err(failure);
            }
            if entries.len() == before && next == from {
                break Ok(());
            }
            offset = next;
        };
        self.filesystem.releasedir(number, handle);
        result.map(|()| entries)
    }

    /// The names in a directory, joined.
    async fn ls(&self, path: &str) -> String {
        let entries = self.list(self.lookup(path).await.unwrap().0).await.unwrap();
        entries
            .iter()
            .map(|entry| entry.0.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    }

    async fn read(&self, number: u64) -> Result<Vec<u8>, Failure> {
        let handle = self.filesystem.open(number).await?;
        let mut bytes = Vec::new();
        loop {
            let part = self
                .filesystem
                .read(handle, bytes.len() as u64, 128 << 10)
                .await?;
            if part.is_empty() {
                break;
            }
            bytes.extend_from_slice(&part);
        }
        self.filesystem.release(number, handle);
        Ok(bytes)
    }

    /// A file's bytes as text, links followed.
    async fn cat(&self, path: &str) -> Result<String, Failure> {
        let (number, stat) = self.lookup(path).await?;
        if stat.kind == Kind::Link {
            let target = self.filesystem.readlink(number).await?;
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            return Box::pin(self.cat(&format!("{folder}/{target}"))).await;
        }
        Ok(String::from_utf8_lossy(&self.read(number).await?).into_owned())
    }

    async fn link(&self, path: &str) -> String {
        self.filesystem
            .readlink(self.lookup(path).await.unwrap().0)
            .await
            .unwrap()
    }

    async fn errno(&self, path: &str) -> i32 {
        match self.lookup(path).await {
            Ok(found) => panic!("{path}: {found:?}"),
            Err(failure) => failure.errno().code(),
        }
    }

    /// Visits everything below a directory, depth first, in listing order; returns directories and files.
    async fn walk(&self, number: u64, read: bool) -> (u64, u64) {
        let (mut directories, mut files) = (1, 0);
        for (name, _, stat) in self.list(number).await.unwrap() {
            match stat.kind {
                Kind::Directory => {
                    let (child, _) = self
                        .filesystem
                        .lookup(number, OsStr::new(&name))
                        .await
                        .unwrap();
                    let (d, f) = Box::pin(self.walk(child, read)).await;
                    (directories, files) = (directories + d, files + f);
                    self.filesystem.forget(child, 1);
                }
                Kind::File if read => {
                    let (child, stat) = self
                        .filesystem
                        .lookup(number, OsStr::new(&name))
                        .await
                        .unwrap();
                    assert_eq!(self.read(child).await.unwrap().len() as u64, stat.size);
                    self.filesystem.forget(child, 1);
                    files += 1;
                }
                Kind::File | Kind::Link => files += 1,
            }
        }
        (directories, files)
    }
}

#[tokio::test]
async fn every_level_lists_what_is_below_it() {
    let tree = map();
    assert_eq!(tree.ls("").await, "map @help");
    assert_eq!(tree.ls("map").await, "aaaaa aaaab xyz");
    assert_eq!(tree.ls("map/aaaaa").await, "A B");
    assert_eq!(tree.ls("map/aaaab").await, "A");
    assert_eq!(tree.ls("map/aaaaa/A").await, "bar foo");
    assert_eq!(tree.ls("map/aaaaa/A/foo").await, "latest 15 4");
    assert_eq!(tree.ls("map/aaaaa/B/%empty").await, "latest 6 3 1");
    assert_eq!(tree.cat("map/aaaaa/A/foo/4").await.unwrap(), "mm");
    assert_eq!(tree.cat("map/aaaaa/A/foo/latest").await.unwrap(), "y");
    assert_eq!(tree.cat("map/xyz/B/q/latest").await.unwrap(), "");
}

#[tokio::test]
async fn what_is_not_there_is_absent() {
    let tree = map();
    for path in [
        "nope",
        "map/nope",
        "map/aaaaa/C",
        "map/aaaab/B",
        "map/aaaaa/A/nope",
        "map/aaaaa/A/foo/5",
        "map/aaaaa/A/foo/x",
        "map/@nope",
        "map/aaaaa/@schema.yaml",
        "map/%",
        "@latest",
        "map/aaaaa/A/foo/@latest",
        "map/aaaaa/A/@reverse",
    ] {
        assert_eq!(
            tree.errno(path).await,
            fuser::Errno::ENOENT.code(),
            "{path}"
        );
    }
}

#[tokio::test]
async fn sizes_and_times() {
    let tree = map();
    let stat = async |path: &str| tree.lookup(path).await.unwrap().1;
    for path in ["map", "map/aaaaa", "map/aaaaa/A"] {
        assert_eq!(stat(path).await, Stat::directory(CREATED), "{path}");
    }
    assert_eq!(
        stat("map/aaaaa/A/foo").await,
        Stat::directory(Timestamp(15))
    );
    assert_eq!(
        stat("map/aaaaa/A/foo/4").await,
        Stat {
            kind: Kind::File,
            size: 2,
            modified: Timestamp(4)
        }
    );
    assert_eq!(
        stat("map/aaaaa/A/foo/latest").await,
        Stat {
            kind: Kind::Link,
            size: 2,
            modified: Timestamp(15)
        }
    );
    // A listing tells the same.
    let listed = tree
        .list(tree.lookup("map/aaaaa/A/foo").await.unwrap().0)
        .await
        .unwrap();
    assert_eq!(
        listed[2].2,
        Stat {
            kind: Kind::File,
            size: 2,
            modified: Timestamp(4)
        }
    );
    let listed = tree
        .list(tree.lookup("map/aaaaa/A").await.unwrap().0)
        .await
        .unwrap();
    assert_eq!(listed[1].2, Stat::directory(Timestamp(15)));
    let before_1970 = Stat {
        kind: Kind::File,
        size: 0,
        modified: Timestamp(-1),
    };
    assert_eq!(
        before_1970.modified_time(),
        SystemTime::UNIX_EPOCH - Duration::from_micros(1)
    );
}

#[tokio::test]
async fn odd_keys_are_listed_and_found() {
    let source = TestSource::new("t", &["f"]);
    let keys: Vec<Vec<u8>> = [
        &b"a/b"[..],
        b"a\0b",
        b"a\nb",
        b"\xff\xfe",
        b".",
        b"..",
        b"@at",
        b"%empty",
        b"latest",
        b"-x",
        b" ",
    ]
    .iter()
    .map(|key| key.to_vec())
    .chain([
        vec![b'k'; 65_536],
        vec![0xff; 300],
        "ä".repeat(200).into_bytes(),
    ])
    .collect();
    for key in &keys {
        source.put(
            key.clone(),
            "f",
            key[..key.len().min(32_768)].to_vec(),
            5,
            key.clone(),
        );
    }
    source.put("row", "f", "", 5, "empty");
    let tree = tree(source);
    let rows = tree.list(tree.lookup("t").await.unwrap().0).await.unwrap();
    assert_eq!(rows.len(), keys.len() + 1);
    for (name, ..) in &rows {
        assert!(
            name.len() <= 255 && !name.contains(['/', '\0']) && !name.starts_with(['.', '@']),
            "{name}"
        );
        let (number, _) = tree.lookup(&format!("t/{name}")).await.unwrap();
        let key = tree
            .filesystem
            .getxattr(number, OsStr::new("user.tablemount.key"))
            .unwrap();
        let qualifier = tree.ls(&format!("t/{name}/f")).await;
        let path = format!("t/{name}/f/{qualifier}/5");
        let expected = if key == "row" {
            b"empty".to_vec()
        } else {
            key.to_vec()
        };
        let (number, _) = tree.lookup(&path).await.unwrap();
        assert_eq!(tree.read(number).await.unwrap(), expected, "{path}");
    }
}

#[tokio::test]
async fn other_spellings_are_links_to_the_listed_name() {
    let source = TestSource::new("t", &["f"]);
    source.put("a b", "f", "q", 5, "value");
    let tree = tree(source);
    assert_eq!(tree.link("t/a b").await, "a%20b");
    assert_eq!(tree.link("t/%x612062").await, "a%20b");
    assert_eq!(tree.link("t/a%20b/f/q/05").await, "5");
    assert_eq!(tree.link("%74").await, "t");
    assert_eq!(tree.errno("t/a  b").await, fuser::Errno::ENOENT.code());
}

#[tokio::test]
async fn a_long_name_is_found_though_no_listing_showed_it() {
    let source = TestSource::new("t", &["f"]);
    let key = vec![b'k'; 1000];
    source.put(key.clone(), "f", key.clone(), 5, "value");
    let tree = tree(source);
    let name = tablemount_api::name::encode(&key);
    assert_eq!(
        tree.cat(&format!("t/{name}/f/{name}/5")).await.unwrap(),
        "value"
    );
    assert_eq!(tree.ls(&format!("t/@prefix/{name}")).await, name);
    let other = tablemount_api::name::encode(&[key, vec![b'x']].concat());
    assert_eq!(
        tree.errno(&format!("t/{other}")).await,
        fuser::Errno::ENOENT.code()
    );
}

//! How many requests programs cost. The clock stands still meanwhile; how look-ahead adapts to slow walkers is
//! [`crate::lookahead`]'s to test.

use super::*;

const ROWS: u64 = 50_000;

fn table(value: usize) -> Tree {
    let source = TestSource::new("t", &["f"]);
    let value = Bytes::from(vec![b'v'; value]);
    for row in 0..ROWS {
        source.put(format!("{row:06}"), "f", "q", 5, value.clone());
    }
    tree(source)
}

#[tokio::test]
async fn a_cold_cat_of_a_full_path() {
    let tree = map();
    assert_eq!(tree.cat("map/aaaaa/A/foo/15").await.unwrap(), "y");
    assert_eq!(tree.source.take_requests(), 3);
    tree.advance(Duration::from_secs(2));
    assert_eq!(tree.cat("map/@latest/aaaaa/A/foo").await.unwrap(), "y");
    assert_eq!(tree.source.take_requests(), 3);
}

#[tokio::test]
async fn what_is_absent_is_asked_for_once_a_second() {
    let tree = map();
    for _ in 0..10 {
        assert!(tree.lookup("map/nope").await.is_err());
    }
    assert_eq!(tree.source.take_requests(), 2);
    tree.advance(Duration::from_secs(1));
    assert!(tree.lookup("map/nope").await.is_err());
    assert_eq!(tree.source.take_requests(), 2);
}

#[tokio::test]
async fn ls_asks_for_keys_and_ls_l_for_no_more() {
    let tree = table(1);
    let (number, _) = tree.lookup("t").await.unwrap();
    tree.source.take_requests();
    let entries = tree.list(number).await.unwrap();
    assert_eq!(entries.len() as u64, ROWS);
    let ls = tree.source.take_requests();
    assert!(ls <= ROWS / 1000, "{ls} requests for ls");
    tree.advance(Duration::from_secs(2));
    for (name, ..) in &entries {
        tree.filesystem
            .lookup(number, OsStr::new(name))
            .await
            .unwrap();
    }
    let stats = tree.source.take_requests();
    assert!(stats <= ROWS / 1000, "{stats} more for ls -l");
    assert_eq!(tree.source.values.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_walk_that_reads_no_values() {
    let tree = table(1);
    let (number, _) = tree.lookup("t").await.unwrap();
    tree.source.take_requests();
    assert_eq!(tree.walk(number, false).await, (1 + 3 * ROWS, 2 * ROWS));
    let requests = tree.source.take_requests();
    assert!(requests <= ROWS / 500, "{requests} requests");
}

#[tokio::test]
async fn a_walk_that_reads_all_values() {
    for value in [10, 1000] {
        let tree = table(value);
        let (number, _) = tree.lookup("t").await.unwrap();
        tree.source.take_requests();
        assert_eq!(tree.walk(number, true).await, (1 + 3 * ROWS, 2 * ROWS));
        let requests = tree.source.take_requests();
        let most = ROWS / 500 + ROWS * value as u64 / (4 << 20);
        assert!(
            requests <= most,
            "{requests} requests, {most} allowed, values of {value} bytes"
        );
    }
}

#[tokio::test]
async fn walks_of_views() {
    let tree = table(10);
    for view in ["@latest", "@reverse", "@prefix/04"] {
        let (number, _) = tree.lookup(&format!("t/{view}")).await.unwrap();
        tree.source.take_requests();
        let (directories, _) = tree.walk(number, view != "@reverse").await;
        let requests = tree.source.take_requests();
        assert!(
            requests <= directories / 500 + 10,
            "{view}: {requests} requests for {directories} directories"
        );
    }
}

#[tokio::test]
async fn a_walk_of_a_wide_row() {
    const COLUMNS: u64 = 20_000;
    let source = TestSource::new("t", &["f", "g"]);
    for column in 0..COLUMNS {
        source.put("r", "f", format!("{column:06}"), 5, "value");
    }
    source.put("r", "g", "q", 5, "value");
    let tree = tree(source);
    let (number, _) = tree.lookup("t").await.unwrap();
    tree.source.take_requests();
    let (directories, _) = tree.walk(number, true).await;
    assert_eq!(directories, 1 + 1 + 2 + COLUMNS + 1);
    let requests = tree.source.take_requests();
    assert!(requests <= COLUMNS / 500, "{requests} requests");
}

#[tokio::test]
async fn a_walk_of_many_versions() {
    const VERSIONS: u64 = 20_000;
    let source = TestSource::new("t", &["f"]);
    for version in 0..VERSIONS {
        source.put("r", "f", "q", version as i64, "value");
    }
    let tree = tree(source);
    let (number, _) = tree.lookup("t/r/f/q").await.unwrap();
    tree.source.take_requests();
    assert_eq!(tree.walk(number, true).await, (1, VERSIONS + 1));
    let requests = tree.source.take_requests();
    assert!(requests <= VERSIONS / 500, "{requests} requests");
}

#[tokio::test]
async fn a_slow_walker_is_given_no_more_than_it_uses() {
    let tree = table(1);
    let (number, _) = tree.lookup("t").await.unwrap();
    for row in 0..20 {
        tree.advance(Duration::from_secs(2));
        tree.filesystem
            .lookup(number, OsStr::new(&format!("{row:06}")))
            .await
            .unwrap();
        let asked: Vec<_> = tree
            .source
            .log
            .lock()
            .iter()
            .map(|request| request.row_limit.unwrap_or(1))
            .collect();
        assert!(asked.iter().all(|rows| *rows == 1), "row {row}: {asked:?}");
        tree.source.take_requests();
    }
}

#[tokio::test]
async fn long_values_come_in_pieces() {
    let source = TestSource::new("t", &["f"]);
    let value: Vec<u8> = (0..10 << 20).map(|i: u32| (i / 7) as u8).collect();
    source.put("r", "f", "q", 5, value.clone());
    let tree = tree(source);
    let (number, stat) = tree.lookup("t/r/f/q/5").await.unwrap();
    assert_eq!(stat.size, value.len() as u64);
    tree.source.take_requests();
    assert!(tree.read(number).await.unwrap() == value);
    assert_eq!(tree.source.take_requests(), 3);
    let handle = tree.filesystem.open(number).await.unwrap();
    let part = tree
        .filesystem
        .read(handle, (4 << 20) - 10, 20)
        .await
        .unwrap();
    assert_eq!(part, &value[(4 << 20) - 10..(4 << 20) + 10]);
    assert_eq!(
        tree.filesystem.read(handle, 3, 5).await.unwrap(),
        &value[3..8]
    );
    assert_eq!(tree.filesystem.read(handle, 20 << 20, 5).await.unwrap(), "");
}

#[tokio::test]
async fn attributes_cost_no_request() {
    let tree = map();
    let (number, _) = tree.lookup("map/aaaaa/A/foo/15").await.unwrap();
    tree.advance(Duration::from_secs(5));
    tree.source.take_requests();
    assert_eq!(
        tree.filesystem
            .getxattr(number, OsStr::new("user.tablemount.timestamp"))
            .unwrap(),
        "15"
    );
    let other = tree
        .filesystem
        .getxattr(number, OsStr::new("system.posix_acl_access"));
    assert_eq!(
        other.unwrap_err().errno().code(),
        fuser::Errno::ENODATA.code()
    );
    assert_eq!(tree.source.take_requests(), 0);
}

//! What happens when the engine refuses, hangs, or has changed.

use std::time::Instant;

use tablemount_api::ErrorCode;

use super::*;
use crate::test_source::Mood;

#[tokio::test]
async fn a_server_that_hangs_costs_one_time_limit_and_is_found_again() {
    let limit = Duration::from_millis(200);
    let tree = tree_with(
        map().source,
        Options {
            metadata_timeout: limit,
            ..options()
        },
    );
    tree.source.set_mood(Mood::Hangs);
    let start = Instant::now();
    assert_eq!(tree.errno("map").await, fuser::Errno::ETIMEDOUT.code());
    assert!(start.elapsed() >= limit);
    let asked = tree.source.take_requests();
    for _ in 0..100 {
        assert_eq!(tree.errno("map").await, fuser::Errno::ETIMEDOUT.code());
    }
    assert!(start.elapsed() < limit * 10, "{:?}", start.elapsed());
    assert_eq!((asked, tree.source.take_requests()), (1, 0));
    tree.source.set_mood(Mood::Answers);
    while let Err(failure) = tree.lookup("map").await {
        assert_eq!(failure.errno().code(), fuser::Errno::ETIMEDOUT.code());
        assert!(start.elapsed() < Duration::from_secs(20), "not found again");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(tree.ls("map").await, "aaaaa aaaab xyz");
}

#[tokio::test]
async fn refusals_are_errors_not_emptiness() {
    for (code, errno) in [
        (ErrorCode::Unavailable, fuser::Errno::EIO),
        (ErrorCode::Unauthenticated, fuser::Errno::EACCES),
        (ErrorCode::DataLoss, fuser::Errno::EIO),
    ] {
        let tree = map();
        let (number, _) = tree.lookup("map").await.unwrap();
        tree.advance(Duration::from_secs(2));
        tree.source.set_mood(Mood::Refuses(code));
        assert_eq!(
            tree.list(number).await.unwrap_err().errno().code(),
            errno.code(),
            "{code:?}"
        );
        assert_eq!(tree.errno("map/aaaaa").await, errno.code(), "{code:?}");
    }
}

#[tokio::test]
async fn a_listing_that_breaks_off_ends_in_an_error() {
    let source = TestSource::new("t", &["f"]);
    for row in 0..5000 {
        source.put(format!("{row:06}"), "f", "q", 5, "value");
    }
    let tree = tree(source);
    let (number, _) = tree.lookup("t").await.unwrap();
    let handle = tree.filesystem.opendir(number).unwrap();
    let mut offset = 0;
    let mut names = 0;
    for _ in 0..2 {
        let (mut room, from) = (600, offset);
        let add = |entry: &Entry<'_>| {
            if room == 0 {
                return true;
            }
            room -= 1;
            names += 1;
            offset = entry.offset;
            false
        };
        tree.filesystem
            .readdir(number, handle, from, false, add)
            .await
            .unwrap();
        tree.source.set_mood(Mood::Refuses(ErrorCode::Unavailable));
    }
    assert_eq!(names, 1002);
    let end = tree
        .filesystem
        .readdir(number, handle, offset, false, |_| false)
        .await;
    assert_eq!(end.unwrap_err().errno().code(), fuser::Errno::EIO.code());
}

#[tokio::test]
async fn a_cell_that_goes_while_its_file_is_open() {
    let source = TestSource::new("t", &["f"]);
    source.put("r", "f", "q", 5, vec![1; 6 << 20]);
    let tree = tree(source);
    let (number, _) = tree.lookup("t/r/f/q/5").await.unwrap();
    let handle = tree.filesystem.open(number).await.unwrap();
    tree.source.delete_row("r");
    assert_eq!(tree.filesystem.read(handle, 0, 10).await.unwrap().len(), 10);
    let later = tree.filesystem.read(handle, 5 << 20, 10).await;
    assert_eq!(
        later.unwrap_err().errno().code(),
        fuser::Errno::ESTALE.code()
    );
    assert!(tree.filesystem.open(number).await.unwrap_err().is_absent());
    // Overwritten at the same timestamp with another length: the rest is not of the same value.
    tree.source.put("r", "f", "q", 5, vec![2; 7 << 20]);
    let handle = tree.filesystem.open(number).await.unwrap();
    tree.source.put("r", "f", "q", 5, vec![3; 6 << 20]);
    let later = tree.filesystem.read(handle, 5 << 20, 10).await;
    assert_eq!(
        later.unwrap_err().errno().code(),
        fuser::Errno::ESTALE.code()
    );
}

#[tokio::test]
async fn what_changes_shows_after_a_second() {
    let tree = map();
    assert_eq!(tree.cat("map/aaaaa/A/foo/latest").await.unwrap(), "y");
    tree.source.put("aaaaa", "A", "foo", 20, "new");
    tree.advance(Duration::from_secs(1));
    assert_eq!(tree.cat("map/aaaaa/A/foo/latest").await.unwrap(), "new");
    tree.source.delete_row("aaaaa");
    tree.advance(Duration::from_secs(1));
    assert_eq!(tree.errno("map/aaaaa").await, fuser::Errno::ENOENT.code());
}

#[tokio::test]
async fn nothing_is_opened_that_is_not_a_file() {
    let tree = map();
    let (directory, _) = tree.lookup("map/aaaaa").await.unwrap();
    let (file, _) = tree.lookup("map/aaaaa/A/foo/15").await.unwrap();
    assert_eq!(
        tree.filesystem.opendir(file).unwrap_err().errno().code(),
        fuser::Errno::ENOTDIR.code()
    );
    assert!(tree.filesystem.open(directory).await.is_err());
    assert!(tree.filesystem.readlink(file).await.is_err());
    assert!(tree.filesystem.read(99, 0, 1).await.is_err());
}

#[tokio::test]
async fn a_family_made_since_shows_with_its_first_cell() {
    let tree = map();
    assert_eq!(tree.ls("map/aaaaa").await, "A B");
    tree.source.add_family("C");
    tree.source.put("aaaaa", "C", "q", 5, "new");
    tree.advance(Duration::from_secs(1));
    assert_eq!(tree.ls("map/aaaaa").await, "A B C");
    assert_eq!(tree.cat("map/aaaaa/C/q/latest").await.unwrap(), "new");
}

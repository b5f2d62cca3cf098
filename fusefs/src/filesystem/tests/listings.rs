//! Big directories: pages, offsets, limits.

use super::*;

fn rows(count: u64) -> Arc<TestSource> {
    let source = TestSource::new("t", &["f"]);
    for row in 0..count {
        source.put(format!("{row:06}"), "f", "q", 5, "value");
    }
    source
}

#[tokio::test]
async fn inode_numbers_rise_in_listing_order() {
    let tree = tree(rows(3000));
    let entries = tree.list(tree.lookup("t").await.unwrap().0).await.unwrap();
    let numbers: Vec<u64> = entries.iter().map(|entry| entry.1).collect();
    assert_eq!(numbers.len(), 3000);
    assert!(numbers.is_sorted());
}

#[tokio::test]
async fn reading_from_any_offset() {
    let tree = tree(rows(45_000));
    let (number, _) = tree.lookup("t").await.unwrap();
    let handle = tree.filesystem.opendir(number).unwrap();
    let at = async |offset: u64| {
        let mut name = None;
        let add = |entry: &Entry<'_>| {
            let full = name.is_some();
            name.get_or_insert(entry.name.to_owned());
            full
        };
        tree.filesystem
            .readdir(number, handle, offset, false, add)
            .await
            .unwrap();
        name
    };
    for index in [
        44_999, 3, 11_000, 10_999, 0, 31_000, 44_998, 1, 20_999, 21_000,
    ] {
        assert_eq!(at(index + 2).await.unwrap(), format!("{index:06}"));
    }
    assert_eq!(at(45_002).await, None);
    assert_eq!(at(0).await.unwrap(), ".");
    assert_eq!(at(1).await.unwrap(), "..");
}

#[tokio::test]
async fn going_back_reads_from_the_nearest_page() {
    let tree = tree(rows(45_000));
    let (number, _) = tree.lookup("t").await.unwrap();
    let handle = tree.filesystem.opendir(number).unwrap();
    let go = async |offset| {
        tree.filesystem
            .readdir(number, handle, offset, false, |_| true)
            .await
            .unwrap()
    };
    go(44_000).await;
    tree.source.take_requests();
    go(30_000).await;
    go(30_500).await;
    assert_eq!(tree.source.take_requests(), 1);
}

#[tokio::test]
async fn rewinding_shows_what_was_written_since() {
    let tree = map();
    let (number, _) = tree.lookup("map").await.unwrap();
    let handle = tree.filesystem.opendir(number).unwrap();
    let names = async || {
        let mut names = Vec::new();
        let add = |entry: &Entry<'_>| {
            names.push(entry.name.to_owned());
            false
        };
        tree.filesystem
            .readdir(number, handle, 0, false, add)
            .await
            .unwrap();
        names.join(" ")
    };
    assert_eq!(names().await, ". .. aaaaa aaaab xyz");
    tree.source.put("b", "A", "q", 5, "new");
    assert_eq!(names().await, ". .. aaaaa aaaab b xyz");
}

/// All names from the first on, and the errno that ends them.
async fn list_to_the_end(tree: &Tree, path: &str) -> (Vec<String>, i32) {
    let (number, _) = tree.lookup(path).await.unwrap();
    let handle = tree.filesystem.opendir(number).unwrap();
    let (mut names, mut offset) = (Vec::new(), 2);
    loop {
        let (before, from) = (names.len(), offset);
        let add = |entry: &Entry<'_>| {
            names.push(entry.name.to_owned());
            offset = entry.offset;
            false
        };
        match tree
            .filesystem
            .readdir(number, handle, from, false, add)
            .await
        {
            Ok(()) if names.len() > before => {}
            Ok(()) => return (names, 0),
            Err(failure) => return (names, failure.errno().code()),
        }
    }
}

#[tokio::test]
async fn a_listing_over_the_limit_ends_in_more_and_an_error() {
    let tree = tree_with(
        rows(25),
        Options {
            listing_limit: 10,
            ..options()
        },
    );
    let efbig = fuser::Errno::EFBIG.code();
    let (names, errno) = list_to_the_end(&tree, "t").await;
    assert_eq!(
        (names.len(), names[9].as_str(), names[10].as_str(), errno),
        (11, "000009", "@more", efbig)
    );
    assert_eq!(tree.link("t/@more").await, "@after/000009");
    let (names, errno) = list_to_the_end(&tree, "t/@after/000009").await;
    assert_eq!(
        (names[0].as_str(), names[10].as_str(), errno),
        ("000010", "@more", efbig)
    );
    assert_eq!(tree.link("t/@after/000009/@more").await, "../000019");
    let (names, errno) = list_to_the_end(&tree, "t/@after/000019").await;
    assert_eq!((names.len(), names[0].as_str(), errno), (5, "000020", 0));
    // Without a listing before it, the link is found too; where nothing was cut there is none.
    assert_eq!(tree.link("t/@prefix/0/@more").await, "@after/000009");
    assert_eq!(
        tree.errno("t/@after/000019/@more").await,
        fuser::Errno::ENOENT.code()
    );
    let (names, errno) = list_to_the_end(&tree, "t/@limit/5").await;
    assert_eq!((names.len(), errno), (5, 0));
    let (names, errno) = list_to_the_end(&tree, "t/@range/000000/000010").await;
    assert_eq!((names.len(), errno), (10, 0));
}

#[tokio::test]
async fn families_and_columns_are_cut_too() {
    let source = TestSource::new("t", &["f"]);
    for i in 0..25 {
        source.put("r", "f", format!("{i:02}"), 5, "value");
        source.put("r", "f", "00", 100 + i, "value");
    }
    let tree = tree_with(
        source,
        Options {
            listing_limit: 10,
            ..options()
        },
    );
    assert_eq!(tree.link("t/r/f/@more").await, "@after/09");
    assert_eq!(tree.link("t/r/f/@after/09/@more").await, "../19");
    assert_eq!(tree.ls("t/r/f/@after/19").await, "20 21 22 23 24");
    // `latest` counts as a name.
    assert_eq!(tree.link("t/r/f/00/@more").await, "@at/115");
    assert_eq!(tree.link("t/r/f/00/@at/115/@more").await, "../106");
    assert_eq!(
        tree.ls("t/r/f/00/@at/106").await,
        "latest 106 105 104 103 102 101 100 5"
    );
}

#[tokio::test]
async fn one_path_has_one_number_while_it_is_known() {
    let tree = map();
    let (number, _) = tree.lookup("map/aaaaa").await.unwrap();
    assert_eq!(tree.lookup("map/aaaaa").await.unwrap().0, number);
    assert_ne!(tree.lookup("map/@prefix/a/aaaaa").await.unwrap().0, number);
    tree.filesystem.forget(number, 2);
    assert!(tree.filesystem.getattr(number).await.is_err());
    assert_ne!(tree.lookup("map/aaaaa").await.unwrap().0, number);
}

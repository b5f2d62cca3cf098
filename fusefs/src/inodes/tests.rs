//! Numbers and paths.

use std::sync::mpsc::{Receiver, sync_channel};

use tablemount_api::TableName;

use super::*;

fn inodes() -> (Inodes, Receiver<()>) {
    let (crowded, is_crowded) = sync_channel(1);
    (Inodes::new(crowded), is_crowded)
}

fn node(name: &str) -> Node {
    Node::table(TableName::new(name).expect("valid"))
}

#[test]
fn numbers_are_never_given_twice() {
    let (inodes, _crowded) = inodes();
    let first = inodes.remember(ROOT, OsStr::new("a"), node("a"));
    assert_eq!(inodes.remember(ROOT, OsStr::new("a"), node("a")), first);
    let between = inodes.next();
    assert!(between > first);
    inodes.forget(first, 1);
    assert!(inodes.get(first).is_some());
    inodes.forget(first, 1);
    assert!(inodes.get(first).is_none());
    assert!(inodes.remember(ROOT, OsStr::new("a"), node("a")) > between);
}

#[test]
fn another_node_at_a_path_has_another_number() {
    let (inodes, _crowded) = inodes();
    let first = inodes.remember(ROOT, OsStr::new("a"), node("a"));
    let second = inodes.remember(ROOT, OsStr::new("a"), Node::Link("b".to_owned()));
    assert_ne!(first, second);
    inodes.forget(first, 1);
    assert_eq!(
        inodes.remember(ROOT, OsStr::new("a"), Node::Link("b".to_owned())),
        second
    );
}

#[test]
fn the_root_stays() {
    let (inodes, _crowded) = inodes();
    inodes.forget(ROOT, u64::MAX);
    assert!(matches!(*inodes.get(ROOT).expect("root").0, Node::Root));
}

#[test]
fn what_is_open_or_was_just_used_is_not_to_be_forgotten() {
    let (inodes, _crowded) = inodes();
    let numbers: Vec<u64> = (0..10)
        .map(|i| inodes.remember(ROOT, OsStr::new(&format!("{i}")), node("t")))
        .collect();
    assert!(inodes.forgettable(100).is_empty());
    inodes.count_open(numbers[3], true);
    for inode in inodes.table.lock().by_number.values_mut() {
        inode.used = Instant::now() - SPARED;
    }
    let names = |paths: Vec<(u64, OsString)>| {
        paths
            .iter()
            .map(|(_, name)| name.to_string_lossy().into_owned())
            .collect::<String>()
    };
    // Goes on where it stopped, and round.
    assert_eq!(names(inodes.forgettable(4)), "0124");
    assert_eq!(names(inodes.forgettable(4)), "5678");
    assert_eq!(names(inodes.forgettable(4)), "9");
    assert_eq!(names(inodes.forgettable(2)), "01");
    inodes.count_open(numbers[3], false);
    assert_eq!(names(inodes.forgettable(2)), "23");
}

#[test]
fn someone_is_told_when_there_are_many() {
    let (inodes, crowded) = inodes();
    for i in 0..MAX_INODES - 1 {
        inodes.remember(ROOT, OsStr::new(&i.to_string()), node("t"));
    }
    assert!(crowded.try_recv().is_err());
    inodes.remember(ROOT, OsStr::new("one more"), node("t"));
    assert!(crowded.try_recv().is_ok());
}

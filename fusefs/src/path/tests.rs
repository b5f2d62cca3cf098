//! Names and nodes, there and back.

use proptest::prelude::*;
use tablemount_api::name::encode;

use super::*;

fn table() -> Node {
    Node::table(TableName::new("t").expect("valid"))
}

fn child(parent: &Node, name: &str) -> Node {
    match parse(parent, OsStr::new(name)) {
        Some(Step::Child(node)) => node,
        other => panic!("{name}: {other:?}"),
    }
}

/// What a lookup of a listed name gives, long names resolved.
fn found(parent: &Node, name: &str, bytes: &[u8]) -> Option<Node> {
    match parse(parent, OsStr::new(name))? {
        Step::Child(node) => Some(node),
        Step::Long(long) if long.matches(bytes) => fill(parent, Bytes::copy_from_slice(bytes)),
        _ => None,
    }
}

#[test]
fn a_path_to_a_version() {
    let row = child(&table(), "a%2Fb");
    let family = child(&row, "info");
    let column = child(&family, "%empty");
    let Node::Cell(cell, timestamp) = child(&column, "%2D5") else {
        panic!("no version")
    };
    assert_eq!(
        (&cell.family.row.key[..], cell.family.family.as_str()),
        (&b"a/b"[..], "info")
    );
    assert_eq!((&cell.qualifier[..], timestamp), (&b""[..], Timestamp(-5)));
    assert!(matches!(child(&column, "latest"), Node::Latest(_)));
    assert!(matches!(
        child(&child(&child(&row, "@latest"), "info"), "q"),
        Node::Newest(_)
    ));
}

#[test]
fn other_spellings_are_aliases() {
    let check = |parent: &Node, spelling: &[u8], canonical: &str| match parse(
        parent,
        OsStr::from_bytes(spelling),
    ) {
        Some(Step::Alias { name, node }) => {
            assert_eq!(name, canonical);
            assert_eq!(listed_name(&node).as_deref(), Some(canonical));
        }
        other => panic!("{canonical}: {other:?}"),
    };
    check(&Node::Root, b"%74", "t");
    check(&table(), b"a b", "a%20b");
    check(&table(), b"%x61", "a");
    check(&table(), b"\xff", "%FF");
    check(&child(&table(), "r"), b"-f", "%2Df");
    let column = child(&child(&child(&table(), "r"), "f"), "q");
    check(&column, b"0015", "15");
    check(&column, b"+15", "15");
}

#[test]
fn what_cannot_be_is_nothing() {
    let row = child(&table(), "r");
    let family = child(&row, "f");
    let column = child(&family, "q");
    for (parent, name) in [
        (&Node::Root, "a%2Fb"),
        (&Node::Root, "@latest"),
        (&table(), "%empty"),
        (&table(), "%zz"),
        (&row, "a:b"),
        (&column, "x"),
        (&column, "99999999999999999999"),
        (&column, "@prefix"),
        (&row, "@prefix"),
        (&family, "@reverse"),
        (&child(&table(), "@at"), "@help"),
        (&child(&table(), "@limit"), "-1"),
        (&child(&column, "15"), "x"),
    ] {
        assert_eq!(parse(parent, OsStr::new(name)), None, "{name}");
    }
}

#[test]
fn arguments_of_views_take_any_spelling() {
    let plain = child(&child(&table(), "@prefix"), "a b");
    assert_eq!(child(&child(&table(), "@prefix"), "a%20b"), plain);
    assert_eq!(child(&child(&table(), "@prefix"), "%x612062"), plain);
    let at = child(&child(&table(), "@at"), "1970-01-01T00:00:00Z");
    assert_eq!(child(&child(&table(), "@at"), "0"), at);
    assert_eq!(
        child(&child(&table(), "@at"), "1970-01-01T00%3A00%3A00Z"),
        at
    );
}

proptest! {
    #[test]
    fn listed_names_lead_back(
        row in proptest::collection::vec(any::<u8>(), 1..400),
        family in "[-_.a-zA-Z0-9]{1,64}",
        qualifier in proptest::collection::vec(any::<u8>(), 0..400),
        timestamp in any::<i64>(),
        latest in any::<bool>(),
    ) {
        let table = if latest { child(&table(), "@latest") } else { table() };
        let row_node = table.row_child(row.clone().into()).expect("a row");
        prop_assert_eq!(found(&table, &listed_name(&row_node).expect("a name"), &row), Some(row_node.clone()));
        let family_node = row_node.family_child(FamilyName::new(&family).expect("valid")).expect("a family");
        prop_assert_eq!(found(&row_node, &listed_name(&family_node).expect("a name"), family.as_bytes()), Some(family_node.clone()));
        let column = family_node.column_child(qualifier.clone().into()).expect("a column");
        prop_assert_eq!(found(&family_node, &listed_name(&column).expect("a name"), &qualifier), Some(column.clone()));
        if !latest {
            let version = column.version_child(Timestamp(timestamp)).expect("a version");
            prop_assert_eq!(found(&column, &listed_name(&version).expect("a name"), b""), Some(version));
        }
    }

    #[test]
    fn any_name_anywhere_is_harmless(names in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..6)) {
        let mut node = Node::Root;
        for name in names {
            match parse(&node, OsStr::from_bytes(&name)) {
                Some(Step::Child(next) | Step::Alias { node: next, .. }) => node = next,
                _ => break,
            }
        }
    }

    #[test]
    fn virtual_names_never_hide_keys(key in "@[a-z.]{0,10}") {
        let name = encode(key.as_bytes());
        prop_assert!(!name.starts_with('@'));
        prop_assert_eq!(child(&table(), &name), table().row_child(key.into_bytes().into()).expect("a row"));
    }
}

//! Deleting rows by range, as typed.

use crate::support::shared::{create, tm};

fn keys(table: &str) -> String {
    tm(&["scan", table, "--keys-only"]).ok().replace('\n', " ")
}

#[test]
fn rows_go_by_prefix_range_and_all() {
    create("ranges", &["f"]);
    let fill = || {
        for key in ["a", "a%2Fb", "b", "c%00", "d"] {
            tm(&["put", "ranges", key, "f:q=v"]).ok();
        }
    };
    for (flags, left) in [
        (&["--prefix", "a%2F"][..], "a b c%00 d "),
        (&["--start", "b", "--stop", "d"], "a a%2Fb d "),
        (&["--start", "b"], "a a%2Fb "),
        (&["--stop", "c%00"], "c%00 d "),
        (&["--all", "--yes"], ""),
    ] {
        fill();
        tm(&[&["delete", "ranges"], flags].concat()).ok();
        assert_eq!(keys("ranges"), left, "{flags:?}");
    }
    assert_eq!(tm(&["delete", "nowhere", "--prefix", "a"]).code, 3);
}

#[test]
fn what_would_delete_too_much_is_asked_or_refused() {
    create("kept", &["f"]);
    tm(&["put", "kept", "a", "f:q=v"]).ok();
    tm(&["delete", "kept", "--all"]).failed(
        2,
        "deleting all rows needs --yes where there is no terminal to ask on",
    );
    tm(&["delete", "kept", "--prefix", "%empty"])
        .failed(2, "the prefix is empty; to delete all rows, say all");
    tm(&["delete", "kept", "--start", "b", "--stop", "a"])
        .failed(2, "the range of rows is empty: stop is not above start");
    for args in [
        &["delete", "kept"][..],
        &["delete", "kept", "a", "--all", "--yes"],
        &["delete", "kept", "--prefix", "a", "--all", "--yes"],
        &["delete", "kept", "--prefix", "a", "--stop", "b"],
        &["delete", "kept", "--prefix", "a", "--timestamp", "1"],
        &["delete", "kept", "a", "--yes"],
    ] {
        assert_eq!(tm(args).code, 2, "{args:?}");
    }
    assert_eq!(keys("kept"), "a ");
}

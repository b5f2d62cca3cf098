//! Requests and the windows that their pages make.

use std::sync::Arc;

use super::*;
use crate::source::Source as _;
use crate::test_source::TestSource;
use crate::window::First;

fn scope(reverse: bool) -> Scope {
    Scope {
        table: tablemount_api::TableName::new("t").expect("valid"),
        at: None,
        latest: false,
        reverse,
    }
}

fn source() -> Arc<TestSource> {
    let source = TestSource::new("t", &["f", "g"]);
    for row in ["a", "b", "c", "d"] {
        for qualifier in ["p", "q"] {
            for timestamp in [9, 5] {
                source.put(row, "f", qualifier, timestamp, "value");
            }
        }
        source.put(row, "g", "", 7, "value");
    }
    source
}

async fn info(source: &TestSource) -> TableInfo {
    source.table(&scope(false).table).await.expect("table")
}

async fn read(source: &TestSource, scope: &Scope, fetch: &Fetch) -> Window {
    let page = source
        .read_page(&scope.table, &fetch.request)
        .await
        .expect("page");
    fetch.window(scope, &info(source).await, page, Instant::now())
}

fn row(key: &'static str) -> Place {
    Place::row(Bytes::from_static(key.as_bytes()))
}

const ALONE: Ahead = Ahead {
    places: 1,
    inside: true,
};

#[tokio::test]
async fn one_row() {
    let source = source();
    let info = info(&source).await;
    let fetch = Fetch::lengths(&scope(false), &info, &row("b"), ALONE).expect("request");
    let window = read(&source, &scope(false), &fetch).await;
    assert_eq!(window.all_in(&row("b")).map(<[_]>::len), Some(5));
    assert_eq!(window.first_in(&row("a")), None);
    assert_eq!(window.first_in(&row("c")), None);
    let fetch = Fetch::lengths(&scope(false), &info, &row("bb"), ALONE).expect("request");
    assert_eq!(
        read(&source, &scope(false), &fetch)
            .await
            .first_in(&row("bb")),
        Some(First::Nothing)
    );
}

#[tokio::test]
async fn rows_ahead_in_both_directions() {
    let source = source();
    let info = info(&source).await;
    let ahead = Ahead {
        places: 2,
        inside: true,
    };
    let window = read(
        &source,
        &scope(false),
        &Fetch::lengths(&scope(false), &info, &row("b"), ahead).expect("request"),
    )
    .await;
    for (key, cells) in [
        ("a", None),
        ("b", Some(5)),
        ("bb", Some(0)),
        ("c", Some(5)),
        ("d", None),
    ] {
        assert_eq!(window.all_in(&row(key)).map(<[_]>::len), cells, "{key}");
    }
    let window = read(
        &source,
        &scope(true),
        &Fetch::lengths(&scope(true), &info, &row("c"), ahead).expect("request"),
    )
    .await;
    for (key, cells) in [
        ("a", None),
        ("b", Some(5)),
        ("bb", Some(0)),
        ("c", Some(5)),
        ("d", None),
    ] {
        assert_eq!(
            window.all_in(&row(key)).map(<[_]>::len),
            cells,
            "reverse {key}"
        );
    }
    let ahead = Ahead {
        places: 2,
        inside: false,
    };
    let window = read(
        &source,
        &scope(false),
        &Fetch::lengths(&scope(false), &info, &row("b"), ahead).expect("request"),
    )
    .await;
    assert_eq!(window.first_in(&row("d")), Some(First::Something));
    assert_eq!(window.first_in(&row("e")), Some(First::Nothing));
}

#[tokio::test]
async fn a_reverse_page_cut_inside_a_row_leaves_it_out() {
    let source = source();
    let info = info(&source).await;
    let mut fetch = Fetch::lengths(
        &scope(true),
        &info,
        &row("d"),
        Ahead {
            places: 10,
            inside: true,
        },
    )
    .expect("request");
    fetch.request.cell_limit = Some(7);
    let window = read(&source, &scope(true), &fetch).await;
    assert_eq!(window.all_in(&row("d")).map(<[_]>::len), Some(5));
    assert_eq!(window.first_in(&row("c")), None);
    assert_eq!(window.first_in(&row("cc")), Some(First::Nothing));
}

#[tokio::test]
async fn places_inside_a_row() {
    let source = source();
    let info = info(&source).await;
    let f = info.families[0].id;
    let column = Place {
        qualifier: Some("p".into()),
        ..Place::family("b".into(), f)
    };
    let window = read(
        &source,
        &scope(false),
        &Fetch::lengths(&scope(false), &info, &column, ALONE).expect("request"),
    )
    .await;
    assert_eq!(window.all_in(&column).map(<[_]>::len), Some(2));
    // What comes after it in the family is known as well, what lies before it is not.
    assert_eq!(
        window
            .all_in(&Place {
                qualifier: Some("z".into()),
                ..column.clone()
            })
            .map(<[_]>::len),
        Some(0)
    );
    assert_eq!(
        window.first_in(&Place {
            qualifier: Some("a".into()),
            ..column.clone()
        }),
        None
    );
    let version = Place {
        timestamp: Some(7),
        ..column.clone()
    };
    let window = read(
        &source,
        &scope(false),
        &Fetch::lengths(&scope(false), &info, &version, ALONE).expect("request"),
    )
    .await;
    assert_eq!(window.first_in(&version), Some(First::Nothing));
    let older = Place {
        timestamp: Some(5),
        ..column.clone()
    };
    assert!(matches!(window.first_in(&older), Some(First::Cell(_))));
    assert_eq!(window.first_in(&column), None);
}

#[tokio::test]
async fn values_from_the_middle_of_a_row_on() {
    let source = source();
    let info = info(&source).await;
    let scope = scope(false);
    let lengths = Fetch::lengths(
        &scope,
        &info,
        &row("a"),
        Ahead {
            places: 4,
            inside: true,
        },
    )
    .expect("request");
    let lengths = read(&source, &scope, &lengths).await;
    let place = Place {
        qualifier: Some("q".into()),
        timestamp: Some(9),
        ..Place::family("b".into(), info.families[0].id)
    };
    let window = read(
        &source,
        &scope,
        &Fetch::values(&scope, &info, &lengths, &place, 6).expect("request"),
    )
    .await;
    let Content::Cells {
        cells,
        values: true,
    } = &window.content
    else {
        panic!("no values")
    };
    let seen: Vec<_> = cells
        .iter()
        .map(|cell| (&cell.row[..], &cell.qualifier[..], cell.timestamp))
        .collect();
    let expected: [(&[u8], &[u8], i64); 6] = [
        (b"b", b"q", 9),
        (b"b", b"q", 5),
        (b"b", b"", 7),
        (b"c", b"p", 9),
        (b"c", b"p", 5),
        (b"c", b"q", 9),
    ];
    assert_eq!(seen, expected);
    assert!(
        cells
            .iter()
            .all(|cell| cell.value.as_ref().is_some_and(|value| value == "value"))
    );
    assert!(matches!(window.first_in(&place), Some(First::Cell(_))));
}

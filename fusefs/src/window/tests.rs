//! What windows know, and how long.

use super::*;

fn scope() -> Scope {
    Scope {
        table: TableName::new("t").expect("valid"),
        at: None,
        latest: false,
        reverse: false,
    }
}

fn cell(row: &'static str, qualifier: &'static str, timestamp: i64) -> CellFact {
    CellFact {
        row: row.into(),
        family: 1,
        qualifier: qualifier.into(),
        timestamp,
        length: 0,
        value: None,
    }
}

fn row(key: &'static str) -> Place {
    Place::row(key.into())
}

fn column(key: &'static str, qualifier: &'static str) -> Place {
    Place {
        qualifier: Some(qualifier.into()),
        ..Place::family(key.into(), 1)
    }
}

fn window(low: Option<Edge>, high: Option<Edge>, content: Content) -> Window {
    Window {
        scope: scope(),
        fetched: Instant::now(),
        low,
        high,
        content,
    }
}

fn cells(cells: Vec<CellFact>) -> Content {
    Content::Cells {
        cells,
        values: false,
    }
}

#[test]
fn inside_its_edges_absence_is_known_too() {
    let content = cells(vec![
        cell("b", "p", 9),
        cell("b", "p", 5),
        cell("b", "q", 7),
        cell("d", "p", 1),
    ]);
    let high = Place {
        timestamp: Some(1),
        ..column("d", "p")
    }
    .after();
    let window = window(Some(row("b").before()), Some(high), content);
    let first = |place: &Place| {
        window
            .first_in(place)
            .map(|first| matches!(first, First::Cell(_)))
    };
    assert_eq!(first(&row("a")), None);
    assert_eq!(first(&row("b")), Some(true));
    assert_eq!(first(&row("c")), Some(false));
    assert_eq!(first(&row("d")), Some(true));
    assert_eq!(first(&row("e")), None);
    assert_eq!(first(&column("b", "o")), Some(false));
    assert_eq!(first(&column("d", "p")), Some(true));
    assert_eq!(first(&column("d", "q")), None);
    assert_eq!(
        first(&Place {
            timestamp: Some(6),
            ..column("b", "p")
        }),
        Some(false)
    );
    // The page was cut inside row d: not all of it is known.
    assert_eq!(window.all_in(&row("b")).map(<[_]>::len), Some(3));
    assert_eq!(window.all_in(&column("b", "p")).map(<[_]>::len), Some(2));
    assert_eq!(window.all_in(&row("c")).map(<[_]>::len), Some(0));
    assert_eq!(window.all_in(&row("d")), None);
}

#[test]
fn row_keys_alone_tell_whether_a_row_is_there() {
    let window = window(None, None, Content::Keys(vec!["a".into(), "c".into()]));
    assert_eq!(window.first_in(&row("a")), Some(First::Something));
    assert_eq!(window.first_in(&row("b")), Some(First::Nothing));
    assert_eq!(window.first_in(&column("a", "p")), None);
    assert_eq!(window.first_in(&column("b", "p")), Some(First::Nothing));
    assert_eq!(window.all_in(&row("a")), None);
}

#[test]
fn windows_are_for_their_scope_and_second() {
    let mut windows = Windows::default();
    windows.insert(Arc::new(window(None, None, cells(vec![cell("a", "p", 1)]))));
    let now = Instant::now();
    assert!(windows.first_in(&scope(), &row("a"), now).is_some());
    assert!(
        windows
            .first_in(
                &Scope {
                    latest: true,
                    ..scope()
                },
                &row("a"),
                now
            )
            .is_none()
    );
    assert!(windows.first_in(&scope(), &row("a"), now + TTL).is_none());
    assert_eq!((windows.newest_first.len(), windows.bytes), (0, 0));
}

#[test]
fn windows_are_bounded() {
    let mut windows = Windows::default();
    for _ in 0..10 {
        let value = Some(Bytes::from(vec![0; 5 << 20]));
        let content = Content::Cells {
            cells: vec![CellFact {
                value,
                ..cell("a", "p", 1)
            }],
            values: true,
        };
        windows.insert(Arc::new(window(None, None, content)));
        assert!(windows.bytes <= MAX_BYTES);
    }
    assert_eq!(windows.newest_first.len(), 3);
    for _ in 0..200 {
        windows.insert(Arc::new(window(None, None, Content::Keys(Vec::new()))));
    }
    assert_eq!(windows.newest_first.len(), MAX_WINDOWS);
}

#[test]
fn disorder_is_no_panic() {
    let content = cells(vec![
        cell("z", "p", 1),
        cell("a", "p", 1),
        cell("m", "p", 1),
    ]);
    let window = window(None, None, content);
    for key in ["a", "m", "z", "b"] {
        let _ = (
            window.first_in(&row(key)),
            window.all_in(&row(key)),
            window.from(&row(key)),
        );
    }
}

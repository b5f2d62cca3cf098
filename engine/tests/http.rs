//! The HTTP edge with its client, against a real store: what goes in comes out, page by page.

mod support;

use bytes::Bytes;
use futures::TryStreamExt;
use support::*;
use tablemount_api::{
    CellCheck, CellContent, DropTable, ErrorCode, FamilySchema, GcClause, GcRule, MutateRequest,
    Mutation, Position, PutTable, ReadRequest, RowMutation, Timestamp, ValueRequest,
};
use tablemount_client::{Client, Error, RowChunk};

/// Cells as `row family:qualifier@timestamp=value`.
fn text(rows: &[RowChunk]) -> Vec<String> {
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let cells = rows
        .iter()
        .flat_map(|row| row.cells.iter().map(move |cell| (&row.row, cell)));
    cells
        .map(|(row, cell)| {
            let value = match (&cell.value, cell.length) {
                (Some(value), _) => lossy(&value.0),
                (None, length) => format!("{length:?}"),
            };
            let (row, column) = (lossy(row.bytes()), lossy(cell.qualifier.bytes()));
            format!("{row} {}:{column}@{}={value}", cell.family, cell.timestamp)
        })
        .collect()
}

async fn all(client: &Client, request: ReadRequest) -> Vec<RowChunk> {
    client
        .read_all(&table("t"), request)
        .try_collect()
        .await
        .expect("read")
}

fn refused(error: Error) -> (ErrorCode, String) {
    match error {
        Error::Refused(error) => (error.code, error.message),
        other => panic!("not refused: {other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_made_changed_and_dropped() {
    let server = Server::start().await;
    let client = server.client();
    assert_eq!(client.tables().await.expect("listed"), []);
    let rule = GcRule(vec![GcClause {
        max_versions: Some(3),
        max_age_micros: None,
    }]);
    let f = FamilySchema {
        gc_rule: rule,
        in_memory: true,
        ..FamilySchema::new(family("f"))
    };
    let body = PutTable {
        families: vec![f.clone()],
        splits: vec![row("m"), row("c")],
        ..PutTable::default()
    };
    let made = client.put_table(&table("t"), &body).await.expect("made");
    assert_eq!(
        (made.version, made.splits.clone()),
        (1, vec![row("c"), row("m")])
    );
    assert_eq!(
        made.families
            .iter()
            .map(|family| &family.schema)
            .collect::<Vec<_>>(),
        [&f]
    );
    assert_eq!(client.table(&table("t")).await.expect("there"), made);
    assert_eq!(
        client
            .put_table(&table("t"), &body)
            .await
            .expect("the same"),
        made
    );

    let grown = PutTable {
        families: vec![f, FamilySchema::new(family("g"))],
        if_version: Some(1),
        ..PutTable::default()
    };
    let changed = client
        .put_table(&table("t"), &grown)
        .await
        .expect("changed");
    assert_eq!((changed.version, changed.families.len()), (2, 2));
    assert_eq!(client.tables().await.expect("listed"), [changed.clone()]);
    let conflict = client
        .put_table(&table("t"), &grown)
        .await
        .expect_err("version 1 is over");
    assert_eq!(refused(conflict).0, ErrorCode::Conflict);
    let missing = client
        .put_table(&table("t"), &families(&["g"]))
        .await
        .expect_err("f is missing");
    let message = "table \"t\": column family \"f\" is missing from the request; name it in dropFamilies to delete its data";
    assert_eq!(
        refused(missing),
        (ErrorCode::FailedPrecondition, message.to_owned())
    );

    let stats = client.table_stats(&table("t")).await.expect("stats");
    assert_eq!((stats.families.len(), stats.tablets.len()), (2, 3));
    let server_stats = client.server_stats().await.expect("stats");
    assert_eq!((server_stats.tables, server_stats.tablets), (1, 3));

    let other = DropTable {
        if_uid: Some("another".to_owned()),
    };
    assert_eq!(
        refused(
            client
                .drop_table(&table("t"), &other)
                .await
                .expect_err("another uid")
        )
        .0,
        ErrorCode::Conflict
    );
    client
        .drop_table(
            &table("t"),
            &DropTable {
                if_uid: Some(changed.uid),
            },
        )
        .await
        .expect("dropped");
    let gone = (ErrorCode::NotFound, "table \"t\" not found".to_owned());
    assert_eq!(
        refused(client.table(&table("t")).await.expect_err("gone")),
        gone
    );
    assert_eq!(
        refused(
            client
                .drop_table(&table("t"), &DropTable::default())
                .await
                .expect_err("gone")
        ),
        gone
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn cells_come_back_in_order_with_their_versions() {
    let server = Server::start().await;
    let client = server.client();
    client
        .put_table(&table("t"), &families(&["A", "B"]))
        .await
        .expect("made");
    let writes = vec![
        put("B", "", 1, "w1"),
        put("A", "foo", 4, "m"),
        put("A", "foo", 15, "y"),
        put("A", "bar", 15, "d"),
        put("B", "", 6, "w6"),
    ];
    let answer = client
        .mutate(&table("t"), &mutate([(row("aaaaa"), writes)]))
        .await
        .expect("written");
    assert_eq!((answer.results.len(), answer.timestamp), (1, None));
    let expected = [
        "aaaaa A:bar@15=d",
        "aaaaa A:foo@15=y",
        "aaaaa A:foo@4=m",
        "aaaaa B:@6=w6",
        "aaaaa B:@1=w1",
    ];
    let page = client
        .read_page(&table("t"), &ReadRequest::default())
        .await
        .expect("read");
    assert_eq!(
        (text(&page.rows), page.next),
        (expected.map(str::to_owned).to_vec(), None)
    );

    let foo = |at| ValueRequest {
        row: row("aaaaa"),
        family: family("A"),
        qualifier: qualifier("foo"),
        at,
        timestamp: None,
    };
    let get = async |at: Option<i64>| {
        client
            .value(&table("t"), &foo(at.map(Timestamp)), None)
            .await
    };
    let value = get(None).await.expect("there");
    assert_eq!(
        (value.timestamp, value.length, &value.bytes[..]),
        (Timestamp(15), 1, &b"y"[..])
    );
    assert_eq!(&get(Some(10)).await.expect("there").bytes[..], b"m");
    assert_eq!(
        refused(get(Some(2)).await.expect_err("not yet")).0,
        ErrorCode::NotFound
    );

    let request = ReadRequest {
        cells: CellContent::Lengths,
        versions: Some(1),
        families: vec![family("B")],
        ..Default::default()
    };
    assert_eq!(text(&all(&client, request).await), ["aaaaa B:@6=Some(2)"]);
    let keys = all(
        &client,
        ReadRequest {
            cells: CellContent::None,
            ..Default::default()
        },
    )
    .await;
    assert_eq!(
        keys,
        [RowChunk {
            row: row("aaaaa"),
            cells: vec![]
        }]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_increments_and_server_timestamps_answer() {
    let server = Server::start().await;
    let client = server.client();
    client
        .put_table(&table("t"), &families(&["f"]))
        .await
        .expect("made");
    let increment = Mutation::Increment {
        family: family("f"),
        qualifier: qualifier("n"),
        by: 5,
    };
    let absent = CellCheck {
        family: family("f"),
        qualifier: qualifier("n"),
        value: None,
    };
    let request = MutateRequest {
        rows: vec![RowMutation {
            row: row("r"),
            check: Some(absent),
            mutations: vec![increment],
        }],
    };
    let first = client.mutate(&table("t"), &request).await.expect("written");
    let value = first.results[0].cells[0]
        .value
        .clone()
        .expect("the new value");
    assert_eq!(
        (first.results[0].applied, &value.0[..]),
        (true, &5_i64.to_be_bytes()[..])
    );
    let second = client.mutate(&table("t"), &request).await.expect("checked");
    assert_eq!(
        (second.results[0].applied, second.results[0].cells.len()),
        (false, 0)
    );

    let value = Bytes::from_static(b"x");
    let given = client
        .put_value(
            &table("t"),
            &row("r"),
            &family("f"),
            &qualifier("v"),
            None,
            value,
        )
        .await
        .expect("set");
    assert!(
        given.0 > 1_600_000_000_000_000 && given.0 % 1000 == 0,
        "{given}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn any_bytes_of_any_length_go_through() {
    let server = Server::start().await;
    let client = server.client();
    client
        .put_table(&table("t"), &families(&["f"]))
        .await
        .expect("made");
    let long = || vec![0xfe; 65_536];
    let keys = [
        b"a/b".to_vec(),
        vec![0],
        b"\n".to_vec(),
        vec![0xff, 0xfe],
        b".".to_vec(),
        b"%+ &=".to_vec(),
        long(),
    ];
    for key in &keys {
        let (key, column) = (row(key), qualifier(vec![0xfd; key.len() / 2]));
        let bytes = Bytes::copy_from_slice(key.bytes());
        client
            .put_value(
                &table("t"),
                &key,
                &family("f"),
                &column,
                Some(Timestamp(7)),
                bytes,
            )
            .await
            .expect("set");
        let cell = ValueRequest {
            row: key.clone(),
            family: family("f"),
            qualifier: column.clone(),
            at: None,
            timestamp: None,
        };
        assert_eq!(
            client
                .value(&table("t"), &cell, None)
                .await
                .expect("there")
                .bytes,
            key.bytes()
        );
        let rows = all(
            &client,
            ReadRequest {
                row: Some(key.clone()),
                ..Default::default()
            },
        )
        .await;
        assert_eq!(
            (rows.len(), &rows[0].row, &rows[0].cells[0].qualifier),
            (1, &key, &column)
        );
    }
    let mut sorted = keys.to_vec();
    sorted.sort();
    let listed = all(
        &client,
        ReadRequest {
            cells: CellContent::None,
            ..Default::default()
        },
    )
    .await;
    assert_eq!(
        listed
            .iter()
            .map(|chunk| chunk.row.bytes().to_vec())
            .collect::<Vec<_>>(),
        sorted
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_join_to_the_whole_both_ways() {
    let server = Server::start().await;
    let client = server.client();
    client
        .put_table(&table("t"), &families(&["f"]))
        .await
        .expect("made");
    let cells = |row: usize| {
        (0..=row % 7)
            .map(|column| put("f", &format!("c{column}"), 1, "v"))
            .collect::<Vec<_>>()
    };
    let rows = (0..100).map(|number| (row(format!("r{number:03}")), cells(number)));
    client
        .mutate(&table("t"), &mutate(rows))
        .await
        .expect("written");
    for reverse in [false, true] {
        let whole = all(
            &client,
            ReadRequest {
                reverse,
                ..Default::default()
            },
        )
        .await;
        let expected = text(&whole);
        assert_eq!(
            expected.len(),
            (0..100).map(|row| row % 7 + 1).sum::<usize>()
        );
        for (row_limit, cell_limit) in [
            (Some(7), None),
            (None, Some(1)),
            (None, Some(5)),
            (Some(2), Some(3)),
        ] {
            let mut request = ReadRequest {
                reverse,
                row_limit,
                cell_limit,
                ..Default::default()
            };
            let mut found = Vec::new();
            loop {
                let page = client.read_page(&table("t"), &request).await.expect("read");
                let cells: usize = page.rows.iter().map(|row| row.cells.len()).sum();
                assert!(
                    cells as u64 <= cell_limit.unwrap_or(u64::MAX)
                        && page.rows.len() as u64 <= row_limit.unwrap_or(u64::MAX)
                );
                found.extend(text(&page.rows));
                request.after = page.next;
                if request.after.is_none() {
                    break;
                }
            }
            assert_eq!(
                found, expected,
                "reverse {reverse}, rows {row_limit:?}, cells {cell_limit:?}"
            );
        }
        let bounded = ReadRequest {
            reverse,
            row_limit: Some(9),
            cell_limit: Some(20),
            ..Default::default()
        };
        assert_eq!(text(&all(&client, bounded).await), expected[..20]);
        let rows: Vec<_> = all(
            &client,
            ReadRequest {
                reverse,
                row_limit: Some(3),
                ..Default::default()
            },
        )
        .await;
        assert_eq!(text(&rows), text(&whole[..3]));
    }
    let after = Some(Position {
        row: row("r097"),
        cell: None,
    });
    let rest = all(
        &client,
        ReadRequest {
            after,
            cells: CellContent::None,
            ..Default::default()
        },
    )
    .await;
    assert_eq!(
        rest.iter()
            .map(|chunk| chunk.row.clone())
            .collect::<Vec<_>>(),
        [row("r098"), row("r099")]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_row_goes_over_pages_and_counts_once() {
    let server = Server::start().await;
    let client = server.client();
    client
        .put_table(&table("t"), &families(&["f"]))
        .await
        .expect("made");
    // Three rows of 8 MiB each, beyond what a page holds.
    let value = Bytes::from(vec![b'x'; 1 << 20]);
    for key in ["a", "b", "c"] {
        for column in 0..8 {
            let column = qualifier(format!("{column}"));
            client
                .put_value(
                    &table("t"),
                    &row(key),
                    &family("f"),
                    &column,
                    Some(Timestamp(1)),
                    value.clone(),
                )
                .await
                .expect("set");
        }
    }
    let first = client
        .read_page(&table("t"), &ReadRequest::default())
        .await
        .expect("read");
    assert!(
        first.next.expect("more").cell.is_some(),
        "the page ends inside a row"
    );
    let rows = all(
        &client,
        ReadRequest {
            row_limit: Some(2),
            ..Default::default()
        },
    )
    .await;
    let cells: Vec<_> = rows
        .iter()
        .flat_map(|chunk| chunk.cells.iter().map(|_| chunk.row.clone()))
        .collect();
    assert_eq!(cells, [vec![row("a"); 8], vec![row("b"); 8]].concat());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_reads_what_a_body_reads() {
    let server = Server::start().await;
    let client = server.client();
    client
        .put_table(&table("t"), &families(&["f", "g"]))
        .await
        .expect("made");
    let rows = [(
        row(b"a/\x00\xff"),
        vec![
            put("f", "q", 5, "old"),
            put("f", "q", 9, "new"),
            put("g", "q", 9, "other"),
        ],
    )];
    client
        .mutate(&table("t"), &mutate(rows))
        .await
        .expect("written");
    let answer = server
        .send(
            "GET /v1/tables/t/read?row=a%2F%00%FF&families=f&at=8&qualifier=q HTTP/1.1",
            b"",
        )
        .await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("application/x-ndjson"))
    );
    let expected = "{\"row\":\"YS8A/w==\",\"cells\":[{\"family\":\"f\",\"qualifier\":\"cQ==\",\"timestamp\":5,\"value\":\"b2xk\"}]}\n{\"end\":{}}\n";
    assert_eq!(answer.text(), expected);
    let value = server
        .send(
            "GET /v1/tables/t/value?row=a%2F%00%FF&family=f&qualifier=q HTTP/1.1",
            b"",
        )
        .await;
    assert_eq!(
        (
            value.status,
            value.header("tablemount-timestamp"),
            value.text().as_str()
        ),
        (200, Some("9"), "new")
    );
    let head = server
        .send(
            "HEAD /v1/tables/t/value?row=a%2F%00%FF&family=f&qualifier=q&timestamp=5 HTTP/1.1",
            b"",
        )
        .await;
    assert_eq!(
        (head.status, head.header("content-length"), head.body.len()),
        (200, Some("3"), 0)
    );
    let set = server
        .send(
            "PUT /v1/tables/t/value?row=b%2F&family=f&timestamp=3 HTTP/1.1",
            b"raw\x00bytes",
        )
        .await;
    assert_eq!(
        (set.status, set.text().as_str()),
        (200, "{\"timestamp\":3}")
    );
    let value = server
        .send("GET /v1/tables/t/value?row=b%2F&family=f HTTP/1.1", b"")
        .await;
    assert_eq!(value.body, b"raw\x00bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_give_parts_of_a_value() {
    let server = Server::start().await;
    let client = server.client();
    client
        .put_table(&table("t"), &families(&["f"]))
        .await
        .expect("made");
    let value = Bytes::from_static(b"0123456789");
    client
        .put_value(
            &table("t"),
            &row("r"),
            &family("f"),
            &qualifier(""),
            Some(Timestamp(1)),
            value,
        )
        .await
        .expect("set");
    let cell = ValueRequest {
        row: row("r"),
        family: family("f"),
        qualifier: qualifier(""),
        at: None,
        timestamp: None,
    };
    for (range, expected) in [
        (0..3, "012"),
        (7..99, "789"),
        (10..20, ""),
        (99..100, ""),
        (4..4, ""),
        (0..10, "0123456789"),
    ] {
        let part = client
            .value(&table("t"), &cell, Some(range.clone()))
            .await
            .expect("there");
        assert_eq!(
            (part.length, &part.bytes[..]),
            (10, expected.as_bytes()),
            "{range:?}"
        );
    }
    let path = "GET /v1/tables/t/value?row=r&family=f HTTP/1.1";
    let part = server.send(&format!("{path}\nrange: bytes=-2"), b"").await;
    assert_eq!(
        (
            part.status,
            part.header("content-range"),
            part.text().as_str()
        ),
        (206, Some("bytes 8-9/10"), "89")
    );
    let several = server
        .send(&format!("{path}\nrange: bytes=0-1,4-5"), b"")
        .await;
    assert_eq!(
        (
            several.status,
            several.header("accept-ranges"),
            several.body.len()
        ),
        (200, Some("bytes"), 10)
    );
    let outside = server.send(&format!("{path}\nrange: bytes=10-"), b"").await;
    assert_eq!(
        (outside.status, outside.header("content-range")),
        (416, Some("bytes */10"))
    );
    assert!(
        outside
            .text()
            .contains("range \\\"bytes=10-\\\" lies outside the value of 10 bytes"),
        "{}",
        outside.text()
    );
}

//! Reads over HTTP: page after page, both ways; queries and ranges.

use crate::support::*;
use bytes::Bytes;
use tablemount_api::{CellContent, Position, ReadRequest, Timestamp, ValueRequest};

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

//! The HTTP edge with its client, against a real store: what goes in comes out.

use crate::support::*;
use bytes::Bytes;
use tablemount_api::{
    CellCheck, CellContent, DropTable, ErrorCode, FamilySchema, GcClause, GcRule, MutateRequest,
    Mutation, PutTable, ReadRequest, RowMutation, Timestamp, ValueRequest,
};
use tablemount_client::{Error, RowChunk};

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
    assert_eq!(
        client.tables().await.expect("listed"),
        std::slice::from_ref(&changed)
    );
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

//! Deleting rows by range.

use tablemount_api::{Base64, DeleteRows, PutTable, ReadRequest};

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_deleted_by_range_prefix_and_all_at_once() {
    let server = Server::start().await;
    let client = server.client();
    let split = PutTable {
        splits: vec![row("c")],
        ..families(&["f", "g"])
    };
    client.put_table(&table("t"), &split).await.expect("table");
    let keys = ["a", "ab", "b", "c", "ca", "d"];
    let fill =
        mutate(keys.map(|key| (row(key), vec![put("f", "q", 1, "v"), put("g", "q", 1, "v")])));
    let left = async || {
        let rows = all(&client, ReadRequest::default()).await;
        rows.iter()
            .map(|row| String::from_utf8_lossy(row.row.bytes()).into_owned())
            .collect::<Vec<_>>()
    };
    for (rows, expected) in [
        (
            DeleteRows {
                start: Some(row("ab")),
                stop: Some(row("ca")),
                ..DeleteRows::default()
            },
            vec!["a", "ca", "d"],
        ),
        (
            DeleteRows {
                stop: Some(row("b")),
                ..DeleteRows::default()
            },
            vec!["b", "c", "ca", "d"],
        ),
        (
            DeleteRows {
                start: Some(row("c")),
                ..DeleteRows::default()
            },
            vec!["a", "ab", "b"],
        ),
        (
            DeleteRows {
                prefix: Some(Base64("c".into())),
                ..DeleteRows::default()
            },
            vec!["a", "ab", "b", "d"],
        ),
        (
            DeleteRows {
                all: true,
                ..DeleteRows::default()
            },
            vec![],
        ),
    ] {
        client.mutate(&table("t"), &fill).await.expect("written");
        client
            .delete_rows(&table("t"), &rows)
            .await
            .expect("deleted");
        assert_eq!(left().await, expected, "{rows:?}");
    }
    client
        .mutate(&table("t"), &fill)
        .await
        .expect("written again");
    assert_eq!(left().await, keys, "the same cells, written later");

    let refused = async |body: &str| {
        let head = "POST /v1/tables/t/delete-rows HTTP/1.1\ncontent-type: application/json";
        let (status, _, message) = server.refusal(head, body.as_bytes()).await;
        (status, message)
    };
    let one = "deleting rows takes one of: start or stop, prefix, all".to_owned();
    assert_eq!(refused("{}").await, (400, one.clone()));
    assert_eq!(
        refused(r#"{"all": true, "prefix": "YQ=="}"#).await,
        (400, one)
    );
    assert_eq!(
        refused(r#"{"prefix": ""}"#).await,
        (
            400,
            "the prefix is empty; to delete all rows, say all".to_owned()
        )
    );
    assert_eq!(
        refused(r#"{"start": "Yg==", "stop": "Yg=="}"#).await,
        (
            400,
            "the range of rows is empty: stop is not above start".to_owned()
        )
    );
    assert_eq!(left().await, keys, "nothing of that did anything");
}

//! Compaction on demand and the hold.

use tablemount_api::{CompactRequest, Hold};
use tablemount_client::TokenSource;
use tablemount_engine::access::Anonymous;

use crate::support::*;

async fn filled(server: &Server, values: usize, bytes: usize) {
    let client = server.client();
    client
        .put_table(&table("t"), &families(&["f", "g"]))
        .await
        .expect("table");
    // Nothing that compresses to nothing, and no more than a body takes.
    let value: String = (0..bytes)
        .map(|i| char::from(b'a' + (i * i % 23) as u8))
        .collect();
    for i in 0..values {
        let puts = vec![put("f", "q", 1, &value), put("g", "q", 1, "small")];
        client
            .mutate(&table("t"), &mutate([(row(format!("r{i}")), puts)]))
            .await
            .expect("written");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_tells_what_it_did() {
    let server = Server::start().await;
    filled(&server, 3, 1000).await;
    let client = server.client();
    let all = CompactRequest::default();
    let done = client
        .compact(&table("t"), &all)
        .await
        .expect("compacted")
        .expect("done in time");
    let stats = client.table_stats(&table("t")).await.expect("stats");
    assert_eq!(
        (
            stats.files,
            stats.memtable_bytes,
            stats.estimated_debt_bytes
        ),
        (2, 0, 0)
    );
    assert!(
        done.bytes_read >= done.bytes_written && done.bytes_written == stats.disk_bytes,
        "{done:?}"
    );

    let g = CompactRequest {
        family: Some(family("g")),
    };
    let done = client
        .compact(&table("t"), &g)
        .await
        .expect("compacted")
        .expect("done in time");
    assert!(
        done.bytes_read < stats.disk_bytes / 2,
        "only g was read: {done:?}"
    );

    let refused = |path: &str, body: &str| {
        let head = format!("POST /v1/tables/{path} HTTP/1.1\ncontent-type: application/json");
        let (server, body) = (&server, body.to_owned());
        async move { server.refusal(&head, body.as_bytes()).await }
    };
    assert_eq!(refused("none/compact", "{}").await.0, 404);
    let unknown = "column family \"h\" not found in table \"t\" (families: \"f\", \"g\")";
    assert_eq!(
        refused("t/compact", r#"{"family": "h"}"#).await,
        (404, "NotFound".to_owned(), unknown.to_owned())
    );
    assert_eq!(refused("t/compact", r#"{"families": []}"#).await.0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_goes_on_after_its_deadline() {
    let server = Server::start().await;
    filled(&server, 24, 1 << 20).await;
    let head = "POST /v1/tables/t/compact HTTP/1.1\ncontent-type: application/json\ntablemount-timeout-ms: 10";
    let answer = server.send(head, b"{}").await;
    // On a machine this fast it would be done.
    assert!([200, 202].contains(&answer.status), "{answer:?}");
    if answer.status == 202 {
        assert_eq!(answer.text(), "");
    }
    let client = server.client();
    let done = until("the compaction", async || {
        let stats = client.table_stats(&table("t")).await.expect("stats");
        (stats.files == 2 && stats.memtable_bytes == 0).then_some(stats)
    });
    assert_eq!(done.await.families[0].entries, 24);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_is_set_read_and_released() {
    let server = Server::start().await;
    let client = server.client();
    assert_eq!(client.hold().await.expect("hold"), Hold::default());
    let wanted = Hold {
        held: true,
        reason: Some("wrong rule".to_owned()),
        since: None,
    };
    let held = client.set_hold(&wanted).await.expect("held");
    assert_eq!(
        (held.held, held.reason.as_deref()),
        (true, Some("wrong rule"))
    );
    assert!(held.since.is_some());
    assert_eq!(client.hold().await.expect("hold"), held);
    assert!(client.server_stats().await.expect("stats").held);
    let metrics = server.send("GET /metrics HTTP/1.1", b"").await.text();
    assert!(metrics.lines().any(|line| line == "tablemount_held 1"));
    let released = client.set_hold(&Hold::default()).await.expect("released");
    assert!(!released.held && released.reason.is_none());

    let long = serde_json::json!({"held": true, "reason": "x".repeat(1001)}).to_string();
    let refusal = server.refusal(
        "PUT /v1/hold HTTP/1.1\ncontent-type: application/json",
        long.as_bytes(),
    );
    assert_eq!(
        refusal.await,
        (
            400,
            "InvalidArgument".to_owned(),
            "reason of a hold is 1001 bytes; limit is 1000".to_owned()
        )
    );
    assert!(!client.hold().await.expect("hold").held);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_neither_hold_nor_compact() {
    let start = Start {
        anonymous: Anonymous::ReadOnly,
        ..Start::default()
    };
    let server = start.run().await;
    server
        .admin()
        .put_table(&table("t"), &families(&["f"]))
        .await
        .expect("table");
    let json = "content-type: application/json";
    for (request, body) in [
        ("PUT /v1/hold", r#"{"held": true}"#),
        ("POST /v1/tables/t/compact", "{}"),
    ] {
        let answer = server
            .refusal(&format!("{request} HTTP/1.1\n{json}"), body.as_bytes())
            .await;
        assert_eq!(
            (answer.0, answer.1.as_str()),
            (403, "PermissionDenied"),
            "{request}"
        );
    }
    let reader = server.client_with(TokenSource::None);
    assert!(!reader.hold().await.expect("readers may look").held);
}

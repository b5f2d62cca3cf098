//! Limits and deadlines of the HTTP edge: long bodies, clients that stall or vanish, shutdown.

use std::time::{Duration, Instant};

use crate::support::*;
use bytes::Bytes;
use tablemount_api::{ErrorCode, MAX_JSON_BODY_BYTES, Timestamp, ValueRequest};
use tablemount_client::Error;
use tablemount_engine::http::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test(flavor = "multi_thread")]
async fn bodies_over_their_limit_are_refused() {
    let server = Server::start().await;
    server
        .client()
        .put_table(&table("t"), &families(&["f"]))
        .await
        .expect("made");
    let json = "POST /v1/tables/t/mutate HTTP/1.1\ncontent-type: application/json";
    let body = vec![b' '; MAX_JSON_BODY_BYTES + 1];
    let (status, code, message) = server.refusal(json, &body).await;
    assert_eq!((status, code.as_str()), (413, "TooLarge"));
    assert_eq!(message, "JSON body of 16777217 bytes; limit is 16777216");

    let mut chunks = Vec::new();
    for chunk in body.chunks(1 << 20) {
        chunks.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        chunks.extend_from_slice(chunk);
        chunks.extend_from_slice(b"\r\n");
    }
    chunks.extend_from_slice(b"0\r\n\r\n");
    let (status, _, message) = server
        .refusal(&format!("{json}\ntransfer-encoding: chunked"), &chunks)
        .await;
    assert_eq!(
        (status, message.as_str()),
        (413, "JSON body is longer than the limit of 16777216 bytes")
    );

    let long = "PUT /v1/tables/t/value?row=r&family=f HTTP/1.1\ncontent-length: 104857601\nexpect: 100-continue";
    let (status, _, message) = server.refusal(long, b"").await;
    assert_eq!(
        (status, message.as_str()),
        (413, "value of 104857601 bytes; limit is 104857600")
    );
    let value = Bytes::from(vec![0; 104_857_601]);
    let error = server
        .client()
        .put_value(
            &table("t"),
            &row("r"),
            &family("f"),
            &qualifier(""),
            None,
            value,
        )
        .await;
    let Err(Error::Refused(error)) = error else {
        panic!("not refused")
    };
    assert_eq!(
        (error.code, error.message.as_str()),
        (
            ErrorCode::TooLarge,
            "value of 104857601 bytes; limit is 104857600"
        )
    );
}

/// Sends the head of a write, waits until the server asks for the body, and holds the rest of it back.
async fn stalled_write(server: &Server, timeout_ms: u64) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.expect("connected");
    let head = format!(
        "PUT /v1/tables/t/value?row=r&family=f HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\nconnection: close\r\n\
         expect: 100-continue\r\ntablemount-timeout-ms: {timeout_ms}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut asked = [0; 25];
    tokio::time::timeout(PATIENCE, stream.read_exact(&mut asked))
        .await
        .expect("in time")
        .expect("read");
    assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"ab").await.expect("sent");
    stream
}

fn one_request() -> Start {
    Start {
        limits: Limits {
            requests: 1,
            ..Limits::default()
        },
        ..Start::default()
    }
}

async fn is_full(server: &Server) -> bool {
    server.send("GET /v1/tables HTTP/1.1", b"").await.status == 429
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_stalls_ends_at_the_deadline() {
    let server = one_request().run().await;
    server
        .client()
        .put_table(&table("t"), &families(&["f"]))
        .await
        .expect("made");
    let mut stalled = stalled_write(&server, 3000).await;
    let (status, code, message) = server.refusal("GET /v1/tables HTTP/1.1", b"").await;
    assert_eq!((status, code.as_str()), (429, "ResourceExhausted"));
    assert_eq!(
        message,
        "1 requests are in flight, which is the limit; try again later"
    );
    assert_eq!(
        server.send("GET /readyz HTTP/1.1", b"").await.status,
        200,
        "probes are not counted"
    );

    let answer = Answer::read(&mut stalled).await;
    assert_eq!(answer.status, 504);
    assert!(
        answer
            .text()
            .contains("not done within 3000 ms (tablemount-timeout-ms)"),
        "{}",
        answer.text()
    );
    until("the place to be free", async || {
        (!is_full(&server).await).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_goes_on_is_written() {
    let server = Server::start().await;
    server
        .client()
        .put_table(&table("t"), &families(&["f"]))
        .await
        .expect("made");
    let mut slow = stalled_write(&server, 20_000).await;
    slow.write_all(b"cde").await.expect("sent");
    assert_eq!(Answer::read(&mut slow).await.status, 200);
    let cell = ValueRequest {
        row: row("r"),
        family: family("f"),
        qualifier: qualifier(""),
        at: None,
        timestamp: None,
    };
    assert_eq!(
        &server
            .client()
            .value(&table("t"), &cell, None)
            .await
            .expect("there")
            .bytes[..],
        b"abcde"
    );
}

/// A table with one value that no socket buffer takes whole.
async fn with_long_value(server: &Server) {
    server
        .client()
        .put_table(&table("t"), &families(&["f"]))
        .await
        .expect("made");
    let value = Bytes::from(vec![b'x'; 32 << 20]);
    let (r, q) = (row("r"), qualifier(""));
    server
        .client()
        .put_value(&table("t"), &r, &family("f"), &q, Some(Timestamp(1)), value)
        .await
        .expect("set");
    until("the write to be over", async || {
        (!is_full(server).await).then_some(())
    })
    .await;
}

/// Asks for the long value and reads only the first bytes of the answer.
async fn stalled_read(server: &Server, path: &str, timeout_ms: u64) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.expect("connected");
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\ntablemount-timeout-ms: {timeout_ms}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.expect("an answer");
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}

const LONG: [&str; 2] = [
    "/v1/tables/t/value?row=r&family=f",
    "/v1/tables/t/read?row=r",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_vanishes_gives_its_place_back() {
    let server = one_request().run().await;
    with_long_value(&server).await;
    for path in LONG {
        let stream = stalled_read(&server, path, 300_000).await;
        until("the place to be taken", async || {
            is_full(&server).await.then_some(())
        })
        .await;
        drop(stream);
        until("the place to be free", async || {
            (!is_full(&server).await).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_dropped_at_the_deadline() {
    let server = one_request().run().await;
    with_long_value(&server).await;
    for path in LONG {
        let start = Instant::now();
        let mut stream = stalled_read(&server, path, 2000).await;
        until("the place to be free", async || {
            (!is_full(&server).await).then_some(())
        })
        .await;
        assert!(
            start.elapsed() >= Duration::from_secs(2) && start.elapsed() < Duration::from_secs(15)
        );
        let mut rest = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest))
            .await
            .expect("the connection ends");
        assert!(
            read.is_err() || rest.len() < 32 << 20,
            "the answer is cut off"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_lets_requests_in_flight_end() {
    let server = Server::start().await;
    server
        .client()
        .put_table(&table("t"), &families(&["f"]))
        .await
        .expect("made");
    let mut slow = stalled_write(&server, 20_000).await;
    let idle = TcpStream::connect(server.address).await.expect("connected");
    server.stop.cancel();
    until("the port to be closed", async || {
        TcpStream::connect(server.address)
            .await
            .is_err()
            .then_some(())
    })
    .await;
    slow.write_all(b"cde").await.expect("sent");
    assert_eq!(Answer::read(&mut slow).await.status, 200);
    tokio::time::timeout(PATIENCE, server.task)
        .await
        .expect("ends")
        .expect("without panic");
    drop(idle);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_does_not_wait_longer_than_its_drain() {
    let limits = Limits {
        drain: Duration::from_millis(100),
        ..Limits::default()
    };
    let server = Start {
        limits,
        ..Start::default()
    }
    .run()
    .await;
    server
        .client()
        .put_table(&table("t"), &families(&["f"]))
        .await
        .expect("made");
    let mut stalled = stalled_write(&server, 300_000).await;
    server.stop.cancel();
    tokio::time::timeout(PATIENCE, server.task)
        .await
        .expect("ends")
        .expect("without panic");
    let mut rest = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stalled.read_to_end(&mut rest))
        .await
        .expect("the connection ends");
    assert!(
        read.is_err() || rest.is_empty(),
        "no answer was made up: {rest:?}"
    );
}

//! What the HTTP edge refuses: bad input with its exact message, access, limits, deadlines, clients that stall or vanish.

mod support;

use std::time::{Duration, Instant};

use bytes::Bytes;
use support::*;
use tablemount_api::{
    DropTable, ErrorCode, FamilySchema, MAX_JSON_BODY_BYTES, Owner, PutTable, ReadRequest,
    Timestamp, ValueRequest,
};
use tablemount_client::{Client, Error, TokenSource};
use tablemount_engine::access::Anonymous;
use tablemount_engine::http::{HttpServer, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_gets_one_clear_error() {
    let server = Server::start().await;
    let small = FamilySchema {
        max_value_bytes: 10,
        ..FamilySchema::new(family("stats"))
    };
    let body = PutTable {
        families: vec![FamilySchema::new(family("meta")), small],
        ..PutTable::default()
    };
    server
        .client()
        .put_table(&table("orders"), &body)
        .await
        .expect("made");

    let check = async |head: &str, body: &str, status: u16, code: &str, message: &str| {
        let found = server.refusal(head, body.as_bytes()).await;
        assert_eq!(
            found,
            (status, code.to_owned(), message.to_owned()),
            "{head} {body}"
        );
    };
    let mutate = "POST /v1/tables/orders/mutate HTTP/1.1\ncontent-type: application/json";
    let read = "POST /v1/tables/orders/read HTTP/1.1\ncontent-type: application/json";
    let invalid = "InvalidArgument";
    let set = |family: &str, value: &str, more: &str| {
        format!(
            "{{\"rows\":[{{\"row\":\"YQ==\",\"mutations\":[{{\"put\":{{\"family\":\"{family}\",\"value\":\"{value}\"{more}}}}}]}}]}}"
        )
    };
    let unknown =
        "column family \"Meta\" not found in table \"orders\" (families: \"meta\", \"stats\")";
    check(mutate, &set("Meta", "", ""), 404, "NotFound", unknown).await;
    check(read, "{\"families\":[\"Meta\"]}", 404, "NotFound", unknown).await;
    let long = "value of 12 bytes in table \"orders\", column family \"stats\"; limit is 10 (maxValueBytes)";
    check(
        mutate,
        &set("stats", "MDEyMzQ1Njc4OTAx", ""),
        413,
        "TooLarge",
        long,
    )
    .await;
    check(
        "PUT /v1/tables/orders/value?row=a&family=stats HTTP/1.1",
        "012345678901",
        413,
        "TooLarge",
        long,
    )
    .await;
    check(
        mutate,
        &set("meta", "a*", ""),
        400,
        invalid,
        "request body: rows[0].mutations[0].put.value: \"a*\" is not standard base64: Invalid symbol 42, offset 1. \
         at line 1 column 75",
    )
    .await;
    check(
        mutate,
        "{\"rows\":",
        400,
        invalid,
        "request body: EOF while parsing a value at line 1 column 8",
    )
    .await;
    let typo = "request body: row: unknown field `row`, expected `rows` at line 1 column 6";
    check(mutate, "{\"row\":[]}", 400, invalid, typo).await;
    let negative = "timestamp is -5; it must be 0 or more (microseconds since 1970)";
    check(
        mutate,
        &set("meta", "", ",\"timestamp\":-5"),
        400,
        invalid,
        negative,
    )
    .await;
    check(
        "PUT /v1/tables/orders/value?row=a&family=meta&timestamp=-5 HTTP/1.1",
        "",
        400,
        invalid,
        negative,
    )
    .await;
    let at = "at is -1; it must be 0 or more (microseconds since 1970)";
    check(
        "GET /v1/tables/orders/read?at=-1 HTTP/1.1",
        "",
        400,
        invalid,
        at,
    )
    .await;
    check(
        "GET /v1/tables/orders/value?row=a&family=meta&at=-1 HTTP/1.1",
        "",
        400,
        invalid,
        at,
    )
    .await;
    let form = "content type is application/x-www-form-urlencoded; this takes application/json";
    let as_form =
        "POST /v1/tables/orders/mutate HTTP/1.1\ncontent-type: application/x-www-form-urlencoded";
    check(as_form, "{}", 400, invalid, form).await;

    let name = "table name \"a/b\" is not 1 to 50 of letters, digits, '-', '_' and '.', starting with a letter, a digit or '_'";
    check("GET /v1/tables/a%2Fb HTTP/1.1", "", 400, invalid, name).await;
    check(
        "GET /v1/tables/none HTTP/1.1",
        "",
        404,
        "NotFound",
        "table \"none\" not found",
    )
    .await;
    check(
        "GET /v2/x HTTP/1.1",
        "",
        404,
        "NotFound",
        "no such path: /v2/x; see /v1/openapi.json",
    )
    .await;
    let method = "PATCH is not possible on /v1/tables; see /v1/openapi.json";
    check(
        "PATCH /v1/tables HTTP/1.1",
        "",
        405,
        "MethodNotAllowed",
        method,
    )
    .await;
    check(
        "GET /v1/tables?limit=1 HTTP/1.1",
        "",
        400,
        invalid,
        "query: unknown field `limit`, there are no fields",
    )
    .await;
    let timeout = "header tablemount-timeout-ms is \"0\"; it must be 1 to 300000";
    check(
        "GET /v1/tables HTTP/1.1\ntablemount-timeout-ms: 0",
        "",
        400,
        invalid,
        timeout,
    )
    .await;
    let missing = "row is missing; give it in the query, or in base64 in the header tablemount-row";
    check(
        "PUT /v1/tables/orders/value?family=meta HTTP/1.1",
        "",
        400,
        invalid,
        missing,
    )
    .await;
    let twice = "row stands in the query and in the header tablemount-row";
    check(
        "PUT /v1/tables/orders/value?row=a&family=meta HTTP/1.1\ntablemount-row: YQ==",
        "",
        400,
        invalid,
        twice,
    )
    .await;

    let allowed = server.send("PATCH /v1/tables/orders HTTP/1.1", b"").await;
    let mut allowed: Vec<_> = allowed
        .header("allow")
        .expect("allow")
        .split(',')
        .map(|method| method.trim().to_owned())
        .collect();
    allowed.sort();
    assert_eq!(allowed, ["delete", "get", "head", "put"]);
    assert_eq!(
        server
            .client()
            .table_stats(&table("orders"))
            .await
            .expect("stats")
            .families[1]
            .memtable_bytes,
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_key_over_the_limit_is_named_wherever_it_stands() {
    let server = Server::start().await;
    server
        .client()
        .put_table(&table("t"), &families(&["f"]))
        .await
        .expect("made");
    use base64::Engine as _;
    let key = base64::engine::general_purpose::STANDARD.encode(vec![b'k'; 65_537]);
    let body =
        format!("{{\"rows\":[{{\"row\":\"{key}\",\"mutations\":[{{\"deleteRow\":{{}}}}]}}]}}");
    let heads = [
        (
            "POST /v1/tables/t/mutate HTTP/1.1\ncontent-type: application/json".to_owned(),
            body,
        ),
        (
            "POST /v1/tables/t/read HTTP/1.1\ncontent-type: application/json".to_owned(),
            format!("{{\"row\":\"{key}\"}}"),
        ),
        (
            format!("PUT /v1/tables/t/value?family=f HTTP/1.1\ntablemount-row: {key}"),
            "v".to_owned(),
        ),
    ];
    for (head, body) in heads {
        let (status, code, message) = server.refusal(&head, body.as_bytes()).await;
        assert_eq!((status, code.as_str()), (400, "InvalidArgument"));
        assert!(
            message.contains("row key is 65537 bytes; limit is 65536"),
            "{message}"
        );
    }
}

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

#[tokio::test(flavor = "multi_thread")]
async fn access_is_as_the_matrix_says() {
    let owner = Owner {
        cluster: "c".into(),
        namespace: "shop".into(),
        name: "orders".into(),
        uid: "u".into(),
    };
    for anonymous in [Anonymous::None, Anonymous::ReadOnly, Anonymous::ReadWrite] {
        let server = Start {
            anonymous,
            ..Start::default()
        }
        .run()
        .await;
        let owned = PutTable {
            owner: Some(owner.clone()),
            ..families(&["f"])
        };
        server
            .admin()
            .put_table(&table("owned"), &owned)
            .await
            .expect("made");
        server
            .admin()
            .put_table(&table("free"), &families(&["f"]))
            .await
            .expect("made");
        let outcome =
            |result: Result<(), Error>| result.err().map(|error| error.code().expect("refused"));
        let check = async |client: Client, expected: [Option<ErrorCode>; 6]| {
            let cells = mutate([(row("r"), vec![put("f", "", 1, "v")])]);
            let found = [
                outcome(
                    client
                        .read_page(&table("owned"), &ReadRequest::default())
                        .await
                        .map(drop),
                ),
                outcome(client.table_stats(&table("owned")).await.map(drop)),
                outcome(client.mutate(&table("owned"), &cells).await.map(drop)),
                outcome(
                    client
                        .put_table(&table("free"), &families(&["f", "g"]))
                        .await
                        .map(drop),
                ),
                outcome(
                    client
                        .put_table(&table("owned"), &families(&["f", "g"]))
                        .await
                        .map(drop),
                ),
                outcome(client.put_table(&table("new"), &owned).await.map(drop)),
            ];
            assert_eq!(found, expected, "{anonymous:?}");
            client.ready().await.expect("probes are open to all");
        };
        let all = |code: ErrorCode| [Some(code); 6];
        let (denied, precondition) = (
            Some(ErrorCode::PermissionDenied),
            Some(ErrorCode::FailedPrecondition),
        );
        let expected = match anonymous {
            Anonymous::None => all(ErrorCode::Unauthenticated),
            Anonymous::ReadOnly => [None, None, denied, denied, denied, denied],
            Anonymous::ReadWrite => [None, None, None, None, precondition, denied],
        };
        check(server.client(), expected).await;
        check(
            server.client_with(TokenSource::Static("wrong".into())),
            all(ErrorCode::Unauthenticated),
        )
        .await;
        check(server.admin(), [None; 6]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_access_say_what_to_do() {
    let server = Start {
        anonymous: Anonymous::None,
        ..Start::default()
    }
    .run()
    .await;
    let answer = server.send("GET /v1/tables HTTP/1.1", b"").await;
    assert_eq!(
        (answer.status, answer.header("www-authenticate")),
        (401, Some("bearer"))
    );
    let message = "this server takes no anonymous requests; send a bearer token (header \\\"authorization: Bearer TOKEN\\\")";
    assert!(answer.text().contains(message), "{}", answer.text());
    let (status, _, message) = server
        .refusal("GET /v1/tables HTTP/1.1\nauthorization: Basic eDp5", b"")
        .await;
    assert_eq!(
        (status, message.as_str()),
        (
            401,
            "header authorization is not of the form \"Bearer TOKEN\""
        )
    );

    let server = Server::start().await;
    let owner = Owner {
        cluster: "c".into(),
        namespace: "shop".into(),
        name: "orders".into(),
        uid: "u".into(),
    };
    let owned = PutTable {
        owner: Some(owner),
        ..families(&["f"])
    };
    server
        .admin()
        .put_table(&table("t"), &owned)
        .await
        .expect("made");
    let error = server
        .client()
        .drop_table(&table("t"), &DropTable::default())
        .await
        .expect_err("owned");
    assert_eq!(
        error.to_string(),
        "table \"t\" is declared by the custom resource shop/orders; change its manifest"
    );
    server
        .admin()
        .drop_table(&table("t"), &DropTable::default())
        .await
        .expect("an administrator may");
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_answer_before_the_store_is_open() {
    let server = Start {
        open: false,
        ..Start::default()
    }
    .run()
    .await;
    assert_eq!(server.send("GET /healthz HTTP/1.1", b"").await.status, 200);
    let opening = (
        503,
        "Unavailable".to_owned(),
        "the store is still opening".to_owned(),
    );
    assert_eq!(server.refusal("GET /readyz HTTP/1.1", b"").await, opening);
    assert_eq!(
        server.refusal("GET /v1/tables HTTP/1.1", b"").await,
        opening
    );
    server.open().await;
    assert_eq!(server.send("GET /readyz HTTP/1.1", b"").await.status, 200);
    server.client().tables().await.expect("served");

    let metrics = server.send("GET /metrics HTTP/1.1", b"").await;
    assert_eq!(
        metrics.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    let text = metrics.text();
    for line in [
        "tablemount_http_requests_total{route=\"/v1/tables\",method=\"GET\",status=\"200\"}",
        "tablemount_http_request_duration_seconds_bucket{route=\"/v1/tables\",method=\"GET\",le=\"0.001\"}",
        "tablemount_http_requests_in_flight ",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_named() {
    let server = Server::start().await;
    let address = server.address.to_string();
    let authenticator =
        std::sync::Arc::new(tablemount_engine::access::StaticAuthenticator::default());
    let error = HttpServer::bind(&address, authenticator, server.slot.clone())
        .await
        .err()
        .expect("in use");
    assert_eq!(
        error.to_string(),
        format!("listen on {address}: the port is in use by another process")
    );
    let error = tablemount_engine::GrpcServer::bind(&address, server.slot.clone())
        .await
        .err()
        .expect("in use");
    assert_eq!(
        error.to_string(),
        format!("listen on {address}: the port is in use by another process")
    );
}

/// Sends the head of a write, waits until the server asks for the body, and holds the rest of it back.
async fn stalled_write(server: &Server, timeout_ms: u64) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.expect("connected");
    let head = format!(
        "PUT /v1/tables/t/value?row=r&family=f HTTP/1.1\r\nhost: test\r\ncontent-length: 5\r\nconnection: close\r\n\
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
    let head =
        format!("GET {path} HTTP/1.1\r\nhost: test\r\ntablemount-timeout-ms: {timeout_ms}\r\n\r\n");
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

#[tokio::test(flavor = "multi_thread")]
async fn grpc_health_follows_the_engine() {
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_check_response::ServingStatus;
    use tonic_health::pb::health_client::HealthClient;

    let server = Start {
        open: false,
        ..Start::default()
    }
    .run()
    .await;
    let grpc = tablemount_engine::GrpcServer::bind("127.0.0.1:0", server.slot.clone())
        .await
        .expect("bound");
    let (address, stop) = (
        grpc.local_addr(),
        tokio_util::sync::CancellationToken::new(),
    );
    let task = tokio::spawn(grpc.serve(stop.clone()));
    let mut client = HealthClient::connect(format!("http://{address}"))
        .await
        .expect("connected");
    let mut status = async || {
        let request = HealthCheckRequest {
            service: String::new(),
        };
        client
            .check(request)
            .await
            .expect("answered")
            .into_inner()
            .status()
    };
    assert_eq!(status().await, ServingStatus::NotServing);
    server.open().await;
    until("the engine to serve", async || {
        (status().await == ServingStatus::Serving).then_some(())
    })
    .await;
    stop.cancel();
    tokio::time::timeout(PATIENCE, task)
        .await
        .expect("ends")
        .expect("no panic")
        .expect("no error");
}

//! What the HTTP edge refuses: bad input with its exact message, and access.

use crate::support::*;
use tablemount_api::{DropTable, ErrorCode, FamilySchema, Owner, PutTable, ReadRequest};
use tablemount_client::{Client, Error, TokenSource};
use tablemount_engine::access::Anonymous;

#[tokio::test]
async fn a_web_page_whose_name_leads_here_gets_nothing() {
    let server = Server::start().await;
    let page = server
        .refusal("GET /v1/tables HTTP/1.1\nhost: evil.example:8080", b"")
        .await;
    assert_eq!(
        page,
        (
            403,
            "PermissionDenied".to_owned(),
            "header host is \"evil.example:8080\"; on a loopback address, requests without a token must name localhost or an IP \
             address"
                .to_owned()
        )
    );
    for host in ["localhost:1", "127.0.0.1", "[::1]:8080"] {
        let answer = server
            .send(&format!("GET /v1/tables HTTP/1.1\nhost: {host}"), b"")
            .await;
        assert_eq!(answer.status, 200, "{host}");
    }
}

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

    let mut wrong = Vec::new();
    let mut check = async |head: &str, body: &str, status: u16, code: &str, message: &str| {
        let found = server.refusal(head, body.as_bytes()).await;
        let expected = (status, code.to_owned(), message.to_owned());
        if found != expected {
            wrong.push(format!("{head} {body}\n{found:?}\n{expected:?}"));
        }
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
         at line 1 column 72",
    )
    .await;
    check(
        mutate,
        "{\"rows\":",
        400,
        invalid,
        "request body: rows: EOF while parsing a value at line 1 column 8",
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

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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

//! How failures are told apart, against a socket that answers what it is told to.

use std::process::Command;
use std::time::Duration;

use futures::TryStreamExt;
use tablemount_api::{ErrorCode, ReadRequest, TableName};
use tablemount_client::{Client, Config, Error, RowChunk, TokenSource};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A server that gives one answer a connection, and the heads of the requests that it got.
struct Canned {
    url: String,
    served: tokio::task::JoinHandle<Vec<String>>,
}

impl Canned {
    async fn start(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let served = tokio::spawn(async move {
            let mut heads = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                heads.push(read_request(&mut stream).await);
                stream.write_all(answer.as_bytes()).await.expect("answered");
            }
            heads
        });
        Self { url, served }
    }

    fn client(&self) -> Client {
        Client::new(Config::new(&self.url)).expect("valid")
    }
}

/// Reads a request to its end, so that closing the connection does not reset it.
async fn read_request(stream: &mut tokio::net::TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await.expect("read");
        assert!(count > 0, "the request broke off");
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .to_ascii_lowercase()
            .lines()
            .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return text;
        }
    }
}

fn answer(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn table() -> TableName {
    TableName::new("t").expect("valid")
}

async fn error_of(status: &str, body: &str) -> Error {
    let server = Canned::start(vec![answer(status, body)]).await;
    server.client().tables().await.expect_err("an error")
}

#[tokio::test]
async fn an_answer_that_is_an_error_is_refused_or_not_this_protocol() {
    let body = "{\"error\":{\"code\":\"NotFound\",\"message\":\"table \\\"t\\\" not found\"}}";
    let error = error_of("404 Not Found", body).await;
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        (Some(ErrorCode::NotFound), "table \"t\" not found")
    );
    let check = async |status: &str, body: &str, expected: &str| {
        let error = error_of(status, body).await;
        assert!(matches!(error, Error::Protocol { .. }), "{error:?}");
        assert!(error.to_string().ends_with(expected), "{error}");
    };
    check(
        "502 Bad Gateway",
        "<html>no",
        "answered 502 Bad Gateway without a Tablemount error: \"<html>no\"",
    )
    .await;
    check(
        "302 Found",
        "",
        "answered 302 Found without a Tablemount error: \"\"",
    )
    .await;
    check(
        "200 OK",
        "{}",
        "answer is not as expected: missing field `tables` at line 1 column 2",
    )
    .await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let error = Client::new(Config::new(&url))
        .expect("valid")
        .tables()
        .await
        .expect_err("nobody listens");
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert_eq!(error.to_string(), format!("{url}: connection refused"));
}

#[tokio::test]
async fn a_server_that_does_not_answer_times_out() {
    // The kernel connects; nobody accepts.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let client = Client::new(Config::new(&url))
        .expect("valid")
        .with_timeout(Duration::from_millis(100));
    let error = client.tables().await.expect_err("no answer");
    assert_eq!(error.to_string(), format!("{url}: no answer within 0.1 s"));
    drop(listener);
}

#[tokio::test]
async fn the_token_and_the_deadline_are_sent() {
    let server = Canned::start(vec![answer("200 OK", "{\"tables\":[]}")]).await;
    let config = Config {
        token: TokenSource::Static("secret".to_owned()),
        ..Config::new(&server.url)
    };
    Client::new(config)
        .expect("valid")
        .tables()
        .await
        .expect("answered");
    let head = server
        .served
        .await
        .expect("served")
        .remove(0)
        .to_ascii_lowercase();
    for line in [
        "authorization: bearer secret",
        "tablemount-timeout-ms: 28500",
    ] {
        assert!(head.lines().any(|found| found == line), "{line} in {head}");
    }
}

async fn pages(bodies: &[&str], request: ReadRequest) -> (Result<Vec<RowChunk>, Error>, Canned) {
    let server = Canned::start(bodies.iter().map(|body| answer("200 OK", body)).collect()).await;
    (
        server
            .client()
            .read_all(&table(), request)
            .try_collect()
            .await,
        server,
    )
}

const ROW_A: &str = "{\"row\":\"YQ==\",\"cells\":[]}\n";
const ROW_B: &str = "{\"row\":\"Yg==\",\"cells\":[]}\n";
const MORE_AFTER_A: &str = "{\"end\":{\"next\":{\"row\":\"YQ==\"}}}\n";
const END: &str = "{\"end\":{}}\n";

#[tokio::test]
async fn a_page_without_its_end_is_no_page() {
    let check = async |body: &str, expected: &str| {
        let (found, _) = pages(&[body], ReadRequest::default()).await;
        let error = found.expect_err("broken");
        assert!(error.to_string().ends_with(expected), "{error}");
    };
    check(ROW_A, "the page broke off before its end line").await;
    check("", "the page broke off before its end line").await;
    check("{\"row\":\"YQ==\"", "the page broke off inside a line").await;
    check("{}\n", "a line of the page has neither row, end nor error").await;
    check(
        "no\n",
        "a line of the page is not as expected: expected ident at line 1 column 2",
    )
    .await;
    check(
        &format!("{END}{ROW_A}"),
        "the page goes on after its end line",
    )
    .await;
    check(
        "{\"error\":{\"code\":\"DataLoss\",\"message\":\"block 7\"}}\n",
        "block 7",
    )
    .await;
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"row\":\"YQ==\",\"cells\":[]}\n"
        .to_owned();
    let server = Canned::start(vec![cut]).await;
    let mut stream = server
        .client()
        .read_stream(&table(), &ReadRequest::default())
        .await
        .expect("answered");
    assert!(stream.next_chunk().await.expect("a row").is_some());
    assert!(matches!(
        stream.next_chunk().await.expect_err("cut off"),
        Error::Unreachable { .. }
    ));
}

#[tokio::test]
async fn pages_are_followed_until_they_end_or_stand_still() {
    let (first, second) = (format!("{ROW_A}{MORE_AFTER_A}"), format!("{ROW_B}{END}"));
    let (rows, server) = pages(&[&first, &second], ReadRequest::default()).await;
    let keys: Vec<_> = rows
        .expect("read")
        .into_iter()
        .map(|chunk| chunk.row.into_bytes())
        .collect();
    assert_eq!(keys, ["a", "b"]);
    let requests = server.served.await.expect("served");
    assert!(
        requests[1].ends_with("{\"after\":{\"row\":\"YQ==\"},\"cells\":\"values\"}"),
        "{}",
        requests[1]
    );

    let (stuck, _) = pages(&[&first, MORE_AFTER_A], ReadRequest::default()).await;
    assert!(
        stuck
            .expect_err("stuck")
            .to_string()
            .ends_with("the page ends where it started")
    );
}

#[tokio::test]
async fn a_row_that_ends_with_its_page_does_not_let_another_in() {
    let inside_a = "{\"end\":{\"next\":{\"row\":\"YQ==\",\"cell\":{\"family\":\"f\"}}}}\n";
    let (first, second) = (format!("{ROW_A}{inside_a}"), format!("{ROW_B}{END}"));
    let request = ReadRequest {
        row_limit: Some(1),
        ..ReadRequest::default()
    };
    let (rows, server) = pages(&[&first, &second], request).await;
    assert_eq!(rows.expect("read").len(), 1);
    assert!(server.served.await.expect("served")[1].contains("\"rowLimit\":1"));
}

/// Run in a process of its own by the test below.
#[tokio::test]
#[ignore = "needs an environment without CA certificates"]
async fn without_certificates() {
    let server = Canned::start(vec![answer("200 OK", "{\"tables\":[]}")]).await;
    assert!(
        server
            .client()
            .tables()
            .await
            .expect("plain http needs no certificates")
            .is_empty()
    );
    let error = Client::new(Config::new("https://127.0.0.1:1"))
        .err()
        .expect("https needs certificates");
    assert!(
        error.to_string().contains("No CA certificates were loaded"),
        "{error}"
    );
}

#[test]
fn plain_http_works_where_no_certificates_are_installed() {
    let empty = tempfile::tempdir().expect("temporary folder");
    let this = std::env::current_exe().expect("this test");
    let run = Command::new(this)
        .args(["--exact", "without_certificates", "--ignored"])
        .env("SSL_CERT_DIR", empty.path())
        .env_remove("SSL_CERT_FILE")
        .output()
        .expect("run");
    let shown = String::from_utf8_lossy(&run.stdout);
    assert!(
        run.status.success() && shown.contains("1 passed"),
        "{shown}{}",
        String::from_utf8_lossy(&run.stderr)
    );
}

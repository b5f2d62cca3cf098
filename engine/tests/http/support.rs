//! A real server on a free port with a real store in a temporary folder, its client, and a plain socket for what no client
//! sends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use tablemount_api::{
    Base64, FamilyName, FamilySchema, MutateRequest, Mutation, PutTable, Qualifier, ReadRequest,
    RowKey, RowMutation, TableName, Timestamp,
};
use tablemount_client::{Client, RowChunk, TokenSource};
use tablemount_engine::access::{Anonymous, StaticAuthenticator};
use tablemount_engine::http::{EngineSlot, HttpServer, Limits};
use tablemount_engine::{Config, Engine};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long a condition is waited for before the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// The administrator's token.
pub(crate) const TOKEN: &str = "operator-token";

/// A running server.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) slot: EngineSlot,
    pub(crate) stop: CancellationToken,
    pub(crate) task: JoinHandle<()>,
    pub(crate) folder: TempDir,
}

/// How to start one.
pub(crate) struct Start {
    pub(crate) anonymous: Anonymous,
    pub(crate) limits: Limits,
    pub(crate) open: bool,
}

impl Default for Start {
    fn default() -> Self {
        Self {
            anonymous: Anonymous::ReadWrite,
            limits: Limits::default(),
            open: true,
        }
    }
}

impl Start {
    pub(crate) async fn run(self) -> Server {
        let folder = tempfile::tempdir().expect("temporary folder");
        let token_file = folder.path().join("token");
        std::fs::write(&token_file, TOKEN).expect("token written");
        let authenticator = StaticAuthenticator::new(self.anonymous).token_file(token_file);
        let slot = EngineSlot::default();
        let http = HttpServer::bind("127.0.0.1:0", Arc::new(authenticator), slot.clone())
            .await
            .expect("bound");
        let (address, stop) = (http.local_addr(), CancellationToken::new());
        let task = tokio::spawn(http.with_limits(self.limits).serve(stop.clone()));
        let server = Server {
            address,
            slot,
            stop,
            task,
            folder,
        };
        if self.open {
            server.open().await;
        }
        server
    }
}

impl Server {
    pub(crate) async fn start() -> Self {
        Start::default().run().await
    }

    /// Opens the store.
    pub(crate) async fn open(&self) {
        let engine = Engine::open(Config::new(self.folder.path().join("data")))
            .await
            .expect("opened");
        assert!(self.slot.set(engine).is_ok(), "opened twice");
    }

    pub(crate) fn client(&self) -> Client {
        self.client_with(TokenSource::None)
    }

    pub(crate) fn client_with(&self, token: TokenSource) -> Client {
        let config = tablemount_client::Config::new(format!("http://{}", self.address));
        Client::new(tablemount_client::Config { token, ..config }).expect("valid")
    }

    pub(crate) fn admin(&self) -> Client {
        self.client_with(TokenSource::Static(TOKEN.to_owned()))
    }

    /// Sends a request as it stands here and reads the whole answer.
    pub(crate) async fn send(&self, head: &str, body: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.expect("connected");
        let length = if head.to_ascii_lowercase().contains("\ncontent-length:")
            || head.contains("\ntransfer-encoding:")
        {
            String::new()
        } else {
            format!("content-length: {}\r\n", body.len())
        };
        let head = head.trim_end().replace('\n', "\r\n");
        let host = if head.contains("\nhost:") {
            ""
        } else {
            "host: localhost\r\n"
        };
        let request = format!("{head}\r\n{host}connection: close\r\n{length}\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        stream.write_all(body).await.expect("sent");
        Answer::read(&mut stream).await
    }

    /// The answer's status, code and message to a request that is refused.
    pub(crate) async fn refusal(&self, head: &str, body: &[u8]) -> (u16, String, String) {
        let answer = self.send(head, body).await;
        let json: serde_json::Value =
            serde_json::from_slice(&answer.body).unwrap_or_else(|error| {
                panic!(
                    "{head}: {error}: {:?}",
                    String::from_utf8_lossy(&answer.body)
                )
            });
        let text = |field: &str| json["error"][field].as_str().expect("text").to_owned();
        (answer.status, text("code"), text("message"))
    }
}

/// An answer read from a socket until its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) async fn read(stream: &mut TcpStream) -> Self {
        let mut bytes = Vec::new();
        tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes))
            .await
            .expect("in time")
            .expect("read");
        Self::parse(&bytes)
    }

    fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no head in {:?}", String::from_utf8_lossy(bytes)));
        let head = String::from_utf8(bytes[..end].to_vec())
            .expect("text")
            .to_ascii_lowercase();
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .expect("a status");
        let body = bytes[end + 4..].to_vec();
        let body = if head.contains("transfer-encoding: chunked") {
            unchunk(&body)
        } else {
            body
        };
        Self { status, head, body }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

fn unchunk(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = body.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&body[..end])
            .ok()
            .and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.expect("a chunk's size");
        whole.extend_from_slice(&body[end + 2..end + 2 + size]);
        body = &body[end + 2 + size + 2..];
    }
    whole
}

/// Waits until `condition` gives something.
pub(crate) async fn until<T>(what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = condition().await {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited for {what} in vain");
        tokio::task::yield_now().await;
    }
}

pub(crate) fn table(name: &str) -> TableName {
    TableName::new(name).expect("valid")
}

pub(crate) fn family(name: &str) -> FamilyName {
    FamilyName::new(name).expect("valid")
}

pub(crate) fn row(key: impl AsRef<[u8]>) -> RowKey {
    RowKey::new(key.as_ref().to_vec()).expect("valid")
}

pub(crate) fn qualifier(bytes: impl AsRef<[u8]>) -> Qualifier {
    Qualifier::new(bytes.as_ref().to_vec()).expect("valid")
}

pub(crate) fn families(names: &[&str]) -> PutTable {
    PutTable {
        families: names
            .iter()
            .map(|name| FamilySchema::new(family(name)))
            .collect(),
        ..PutTable::default()
    }
}

pub(crate) fn put(in_family: &str, column: &str, timestamp: i64, value: &str) -> Mutation {
    Mutation::Put {
        family: family(in_family),
        qualifier: qualifier(column),
        timestamp: Some(Timestamp(timestamp)),
        value: Base64(value.to_owned().into()),
    }
}

pub(crate) fn mutate(rows: impl IntoIterator<Item = (RowKey, Vec<Mutation>)>) -> MutateRequest {
    let rows = rows.into_iter().map(|(row, mutations)| RowMutation {
        row,
        check: None,
        mutations,
    });
    MutateRequest {
        rows: rows.collect(),
    }
}

/// Cells as `row family:qualifier@timestamp=value`.
pub(crate) fn text(rows: &[RowChunk]) -> Vec<String> {
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

/// Everything in the request's bounds, of table `t`.
pub(crate) async fn all(client: &Client, request: ReadRequest) -> Vec<RowChunk> {
    client
        .read_all(&table("t"), request)
        .try_collect()
        .await
        .expect("read")
}

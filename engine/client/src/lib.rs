//! The HTTP client of the engine: the only client code there is. The command line, operator and filesystem go through it.
//!
//! **Invariants**: every call ends by its deadline; a page's stream without its end line is an error, never an end; nothing
//! ambiguous (a write whose answer did not come) is retried here.

mod error;
mod lines;
mod read;
mod token;
mod transport;

use std::ops::Range;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use reqwest::header::{CONTENT_RANGE, CONTENT_TYPE, HeaderMap, HeaderValue, RANGE};
use reqwest::{Method, Response, StatusCode};
use tablemount_api::stats::{ServerStats, TableStats};
use tablemount_api::{
    CompactRequest, CompactResponse, DeleteRows, DropTable, FamilyName, FamilySchema, Hold,
    MutateRequest, MutateResponse, PutTable, Qualifier, ReadRequest, RowKey, TableInfo, TableList,
    TableName, Timestamp, ValueRequest,
};

pub use error::Error;
pub use read::{Page, PageStream, RowChunk, Value};
pub use token::TokenSource;

use transport::{Request, Transport, check_length};

/// How to reach an engine.
#[derive(Debug, Clone)]
pub struct Config {
    /// Base URL, such as `http://127.0.0.1:8080`.
    pub url: String,
    /// The bearer token.
    pub token: TokenSource,
    /// Time limit of a call, connect included (default 30 s).
    pub timeout: Duration,
}

impl Config {
    /// The time limit of a call unless set.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

    /// Anonymous calls to `url`, with the default time limit.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            token: TokenSource::None,
            timeout: Self::DEFAULT_TIMEOUT,
        }
    }
}

/// A client; cheap to clone, shares its connections.
#[derive(Clone)]
pub struct Client {
    transport: Transport,
}

impl Client {
    /// Checks the URL; does not connect.
    pub fn new(config: Config) -> Result<Self, Error> {
        Ok(Self {
            transport: Transport::new(config)?,
        })
    }

    /// The base URL.
    pub fn url(&self) -> &str {
        self.transport.base()
    }

    /// The same connections with another time limit per call.
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        let mut client = self.clone();
        client.transport.timeout = timeout;
        client
    }

    /// `GET /readyz`: whether the engine serves.
    pub async fn ready(&self) -> Result<(), Error> {
        self.transport
            .send(Request::new(Method::GET, "/readyz"), None)
            .await
            .map(|_| ())
    }

    /// `GET /v1/tables`.
    pub async fn tables(&self) -> Result<Vec<TableInfo>, Error> {
        let list: TableList = self
            .transport
            .call(Request::new(Method::GET, "/v1/tables"))
            .await?;
        Ok(list.tables)
    }

    /// `GET /v1/tables/{table}`; an unknown table is `Error::Refused` with code NotFound.
    pub async fn table(&self, table: &TableName) -> Result<TableInfo, Error> {
        self.transport
            .call(Request::new(Method::GET, &path(table, "")))
            .await
    }

    /// `PUT /v1/tables/{table}`.
    pub async fn put_table(&self, table: &TableName, body: &PutTable) -> Result<TableInfo, Error> {
        self.transport
            .call(Request::json(Method::PUT, &path(table, ""), body)?)
            .await
    }

    /// `DELETE /v1/tables/{table}`.
    pub async fn drop_table(&self, table: &TableName, query: &DropTable) -> Result<(), Error> {
        let path = path(table, "");
        let mut request = Request::new(Method::DELETE, &path);
        let DropTable { if_uid } = query;
        let query: Vec<_> = if_uid.iter().map(|uid| ("ifUid", uid.as_str())).collect();
        request.query = &query;
        self.transport.send(request, None).await.map(|_| ())
    }

    /// `POST /v1/tables/{table}/mutate`.
    pub async fn mutate(
        &self,
        table: &TableName,
        request: &MutateRequest,
    ) -> Result<MutateResponse, Error> {
        self.transport
            .call(Request::json(
                Method::POST,
                &path(table, "/mutate"),
                request,
            )?)
            .await
    }

    /// `POST /v1/tables/{table}/delete-rows`: deletes the rows of a range, a prefix, or the table; durable when it returns.
    pub async fn delete_rows(&self, table: &TableName, rows: &DeleteRows) -> Result<(), Error> {
        let path = path(table, "/delete-rows");
        let request = Request::json(Method::POST, &path, rows)?;
        self.transport.send(request, None).await.map(|_| ())
    }

    /// `POST /v1/tables/{table}/read`: the lines of one page as they come. Dropping it cancels the request.
    pub async fn read_stream(
        &self,
        table: &TableName,
        request: &ReadRequest,
    ) -> Result<PageStream, Error> {
        let response = self
            .transport
            .send(
                Request::json(Method::POST, &path(table, "/read"), request)?,
                None,
            )
            .await?;
        Ok(PageStream::new(self.transport.clone(), response))
    }

    /// One page, collected.
    pub async fn read_page(&self, table: &TableName, request: &ReadRequest) -> Result<Page, Error> {
        let mut stream = self.read_stream(table, request).await?;
        let mut page = Page::default();
        while let Some(chunk) = stream.next_chunk().await? {
            page.push(chunk);
        }
        page.next = stream.next_position().cloned();
        Ok(page)
    }

    /// All rows in the request's bounds: follows `next` from page to page, each with the call's time limit. `row_limit` and
    /// `cell_limit` hold for the whole.
    pub fn read_all(
        &self,
        table: &TableName,
        request: ReadRequest,
    ) -> futures::stream::BoxStream<'static, Result<RowChunk, Error>> {
        read::read_all(self.clone(), table.clone(), request)
    }

    /// `POST /v1/tables/{table}/value`: a cell's bytes, whole or `range` of them (first, last exclusive). A range that goes
    /// beyond the value's end gives what there is of it, perhaps nothing.
    pub async fn value(
        &self,
        table: &TableName,
        request: &ValueRequest,
        range: Option<Range<u64>>,
    ) -> Result<Value, Error> {
        let path = path(table, "/value");
        let mut asked = Request::json(Method::POST, &path, request)?;
        let wanted = range
            .as_ref()
            .map_or(u64::MAX, |range| range.end.saturating_sub(range.start));
        if let Some(range) = &range {
            // HTTP has no empty range: one byte is asked for, and dropped below.
            let last = range.end.saturating_sub(1).max(range.start);
            asked.headers.insert(
                RANGE,
                header_value(format!("bytes={}-{last}", range.start))?,
            );
        }
        let response = self
            .transport
            .send(asked, Some(StatusCode::RANGE_NOT_SATISFIABLE))
            .await?;
        let (status, timestamp) = (response.status(), self.timestamp_of(&response)?);
        let length = total_length(response.headers());
        let mut bytes = self
            .transport
            .body(response, FamilySchema::MAX_VALUE_BYTES as usize)
            .await?;
        if status == StatusCode::RANGE_NOT_SATISFIABLE {
            bytes = Bytes::new();
        }
        let length = length.unwrap_or(bytes.len() as u64);
        bytes.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
        Ok(Value {
            timestamp,
            length,
            bytes,
        })
    }

    /// `PUT /v1/tables/{table}/value`: sets one cell to raw bytes; returns the cell's timestamp.
    pub async fn put_value(
        &self,
        table: &TableName,
        row: &RowKey,
        family: &FamilyName,
        qualifier: &Qualifier,
        timestamp: Option<Timestamp>,
        value: Bytes,
    ) -> Result<Timestamp, Error> {
        check_length("value", value.len(), FamilySchema::MAX_VALUE_BYTES as usize)?;
        let path = path(table, "/value");
        let timestamp = timestamp.map(|timestamp| timestamp.to_string());
        let mut query = vec![("family", family.as_str())];
        query.extend(
            timestamp
                .as_deref()
                .map(|timestamp| ("timestamp", timestamp)),
        );
        let mut request = Request::new(Method::PUT, &path);
        // In headers, since the longest row key does not fit into a URL.
        request
            .headers
            .insert("tablemount-row", header_value(STANDARD.encode(row))?);
        request.headers.insert(
            "tablemount-qualifier",
            header_value(STANDARD.encode(qualifier))?,
        );
        request.headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/octet-stream"),
        );
        request.query = &query;
        request.body = value;
        let answer: tablemount_api::PutValueResponse = self.transport.call(request).await?;
        Ok(answer.timestamp)
    }

    /// `GET /v1/tables/{table}/stats`.
    pub async fn table_stats(&self, table: &TableName) -> Result<TableStats, Error> {
        self.transport
            .call(Request::new(Method::GET, &path(table, "/stats")))
            .await
    }

    /// `GET /v1/stats`.
    pub async fn server_stats(&self) -> Result<ServerStats, Error> {
        self.transport
            .call(Request::new(Method::GET, "/v1/stats"))
            .await
    }

    /// `POST /v1/tables/{table}/compact`: what was done, or `None` if that takes longer than the call may: then it goes on.
    pub async fn compact(
        &self,
        table: &TableName,
        request: &CompactRequest,
    ) -> Result<Option<CompactResponse>, Error> {
        let path = path(table, "/compact");
        let request = Request::json(Method::POST, &path, request)?;
        let response = self.transport.send(request, None).await?;
        match response.status() {
            StatusCode::ACCEPTED => Ok(None),
            _ => self.transport.decode(response).await.map(Some),
        }
    }

    /// `GET /v1/hold`: whether the store is held.
    pub async fn hold(&self) -> Result<Hold, Error> {
        self.transport
            .call(Request::new(Method::GET, "/v1/hold"))
            .await
    }

    /// `PUT /v1/hold`: holds or releases the store.
    pub async fn set_hold(&self, hold: &Hold) -> Result<Hold, Error> {
        self.transport
            .call(Request::json(Method::PUT, "/v1/hold", hold)?)
            .await
    }

    fn timestamp_of(&self, response: &Response) -> Result<Timestamp, Error> {
        let header = response
            .headers()
            .get("tablemount-timestamp")
            .and_then(|value| value.to_str().ok());
        header
            .and_then(|text| text.parse().ok())
            .map(Timestamp)
            .ok_or_else(|| {
                self.transport
                    .protocol_error("the answer has no tablemount-timestamp header")
            })
    }
}

/// A table's path. Names need no escaping: none of their characters has a meaning in a URL, and none starts with a dot.
fn path(table: &TableName, below: &str) -> String {
    format!("/v1/tables/{table}{below}")
}

fn header_value(text: String) -> Result<HeaderValue, Error> {
    HeaderValue::try_from(text).map_err(|error| Error::Config(format!("request header: {error}")))
}

/// The value's length according to `Content-Range: bytes 0-9/100` or `bytes */100`.
fn total_length(headers: &HeaderMap) -> Option<u64> {
    headers
        .get(CONTENT_RANGE)?
        .to_str()
        .ok()?
        .rsplit_once('/')?
        .1
        .parse()
        .ok()
}

//! One cell's value as raw bytes.
//!
//! **Invariants**: values that are being sent count against the server's budget of bytes until they are sent or dropped.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{ACCEPT_RANGES, CONTENT_RANGE, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use serde::Deserialize;
use serde_json::Value;
use tablemount_api::{
    Base64, ErrorBody, ErrorCode, FamilyName, MutateRequest, Mutation, PutValueResponse, Qualifier,
    RowKey, RowMutation, TableName, Timestamp, ValueRequest,
};
use tokio::sync::OwnedSemaphorePermit;

use super::app::{App, Serving, Table};
use super::body::{JsonBody, ValueBody};
use super::query::{NoFields, Query, decode, fields};
use super::range::{Asked, asked};
use super::refusal::Refusal;
use super::timestamps::Timestamps;
use crate::{CellValue, Engine};

/// The header that names a value's timestamp.
const TIMESTAMP_HEADER: &str = "tablemount-timestamp";
/// Headers that name a cell by row and qualifier in base64, since the longest do not fit into a URL.
const CELL_HEADERS: [(&str, &str); 2] = [
    ("tablemount-row", "row"),
    ("tablemount-qualifier", "qualifier"),
];

/// A cell's value; which one stands in the query.
///
/// The fields are those of ValueRequest. Bytes are percent-encoded, not base64. A Range header gives a part.
#[utoipa::path(get, path = "/v1/tables/{table}/value", tag = "values", params(("table" = TableName, Path), ("range" = Option<String>, Header, description = "One range, such as bytes=0-99")), responses((status = 200, body = [u8], content_type = "application/octet-stream", headers(("tablemount-timestamp" = i64))), (status = 206, body = [u8], content_type = "application/octet-stream", headers(("tablemount-timestamp" = i64), ("content-range" = String))), (status = "default", body = ErrorBody)))]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    Serving(engine): Serving,
    Table(table): Table,
    headers: HeaderMap,
    Query(request): Query<ValueRequest>,
) -> Result<Response, Refusal> {
    value(&app, &engine, &table, request, &headers, true).await
}

/// A cell's value; which one stands in the body.
#[utoipa::path(post, path = "/v1/tables/{table}/value", tag = "values", params(("table" = TableName, Path), ("range" = Option<String>, Header, description = "One range, such as bytes=0-99")), request_body = ValueRequest, responses((status = 200, body = [u8], content_type = "application/octet-stream", headers(("tablemount-timestamp" = i64))), (status = 206, body = [u8], content_type = "application/octet-stream", headers(("tablemount-timestamp" = i64), ("content-range" = String))), (status = "default", body = ErrorBody)))]
pub(crate) async fn post(
    State(app): State<Arc<App>>,
    Serving(engine): Serving,
    Table(table): Table,
    headers: HeaderMap,
    _: Query<NoFields>,
    JsonBody(request, _room): JsonBody<ValueRequest>,
) -> Result<Response, Refusal> {
    value(&app, &engine, &table, request, &headers, true).await
}

/// Length and timestamp of a cell's value, without the bytes.
#[utoipa::path(head, path = "/v1/tables/{table}/value", tag = "values", params(("table" = TableName, Path)), responses((status = 200, headers(("tablemount-timestamp" = i64), ("content-length" = u64))), (status = "default", description = "The status of the error, without its body")))]
pub(crate) async fn head(
    State(app): State<Arc<App>>,
    Serving(engine): Serving,
    Table(table): Table,
    headers: HeaderMap,
    Query(request): Query<ValueRequest>,
) -> Result<Response, Refusal> {
    value(&app, &engine, &table, request, &headers, false).await
}

async fn value(
    app: &App,
    engine: &Engine,
    table: &TableName,
    request: ValueRequest,
    headers: &HeaderMap,
    with_bytes: bool,
) -> Result<Response, Refusal> {
    request.check_timestamps()?;
    let stopping = |_| Refusal::new(ErrorCode::Unavailable, "the server is stopping");
    let reading = app.value_reads.acquire().await.map_err(stopping)?;
    let (ranges, wanted) = (headers.clone(), with_bytes);
    let part = move |length: u64| {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        match asked(&ranges, length) {
            _ if !wanted => 0..0,
            Asked::All => 0..length as u64,
            Asked::Part(part) => part.start as u64..part.end as u64,
            Asked::Outside(_) => 0..0,
        }
    };
    let CellValue {
        timestamp,
        length,
        value,
    } = engine.value(table, request, part).await?;
    let bytes = app
        .limits
        .value_bytes
        .min(u32::try_from(value.len()).unwrap_or(u32::MAX));
    let room = Arc::clone(&app.value_bytes)
        .acquire_many_owned(bytes)
        .await
        .map_err(stopping)?;
    drop(reading);
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let mut response = match asked(headers, length) {
        Asked::All => sent(StatusCode::OK, length, value, room),
        Asked::Part(part) => {
            let range = format!("bytes {}-{}/{length}", part.start, part.end - 1);
            let mut response = sent(StatusCode::PARTIAL_CONTENT, part.len(), value, room);
            response.headers_mut().insert(CONTENT_RANGE, header(range)?);
            response
        }
        Asked::Outside(range) => {
            let message = format!("range {range:?} lies outside the value of {length} bytes");
            let mut response =
                Refusal::new(ErrorCode::RangeNotSatisfiable, message).into_response();
            response
                .headers_mut()
                .insert(CONTENT_RANGE, header(format!("bytes */{length}"))?);
            response
        }
    };
    response
        .headers_mut()
        .insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    response
        .headers_mut()
        .insert(TIMESTAMP_HEADER, timestamp.0.into());
    Ok(response)
}

/// The bytes as an answer that keeps its room until it is sent; a HEAD's answer has the length without them.
fn sent(status: StatusCode, length: usize, bytes: Bytes, room: OwnedSemaphorePermit) -> Response {
    let body = stream::unfold(Some((bytes, room)), async |left| {
        let (bytes, room) = left?;
        let chunk = bytes.slice(..bytes.len().min(SENT_CHUNK_BYTES));
        let rest = bytes.slice(chunk.len()..);
        (!chunk.is_empty()).then(|| (Ok::<_, std::convert::Infallible>(chunk), Some((rest, room))))
    });
    let mut response = (status, Body::from_stream(body)).into_response();
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    response
        .headers_mut()
        .insert(axum::http::header::CONTENT_LENGTH, length.into());
    response
}

const SENT_CHUNK_BYTES: usize = 256 << 10;

fn header(text: String) -> Result<HeaderValue, Refusal> {
    HeaderValue::try_from(text)
        .map_err(|_| Refusal::new(ErrorCode::Internal, "header of the answer is not valid"))
}

/// Which cell to set.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PutValue {
    /// The row, percent-encoded; or base64 in the header tablemount-row.
    #[param(value_type = Option<String>)]
    row: RowKey,
    /// The column family.
    family: FamilyName,
    /// The qualifier, percent-encoded; or base64 in the header tablemount-qualifier. Absent is empty.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    qualifier: Qualifier,
    /// Microseconds; absent: the server's time.
    timestamp: Option<Timestamp>,
}

/// Sets a cell to the body's bytes.
#[utoipa::path(put, path = "/v1/tables/{table}/value", tag = "values", params(("table" = TableName, Path), PutValue, ("tablemount-row" = Option<String>, Header, description = "The row in base64, instead of the query's"), ("tablemount-qualifier" = Option<String>, Header, description = "The qualifier in base64, instead of the query's")), request_body(content = [u8], content_type = "application/octet-stream"), responses((status = 200, body = PutValueResponse), (status = "default", body = ErrorBody)))]
pub(crate) async fn put(
    Serving(engine): Serving,
    Table(table): Table,
    CellQuery(cell): CellQuery,
    ValueBody(value, _room): ValueBody,
) -> Result<Json<PutValueResponse>, Refusal> {
    let PutValue {
        row,
        family,
        qualifier,
        timestamp,
    } = cell;
    let mutation = Mutation::Put {
        family,
        qualifier,
        timestamp,
        value: Base64(value),
    };
    let request = MutateRequest {
        rows: vec![RowMutation {
            row,
            check: None,
            mutations: vec![mutation],
        }],
    };
    request.check_timestamps()?;
    let given = engine.mutate(&table, request).await?.timestamp;
    let timestamp = timestamp.or(given);
    let timestamp =
        timestamp.ok_or_else(|| Refusal::new(ErrorCode::Internal, "the cell got no timestamp"))?;
    Ok(Json(PutValueResponse { timestamp }))
}

/// The cell that query and headers name.
pub(crate) struct CellQuery(PutValue);

impl axum::extract::FromRequestParts<Arc<App>> for CellQuery {
    type Rejection = Refusal;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        _: &Arc<App>,
    ) -> Result<Self, Refusal> {
        let mut fields = fields(parts.uri.query().unwrap_or_default())?;
        for (header, field) in CELL_HEADERS {
            let Some(value) = parts.headers.get(header) else {
                continue;
            };
            let text = value
                .to_str()
                .map_err(|_| Refusal::invalid(format!("header {header} is not base64")))?;
            if fields
                .insert(field.to_owned(), Value::String(text.to_owned()))
                .is_some()
            {
                return Err(Refusal::invalid(format!(
                    "{field} stands in the query and in the header {header}"
                )));
            }
        }
        if !fields.contains_key("row") {
            let message =
                "row is missing; give it in the query, or in base64 in the header tablemount-row";
            return Err(Refusal::invalid(message));
        }
        decode(fields).map(Self)
    }
}

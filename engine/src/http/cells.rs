//! Writes and reads of cells.

use axum::Json;
use axum::http::StatusCode;
use axum::response::Response;
use tablemount_api::{
    DeleteRows, ErrorBody, MutateRequest, MutateResponse, ReadLine, ReadRequest, TableName,
};

use super::app::{Context, Serving, Table};
use super::body::JsonBody;
use super::page;
use super::query::{NoFields, Query};
use super::refusal::Refusal;
use super::timestamps::Timestamps;
use crate::Engine;

/// Changes rows.
///
/// Each row changes atomically. All rows are checked before the first is written. The answer comes when all is durable.
#[utoipa::path(post, path = "/v1/tables/{table}/mutate", tag = "cells", params(("table" = TableName, Path)), request_body = MutateRequest, responses((status = 200, body = MutateResponse), (status = "default", body = ErrorBody)))]
pub(crate) async fn mutate(
    Serving(engine): Serving,
    Table(table): Table,
    _: Query<NoFields>,
    JsonBody(request, _room): JsonBody<MutateRequest>,
) -> Result<Json<MutateResponse>, Refusal> {
    request.check_timestamps()?;
    Ok(Json(engine.mutate(&table, request).await?))
}

/// Deletes all cells of the rows in a range, with a prefix, or of the table.
///
/// However many they are: one record says so, and compactions give the room back. The answer comes when that is durable. What
/// is written later is not touched.
#[utoipa::path(post, path = "/v1/tables/{table}/delete-rows", tag = "cells", params(("table" = TableName, Path)), request_body = DeleteRows, responses((status = 204), (status = "default", body = ErrorBody)))]
pub(crate) async fn delete_rows(
    Serving(engine): Serving,
    Table(table): Table,
    _: Query<NoFields>,
    JsonBody(rows, _room): JsonBody<DeleteRows>,
) -> Result<StatusCode, Refusal> {
    engine.delete_rows(&table, rows).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Reads a page of cells; the bounds stand in the query.
///
/// The fields are those of ReadRequest. Bytes are percent-encoded, not base64; families are separated by commas.
#[utoipa::path(get, path = "/v1/tables/{table}/read", tag = "cells", params(("table" = TableName, Path)), responses((status = 200, description = "One line of JSON a ReadLine", body = ReadLine, content_type = "application/x-ndjson"), (status = "default", body = ErrorBody)))]
pub(crate) async fn read(
    Serving(engine): Serving,
    Table(table): Table,
    context: Context,
    Query(request): Query<ReadRequest>,
) -> Result<Response, Refusal> {
    read_page(engine, table, context, request).await
}

/// Reads a page of cells; the bounds stand in the body.
#[utoipa::path(post, path = "/v1/tables/{table}/read", tag = "cells", params(("table" = TableName, Path)), request_body = ReadRequest, responses((status = 200, description = "One line of JSON a ReadLine", body = ReadLine, content_type = "application/x-ndjson"), (status = "default", body = ErrorBody)))]
pub(crate) async fn post_read(
    Serving(engine): Serving,
    Table(table): Table,
    context: Context,
    _: Query<NoFields>,
    JsonBody(request, _room): JsonBody<ReadRequest>,
) -> Result<Response, Refusal> {
    read_page(engine, table, context, request).await
}

async fn read_page(
    engine: Engine,
    table: TableName,
    context: Context,
    request: ReadRequest,
) -> Result<Response, Refusal> {
    request.check_timestamps()?;
    let lines = engine.read(&table, request, context.timeout / 2)?;
    page::respond(lines, context).await
}

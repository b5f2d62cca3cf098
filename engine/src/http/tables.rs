//! Tables and statistics.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use tablemount_api::stats::{ServerStats, TableStats};
use tablemount_api::{DropTable, ErrorBody, ErrorCode, PutTable, TableInfo, TableList, TableName};

use super::app::{App, Context, Serving, Table};
use super::body::JsonBody;
use super::query::{NoFields, Query};
use super::refusal::Refusal;
use crate::access::Access;
use crate::{Engine, Error};

type Answer<T> = Result<Json<T>, Refusal>;

/// All tables.
#[utoipa::path(get, path = "/v1/tables", tag = "tables", responses((status = 200, body = TableList), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(Serving(engine): Serving, _: Query<NoFields>) -> Answer<TableList> {
    Ok(Json(TableList {
        tables: engine.tables(),
    }))
}

/// One table.
#[utoipa::path(get, path = "/v1/tables/{table}", tag = "tables", params(("table" = TableName, Path)), responses((status = 200, body = TableInfo), (status = "default", body = ErrorBody)))]
pub(crate) async fn get(
    Serving(engine): Serving,
    Table(table): Table,
    _: Query<NoFields>,
) -> Answer<TableInfo> {
    Ok(Json(engine.table(&table)?))
}

/// Makes a table, or changes it to be as the body says.
///
/// A table with an owner is changed by administrators only, and only they set the owner.
#[utoipa::path(put, path = "/v1/tables/{table}", tag = "tables", params(("table" = TableName, Path)), request_body = PutTable, responses((status = 200, body = TableInfo), (status = "default", body = ErrorBody)))]
pub(crate) async fn put(
    Serving(engine): Serving,
    Table(table): Table,
    context: Context,
    _: Query<NoFields>,
    JsonBody(body, _room): JsonBody<PutTable>,
) -> Answer<TableInfo> {
    if body.owner.is_some() && context.access < Access::Admin {
        return Err(Refusal::new(
            ErrorCode::PermissionDenied,
            "owner is set by administrators only",
        ));
    }
    check_owner(&engine, &table, context)?;
    Ok(Json(engine.put_table(&table, body).await?))
}

/// Drops a table and its data.
///
/// A table with an owner is dropped by administrators only.
#[utoipa::path(delete, path = "/v1/tables/{table}", tag = "tables", params(("table" = TableName, Path), DropTable), responses((status = 204), (status = "default", body = ErrorBody)))]
pub(crate) async fn drop(
    Serving(engine): Serving,
    Table(table): Table,
    context: Context,
    Query(query): Query<DropTable>,
) -> Result<StatusCode, Refusal> {
    check_owner(&engine, &table, context)?;
    engine.drop_table(&table, query).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What a table holds.
#[utoipa::path(get, path = "/v1/tables/{table}/stats", tag = "statistics", params(("table" = TableName, Path)), responses((status = 200, body = TableStats), (status = "default", body = ErrorBody)))]
pub(crate) async fn stats(
    Serving(engine): Serving,
    Table(table): Table,
    _: Query<NoFields>,
) -> Answer<TableStats> {
    Ok(Json(engine.table_stats(&table).await?))
}

/// What the server holds.
#[utoipa::path(get, path = "/v1/stats", tag = "statistics", responses((status = 200, body = ServerStats), (status = "default", body = ErrorBody)))]
pub(crate) async fn server_stats(
    Serving(engine): Serving,
    _: Query<NoFields>,
) -> Answer<ServerStats> {
    Ok(Json(engine.server_stats().await?))
}

/// The description of this interface.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "description", responses((status = 200, description = "OpenAPI 3.1"), (status = "default", body = ErrorBody)))]
pub(crate) async fn openapi(
    State(_): State<Arc<App>>,
    _: Query<NoFields>,
) -> Json<utoipa::openapi::OpenApi> {
    Json(super::openapi::document())
}

/// Leaves a table that a custom resource declares to administrators.
fn check_owner(engine: &Engine, table: &TableName, context: Context) -> Result<(), Refusal> {
    let owner = match engine.table(table) {
        Ok(info) => info.owner,
        Err(Error::NotFound(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let Some(owner) = owner.filter(|_| context.access < Access::Admin) else {
        return Ok(());
    };
    let message = format!(
        "table \"{table}\" is declared by the custom resource {}/{}; change its manifest",
        owner.namespace, owner.name
    );
    Err(Refusal::new(ErrorCode::FailedPrecondition, message))
}

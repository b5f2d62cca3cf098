//! Upkeep on demand: compaction of a table, the hold of the store.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tablemount_api::{CompactRequest, CompactResponse, ErrorBody, ErrorCode, Hold, TableName};
use tokio::time::timeout_at;

use super::app::{App, Context, Serving, Table};
use super::body::JsonBody;
use super::query::{NoFields, Query};
use super::refusal::Refusal;

/// Compactions asked for that may be under way at once, whether or not somebody still waits.
pub(crate) const COMPACTIONS: usize = 8;
/// What is left of the deadline for the answer that a compaction goes on.
const MARGIN: Duration = Duration::from_secs(1);

/// Flushes a table and merges the files of each family into one a tablet.
///
/// The answer comes when that is done, or shortly before the deadline, with status 202: then it goes on without a caller.
#[utoipa::path(post, path = "/v1/tables/{table}/compact", tag = "upkeep", params(("table" = TableName, Path)), request_body = CompactRequest, responses((status = 200, body = CompactResponse), (status = 202, description = "It goes on"), (status = "default", body = ErrorBody)))]
pub(crate) async fn compact(
    State(app): State<Arc<App>>,
    Serving(engine): Serving,
    Table(table): Table,
    context: Context,
    _: Query<NoFields>,
    JsonBody(request, _room): JsonBody<CompactRequest>,
) -> Result<Response, Refusal> {
    let place = Arc::clone(&app.compactions).try_acquire_owned();
    let place = place.map_err(|_| {
        Refusal::new(
            ErrorCode::ResourceExhausted,
            format!("{COMPACTIONS} compactions that were asked for are under way, which is the limit; try again later"),
        )
    })?;
    let running = tokio::spawn(async move {
        let done = engine.compact(&table, request.family).await;
        drop(place);
        if let Err(error) = &done {
            tracing::warn!(%table, %error, "a compaction that was asked for failed");
        }
        done
    });
    let until = context.deadline - MARGIN.min(context.timeout / 10);
    match timeout_at(until, running).await {
        Ok(Ok(done)) => Ok(Json(done?).into_response()),
        Ok(Err(_)) => Err(Refusal::new(ErrorCode::Internal, "the compaction failed")),
        Err(_) => Ok(StatusCode::ACCEPTED.into_response()),
    }
}

/// Whether the store is held.
#[utoipa::path(get, path = "/v1/hold", tag = "upkeep", responses((status = 200, body = Hold), (status = "default", body = ErrorBody)))]
pub(crate) async fn hold(
    Serving(engine): Serving,
    _: Query<NoFields>,
) -> Result<Json<Hold>, Refusal> {
    Ok(Json(engine.hold()))
}

/// Holds or releases the store.
///
/// While it is held, no file goes and nothing is collected, whatever GC rules and deletes say; what readers see is the same.
#[utoipa::path(put, path = "/v1/hold", tag = "upkeep", request_body = Hold, responses((status = 200, body = Hold), (status = "default", body = ErrorBody)))]
pub(crate) async fn set_hold(
    Serving(engine): Serving,
    _: Query<NoFields>,
    JsonBody(hold, _room): JsonBody<Hold>,
) -> Result<Json<Hold>, Refusal> {
    Ok(Json(engine.set_hold(hold).await?))
}

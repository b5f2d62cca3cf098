//! `/healthz`, `/readyz` and `/metrics`: open to everybody, naming no keys.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use tablemount_api::{ErrorBody, ErrorCode};

use super::app::App;
use super::exposition;
use super::refusal::Refusal;

/// Whether the process listens.
#[utoipa::path(get, path = "/healthz", tag = "probes", security(()), responses((status = 200, body = String), (status = "default", body = ErrorBody)))]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether the store is open and serves.
#[utoipa::path(get, path = "/readyz", tag = "probes", security(()), responses((status = 200, body = String), (status = "default", body = ErrorBody)))]
pub(crate) async fn readyz(State(app): State<Arc<App>>) -> Result<&'static str, Refusal> {
    if app.stopping.is_cancelled() {
        return Err(Refusal::new(
            ErrorCode::Unavailable,
            "the server is stopping",
        ));
    }
    app.engine()?;
    Ok("ok\n")
}

/// Measurements in Prometheus's text format, with statistics once the store is open.
#[utoipa::path(get, path = "/metrics", tag = "probes", security(()), responses((status = 200, body = String), (status = "default", body = ErrorBody)))]
pub(crate) async fn metrics(State(app): State<Arc<App>>) -> impl IntoResponse {
    let mut text = app.metrics.render();
    if let Some(engine) = app.engine.get() {
        match engine.all_stats().await {
            Ok((server, tables)) => text.push_str(&exposition::text(&server, &tables)),
            Err(error) => tracing::warn!(%error, "statistics for /metrics"),
        }
    }
    (
        [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        text,
    )
}

//! `/healthz`, `/readyz` and `/metrics`: open to everybody, naming no keys.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use tablemount_api::{ErrorBody, ErrorCode};

use super::app::App;
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

/// Measurements in Prometheus's text format.
#[utoipa::path(get, path = "/metrics", tag = "probes", security(()), responses((status = 200, body = String), (status = "default", body = ErrorBody)))]
pub(crate) async fn metrics(State(app): State<Arc<App>>) -> impl IntoResponse {
    (
        [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        app.metrics.render(),
    )
}

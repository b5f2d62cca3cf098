//! `/healthz`, `/readyz` and `/metrics` of the operator. They need no token and name no object.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use futures::future::{BoxFuture, join_all};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;

use crate::Error;

/// Takes the address, or tells that it is in use.
pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address)
        .await
        .map_err(|source| Error::Listen { address, source })
}

/// What the operator tells of itself.
pub(crate) struct Probe {
    ready: Vec<BoxFuture<'static, ()>>,
    metrics: PrometheusHandle,
}

impl Probe {
    /// Ready once all of `ready` ended. Metrics are those of this process.
    pub(crate) fn new(ready: Vec<BoxFuture<'static, ()>>) -> Self {
        let recorder = PrometheusBuilder::new().build_recorder();
        let metrics = recorder.handle();
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!("metrics are recorded elsewhere in this process; /metrics stays empty");
        }
        Self { ready, metrics }
    }

    /// Answers on `listener`; ends only when that fails.
    pub(crate) async fn serve(self, listener: TcpListener) -> Result<(), Error> {
        let is_ready = Arc::new(AtomicBool::new(false));
        let app = router(Arc::clone(&is_ready), self.metrics);
        let become_ready = async {
            join_all(self.ready).await;
            is_ready.store(true, Ordering::Relaxed);
            std::future::pending::<()>().await;
        };
        let address = listener.local_addr().map_err(|source| Error::Listen {
            address: ([0, 0, 0, 0], 0).into(),
            source,
        })?;
        tokio::select! {
            served = axum::serve(listener, app).into_future() => served.map_err(|source| Error::Listen { address, source }),
            () = become_ready => Ok(()),
        }
    }
}

fn router(is_ready: Arc<AtomicBool>, metrics: PrometheusHandle) -> Router {
    let readyz = move || async move {
        match is_ready.load(Ordering::Relaxed) {
            true => (StatusCode::OK, "ready\n"),
            false => (
                StatusCode::SERVICE_UNAVAILABLE,
                "waiting for the first list of the custom resources: are the CRDs installed?\n",
            ),
        }
    };
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(move || async move { metrics.render() }))
}

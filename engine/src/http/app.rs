//! What all requests share, and the parts of a request that handlers ask for.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use metrics_exporter_prometheus::PrometheusHandle;
use tablemount_api::{ErrorCode, TableName};
use tokio::sync::{Semaphore, SetOnce};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::refusal::Refusal;
use super::upkeep::COMPACTIONS;
use crate::Engine;
use crate::access::{Access, Authenticator};

/// Where the engine is put once it is open.
pub type EngineSlot = Arc<SetOnce<Engine>>;

/// How much is served at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests in flight (default 1,024); more are refused with 429. Probes do not count.
    pub requests: usize,
    /// Bytes of request bodies held at once (default 256 MiB); more wait.
    pub body_bytes: u32,
    /// Bytes of values being sent at once (default 256 MiB); more wait.
    pub value_bytes: u32,
    /// How long a shutdown waits for requests in flight (default 10 s).
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests: 1024,
            body_bytes: 256 << 20,
            value_bytes: 256 << 20,
            drain: Duration::from_secs(10),
        }
    }
}

/// Values being read from the engine at once, not yet counted by their bytes.
const VALUE_READS: usize = 32;

/// What all requests share.
pub(crate) struct App {
    pub(crate) engine: EngineSlot,
    pub(crate) authenticator: Arc<dyn Authenticator>,
    pub(crate) limits: Limits,
    /// Whether the server listens on a loopback address.
    pub(crate) on_loopback: bool,
    pub(crate) requests: Arc<Semaphore>,
    pub(crate) body_bytes: Arc<Semaphore>,
    pub(crate) value_reads: Semaphore,
    pub(crate) value_bytes: Arc<Semaphore>,
    /// Places of compactions that were asked for.
    pub(crate) compactions: Arc<Semaphore>,
    pub(crate) stopping: CancellationToken,
    pub(crate) metrics: &'static PrometheusHandle,
}

impl App {
    pub(crate) fn new(
        engine: EngineSlot,
        authenticator: Arc<dyn Authenticator>,
        limits: Limits,
        metrics: &'static PrometheusHandle,
    ) -> Self {
        Self {
            engine,
            authenticator,
            limits,
            on_loopback: false,
            requests: Arc::new(Semaphore::new(limits.requests)),
            body_bytes: Arc::new(Semaphore::new(limits.body_bytes as usize)),
            value_reads: Semaphore::new(VALUE_READS),
            value_bytes: Arc::new(Semaphore::new(limits.value_bytes as usize)),
            compactions: Arc::new(Semaphore::new(COMPACTIONS)),
            stopping: CancellationToken::new(),
            metrics,
        }
    }

    /// The engine, or why there is none.
    pub(crate) fn engine(&self) -> Result<&Engine, Refusal> {
        self.engine
            .get()
            .ok_or_else(|| Refusal::new(ErrorCode::Unavailable, "the store is still opening"))
    }
}

/// The open engine, as a part of the request.
pub(crate) struct Serving(pub(crate) Engine);

impl FromRequestParts<Arc<App>> for Serving {
    type Rejection = Refusal;

    async fn from_request_parts(_: &mut Parts, app: &Arc<App>) -> Result<Self, Refusal> {
        Ok(Self(app.engine()?.clone()))
    }
}

/// The table that the path names.
pub(crate) struct Table(pub(crate) TableName);

impl FromRequestParts<Arc<App>> for Table {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Refusal> {
        let parameters = RawPathParams::from_request_parts(parts, app)
            .await
            .map_err(|_| Refusal::invalid("the table name in the path is not UTF-8"))?;
        let name = parameters
            .iter()
            .find(|(name, _)| *name == "table")
            .map_or("", |(_, value)| value);
        TableName::new(name)
            .map(Self)
            .map_err(|error| Refusal::invalid(error.to_string()))
    }
}

/// What is known of the request being served.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    /// What the caller may do.
    pub(crate) access: Access,
    /// When the answer must be complete.
    pub(crate) deadline: Instant,
    /// The whole time allowed.
    pub(crate) timeout: Duration,
}

impl FromRequestParts<Arc<App>> for Context {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, Refusal> {
        let context = parts.extensions.get::<Self>().copied();
        context.ok_or_else(|| Refusal::new(ErrorCode::Internal, "request without a context"))
    }
}

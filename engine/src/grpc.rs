//! The gRPC edge: the Bigtable API, reflection, and `grpc.health.v1`: the server as a whole is SERVING once the engine is open,
//! until it stops.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::service::RoutesBuilder;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic_health::ServingStatus;
use tonic_health::server::{HealthReporter, health_reporter};

use crate::access::Authenticator;
use crate::bigtable;
use crate::http::{EngineSlot, listen};
use crate::{Error, Result};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const DRAIN: Duration = Duration::from_secs(10);
/// Connections that do not answer pings are closed.
const KEEPALIVE: Duration = Duration::from_secs(30);
const STREAMS_PER_CONNECTION: u32 = 256;
/// The name that stands for all services.
const WHOLE_SERVER: &str = "";

/// A server that listens, and serves once [`GrpcServer::serve`] runs.
pub struct GrpcServer {
    listener: TcpListener,
    local_addr: SocketAddr,
    engine: EngineSlot,
    authenticator: Arc<dyn Authenticator>,
}

impl GrpcServer {
    /// Listens on `address` (`host:port`; port 0: any).
    ///
    /// # Errors
    /// [`Error::Io`] naming the address: a port in use, an address that is not this machine's.
    pub async fn bind(
        address: &str,
        authenticator: Arc<dyn Authenticator>,
        engine: EngineSlot,
    ) -> Result<Self> {
        let listener = listen(address).await?;
        let local_addr = listener
            .local_addr()
            .map_err(|error| Error::Io(format!("listen on {address}: {error}")))?;
        Ok(Self {
            listener,
            local_addr,
            engine,
            authenticator,
        })
    }

    /// The address, with the port that was given for port 0.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves until `stop`; then waits for requests in flight, at most 10 s.
    pub async fn serve(self, stop: CancellationToken) -> Result<()> {
        let Self {
            listener,
            local_addr,
            engine,
            authenticator,
        } = self;
        let (reporter, health) = health_reporter();
        reporter
            .set_service_status(WHOLE_SERVER, ServingStatus::NotServing)
            .await;
        let reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(bigtable::proto::DESCRIPTORS)
            .build_v1()
            .map_err(|error| Error::Io(format!("reflection: {error}")))?;
        let mut routes = RoutesBuilder::default();
        routes.add_service(health).add_service(reflection);
        bigtable::add(&mut routes, engine.clone());
        let serving = Server::builder()
            .layer(bigtable::access(authenticator))
            .timeout(REQUEST_TIMEOUT)
            .http2_keepalive_interval(Some(KEEPALIVE))
            .max_concurrent_streams(STREAMS_PER_CONNECTION)
            .add_routes(routes.routes())
            .serve_with_incoming_shutdown(
                TcpIncoming::from(listener).with_nodelay(Some(true)),
                report(reporter, engine, stop.clone()),
            );
        tracing::info!(address = %local_addr, "serving gRPC");
        let mut serving = std::pin::pin!(serving);
        let outcome = tokio::select! {
            outcome = serving.as_mut() => outcome,
            () = stop.cancelled() => match tokio::time::timeout(DRAIN, serving).await {
                Ok(outcome) => outcome,
                Err(_) => return Ok(()),
            },
        };
        outcome.map_err(|error| Error::Io(format!("serve gRPC on {local_addr}: {error}")))
    }
}

/// Reports the engine's state until the server stops.
async fn report(reporter: HealthReporter, engine: EngineSlot, stop: CancellationToken) {
    if stop.run_until_cancelled(engine.wait()).await.is_some() {
        reporter
            .set_service_status(WHOLE_SERVER, ServingStatus::Serving)
            .await;
        stop.cancelled().await;
    }
    reporter
        .set_service_status(WHOLE_SERVER, ServingStatus::NotServing)
        .await;
}

//! The HTTP edge: `/v1`, probes, metrics. HTTP/1.1 on one address.
//!
//! ```text
//! connection ─ edge (deadline, room, access, panics) ─ route ─ parse (query or body → request) ─ engine ─ encode
//! ```
//!
//! Owns sockets, bodies, status codes and the order of checks. Knows nothing of storage: it calls [`Engine`] only.
//!
//! **Invariants**: every answer that is not 2xx is an `ErrorBody`; every request has a deadline, and holds nothing beyond it;
//! requests, their bodies, values being sent and connections are bounded in number or bytes.
//!
//! [`Engine`]: crate::Engine

mod app;
mod body;
mod cells;
mod connection;
mod edge;
mod exposition;
mod metrics;
mod openapi;
mod page;
mod probes;
mod query;
mod range;
mod refusal;
mod routes;
mod tables;
mod timestamps;
mod upkeep;
mod value;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use app::{EngineSlot, Limits};

use crate::access::Authenticator;
use crate::{Error, Result};
use app::App;

/// Connections at once; more wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 4096;
/// How long accepting rests after it failed, as when file descriptors run out.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// A server that listens, and serves once [`HttpServer::serve`] runs.
///
/// It answers probes at once, and `/v1` as soon as the engine is put into its slot.
pub struct HttpServer {
    listener: TcpListener,
    local_addr: SocketAddr,
    app: App,
}

impl HttpServer {
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
        let app = App::new(
            engine,
            authenticator,
            Limits::default(),
            metrics::recorder(),
        );
        Ok(Self {
            listener,
            local_addr,
            app,
        })
    }

    /// Serves with other limits.
    pub fn with_limits(self, limits: Limits) -> Self {
        let App {
            engine,
            authenticator,
            metrics,
            ..
        } = self.app;
        Self {
            app: App::new(engine, authenticator, limits, metrics),
            ..self
        }
    }

    /// The address, with the port that was given for port 0.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves until `stop`; then waits for requests in flight, at most for [`Limits::drain`].
    pub async fn serve(self, stop: CancellationToken) {
        let Self {
            listener,
            local_addr,
            app,
        } = self;
        let app = Arc::new(App {
            on_loopback: local_addr.ip().is_loopback(),
            ..app
        });
        tracing::info!(address = %local_addr, "serving HTTP");
        let connections = TaskTracker::new();
        let kill = CancellationToken::new();
        let router = routes::router(&app);
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut upkeep = tokio::time::interval(metrics::UPKEEP);
        loop {
            let (stream, place) = tokio::select! {
                accepted = accept(&listener, &places) => accepted,
                _ = upkeep.tick() => {
                    app.metrics.run_upkeep();
                    continue;
                }
                () = stop.cancelled() => break,
            };
            let serving = connection::serve(stream, router.clone(), app.stopping.clone());
            let kill = kill.clone();
            connections.spawn(async move {
                kill.run_until_cancelled(serving).await;
                drop(place);
            });
        }
        drop(listener);
        app.stopping.cancel();
        connections.close();
        if tokio::time::timeout(app.limits.drain, connections.wait())
            .await
            .is_err()
        {
            tracing::warn!(
                connections = connections.len(),
                "requests still in flight are broken off"
            );
            kill.cancel();
            connections.wait().await;
        }
    }
}

/// Listens on `address`; the error names it.
pub(crate) async fn listen(address: &str) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        let reason = match error.kind() {
            std::io::ErrorKind::AddrInUse => "the port is in use by another process".to_owned(),
            _ => error.to_string(),
        };
        Error::Io(format!("listen on {address}: {reason}"))
    })
}

/// The next connection, once there is a place for it.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    // Never closed, so there is always a permit.
    let place = Arc::clone(places).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "set TCP_NODELAY");
                }
                return (stream, place);
            }
            Err(error) => {
                tracing::warn!(%error, "accept a connection");
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
}

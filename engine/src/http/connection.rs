//! One connection: HTTP/1.1, with a clock that ends it when a request outstays its deadline.
//!
//! A handler's deadline is kept where it runs. What it cannot see is a client that does not read: then neither handler nor
//! body is asked for more, and only the connection can be ended.
//!
//! **Invariants**: a head must arrive within [`HEAD_TIME`] of the connection's start or of the answer before it, so idle
//! connections end then too; an answer must be in the kernel's hands by its request's deadline and grace.

use std::convert::Infallible;
use std::io::IoSlice;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{self, AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// The client drops idle connections earlier, so that it does not meet one being closed.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// When the request that a connection is serving must be done with.
#[derive(Clone)]
pub(crate) struct Clock(Arc<ClockState>);

struct ClockState {
    due: watch::Sender<Option<Instant>>,
    answered: AtomicBool,
}

impl Default for Clock {
    fn default() -> Self {
        Self(Arc::new(ClockState {
            due: watch::Sender::new(None),
            answered: AtomicBool::new(false),
        }))
    }
}

impl Clock {
    /// A request has come that must be done with by `due`.
    pub(crate) fn start(&self, due: Instant) {
        self.0.answered.store(false, Ordering::Release);
        self.0.due.send_replace(Some(due));
    }

    /// The answer was handed over, whole or broken off; what is left is to write it out.
    pub(crate) fn answered(&self) {
        self.0.answered.store(true, Ordering::Release);
    }

    fn written(&self) {
        if self.0.answered.swap(false, Ordering::AcqRel) {
            self.0.due.send_replace(None);
        }
    }

    /// Waits until a request is overdue.
    async fn overdue(&self) {
        let mut changes = self.0.due.subscribe();
        loop {
            let due = *changes.borrow_and_update();
            match due {
                Some(due) if timeout_at(due, changes.changed()).await.is_err() => return,
                Some(_) => {}
                // Cannot fail: the sender lives as long as `self`.
                None => drop(changes.changed().await),
            }
        }
    }
}

/// Serves requests until the client leaves, a request is overdue, or `stopping` and the one in flight is done.
pub(crate) async fn serve(stream: TcpStream, router: Router, stopping: CancellationToken) {
    let clock = Clock::default();
    let io = TokioIo::new(Watched {
        stream,
        clock: clock.clone(),
    });
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(clock.clone());
        let router = router.clone();
        async move {
            Ok::<_, Infallible>(
                router
                    .oneshot(request)
                    .await
                    .unwrap_or_else(|never| match never {}),
            )
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .serve_connection(io, service);
    let mut connection = pin!(connection);
    let mut overdue = pin!(clock.overdue());
    let mut stops = false;
    loop {
        tokio::select! {
            outcome = connection.as_mut() => {
                if let Err(error) = outcome {
                    tracing::debug!(%error, "connection ended");
                }
                return;
            }
            () = &mut overdue => {
                tracing::debug!("connection closed: the client does not take the answer");
                return;
            }
            () = stopping.cancelled(), if !stops => {
                stops = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// A stream that tells the clock when all bytes given to it are with the kernel.
struct Watched {
    stream: TcpStream,
    clock: Clock,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(task, buffer)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(task, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(task, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(task);
        if flushed.is_ready() {
            self.clock.written();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_an_answer_not_written_in_time_is_overdue() {
        let clock = Clock::default();
        let in_millis = |millis| Instant::now() + Duration::from_millis(millis);
        assert!(
            timeout_at(in_millis(20), clock.overdue()).await.is_err(),
            "idle"
        );
        clock.start(in_millis(60_000));
        clock.written();
        assert!(
            timeout_at(in_millis(20), clock.overdue()).await.is_err(),
            "not yet"
        );
        clock.start(in_millis(0));
        clock.answered();
        assert!(
            timeout_at(in_millis(5000), clock.overdue()).await.is_ok(),
            "answered, but not written"
        );
        clock.start(in_millis(0));
        clock.answered();
        clock.written();
        assert!(
            timeout_at(in_millis(20), clock.overdue()).await.is_err(),
            "written"
        );
    }
}

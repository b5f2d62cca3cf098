//! Signals: the first SIGTERM or SIGINT asks for an orderly end, the second ends the process at once.

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Is cancelled by the first SIGTERM or SIGINT.
pub(crate) fn stop_token() -> anyhow::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let mut terminate = stream(SignalKind::terminate())?;
    let mut interrupt = stream(SignalKind::interrupt())?;
    let cancelled = stop.clone();
    tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            }
        };
        let signal = next().await;
        tracing::info!(signal, "stopping; a second signal ends at once");
        cancelled.cancel();
        next().await;
        std::process::exit(1);
    });
    Ok(stop)
}

/// SIGHUPs as they come.
pub(crate) fn hangups() -> anyhow::Result<Signal> {
    stream(SignalKind::hangup())
}

fn stream(kind: SignalKind) -> anyhow::Result<Signal> {
    signal(kind).context("listen for signals")
}

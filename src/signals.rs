//! Signals: the first SIGTERM or SIGINT asks for an orderly end, the second ends the process at once.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What a second signal takes away before it ends the process.
static MOUNTED: OnceLock<PathBuf> = OnceLock::new();

/// Has the second signal detach this mount, which would be a dead one else.
pub(crate) fn detach_at_second(mountpoint: &Path) {
    let absolute = std::path::absolute(mountpoint).unwrap_or_else(|_| mountpoint.to_owned());
    // There is one mount a process.
    let _ = MOUNTED.set(absolute);
}

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
        cancelled.cancel();
        tracing::info!(signal, "stopping; a second signal ends at once");
        next().await;
        if let Some(mountpoint) = MOUNTED.get() {
            // It may be unmounted already.
            let _ = tablemount_fusefs::detach(mountpoint);
        }
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

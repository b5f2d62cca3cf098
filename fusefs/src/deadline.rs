//! A breaker: after one call ran into its time limit, all calls fail at once until a probe finds the engine again.
//!
//! Without it a walker over a dead server would wait out the time limit once per entry.
//!
//! **Invariants**: while the breaker is open, exactly one probe a second is sent and nothing else; it closes by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tracing::{info, warn};

use crate::source::Source;

/// Time between two probes, and a probe's time limit.
pub(crate) const PROBE_EVERY: Duration = Duration::from_secs(1);

/// Whether calls are let through.
pub(crate) struct Breaker {
    open: AtomicBool,
    source: Arc<dyn Source>,
}

impl Breaker {
    pub(crate) fn new(source: Arc<dyn Source>) -> Arc<Self> {
        Arc::new(Self { open: AtomicBool::new(false), source })
    }

    /// Whether calls fail at once.
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// A call ran into its time limit.
    pub(crate) fn trip(self: &Arc<Self>) {
        if self.open.swap(true, Ordering::Relaxed) {
            return;
        }
        warn!("no answer from the server in time; everything fails at once until it answers again");
        let breaker = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(PROBE_EVERY).await;
                // The mount is gone when the breaker is.
                let Some(breaker) = breaker.upgrade() else { return };
                if let Ok(Ok(())) = tokio::time::timeout(PROBE_EVERY, breaker.source.ready()).await {
                    info!("the server answers again");
                    breaker.open.store(false, Ordering::Relaxed);
                    return;
                }
            }
        });
    }
}

#[cfg(test)]
mod tests;

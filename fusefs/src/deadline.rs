//! A breaker: after one call ran into its time limit, all calls fail at once until a probe finds the engine again.
//!
//! Without it a walker over a dead server would wait out the time limit once per entry.
//!
//! **Invariants**: while the breaker is open, one probe at a time is sent (in a mount one a second) and nothing else; it closes by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tracing::{info, warn};

use crate::source::Source;

/// Whether calls are let through.
pub(crate) struct Breaker {
    open: AtomicBool,
    source: Arc<dyn Source>,
    probe_every: Duration,
}

impl Breaker {
    /// Looks for the engine every `probe_every`, and gives it that long to answer.
    pub(crate) fn new(source: Arc<dyn Source>, probe_every: Duration) -> Arc<Self> {
        Arc::new(Self {
            open: AtomicBool::new(false),
            source,
            probe_every,
        })
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
        let (breaker, probe_every) = (Arc::downgrade(self), self.probe_every);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(probe_every).await;
                // The mount is gone when the breaker is.
                let Some(breaker) = breaker.upgrade() else {
                    return;
                };
                if let Ok(Ok(())) = tokio::time::timeout(probe_every, breaker.source.ready()).await
                {
                    info!("the server answers again");
                    breaker.open.store(false, Ordering::Relaxed);
                    return;
                }
            }
        });
        warn!("no answer from the server in time; everything fails at once until it answers again");
    }
}

#[cfg(test)]
mod tests;

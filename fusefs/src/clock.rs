//! What time it is: a parameter, so that tests can hold it and move it on.

use std::time::Instant;

/// Tells the time.
pub(crate) struct Clock(Box<dyn Fn() -> Instant + Send + Sync>);

impl Clock {
    /// The system's.
    pub(crate) fn system() -> Self {
        Self(Box::new(Instant::now))
    }

    /// One that stands still at a start of its own, moved on by the nanoseconds in `moved`.
    #[cfg(test)]
    pub(crate) fn held(moved: std::sync::Arc<std::sync::atomic::AtomicU64>) -> Self {
        let start = Instant::now();
        Self(Box::new(move || {
            start
                + std::time::Duration::from_nanos(moved.load(std::sync::atomic::Ordering::Relaxed))
        }))
    }

    pub(crate) fn now(&self) -> Instant {
        self.0()
    }
}

//! Time as a parameter.

use tablemount_api::Timestamp;

/// Tells the time.
pub(crate) trait Clock: Send + Sync {
    /// Microseconds since the Unix epoch.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(jiff::Timestamp::now().as_microsecond())
    }
}

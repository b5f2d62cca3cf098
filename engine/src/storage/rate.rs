//! How fast compactions may read and write: a bucket of bytes that fills at a steady rate.
//!
//! **Invariants**: over any time no more is given out than the rate and one bucket; a taker never waits longer than what it
//! takes costs at the rate plus what was taken before it.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The bucket holds what comes in so long.
const BUCKET: Duration = Duration::from_millis(250);

/// A rate that many takers share.
pub(crate) struct Rate {
    /// 0: no limit.
    bytes_per_second: u64,
    /// When all that was taken has come in.
    paid: Mutex<Option<Instant>>,
}

impl Rate {
    pub(crate) fn new(bytes_per_second: u64) -> Self {
        Self {
            bytes_per_second,
            paid: Mutex::new(None),
        }
    }

    /// Takes bytes; returns how long to wait before moving them.
    pub(crate) fn take(&self, bytes: u64, now: Instant) -> Duration {
        if self.bytes_per_second == 0 {
            return Duration::ZERO;
        }
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_second);
        let cost = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let mut paid = self.paid.lock();
        let full = now.checked_sub(BUCKET).unwrap_or(now);
        let from = paid.map_or(full, |paid| paid.max(full));
        let until = from.checked_add(cost).unwrap_or(from);
        *paid = Some(until);
        until.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takers_get_the_rate_after_a_bucket() {
        let (rate, mut now) = (Rate::new(1000), Instant::now());
        now += Duration::from_secs(1);
        let start = now;
        assert_eq!(rate.take(250, now), Duration::ZERO, "the bucket is full");
        for _ in 0..100 {
            now += rate.take(100, now);
        }
        assert_eq!(now - start, Duration::from_secs(10));
        // What was not used is kept up to a bucket.
        now += Duration::from_secs(60);
        assert_eq!(rate.take(250, now), Duration::ZERO);
        assert_eq!(rate.take(1000, now), Duration::from_secs(1));
    }

    #[test]
    fn no_rate_is_no_wait() {
        let rate = Rate::new(0);
        assert_eq!(rate.take(u64::MAX, Instant::now()), Duration::ZERO);
    }
}

//! How often something happens: exactly since the start, and a second over the last ten whole seconds.
//!
//! ```text
//! slot[second % 16] = second u32 │ count u32, in one word, so that a count never lands in another second
//! ```
//!
//! **Invariants**: noting costs two atomic operations and takes no lock; the second that is still going on does not count, so
//! a steady load shows a steady rate (`a_steady_load_shows_its_rate`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Whole seconds that a rate is over.
const SECONDS: u64 = 10;
/// More than [`SECONDS`], so that a second's slot is not taken over while it counts.
const SLOTS: usize = 16;

/// A count and its rate.
#[derive(Default)]
pub(crate) struct Rate {
    total: AtomicU64,
    slots: [AtomicU64; SLOTS],
}

impl Rate {
    /// Notes one that happens `elapsed` after the start.
    pub(crate) fn note(&self, elapsed: Duration) {
        self.total.fetch_add(1, Ordering::Relaxed);
        let second = elapsed.as_secs();
        let _ =
            self.slots[slot(second)].fetch_update(Ordering::Relaxed, Ordering::Relaxed, |slot| {
                Some(match slot >> 32 == second & u64::from(u32::MAX) {
                    true => slot + 1,
                    false => second << 32 | 1,
                })
            });
    }

    /// All since the start.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// How many a second, as seen `elapsed` after the start: over the last ten whole seconds, or as many as there were.
    pub(crate) fn per_second(&self, elapsed: Duration) -> f64 {
        let now = elapsed.as_secs();
        let from = now.saturating_sub(SECONDS);
        if from == now {
            return 0.0;
        }
        let count = |second: u64| {
            let slot = self.slots[slot(second)].load(Ordering::Relaxed);
            let counts = slot >> 32 == second & u64::from(u32::MAX);
            if counts {
                slot & u64::from(u32::MAX)
            } else {
                0
            }
        };
        (from..now).map(count).sum::<u64>() as f64 / (now - from) as f64
    }
}

fn slot(second: u64) -> usize {
    second as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_steady_load_shows_its_rate() {
        let rate = Rate::default();
        assert_eq!(rate.per_second(at(0)), 0.0);
        for tenth in 0..600 {
            rate.note(at(tenth * 100));
            if tenth >= 10 {
                assert_eq!(rate.per_second(at(tenth * 100)), 10.0, "{tenth}");
            }
        }
        assert_eq!(rate.total(), 600);
    }

    #[test]
    fn a_load_that_ended_is_forgotten_after_ten_seconds() {
        let rate = Rate::default();
        for _ in 0..50 {
            rate.note(at(100_500));
        }
        assert_eq!(rate.per_second(at(100_900)), 0.0, "the second goes on");
        assert_eq!(rate.per_second(at(101_000)), 5.0);
        assert_eq!(rate.per_second(at(110_999)), 5.0);
        assert_eq!(rate.per_second(at(111_000)), 0.0);
        // The same slot, 16 and 2^32 seconds later.
        assert_eq!(rate.per_second(at(117_000)), 0.0);
        rate.note(at(116_500));
        assert_eq!(rate.per_second(at(117_000)), 0.1);
        assert_eq!(rate.total(), 51);
    }

    #[test]
    fn no_count_is_lost_between_threads() {
        let rate = Rate::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|i| rate.note(at(i))));
            }
        });
        assert_eq!(rate.total(), 40_000);
        assert_eq!(rate.per_second(at(10_000)), 4000.0);
    }
}

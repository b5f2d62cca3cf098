//! How long to wait after failures in a row of one cause: 1 s, doubling, at most a minute.
//!
//! **Invariant**: bounded; beyond [`MAX_OBJECTS`] failing objects the counts start again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
const MAX_OBJECTS: usize = 10_000;

/// Failures in a row, with their cause, by object.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: Mutex<HashMap<String, (String, u32)>>,
}

impl Backoff {
    /// Counts a failure of `object` and tells how long to wait. Another cause than before is progress, and starts again.
    pub(super) fn failed(&self, object: &str, cause: &str) -> Duration {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= MAX_OBJECTS && !failures.contains_key(object) {
            failures.clear();
        }
        let (known, count) = failures.entry(object.to_owned()).or_default();
        if known != cause {
            (*known, *count) = (cause.to_owned(), 0);
        }
        let wait = FIRST.saturating_mul(1 << (*count).min(16)).min(LONGEST);
        *count = count.saturating_add(1);
        wait
    }

    /// Forgets the failures of `object`.
    pub(super) fn succeeded(&self, object: &str) {
        self.failures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute_and_start_again_after_success() {
        let backoff = Backoff::default();
        let waits: Vec<_> = (0..9).map(|_| backoff.failed("a", "down").as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(backoff.failed("b", "down").as_secs(), 1);
        backoff.succeeded("a");
        assert_eq!(backoff.failed("a", "down").as_secs(), 1);
    }

    #[test]
    fn another_cause_starts_again() {
        let backoff = Backoff::default();
        let waits = ["new", "new", "new", "down", "down"].map(|cause| backoff.failed("a", cause).as_secs());
        assert_eq!(waits, [1, 2, 4, 1, 2]);
    }

    #[test]
    fn the_counts_are_bounded() {
        let backoff = Backoff::default();
        for object in 0..3 * MAX_OBJECTS {
            backoff.failed(&object.to_string(), "down");
        }
        assert!(backoff.failures.lock().expect("not poisoned").len() <= MAX_OBJECTS);
    }
}

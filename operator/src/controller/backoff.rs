//! How long to wait after failures in a row of one cause: 1 s, doubling, at most a minute.
//!
//! **Invariant**: bounded; beyond [`MAX_OBJECTS`] failing objects the counts start again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
const MAX_OBJECTS: usize = 10_000;

/// Failures in a row, by object.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: Mutex<HashMap<String, Failures>>,
}

/// Failures of one object.
#[derive(Debug)]
struct Failures {
    cause: String,
    count: u32,
    /// When to try again.
    due: Instant,
}

impl Backoff {
    /// Counts a failure of `object` at `now` and tells how long to wait. Another cause than before is progress, and starts
    /// again; a failure before the wait is over (something changed and was looked at at once) makes it no longer.
    pub(super) fn failed(&self, object: &str, cause: &str, now: Instant) -> Duration {
        let mut all = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_OBJECTS && !all.contains_key(object) {
            all.clear();
        }
        let known = all.get_mut(object).filter(|known| known.cause == cause);
        let count = match known {
            Some(known) if now < known.due => return known.due - now,
            Some(known) => known.count.saturating_add(1),
            None => 0,
        };
        let wait = FIRST.saturating_mul(1 << count.min(16)).min(LONGEST);
        let failures = Failures {
            cause: cause.to_owned(),
            count,
            due: now + wait,
        };
        all.insert(object.to_owned(), failures);
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

    /// The waits after failures of these causes, each right after the wait before it.
    fn waits(backoff: &Backoff, mut now: Instant, causes: &[&str]) -> Vec<u64> {
        let wait = |cause: &&str| {
            let wait = backoff.failed("a", cause, now);
            now += wait;
            wait.as_secs()
        };
        causes.iter().map(wait).collect()
    }

    #[test]
    fn waits_double_up_to_a_minute_and_start_again_after_success() {
        let (backoff, now) = (Backoff::default(), Instant::now());
        assert_eq!(
            waits(&backoff, now, &["down"; 9]),
            [1, 2, 4, 8, 16, 32, 60, 60, 60]
        );
        assert_eq!(backoff.failed("b", "down", now).as_secs(), 1);
        backoff.succeeded("a");
        assert_eq!(waits(&backoff, now, &["down"]), [1]);
    }

    #[test]
    fn another_cause_starts_again() {
        let causes = ["new", "new", "new", "down", "down"];
        assert_eq!(
            waits(&Backoff::default(), Instant::now(), &causes),
            [1, 2, 4, 1, 2]
        );
    }

    #[test]
    fn looking_early_makes_no_wait_longer() {
        let (backoff, now) = (Backoff::default(), Instant::now());
        backoff.failed("a", "down", now);
        let early = now + Duration::from_millis(400);
        assert_eq!(
            backoff.failed("a", "down", early),
            Duration::from_millis(600)
        );
        assert_eq!(
            backoff.failed("a", "down", early),
            Duration::from_millis(600)
        );
        assert_eq!(backoff.failed("a", "down", now + FIRST).as_secs(), 2);
    }

    #[test]
    fn the_counts_are_bounded() {
        let (backoff, now) = (Backoff::default(), Instant::now());
        for object in 0..3 * MAX_OBJECTS {
            backoff.failed(&object.to_string(), "down", now);
        }
        assert!(backoff.failures.lock().expect("not poisoned").len() <= MAX_OBJECTS);
    }
}

//! The breaker by itself; what the filesystem makes of it is in its own tests.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::*;
use crate::test_source::{Mood, TestSource};

const PROBE_EVERY: Duration = Duration::from_millis(10);

async fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(10), "{what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn one_probe_at_a_time_until_one_is_answered() {
    let source = TestSource::new("t", &["f"]);
    source.set_mood(Mood::Hangs);
    let breaker = Breaker::new(source.clone(), PROBE_EVERY);
    assert!(!breaker.is_open());
    let start = Instant::now();
    (0..100).for_each(|_| breaker.trip());
    assert!(breaker.is_open());
    until("probes", || source.probes.load(Relaxed) >= 3).await;
    // Each waits its turn and then for its answer.
    assert!(start.elapsed() >= PROBE_EVERY * 5 && breaker.is_open());
    source.set_mood(Mood::Answers);
    until("closed", || !breaker.is_open()).await;
    let probes = source.probes.load(Relaxed);
    tokio::time::sleep(PROBE_EVERY * 5).await;
    assert_eq!(source.probes.load(Relaxed), probes);
}

#[tokio::test]
async fn probing_ends_with_the_mount() {
    let source = TestSource::new("t", &["f"]);
    source.set_mood(Mood::Hangs);
    let breaker = Breaker::new(source.clone(), PROBE_EVERY);
    breaker.trip();
    drop(breaker);
    tokio::time::sleep(PROBE_EVERY * 5).await;
    assert_eq!(source.probes.load(Relaxed), 0);
}

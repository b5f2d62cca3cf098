//! How long something takes: a histogram of the present minute and of the one before.
//!
//! ```text
//! bucket of t µs: t below 8 as it is; above, 8 to an octave: 3 bits after the highest one   (240 buckets to 2^32 µs)
//! ```
//!
//! **Invariants**: a percentile is never too low, and at most an eighth too high (`percentiles_are_close`); the maximum is
//! exact; memory is fixed.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tablemount_api::stats::LatencyStats;

const SUB_BITS: u32 = 3;
const SUBS: u64 = 1 << SUB_BITS;
/// Up to 2^32 µs, more than an hour; what takes longer counts as that.
const BUCKETS: usize = ((32 - SUB_BITS + 1) as usize) << SUB_BITS;

/// Durations of the last one to two minutes.
pub(crate) struct Latency {
    started: Instant,
    minutes: Mutex<[Minute; 2]>,
}

struct Minute {
    number: u64,
    counts: Box<[u32; BUCKETS]>,
    max: u64,
}

impl Default for Minute {
    fn default() -> Self {
        Self {
            number: 0,
            counts: Box::new([0; BUCKETS]),
            max: 0,
        }
    }
}

impl Latency {
    /// Its first minute starts now.
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            minutes: Mutex::default(),
        }
    }

    /// Notes one that took `took` and ends now.
    pub(crate) fn note(&self, took: Duration) {
        self.note_at(self.started.elapsed(), took);
    }

    /// What the present minute and the one before it held.
    pub(crate) fn stats(&self) -> LatencyStats {
        self.stats_at(self.started.elapsed())
    }

    fn note_at(&self, elapsed: Duration, took: Duration) {
        let number = elapsed.as_secs() / 60;
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let mut minutes = self.minutes.lock();
        let minute = &mut minutes[number as usize % 2];
        if minute.number != number {
            *minute = Minute {
                number,
                ..Minute::default()
            };
        }
        let count = &mut minute.counts[bucket(micros)];
        *count = count.saturating_add(1);
        minute.max = minute.max.max(micros);
    }

    fn stats_at(&self, elapsed: Duration) -> LatencyStats {
        let now = elapsed.as_secs() / 60;
        let minutes = self.minutes.lock();
        let recent = || minutes.iter().filter(|minute| minute.number + 1 >= now);
        let counts = |bucket: usize| {
            recent()
                .map(|minute| u64::from(minute.counts[bucket]))
                .sum::<u64>()
        };
        let count: u64 = (0..BUCKETS).map(counts).sum();
        let max = recent().map(|minute| minute.max).max().unwrap_or(0);
        let percentile = |percent: u64| {
            let rank = (count * percent).div_ceil(100);
            let mut seen = 0;
            let found = (0..BUCKETS).find(|bucket| {
                seen += counts(*bucket);
                seen >= rank
            });
            found.map_or(0, |found| highest(found).min(max))
        };
        LatencyStats {
            count,
            p50_micros: percentile(50),
            p99_micros: percentile(99),
            max_micros: max,
        }
    }
}

fn bucket(micros: u64) -> usize {
    let micros = micros.min(u64::from(u32::MAX));
    if micros < SUBS {
        return micros as usize;
    }
    let octave = micros.ilog2() - SUB_BITS;
    (u64::from(octave) * SUBS + (micros >> octave)) as usize
}

/// The highest number of µs in a bucket.
fn highest(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < SUBS {
        return bucket;
    }
    let octave = bucket / SUBS - 1;
    ((bucket - octave * SUBS + 1) << octave) - 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn noted(micros: &[u64]) -> LatencyStats {
        let latency = Latency::new();
        for micros in micros {
            latency.note_at(Duration::ZERO, Duration::from_micros(*micros));
        }
        latency.stats_at(Duration::ZERO)
    }

    proptest! {
        #[test]
        fn percentiles_are_close(mut micros in proptest::collection::vec(0..5_000_000_u64, 1..300)) {
            let stats = noted(&micros);
            micros.sort_unstable();
            let exact = |percent: usize| micros[(micros.len() * percent).div_ceil(100) - 1];
            for (found, exact) in [(stats.p50_micros, exact(50)), (stats.p99_micros, exact(99))] {
                prop_assert!(found >= exact && found <= exact + exact / 8, "{found} for {exact}");
            }
            prop_assert_eq!((stats.count, stats.max_micros), (micros.len() as u64, exact(100)));
        }
    }

    #[test]
    fn buckets_follow_each_other() {
        for bucket_number in 0..BUCKETS - 1 {
            assert_eq!(bucket(highest(bucket_number)), bucket_number);
            assert_eq!(bucket(highest(bucket_number) + 1), bucket_number + 1);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(noted(&[]), LatencyStats::default());
        assert_eq!(noted(&[u64::MAX]).max_micros, u64::MAX);
    }

    #[test]
    fn minutes_pass() {
        let latency = Latency::new();
        let at = Duration::from_secs;
        latency.note_at(at(59), Duration::from_micros(500));
        latency.note_at(at(60), Duration::from_micros(7));
        assert_eq!(
            (
                latency.stats_at(at(60)).count,
                latency.stats_at(at(60)).max_micros
            ),
            (2, 500)
        );
        assert_eq!(
            (
                latency.stats_at(at(119)).count,
                latency.stats_at(at(119)).p50_micros
            ),
            (2, 7)
        );
        assert_eq!(
            (
                latency.stats_at(at(120)).count,
                latency.stats_at(at(120)).max_micros
            ),
            (1, 7)
        );
        latency.note_at(at(185), Duration::from_micros(3));
        assert_eq!(
            (
                latency.stats_at(at(185)).count,
                latency.stats_at(at(185)).max_micros
            ),
            (1, 3)
        );
        assert_eq!(latency.stats_at(at(600)), LatencyStats::default());
    }
}

//! Slowing writers down before they must stop.
//!
//! ```text
//! memtables 0 ─── 60 % ──────────── 100 %        files of a family 0 ─── 20 ────── 40
//!           free │ 1 ns … 1 µs a byte │ stop                       free │ 1 ns … 1 µs a byte
//! ```
//! What a byte costs grows by the same factor with each step of fullness, so the rate that writers get falls from 1 GB/s to
//! 1 MB/s, and whatever flushes and compactions manage there is a fullness at which writers do as much. Debt alone never stops
//! them: a family that cannot be compacted stays writable.
//!
//! **Invariants**: [`slow_down`] is pure and grows with each of its inputs; a request waits at most [`MAX_DELAY`] here, and
//! never under a lock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::store::Store;
use super::tablet::Tablet;

/// From this share of the budget on writers are slowed down.
const SLOW_PERCENT: u64 = 60;
/// From so many files of a family on; and where it is slowest.
pub(crate) const SLOW_FILES: usize = 20;
const SLOWEST_FILES: usize = 40;
/// What a byte costs at the most, in nanoseconds.
const SLOWEST_NANOS: f64 = 1000.0;
/// The most that one request is delayed.
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(1);
/// Shorter delays are added up first: timers are no finer.
const MIN_DELAY: Duration = Duration::from_millis(1);

/// Why a tablet's writers are slowed down or stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StallReason {
    /// They are not.
    None,
    /// The memtables of the server fill faster than they are flushed.
    MemtablesFull,
    /// A family of the tablet has more files than compactions keep up with.
    CompactionDebt,
}

impl StallReason {
    /// As statistics and metrics call it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::MemtablesFull => "memtablesFull",
            Self::CompactionDebt => "compactionDebt",
        }
    }
}

/// What there is to slow down for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) memtable_bytes: u64,
    pub(crate) memtable_budget_bytes: u64,
    /// The most files that a family of the tablet has.
    pub(crate) files: usize,
}

/// What a writer is to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SlowDown {
    /// Go on.
    None,
    /// Wait this long for each byte, for this reason.
    Nanos(f64, StallReason),
    /// Wait for a flush.
    Stop,
}

/// Decides.
pub(crate) fn slow_down(load: Load) -> SlowDown {
    if load.memtable_bytes > load.memtable_budget_bytes {
        return SlowDown::Stop;
    }
    let memory = share(
        load.memtable_bytes,
        load.memtable_budget_bytes / 100 * SLOW_PERCENT,
        load.memtable_budget_bytes,
    );
    let files = share(load.files as u64, SLOW_FILES as u64, SLOWEST_FILES as u64);
    let nanos = |share: f64| SLOWEST_NANOS.powf(share);
    match (memory, files) {
        (0.0, 0.0) => SlowDown::None,
        (memory, files) if memory >= files => {
            SlowDown::Nanos(nanos(memory), StallReason::MemtablesFull)
        }
        (_, files) => SlowDown::Nanos(nanos(files), StallReason::CompactionDebt),
    }
}

/// Where `value` lies between `from` and `to`, 0 to 1.
fn share(value: u64, from: u64, to: u64) -> f64 {
    if value <= from || from >= to {
        return 0.0;
    }
    ((value - from) as f64 / (to - from) as f64).min(1.0)
}

/// What makes writers of a store or tablet take turns when they are slowed down.
#[derive(Debug, Default)]
pub(crate) struct Brake {
    /// When those before have had their time.
    next: Mutex<Option<Instant>>,
    /// The most files of one family.
    files: AtomicUsize,
}

impl Brake {
    /// How long a writer of so many bytes waits.
    pub(crate) fn delay(&self, bytes: u64, nanos: f64, now: Instant) -> Duration {
        let cost = Duration::from_nanos((bytes as f64 * nanos) as u64).min(MAX_DELAY);
        let mut next = self.next.lock();
        let until = next.map_or(now, |next| next.max(now)) + cost;
        *next = Some(until.min(now + MAX_DELAY));
        let delay = until - now;
        if delay < MIN_DELAY {
            return Duration::ZERO;
        }
        delay.min(MAX_DELAY)
    }
}

impl Tablet {
    /// Takes note of how many files its families have.
    pub(crate) fn count_files(&self) {
        let files = self.state().files.values().map(Vec::len).max();
        self.brake
            .files
            .store(files.unwrap_or(0), Ordering::Relaxed);
    }

    /// The most files that one of its families has.
    pub(crate) fn most_files(&self) -> usize {
        self.brake.files.load(Ordering::Relaxed)
    }
}

impl Store {
    fn load(&self, files: usize) -> Load {
        Load {
            memtable_bytes: self.memtable_bytes.load(Ordering::Relaxed),
            memtable_budget_bytes: self.options.memtable_budget_bytes,
            files,
        }
    }

    /// How long a request waits that writes `bytes` to these tablets, and why. Full memtables are waited for elsewhere.
    pub(crate) fn delay<'a>(
        &self,
        tablets: impl Iterator<Item = &'a Tablet>,
        bytes: impl FnOnce() -> u64,
    ) -> (Duration, StallReason) {
        let Some(slowest) = tablets.max_by_key(|tablet| tablet.most_files()) else {
            return (Duration::ZERO, StallReason::None);
        };
        let (brake, nanos, reason) = match slow_down(self.load(slowest.most_files())) {
            SlowDown::None | SlowDown::Stop => return (Duration::ZERO, StallReason::None),
            SlowDown::Nanos(nanos, StallReason::CompactionDebt) => {
                (&slowest.brake, nanos, StallReason::CompactionDebt)
            }
            SlowDown::Nanos(nanos, reason) => (&self.brake, nanos, reason),
        };
        (brake.delay(bytes(), nanos, Instant::now()), reason)
    }

    /// Why writers of the tablet are slowed down or stopped at this moment.
    pub(crate) fn stall_reason(&self, tablet: &Tablet) -> StallReason {
        match slow_down(self.load(tablet.most_files())) {
            SlowDown::None => StallReason::None,
            SlowDown::Nanos(_, reason) => reason,
            SlowDown::Stop => StallReason::MemtablesFull,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(percent: u64, files: usize) -> Load {
        Load {
            memtable_bytes: percent * 1_000_000,
            memtable_budget_bytes: 100_000_000,
            files,
        }
    }

    #[test]
    fn writers_slow_down_smoothly_and_stop_only_when_memtables_are_full() {
        let nanos =
            |percent: u64, files: usize, reason: StallReason| match slow_down(load(percent, files))
            {
                SlowDown::Nanos(nanos, why) if why == reason => nanos.round(),
                other => panic!("{percent} %, {files} files: {other:?}"),
            };
        assert_eq!(slow_down(load(60, SLOW_FILES)), SlowDown::None);
        assert_eq!(nanos(61, 0, StallReason::MemtablesFull), 1.0);
        assert_eq!(nanos(80, 0, StallReason::MemtablesFull), 32.0);
        assert_eq!(nanos(100, 0, StallReason::MemtablesFull), 1000.0);
        assert_eq!(slow_down(load(101, 0)), SlowDown::Stop);
        assert_eq!(nanos(0, 30, StallReason::CompactionDebt), 32.0);
        assert_eq!(nanos(0, 40, StallReason::CompactionDebt), 1000.0);
        assert_eq!(
            nanos(0, 4000, StallReason::CompactionDebt),
            1000.0,
            "debt alone stops nobody"
        );
        assert_eq!(
            nanos(70, 30, StallReason::CompactionDebt),
            32.0,
            "the worse counts"
        );
    }

    #[test]
    fn the_delay_grows_with_each_input() {
        let nanos = |percent, files| match slow_down(load(percent, files)) {
            SlowDown::None => 0.0,
            SlowDown::Nanos(nanos, _) => nanos,
            SlowDown::Stop => f64::INFINITY,
        };
        for percent in 0..=110 {
            for files in 0..50 {
                let here = nanos(percent, files);
                assert!(here <= nanos(percent + 1, files) && here <= nanos(percent, files + 1));
            }
        }
    }

    #[test]
    fn writers_take_turns_and_none_waits_long() {
        let (brake, now) = (Brake::default(), Instant::now());
        assert_eq!(brake.delay(400, 1000.0, now), Duration::ZERO, "added up");
        assert_eq!(brake.delay(600, 1000.0, now), Duration::from_millis(1));
        assert_eq!(brake.delay(9000, 1000.0, now), Duration::from_millis(10));
        assert_eq!(brake.delay(u64::MAX, 1000.0, now), MAX_DELAY);
        assert_eq!(brake.delay(1 << 40, 1000.0, now), MAX_DELAY);
        let later = now + MAX_DELAY + Duration::from_millis(5);
        assert_eq!(
            brake.delay(1000, 1000.0, later),
            Duration::from_millis(1),
            "nothing is owed"
        );
    }
}

//! What a tablet, and the server, did since the start: counted where it happens, read by [`super`].
//!
//! **Invariants**: noting never waits for a reader of statistics, and for another writer only when a family is written to for
//! the first time; what was replayed from the log does not count.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};

use super::rate::Rate;
use crate::storage::log::{Entry, Op};

/// What a tablet did.
pub(crate) struct TabletActivity {
    started: Instant,
    pub(super) reads: Rate,
    pub(super) writes: Rate,
    /// Cells put since the start, by family id.
    cells: RwLock<BTreeMap<u64, Arc<AtomicU64>>>,
    unflushed: Unflushed,
}

impl TabletActivity {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            reads: Rate::default(),
            writes: Rate::default(),
            cells: RwLock::default(),
            unflushed: Unflushed::default(),
        }
    }

    /// Since the tablet was opened.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Notes a page or value that looks into the tablet, now.
    pub(crate) fn read(&self, now: Instant) {
        self.reads.note(now.saturating_duration_since(self.started));
    }

    /// Notes a row's mutations that were put into the active memtables.
    pub(crate) fn wrote(&self, entries: &[Entry]) {
        let now = self.elapsed();
        self.writes.note(now);
        self.unflushed.wrote(now);
        for same_family in entries.chunk_by(|one, next| one.family == next.family) {
            let puts = same_family
                .iter()
                .filter(|entry| matches!(entry.op, Op::Put { .. }))
                .count();
            self.cells_of(same_family[0].family)
                .fetch_add(puts as u64, Ordering::Relaxed);
        }
    }

    fn cells_of(&self, family: u64) -> Arc<AtomicU64> {
        if let Some(cells) = self.cells.read().get(&family) {
            return cells.clone();
        }
        self.cells.write().entry(family).or_default().clone()
    }

    /// Cells put into a family.
    pub(super) fn cells_written(&self, family: u64) -> u64 {
        let cells = self.cells.read();
        cells
            .get(&family)
            .map_or(0, |cells| cells.load(Ordering::Relaxed))
    }

    /// Notes that the active memtables were frozen; they go up to `upto`. Only between appends.
    pub(crate) fn froze(&self, upto: u64) {
        self.unflushed.froze(upto);
    }

    /// Notes that memtables up to `upto` are in SSTs.
    pub(crate) fn flushed(&self, upto: u64) {
        self.unflushed.flushed(upto);
    }

    /// How long the oldest record has been in memtables only.
    pub(super) fn oldest_unflushed(&self) -> Option<Duration> {
        let oldest = self.unflushed.oldest()?;
        Some(self.elapsed().saturating_sub(oldest))
    }
}

/// Since when memtables hold what is not in SSTs.
#[derive(Default)]
struct Unflushed {
    /// When the active memtables got their first record: nanoseconds since the tablet was opened, plus one; 0: they have none.
    active: AtomicU64,
    /// The same of frozen memtables, oldest first, with the sequence number up to which they go.
    frozen: Mutex<Vec<(u64, Duration)>>,
}

impl Unflushed {
    fn wrote(&self, now: Duration) {
        if self.active.load(Ordering::Relaxed) == 0 {
            let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX - 1);
            // A reader that comes between two writers sees the time of one of the two.
            let _ =
                self.active
                    .compare_exchange(0, nanos + 1, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    fn froze(&self, upto: u64) {
        let mut frozen = self.frozen.lock();
        if let Some(first) = self.take_active() {
            frozen.push((upto, first));
        }
    }

    fn take_active(&self) -> Option<Duration> {
        let nanos = self.active.swap(0, Ordering::Relaxed).checked_sub(1)?;
        Some(Duration::from_nanos(nanos))
    }

    fn flushed(&self, upto: u64) {
        self.frozen.lock().retain(|(last, _)| *last > upto);
    }

    fn oldest(&self) -> Option<Duration> {
        let frozen = self.frozen.lock();
        let active = || self.active.load(Ordering::Relaxed).checked_sub(1);
        match frozen.first() {
            Some((_, first)) => Some(*first),
            None => active().map(Duration::from_nanos),
        }
    }
}

/// What the server did.
pub(crate) struct ServerActivity {
    started: Instant,
    /// Bytes a second at which the start replayed the log; 0: unknown.
    replay_rate: AtomicU64,
}

impl ServerActivity {
    /// A replay of less tells nothing of its rate.
    const MIN_REPLAYED_BYTES: u64 = 1 << 20;

    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            replay_rate: AtomicU64::new(0),
        }
    }

    /// Since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Notes that the start replayed `bytes` of log in `took`.
    pub(crate) fn replayed(&self, bytes: u64, took: Duration) {
        if bytes >= Self::MIN_REPLAYED_BYTES {
            let rate = bytes as f64 / took.as_secs_f64().max(1e-6);
            self.replay_rate.store(rate as u64, Ordering::Relaxed);
        }
    }

    pub(super) fn replay_rate(&self) -> Option<u64> {
        let rate = self.replay_rate.load(Ordering::Relaxed);
        (rate > 0).then_some(rate)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tablemount_api::Timestamp;

    use super::*;

    fn put(family: u64) -> Entry {
        let (qualifier, value) = (Bytes::new(), Bytes::from_static(b"v"));
        let op = Op::Put {
            qualifier,
            timestamp: Timestamp(1),
            value,
        };
        Entry { family, op }
    }

    #[test]
    fn cells_count_by_family_and_deletes_do_not() {
        let activity = TabletActivity::new();
        let delete = Entry {
            family: 1,
            op: Op::DeleteFamily,
        };
        activity.wrote(&[put(1), put(1), delete, put(2), put(1)]);
        activity.wrote(&[put(2)]);
        let cells = [1, 2, 3].map(|family| activity.cells_written(family));
        assert_eq!((cells, activity.writes.total()), ([3, 2, 0], 2));
    }

    #[test]
    fn the_oldest_record_counts_until_it_is_flushed() {
        let unflushed = Unflushed::default();
        let at = Duration::from_secs;
        assert_eq!(unflushed.oldest(), None);
        unflushed.froze(0);
        unflushed.wrote(at(0));
        unflushed.wrote(at(5));
        assert_eq!(unflushed.oldest(), Some(at(0)));
        unflushed.froze(10);
        unflushed.wrote(at(6));
        assert_eq!(unflushed.oldest(), Some(at(0)), "frozen, not flushed");
        unflushed.froze(20);
        unflushed.wrote(at(7));
        unflushed.flushed(10);
        assert_eq!(unflushed.oldest(), Some(at(6)));
        unflushed.flushed(20);
        assert_eq!(unflushed.oldest(), Some(at(7)));
        unflushed.froze(30);
        unflushed.flushed(30);
        assert_eq!(unflushed.oldest(), None);
    }

    #[test]
    fn a_short_replay_tells_no_rate() {
        let activity = ServerActivity::new();
        activity.replayed((1 << 20) - 1, Duration::from_secs(1));
        assert_eq!(activity.replay_rate(), None);
        activity.replayed(10 << 20, Duration::from_secs(2));
        assert_eq!(activity.replay_rate(), Some(5 << 20));
    }
}

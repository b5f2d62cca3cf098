//! Which merges run, which families wait for one on demand, and which failed and are tried again later.
//!
//! Decides nothing about files; [`super::compactor`] does, under this lock, so that no two threads take the same files.
//!
//! **Invariants**: a file is in one merge at most; of one family at most two merges run, the second over files younger than
//! all of the first; while one on demand waits, none is started in its family; a job ends when its guard goes, however its
//! merge ended. All waits end when the store stops.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::Result;

/// A tablet's and a family's id.
pub(crate) type Place = (u64, u64);

/// Merges on demand that run at once; others wait.
const MAX_ON_DEMAND: usize = 2;
/// A merge of at least so many bytes leaves a thread for smaller ones.
pub(crate) const LARGE_BYTES: u64 = 256 << 20;
/// A family whose merge failed is tried again after the first of these pauses; each time twice as long, up to the last.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How often a failure that stays is told of.
const TELL: Duration = Duration::from_secs(300);

/// The merges of a store.
#[derive(Default)]
pub(crate) struct Jobs {
    state: Mutex<Running>,
    changed: Condvar,
}

#[derive(Default)]
pub(crate) struct Running {
    jobs: Vec<RunningJob>,
    next: u64,
    /// Families that wait for a merge on demand.
    demanded: Vec<Place>,
    failures: BTreeMap<Place, Failure>,
}

struct RunningJob {
    id: u64,
    place: Place,
    /// The newest of its files; `None`: the whole family.
    newest: Option<String>,
    bytes: u64,
    on_demand: bool,
}

struct Failure {
    retry: Instant,
    pause: Duration,
    told: Instant,
}

/// Which of a family's files may be merged.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Free {
    All,
    /// Those younger than this file, which is being merged.
    YoungerThan(String),
    None,
}

impl Running {
    /// What of the family may be merged now.
    pub(crate) fn free(&self, place: Place, now: Instant) -> Free {
        let waits = self
            .failures
            .get(&place)
            .is_some_and(|failure| now < failure.retry);
        if waits || self.demanded.contains(&place) {
            return Free::None;
        }
        let mut jobs = self.jobs.iter().filter(|job| job.place == place);
        match (jobs.next(), jobs.next()) {
            (None, _) => Free::All,
            (Some(job), None) => job.newest.clone().map_or(Free::None, Free::YoungerThan),
            _ => Free::None,
        }
    }

    /// Whether one of `threads` may take a merge of so many bytes: one thread stays free for small ones, if there are more.
    pub(crate) fn takes(&self, bytes: u64, threads: usize) -> bool {
        let large = |job: &&RunningJob| job.bytes >= LARGE_BYTES && !job.on_demand;
        bytes < LARGE_BYTES || threads < 2 || self.jobs.iter().filter(large).count() + 1 < threads
    }

    /// Bytes of the merges that run: what they may still write, at the most.
    pub(crate) fn bytes(&self) -> u64 {
        self.jobs.iter().map(|job| job.bytes).sum()
    }

    /// When the next family that failed is to be tried again, after `now`.
    pub(crate) fn next_retry(&self, now: Instant) -> Option<Instant> {
        let retries = self.failures.values().map(|failure| failure.retry);
        retries.filter(|retry| *retry > now).min()
    }

    /// Forgets failures of families that are gone.
    pub(crate) fn keep_failures(&mut self, exists: impl Fn(Place) -> bool) {
        self.failures.retain(|place, _| exists(*place));
    }

    /// Whether a merge on demand waits for this family.
    #[cfg(test)]
    pub(crate) fn is_demanded(&self, place: Place) -> bool {
        self.demanded.contains(&place)
    }

    /// Merges that run.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.jobs.len()
    }

    fn start(&mut self, place: Place, newest: Option<String>, bytes: u64, on_demand: bool) -> u64 {
        self.next += 1;
        self.jobs.push(RunningJob {
            id: self.next,
            place,
            newest,
            bytes,
            on_demand,
        });
        self.next
    }

    fn demand_must_wait(&self, place: Place) -> bool {
        let busy = self.jobs.iter().any(|job| job.place == place);
        busy || self.jobs.iter().filter(|job| job.on_demand).count() >= MAX_ON_DEMAND
    }
}

impl Jobs {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Running> {
        self.state.lock()
    }

    /// Registers a merge of files up to `newest`.
    pub(crate) fn start(
        self: &Arc<Self>,
        running: &mut Running,
        place: Place,
        newest: String,
        bytes: u64,
    ) -> Job {
        Job {
            id: running.start(place, Some(newest), bytes, false),
            jobs: self.clone(),
        }
    }

    /// Waits until no merge of the family runs, and takes the family; `check` ends the wait.
    pub(crate) fn demand(
        self: &Arc<Self>,
        place: Place,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Job> {
        let mut running = self.state.lock();
        running.demanded.push(place);
        let mut checked = check();
        while checked.is_ok() && running.demand_must_wait(place) {
            self.changed.wait_for(&mut running, Duration::from_secs(1));
            checked = check();
        }
        if let Some(at) = running
            .demanded
            .iter()
            .position(|demanded| *demanded == place)
        {
            running.demanded.swap_remove(at);
        }
        checked?;
        Ok(Job {
            id: running.start(place, None, 0, true),
            jobs: self.clone(),
        })
    }

    /// Takes note of a failure; whether it is to be told of.
    pub(crate) fn failed(&self, place: Place, now: Instant) -> bool {
        let mut running = self.state.lock();
        let before = running.failures.get(&place);
        let pause = before.map_or(PAUSES.0, |failure| (failure.pause * 2).min(PAUSES.1));
        let told = before
            .map(|failure| failure.told)
            .filter(|told| now < *told + TELL);
        let failure = Failure {
            retry: now + pause,
            pause,
            told: told.unwrap_or(now),
        };
        running.failures.insert(place, failure);
        told.is_none()
    }

    /// The family's merge succeeded.
    pub(crate) fn succeeded(&self, place: Place) {
        self.state.lock().failures.remove(&place);
    }

    /// Wakes those who wait, to look whether the store stops.
    pub(crate) fn wake(&self) {
        let _state = self.state.lock();
        self.changed.notify_all();
    }
}

/// A merge that runs.
pub(crate) struct Job {
    id: u64,
    jobs: Arc<Jobs>,
}

impl Job {
    /// Takes, of the whole family, only files up to this one: younger ones may merge beside it.
    pub(crate) fn narrow(&self, newest: String) {
        let mut running = self.jobs.state.lock();
        let mine = running.jobs.iter_mut().find(|job| job.id == self.id);
        if let Some(job) = mine {
            job.newest = Some(newest);
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let mut running = self.jobs.state.lock();
        running.jobs.retain(|job| job.id != self.id);
        self.jobs.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    const PLACE: Place = (1, 2);
    const OTHER: Place = (1, 3);

    fn start(jobs: &Arc<Jobs>, place: Place, newest: &str, bytes: u64) -> Job {
        jobs.start(&mut jobs.lock(), place, newest.to_owned(), bytes)
    }

    #[test]
    fn two_merges_of_a_family_at_most_and_the_second_over_younger_files() {
        let (jobs, now) = (Arc::new(Jobs::default()), Instant::now());
        let free = |place| jobs.lock().free(place, now);
        assert_eq!(free(PLACE), Free::All);
        let first = start(&jobs, PLACE, "a", 1);
        assert_eq!(free(PLACE), Free::YoungerThan("a".to_owned()));
        assert_eq!(free(OTHER), Free::All);
        let second = start(&jobs, PLACE, "b", 1);
        assert_eq!(free(PLACE), Free::None);
        drop(first);
        assert_eq!(free(PLACE), Free::YoungerThan("b".to_owned()));
        drop(second);
        assert_eq!(free(PLACE), Free::All);
    }

    #[test]
    fn a_thread_stays_free_for_small_merges() {
        let jobs = Arc::new(Jobs::default());
        let takes = |bytes, threads| jobs.lock().takes(bytes, threads);
        assert!(takes(LARGE_BYTES, 1) && takes(LARGE_BYTES, 2));
        let _large = start(&jobs, PLACE, "a", LARGE_BYTES);
        assert!(!takes(LARGE_BYTES, 2));
        assert!(takes(LARGE_BYTES - 1, 2) && takes(LARGE_BYTES, 3));
    }

    #[test]
    fn one_on_demand_waits_for_its_family_and_keeps_others_out() {
        let jobs = Arc::new(Jobs::default());
        let running = start(&jobs, PLACE, "a", 1);
        std::thread::scope(|scope| {
            let demand = scope.spawn(|| jobs.demand(PLACE, &|| Ok(())).expect("taken"));
            while !jobs.lock().is_demanded(PLACE) {
                std::thread::yield_now();
            }
            assert_eq!(jobs.lock().free(OTHER, Instant::now()), Free::All);
            drop(running);
            let job = demand.join().expect("joins");
            assert_eq!(jobs.lock().free(PLACE, Instant::now()), Free::None);
            job.narrow("b".to_owned());
            let younger = Free::YoungerThan("b".to_owned());
            assert_eq!(jobs.lock().free(PLACE, Instant::now()), younger);
        });
    }

    #[test]
    fn a_wait_ends_when_the_store_stops() {
        let jobs = Arc::new(Jobs::default());
        let _running = start(&jobs, PLACE, "a", 1);
        let stop = || Err(Error::Unavailable("the server is ending".to_owned()));
        assert!(jobs.demand(PLACE, &stop).is_err());
        assert_eq!(jobs.lock().demanded, []);
    }

    #[test]
    fn failures_are_tried_again_ever_more_rarely_and_told_of_once_in_a_while() {
        let jobs = Arc::new(Jobs::default());
        let mut now = Instant::now();
        assert!(jobs.failed(PLACE, now), "the first is told of");
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(jobs.lock().free(PLACE, now), Free::None);
            assert_eq!(
                jobs.lock().next_retry(now),
                Some(now + Duration::from_secs(pause))
            );
            now += Duration::from_secs(pause);
            assert_eq!(jobs.lock().free(PLACE, now), Free::All);
            assert!(!jobs.failed(PLACE, now));
        }
        assert!(jobs.failed(PLACE, now + TELL));
        jobs.succeeded(PLACE);
        assert_eq!(jobs.lock().next_retry(now), None);
    }
}

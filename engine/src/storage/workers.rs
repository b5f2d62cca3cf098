//! The store's threads: the committer, the keeper of its spare segment, the flusher, the compactors. They decide nothing; they
//! call what decides, and wait.
//!
//! Flushes have a thread of their own, so that they never wait for a compaction; compactors run at a lower priority than all
//! else, so that reads do not wait for them either.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::compactor::Merge;
use super::counters;
use super::store::{Store, WorkState};
use crate::{Error, Result};

/// After a failure (a full disk) the same work is tried again after this time.
const RETRY: Duration = Duration::from_secs(1);
/// How often clean-up runs without being told to, and files are looked over for what has become old.
const IDLE: Duration = Duration::from_secs(10);
/// How often a failure that stays is told of.
const TELL: Duration = Duration::from_secs(60);
/// How much compactors give way, in steps of `nice`.
const NICE: i32 = 5;

/// Compactions at once: as many as there are cores, so that small ones are not stuck behind a large one, and not so many that
/// they crowd out the rest.
pub(crate) fn compaction_threads() -> usize {
    std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 4))
}

/// The threads of an open store.
#[derive(Default)]
pub(crate) struct Workers {
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Workers {
    pub(crate) fn start(store: &Arc<Store>) -> std::io::Result<Self> {
        let Some(log) = store.log.clone() else {
            return Ok(Self::default());
        };
        let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
            // Object stores are async: their calls need the runtime, from a thread that may block.
            let runtime = tokio::runtime::Handle::current();
            std::thread::Builder::new()
                .name(name.to_owned())
                .spawn(move || {
                    let _runtime = runtime.enter();
                    body();
                })
        };
        let flusher = store.clone();
        let keeper = log.clone();
        let mut threads = vec![
            spawn("log-keeper", Box::new(move || keeper.keep_spare()))?,
            spawn("committer", Box::new(move || log.run()))?,
            spawn(
                "flusher",
                Box::new(move || work(&flusher, |work| &mut work.flush, flush_once)),
            )?,
        ];
        for _ in 0..store.options.compaction_threads {
            let compactor = store.clone();
            let body = move || {
                give_way();
                work(&compactor, |work| &mut work.compact, compact_once);
            };
            threads.push(spawn("compactor", Box::new(body))?);
        }
        Ok(Self {
            threads: Mutex::new(threads),
        })
    }

    /// Waits for the threads to end, once the store was told to stop and the log to close.
    pub(crate) fn join(&self) {
        for thread in std::mem::take(&mut *self.threads.lock()) {
            if thread.join().is_err() {
                tracing::error!("a worker of the store panicked");
            }
        }
    }
}

/// Lowers the priority of this thread.
fn give_way() {
    // Linux applies it to the calling thread alone.
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "compactions keep the priority of the rest");
    }
}

/// What to do after a turn.
enum Next {
    /// There may be more.
    Again,
    /// Nothing more until told, or for this long.
    Wait(Duration),
    /// It failed; for this long it is not worth trying.
    Failed(Error),
}

/// Does `once` until it has nothing to do, then waits to be told again.
fn work(store: &Store, flag: fn(&mut WorkState) -> &mut bool, once: fn(&Store) -> Next) {
    let mut told: Option<Instant> = None;
    loop {
        let (wait, deaf) = match once(store) {
            Next::Again => (Duration::ZERO, false),
            Next::Wait(time) => (time, false),
            Next::Failed(error) => {
                if told.is_none_or(|told| told.elapsed() > TELL) {
                    tracing::error!(%error, "a worker of the store failed; it tries again");
                    told = Some(Instant::now());
                }
                (RETRY, true)
            }
        };
        let until = Instant::now() + wait;
        let mut state = store.work.state.lock();
        while !state.stop && Instant::now() < until && (deaf || !*flag(&mut state)) {
            store.work.changed.wait_until(&mut state, until);
        }
        *flag(&mut state) = false;
        if state.stop {
            return;
        }
    }
}

fn flush_once(store: &Store) -> Next {
    let flush = || match store.choose_flush()? {
        Some((table, tablet)) => store.flush(&table, &tablet),
        None => Ok(false),
    };
    match flush() {
        Ok(true) => Next::Again,
        Ok(false) => Next::Wait(IDLE),
        Err(error) => Next::Failed(error),
    }
}

fn compact_once(store: &Store) -> Next {
    let cleaned = store.remove_dropped().and(store.hold_in_memory());
    counters::debt(&store.debt());
    if let Some(merge) = store.next_merge(None) {
        // Another thread may find more to do.
        store.wake(|work| work.compact = true);
        conclude(store, &merge, store.merge(&merge).map(drop));
        return Next::Again;
    }
    if let Err(error) = cleaned {
        return Next::Failed(error);
    }
    let now = Instant::now();
    let retry = store.jobs.lock().next_retry(now);
    Next::Wait(retry.map_or(IDLE, |retry| (retry - now).min(IDLE)))
}

/// Takes note of how a merge ended. One that fails (a damaged file) does not keep others from their turn.
fn conclude(store: &Store, merge: &Merge, ended: Result<()>) {
    match ended {
        Ok(()) => {}
        // The store stops, or the table was dropped: nobody misses it.
        Err(_) if store.check_goes_on(merge.tablet()).is_err() => {}
        Err(error) => {
            counters::compaction_failed();
            if store.jobs.failed(merge.place(), Instant::now()) {
                tracing::error!(%error, "a compaction failed; it is tried again");
            }
        }
    }
}

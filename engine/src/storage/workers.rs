//! The store's threads: the committer, the keeper of its spare segment, the flusher, the compactor. They decide nothing; they call what decides, and wait.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::store::{Store, WorkState};
use crate::Result;

/// After a failure (a full disk) the same work is tried again after this time.
const RETRY: Duration = Duration::from_secs(1);
/// How often clean-up runs without being told to.
const IDLE: Duration = Duration::from_secs(10);

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
        let (flusher, compactor) = (store.clone(), store.clone());
        let keeper = log.clone();
        let threads = vec![
            spawn("log-keeper", Box::new(move || keeper.keep_spare()))?,
            spawn("committer", Box::new(move || log.run()))?,
            spawn(
                "flusher",
                Box::new(move || work(&flusher, |work| &mut work.flush, flush_once)),
            )?,
            spawn(
                "compactor",
                Box::new(move || work(&compactor, |work| &mut work.compact, compact_once)),
            )?,
        ];
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

/// Does `once` until it has nothing to do, then waits to be told again.
fn work(store: &Store, flag: fn(&mut WorkState) -> &mut bool, once: fn(&Store) -> Result<bool>) {
    loop {
        let (wait, deaf) = match once(store) {
            Ok(true) => (Duration::ZERO, false),
            Ok(false) => (IDLE, false),
            Err(error) => {
                tracing::error!(%error, "a worker of the store failed; it tries again");
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

fn flush_once(store: &Store) -> Result<bool> {
    match store.choose_flush()? {
        Some((table, tablet)) => store.flush(&table, &tablet),
        None => Ok(false),
    }
}

fn compact_once(store: &Store) -> Result<bool> {
    // One tablet that fails (a damaged file) does not keep the others from their turn.
    let mut failure = store.remove_dropped().err();
    let mut did = false;
    for (table, tablet) in store.tablets() {
        match store.compact(&table, &tablet) {
            Ok(compacted) => did |= compacted,
            Err(error) => failure = Some(error),
        }
    }
    failure.map_or(Ok(did), Err)
}

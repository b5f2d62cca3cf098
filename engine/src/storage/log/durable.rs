//! How far the log is durable, and those who wait for it.
//!
//! **Invariants**: the durable group only rises; one who waits for a group is woken when it is durable or when nothing will be
//! any more, and hardly ever before: groups with odd and even numbers have bells of their own, and seldom more than two groups
//! have anyone waiting.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Notify, watch};

use crate::{Error, Result};

/// What is durable.
pub(super) struct Durable {
    group: AtomicU64,
    bells: [Notify; 2],
    /// Set once a write or sync failed: nothing will become durable any more.
    failure: watch::Sender<Option<Error>>,
}

impl Durable {
    /// All groups up to this one.
    pub(super) fn new(group: u64) -> Self {
        Self {
            group: AtomicU64::new(group),
            bells: [Notify::new(), Notify::new()],
            failure: watch::Sender::new(None),
        }
    }

    /// The newest durable group.
    pub(super) fn group(&self) -> u64 {
        self.group.load(Ordering::SeqCst)
    }

    pub(super) fn reached(&self, group: u64) {
        self.group.store(group, Ordering::SeqCst);
        self.bell(group).notify_waiters();
    }

    pub(super) fn fail(&self, error: &Error) {
        self.failure.send_modify(|failure| {
            failure.get_or_insert_with(|| error.clone());
        });
        self.bells.iter().for_each(Notify::notify_waiters);
    }

    /// Waits until `group` is durable, or nothing will be any more.
    pub(super) async fn wait(&self, group: u64) -> Result<()> {
        loop {
            // Taken before looking, so that no bell is missed between.
            let bell = self.bell(group).notified();
            if self.group() >= group {
                return Ok(());
            }
            if self.failure.borrow().is_some() {
                return Err(self.refusal());
            }
            bell.await;
        }
    }

    /// Why nothing more is taken.
    pub(super) fn refusal(&self) -> Error {
        match &*self.failure.borrow() {
            Some(error) => Error::Unavailable(format!(
                "the commit log failed and the server is ending: {error}"
            )),
            None => Error::Unavailable("the server is ending".to_owned()),
        }
    }

    /// Tells of the failure when it comes.
    pub(super) fn failure(&self) -> watch::Receiver<Option<Error>> {
        self.failure.subscribe()
    }

    fn bell(&self, group: u64) -> &Notify {
        &self.bells[(group % 2) as usize]
    }
}

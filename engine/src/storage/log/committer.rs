//! The committer: the thread that writes groups, and what wakes it.
//!
//! Whoever wrote asks for the group once, after its last append; a group that nobody asks for waits for one that somebody does.
//! With many writers a group is worth more the more of them it holds, and those that the last group let go are about to come
//! back: the committer waits until as many have asked again, for at most half the time that a sync takes. One writer alone is
//! never waited for.
//!
//! **Invariant**: the wait ends at half the last sync's time after it, and is none where the last group had one asker.

use std::time::{Duration, Instant};

use parking_lot::MutexGuard;

use super::group::Open;
use super::writer::CommitLog;
use crate::Error;

impl CommitLog {
    /// Has the committer write `group`, now that its caller will append no more.
    pub(crate) fn ask(&self, group: u64) {
        let mut open = self.open.lock();
        if open.group.number != group {
            return;
        }
        open.group.asked += 1;
        if open.group.asked >= open.wake_at {
            self.asked.notify_one();
        }
    }

    /// Ends the log, and with it the server: what was written may not be durable.
    pub(crate) fn fail(&self, error: &Error) {
        self.durable.fail(error);
        self.open.lock().failed = true;
        self.wake_all();
    }

    /// Commits groups until [`CommitLog::close`]; the body of the committer's thread.
    pub(crate) fn run(&self) {
        let mut pace = Pace::new();
        while self.wait_to_commit(&pace) {
            match self.commit_group() {
                Ok(Some(next)) => pace = next,
                // Another thread was faster.
                Ok(None) => {}
                Err(_) => return,
            }
        }
    }

    /// Returns false when there is nothing more to do.
    fn wait_to_commit(&self, pace: &Pace) -> bool {
        let mut open = self.open.lock();
        loop {
            if open.failed {
                return false;
            }
            if open.closed {
                return !open.group.is_empty();
            }
            if open.group.is_full() {
                return true;
            }
            self.wait_for_askers(&mut open, pace);
            if pace.next(open.group.asked, Instant::now()) == Next::Commit {
                return true;
            }
        }
    }

    fn wait_for_askers(&self, open: &mut MutexGuard<'_, Open>, pace: &Pace) {
        match pace.next(open.group.asked, Instant::now()) {
            Next::Commit => {}
            Next::Wait => {
                open.wake_at = 1;
                self.asked.wait(open);
            }
            Next::WaitFor(asked, until) => {
                open.wake_at = asked;
                self.asked.wait_until(open, until);
            }
        }
    }

    /// Refuses appends from now on; the committer ends once the open group is durable.
    pub(crate) fn close(&self) {
        self.open.lock().closed = true;
        self.wake_all();
    }

    fn wake_all(&self) {
        self.asked.notify_all();
        self.taken.notify_all();
        self.looking.notify_all();
    }
}

/// What the committer knows of the last commit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    asked: usize,
    until: Instant,
}

impl Pace {
    /// No commit yet.
    pub(super) fn new() -> Self {
        Self {
            asked: 0,
            until: Instant::now(),
        }
    }

    /// A commit for so many has just ended, whose sync took so long.
    pub(super) fn after(asked: usize, sync: Duration) -> Self {
        Self {
            asked,
            until: Instant::now() + sync / 2,
        }
    }

    /// What to do about a group that so many have asked for.
    pub(super) fn next(&self, asked: usize, now: Instant) -> Next {
        match asked {
            0 => Next::Wait,
            _ if asked >= self.asked || now >= self.until => Next::Commit,
            _ => Next::WaitFor(self.asked, self.until),
        }
    }
}

/// The committer's next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Commit,
    /// Until somebody asks.
    Wait,
    /// Until so many have asked, or it is this late.
    WaitFor(usize, Instant),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_writer_is_not_waited_for_and_many_are_for_half_a_sync() {
        let sync = Duration::from_millis(4);
        let check = |before: usize, asked: usize, late: Duration| {
            let pace = Pace::after(before, sync);
            let end = pace.until - sync / 2;
            pace.next(asked, end + late)
        };
        let (early, late) = (Duration::from_millis(1), sync / 2);
        assert_eq!(check(1, 1, Duration::ZERO), Next::Commit);
        assert_eq!(check(64, 0, late), Next::Wait);
        assert!(matches!(check(64, 1, early), Next::WaitFor(64, _)));
        assert_eq!(check(64, 64, early), Next::Commit);
        assert_eq!(check(64, 1, late), Next::Commit);
        assert_eq!(Pace::new().next(1, Instant::now()), Next::Commit);
    }
}

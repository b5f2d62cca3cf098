//! Keeps the inode table small: asks the kernel to forget names that nobody uses, since it would not by itself.
//!
//! Runs on a thread of its own: the kernel may hold a directory's lock while it waits for an answer of ours.

use std::sync::Weak;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use fuser::{INodeNo, Notifier};
use tracing::debug;

use crate::inodes::{Inodes, MAX_INODES};

const BATCH: usize = 1024;
/// Before looking again when everything is in use.
const PAUSE: Duration = Duration::from_millis(500);

/// Works until the inodes are gone, which ends `crowded`.
pub(crate) fn run(inodes: &Weak<Inodes>, crowded: &Receiver<()>, notifier: &Notifier) {
    while crowded.recv().is_ok() {
        while let Some(inodes) = inodes.upgrade().filter(|inodes| inodes.len() > MAX_INODES) {
            let paths = inodes.forgettable(BATCH);
            drop(inodes);
            if paths.is_empty() {
                std::thread::sleep(PAUSE);
            }
            for (parent, name) in paths {
                if let Err(error) = notifier.inval_entry(INodeNo(parent), &name) {
                    debug!(%error, "the kernel was not told to forget a name");
                }
            }
        }
    }
}

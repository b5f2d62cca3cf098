//! Open files and directories by handle.
//!
//! **Invariant**: at most [`MAX_OPEN`] are open at a time.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::errno::Failure;

const MAX_OPEN: usize = 65_536;

/// What is open, by handle.
pub(crate) struct Handles<T> {
    open: Mutex<(u64, HashMap<u64, Arc<T>>)>,
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Self {
            open: Mutex::new((0, HashMap::new())),
        }
    }
}

impl<T> Handles<T> {
    pub(crate) fn insert(&self, value: T) -> Result<u64, Failure> {
        let (last, open) = &mut *self.open.lock();
        if open.len() >= MAX_OPEN {
            return Err(Failure::TooManyOpen);
        }
        *last += 1;
        open.insert(*last, Arc::new(value));
        Ok(*last)
    }

    pub(crate) fn get(&self, handle: u64) -> Result<Arc<T>, Failure> {
        self.open
            .lock()
            .1
            .get(&handle)
            .cloned()
            .ok_or(Failure::Stale)
    }

    /// Closes it; what still works with it ends by itself.
    pub(crate) fn remove(&self, handle: u64) {
        self.open.lock().1.remove(&handle);
    }
}

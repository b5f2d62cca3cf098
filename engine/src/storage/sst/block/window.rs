//! The keys of one run between restarts, decoded: what a walk downwards searches.
//!
//! It is searched twice a row, for keys that lie next to what was found before, so a search begins there.
//!
//! **Invariants**: a decoded run has at least one entry, and no more than a run of data has.

use super::DATA_RESTARTS;
use super::view::{View, head};
use crate::storage::entry::Kind;

/// A decoded run.
#[derive(Default)]
pub(super) struct Window {
    /// Its restart; `None`: no run is decoded.
    restart: Option<usize>,
    keys: Vec<u8>,
    entries: Vec<WindowEntry>,
    /// How many keys were below what was looked for last.
    found: usize,
}

/// An entry of the run.
#[derive(Clone, Copy)]
pub(super) struct WindowEntry {
    /// Where its key ends in the window's keys.
    key_end: usize,
    /// Its value's offset in the block, and the offset after it.
    pub(super) value_at: usize,
    pub(super) next: usize,
    pub(super) kind: Kind,
}

/// Steps down from the place found before that cost less than a search.
const STEPS: usize = 3;

impl Window {
    /// Forgets the run.
    pub(super) fn clear(&mut self) {
        self.restart = None;
    }

    /// Decodes the run that starts at a restart. `None`: damaged.
    pub(super) fn decode(&mut self, view: &View<'_>, restart: usize) -> Option<()> {
        self.clear();
        self.keys.clear();
        self.entries.clear();
        let stop = match restart + 1 < view.restarts() {
            true => view.restart_offset(restart + 1)?,
            false => view.entries().len(),
        };
        let entries = view.entries();
        let mut at = view.restart_offset(restart)?;
        let mut start = 0;
        while at < stop {
            // Else each entry could share all of a long key: the window would grow with the square of the block.
            (self.entries.len() < DATA_RESTARTS).then_some(())?;
            let head = head(entries, at)?;
            let before = self.keys.len();
            if head.shared > before - start {
                return None;
            }
            self.keys.extend_from_within(start..start + head.shared);
            self.keys
                .extend_from_slice(&entries[head.key_at..head.value_at]);
            start = before;
            self.entries.push(WindowEntry {
                key_end: self.keys.len(),
                value_at: head.value_at,
                next: head.next,
                kind: head.kind,
            });
            at = head.next;
        }
        self.found = self.entries.len();
        self.restart = (!self.entries.is_empty()).then_some(restart);
        self.restart.map(drop)
    }

    #[inline]
    pub(super) fn key(&self, i: usize) -> &[u8] {
        let start = if i == 0 {
            0
        } else {
            self.entries[i - 1].key_end
        };
        &self.keys[start..self.entries[i].key_end]
    }

    /// The restart of the decoded run.
    pub(super) fn restart(&self) -> Option<usize> {
        self.restart
    }

    /// How many entries it has.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn entry(&self, i: usize) -> WindowEntry {
        self.entries[i]
    }

    /// How many of its keys are below `key`.
    pub(super) fn below(&mut self, key: &[u8]) -> usize {
        let count = self.entries.len();
        let (mut low, mut high) = (0, self.found.min(count));
        if high < count && self.key(high) < key {
            (low, high) = (high + 1, count);
        } else {
            for _ in 0..STEPS {
                if high == 0 || self.key(high - 1) < key {
                    low = high;
                    break;
                }
                high -= 1;
            }
        }
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.key(middle) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.found = low;
        low
    }
}

//! The group that appends go to.

use std::collections::HashMap;

use super::frame::GROUP_HEADER;
use super::record::Record;
use super::space::Space;

/// An open group that has reached this size takes no more; writers wait for the commit.
const GROUP_BYTES: usize = 8 << 20;

/// Records that will be durable together.
pub(super) struct OpenGroup {
    pub(super) number: u64,
    pub(super) frame: Vec<u8>,
    pub(super) last_sequence: u64,
    pub(super) tablets: HashMap<u64, u64>,
    /// How many wait for it.
    pub(super) asked: usize,
}

impl OpenGroup {
    /// An empty group; `buffer` is one no longer used.
    pub(super) fn new(number: u64, last_sequence: u64, buffer: Vec<u8>) -> Self {
        let mut frame = buffer;
        frame.clear();
        frame.resize(GROUP_HEADER, 0);
        Self {
            number,
            frame,
            last_sequence,
            tablets: HashMap::new(),
            asked: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frame.len() == GROUP_HEADER
    }

    pub(super) fn is_full(&self) -> bool {
        self.frame.len() >= GROUP_BYTES
    }

    /// Bytes of records.
    pub(super) fn payload(&self) -> usize {
        self.frame.len() - GROUP_HEADER
    }

    pub(super) fn push(&mut self, record: &Record) {
        self.last_sequence += record.entries.len() as u64;
        record.encode(&mut self.frame);
        self.tablets.insert(record.tablet, self.last_sequence);
    }
}

/// What the log's lock guards.
pub(super) struct Open {
    pub(super) group: OpenGroup,
    pub(super) space: Space,
    pub(super) failed: bool,
    pub(super) closed: bool,
    /// How many must have asked before the committer is woken.
    pub(super) wake_at: usize,
}

//! Which segments are on disk, and which tablets still need them.
//!
//! **Invariants**: a segment goes only when every tablet with records in it has flushed them, the oldest first, each durably
//! before the next, so that after a crash the segments are a contiguous run; the current segment and the spare stay.

use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;
use uuid::Uuid;

use super::segment::remove_segment;
use crate::Result;
use crate::storage::disk::Disk;
use crate::storage::stats::HeldLog;

/// The segments.
pub(super) struct Pins {
    held: Mutex<Held>,
    /// One removes at a time.
    removing: Mutex<()>,
}

struct Held {
    current: u64,
    segments: BTreeMap<u64, Pinned>,
}

#[derive(Default)]
struct Pinned {
    bytes: u64,
    /// The highest sequence number each tablet has there and has not flushed.
    tablets: HashMap<u64, u64>,
}

impl Pins {
    pub(super) fn new(current: u64, bytes: u64) -> Self {
        let tablets = HashMap::new();
        let segments = BTreeMap::from([(current, Pinned { bytes, tablets })]);
        Self {
            held: Mutex::new(Held { current, segments }),
            removing: Mutex::new(()),
        }
    }

    /// A segment takes this much of the disk.
    pub(super) fn takes(&self, segment: u64, bytes: u64) {
        self.held.lock().segments.entry(segment).or_default().bytes = bytes;
    }

    /// Tablets have records up to these sequence numbers in a segment, which is the current one.
    pub(super) fn pin(&self, segment: u64, tablets: HashMap<u64, u64>) {
        let mut held = self.held.lock();
        held.current = segment;
        let pinned = held.segments.entry(segment).or_default();
        pinned.tablets.extend(tablets);
    }

    /// `tablet` needs nothing up to `sequence` any more. Removes segments that nobody needs; returns whether any went.
    pub(super) fn flushed(
        &self,
        disk: &dyn Disk,
        log: Uuid,
        tablet: u64,
        sequence: u64,
    ) -> Result<bool> {
        for pinned in self.held.lock().segments.values_mut() {
            pinned
                .tablets
                .retain(|id, last| *id != tablet || *last > sequence);
        }
        let _one = self.removing.lock();
        let mut any = false;
        while let Some(number) = self.unneeded() {
            remove_segment(disk, log, number)?;
            self.held.lock().segments.remove(&number);
            any = true;
        }
        Ok(any)
    }

    /// The oldest segment, if nobody needs it.
    fn unneeded(&self) -> Option<u64> {
        let held = self.held.lock();
        let (number, oldest) = held.segments.first_key_value()?;
        (*number < held.current && oldest.tablets.is_empty()).then_some(*number)
    }

    /// Bytes of all segments, the spare too.
    pub(super) fn bytes(&self) -> u64 {
        let held = self.held.lock();
        held.segments.values().map(|pinned| pinned.bytes).sum()
    }

    /// What is held up to the current segment, of which `used` bytes are written.
    pub(super) fn held(&self, current: u64, used: u64) -> HeldLog {
        let held = self.held.lock();
        let (mut bytes, mut found) = (0, HeldLog::default());
        for (number, pinned) in held.segments.range(..=current).rev() {
            bytes += pinned.bytes;
            found.written_bytes += match *number == current {
                true => used,
                false => pinned.bytes,
            };
            // An older segment with records of the tablet comes later, and counts.
            let tablets = pinned.tablets.keys().map(|tablet| (*tablet, bytes));
            found.by_tablet.extend(tablets);
        }
        found
    }

    /// The tablets that keep the oldest segment that could go; the current one stays whoever flushes.
    pub(super) fn oldest_holders(&self) -> Vec<u64> {
        let held = self.held.lock();
        let mut before = held.segments.range(..held.current);
        before
            .find(|(_, pinned)| !pinned.tablets.is_empty())
            .map(|(_, pinned)| pinned.tablets.keys().copied().collect())
            .unwrap_or_default()
    }
}

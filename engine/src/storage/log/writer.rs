//! Writing the log: appends gather in a group, one write and one fdatasync make the group durable.
//!
//! ```text
//! append (under the log's lock: sequence number, record into the open group, memtable)  →  commit (write, sync)  →  durable
//! ```
//!
//! **Invariants**: memtables are filled in log order, before the sync, since `append` runs its callback under the lock; a
//! group is durable before the next is written; after a failed write or sync nothing is written any more and no later append succeeds; a segment goes only when every tablet with records in it has flushed them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;
use uuid::Uuid;

use super::frame::{self, GROUP_HEADER, Group, SEGMENT_HEADER, SegmentHeader};
use super::record::Record;
use super::{folder, segment_path};
use crate::storage::disk::{Disk, WriteFile};
use crate::storage::stats::{HeldLog, Latency};
use crate::{Error, Result};

/// Space reserved for a segment.
pub(crate) const SEGMENT_BYTES: u64 = 32 << 20;
/// An open group that has reached this size takes no more; writers wait for the commit.
const GROUP_BYTES: usize = 8 << 20;

/// Where an append went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Appended {
    /// Durable when this group is.
    pub(crate) group: u64,
}

/// How far the log is durable.
#[derive(Debug, Clone)]
pub(crate) struct Durable {
    /// The newest durable group.
    pub(crate) group: u64,
    /// Set once a write or sync failed: nothing will become durable any more.
    pub(crate) failure: Option<Error>,
}

/// The commit log.
pub(crate) struct CommitLog {
    disk: Arc<dyn Disk>,
    log: Uuid,
    segment_bytes: u64,
    open: Mutex<OpenGroup>,
    /// Wakes the committer.
    appended: Condvar,
    /// Wakes appenders that found the group full.
    taken: Condvar,
    segments: Mutex<Segments>,
    durable: watch::Sender<Durable>,
    durable_sequence: AtomicU64,
    syncs: AtomicU64,
    /// How long syncs took.
    pub(crate) sync_times: Latency,
}

/// The group that appends go to.
struct OpenGroup {
    number: u64,
    frame: Vec<u8>,
    last_sequence: u64,
    tablets: HashMap<u64, u64>,
    failed: bool,
    closed: bool,
}

impl OpenGroup {
    fn new(number: u64, last_sequence: u64, spare: Vec<u8>) -> Self {
        let mut frame = spare;
        frame.clear();
        frame.resize(GROUP_HEADER, 0);
        Self {
            number,
            frame,
            last_sequence,
            tablets: HashMap::new(),
            failed: false,
            closed: false,
        }
    }

    fn is_empty(&self) -> bool {
        self.frame.len() == GROUP_HEADER
    }
}

/// The segments on disk, oldest first; the last is being written.
struct Segments {
    current: Current,
    /// By number: bytes, and for each tablet the highest sequence number it has there and has not flushed.
    held: BTreeMap<u64, Held>,
}

struct Current {
    number: u64,
    header: SegmentHeader,
    file: Box<dyn WriteFile>,
    used: u64,
    length: u64,
}

#[derive(Default)]
struct Held {
    bytes: u64,
    tablets: HashMap<u64, u64>,
}

impl CommitLog {
    /// Starts a new segment `number` whose first group is `first_group`; sequence numbers go on above `last_sequence`.
    pub(crate) fn start(
        disk: Arc<dyn Disk>,
        log: Uuid,
        number: u64,
        first_group: u64,
        last_sequence: u64,
        segment_bytes: u64,
    ) -> Result<Self> {
        let current = Current::create(disk.as_ref(), log, number, first_group, segment_bytes)?;
        let held = BTreeMap::from([(
            number,
            Held {
                bytes: current.length,
                tablets: HashMap::new(),
            },
        )]);
        Ok(Self {
            disk,
            log,
            segment_bytes,
            open: Mutex::new(OpenGroup::new(first_group, last_sequence, Vec::new())),
            appended: Condvar::new(),
            taken: Condvar::new(),
            segments: Mutex::new(Segments { current, held }),
            durable: watch::Sender::new(Durable {
                group: first_group - 1,
                failure: None,
            }),
            durable_sequence: AtomicU64::new(last_sequence),
            syncs: AtomicU64::new(0),
            sync_times: Latency::new(),
        })
    }

    /// Logs one row mutation: `make` gets its first sequence number, puts the record into memtables and returns it, or
    /// refuses, and nothing is logged. The record takes one sequence number per entry.
    pub(crate) fn append(&self, make: impl FnOnce(u64) -> Result<Record>) -> Result<Appended> {
        let mut open = self.open.lock();
        while open.frame.len() >= GROUP_BYTES && !open.failed && !open.closed {
            self.taken.wait(&mut open);
        }
        if open.failed || open.closed {
            return Err(self.refusal());
        }
        let record = make(open.last_sequence + 1)?;
        open.last_sequence += record.entries.len() as u64;
        let last = open.last_sequence;
        record.encode(&mut open.frame);
        open.tablets.insert(record.tablet, last);
        self.appended.notify_one();
        Ok(Appended { group: open.number })
    }

    /// Runs `act` while no append can happen; it gets the newest written sequence number. Returns also the group that must
    /// be durable for all that was written to be.
    pub(crate) fn between_appends<T>(&self, act: impl FnOnce(u64) -> T) -> (T, Appended) {
        let open = self.open.lock();
        let result = act(open.last_sequence);
        let group = if open.is_empty() {
            open.number - 1
        } else {
            open.number
        };
        (result, Appended { group })
    }

    /// Writes and syncs the open group. Returns false if it was empty.
    pub(crate) fn commit(&self) -> Result<bool> {
        let mut segments = self.segments.lock();
        let mut group = {
            let mut open = self.open.lock();
            if open.failed {
                return Err(self.refusal());
            }
            if open.is_empty() {
                return Ok(false);
            }
            let spare = Vec::with_capacity(open.frame.len().min(1 << 20));
            let next = OpenGroup::new(open.number + 1, open.last_sequence, spare);
            let closed = open.closed;
            let group = std::mem::replace(&mut *open, next);
            open.closed = closed;
            group
        };
        self.taken.notify_all();
        let synced = self.durable.borrow().group;
        match self.write(&mut segments, &mut group, synced) {
            Ok(()) => {
                self.durable_sequence
                    .store(group.last_sequence, Ordering::Release);
                self.durable
                    .send_modify(|durable| durable.group = group.number);
                Ok(true)
            }
            Err(error) => {
                self.fail(&error);
                Err(error)
            }
        }
    }

    fn write(&self, segments: &mut Segments, group: &mut OpenGroup, synced: u64) -> Result<()> {
        let needed = Group::framed_bytes(group.frame.len() - GROUP_HEADER) as u64;
        if segments.current.used + needed > segments.current.length {
            let number = segments.current.number + 1;
            let length = self.segment_bytes.max(SEGMENT_HEADER as u64 + needed);
            segments.current =
                Current::create(self.disk.as_ref(), self.log, number, group.number, length)?;
            segments.held.insert(
                number,
                Held {
                    bytes: length,
                    tablets: HashMap::new(),
                },
            );
        }
        let Segments { current, held } = segments;
        frame::seal(&mut group.frame, &current.header, group.number, synced);
        let path = segment_path(self.log, current.number);
        let fail = |doing: &str, error| Error::Io(format!("{doing} log segment {path}: {error}"));
        current
            .file
            .write_at(current.used, &group.frame)
            .map_err(|error| fail("write", error))?;
        let start = Instant::now();
        current.file.sync().map_err(|error| fail("sync", error))?;
        let took = start.elapsed();
        metrics::histogram!("tablemount_log_sync_seconds").record(took);
        self.sync_times.note(took);
        self.syncs.fetch_add(1, Ordering::Relaxed);
        current.used += group.frame.len() as u64;
        let pins = &mut held.entry(current.number).or_default().tablets;
        pins.extend(group.tablets.drain());
        Ok(())
    }

    /// Ends the log, and with it the server: what was written may not be durable.
    pub(crate) fn fail(&self, error: &Error) {
        self.open.lock().failed = true;
        self.durable
            .send_modify(|durable| durable.failure = Some(error.clone()));
        self.taken.notify_all();
        self.appended.notify_all();
    }

    fn refusal(&self) -> Error {
        match &self.durable.borrow().failure {
            Some(error) => Error::Unavailable(format!(
                "the commit log failed and the server is ending: {error}"
            )),
            None => Error::Unavailable("the server is ending".to_owned()),
        }
    }

    /// Commits groups until [`CommitLog::close`]; the body of the committer's thread.
    pub(crate) fn run(&self) {
        loop {
            {
                let mut open = self.open.lock();
                while open.is_empty() && !open.failed {
                    if open.closed {
                        return;
                    }
                    self.appended.wait(&mut open);
                }
            }
            if self.commit().is_err() {
                return;
            }
        }
    }

    /// Refuses appends from now on; the committer ends once the open group is durable.
    pub(crate) fn close(&self) {
        self.open.lock().closed = true;
        self.appended.notify_all();
        self.taken.notify_all();
    }

    /// Waits until `group` is durable.
    pub(crate) async fn durable(&self, group: u64) -> Result<()> {
        let mut durable = self.durable.subscribe();
        let reached = durable
            .wait_for(|durable| durable.group >= group || durable.failure.is_some())
            .await;
        match reached {
            Ok(durable) if durable.group >= group => Ok(()),
            _ => Err(self.refusal()),
        }
    }

    /// Makes `group` durable, committing on this thread if need be.
    pub(crate) fn make_durable(&self, group: u64) -> Result<()> {
        while !self.is_durable(group) {
            self.commit()?;
        }
        Ok(())
    }

    /// Whether `group` is durable now.
    pub(crate) fn is_durable(&self, group: u64) -> bool {
        self.durable.borrow().group >= group
    }

    /// Changes of durability, and the failure that ends the server.
    pub(crate) fn watch(&self) -> watch::Receiver<Durable> {
        self.durable.subscribe()
    }

    /// What plain reads see up to.
    pub(crate) fn durable_sequence(&self) -> u64 {
        self.durable_sequence.load(Ordering::Acquire)
    }

    /// Fsyncs since the start.
    pub(crate) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// The newest group that was appended to or is durable.
    pub(crate) fn newest_group(&self) -> u64 {
        self.between_appends(|_| ()).1.group
    }

    /// Tells that `tablet` has flushed all up to `sequence` (`u64::MAX`: it is gone), and removes segments nobody needs.
    pub(crate) fn flushed(&self, tablet: u64, sequence: u64) -> Result<()> {
        let mut segments = self.segments.lock();
        let current = segments.current.number;
        for held in segments.held.values_mut() {
            held.tablets
                .retain(|id, last| *id != tablet || *last > sequence);
        }
        while let Some(entry) = segments.held.first_entry() {
            if *entry.key() == current || !entry.get().tablets.is_empty() {
                break;
            }
            remove_segment(self.disk.as_ref(), self.log, *entry.key())?;
            entry.remove();
        }
        Ok(())
    }

    /// Bytes of all segments.
    pub(crate) fn bytes(&self) -> u64 {
        self.segments
            .lock()
            .held
            .values()
            .map(|held| held.bytes)
            .sum()
    }

    /// What a start would read, and what each tablet holds back.
    pub(crate) fn held(&self) -> HeldLog {
        let segments = self.segments.lock();
        let (mut bytes, mut by_tablet) = (0, HashMap::new());
        for held in segments.held.values().rev() {
            bytes += held.bytes;
            // An older segment with records of the tablet comes later, and counts.
            by_tablet.extend(held.tablets.keys().map(|tablet| (*tablet, bytes)));
        }
        let Current { used, length, .. } = &segments.current;
        HeldLog {
            written_bytes: bytes - (length - used),
            by_tablet,
        }
    }

    /// The tablets whose records hold the oldest segment.
    pub(crate) fn oldest_holders(&self) -> Vec<u64> {
        let segments = self.segments.lock();
        let oldest = segments.held.values().find(|held| !held.tablets.is_empty());
        oldest
            .map(|held| held.tablets.keys().copied().collect())
            .unwrap_or_default()
    }
}

impl Current {
    /// A new segment. Its name is durable when this returns, its header with the first group: both start in one sector.
    fn create(
        disk: &dyn Disk,
        log: Uuid,
        number: u64,
        first_group: u64,
        length: u64,
    ) -> Result<Self> {
        let path = segment_path(log, number);
        let fail = |doing: &str, error| Error::Io(format!("{doing} log segment {path}: {error}"));
        let header = SegmentHeader { log, first_group };
        let mut file = disk
            .create(&path, length)
            .map_err(|error| fail("create", error))?;
        file.write_at(0, &header.encode())
            .map_err(|error| fail("write", error))?;
        disk.sync_folder(&folder(log))
            .map_err(|error| fail("sync the folder of", error))?;
        Ok(Self {
            number,
            header,
            file,
            used: SEGMENT_HEADER as u64,
            length,
        })
    }
}

/// Creates an empty segment, durably.
pub(crate) fn create_segment(
    disk: &dyn Disk,
    log: Uuid,
    number: u64,
    first_group: u64,
    length: u64,
) -> Result<()> {
    Current::create(disk, log, number, first_group, length).map(drop)
}

/// Removes a segment, the oldest: durably, before the next goes, so that after a crash the segments are a contiguous run.
pub(crate) fn remove_segment(disk: &dyn Disk, log: Uuid, number: u64) -> Result<()> {
    let path = segment_path(log, number);
    let fail = |error| Error::Io(format!("remove log segment {path}: {error}"));
    disk.remove(&path).map_err(fail)?;
    disk.sync_folder(&folder(log)).map_err(fail)
}

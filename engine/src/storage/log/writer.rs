//! Writing the log: appends gather in a group, one write and one fdatasync make the group durable.
//!
//! ```text
//! append (under the log's lock: sequence number, record into the open group, memtable)  →  commit (write, sync)  →  durable
//! ```
//!
//! **Invariants**: memtables are filled in log order, before the sync, since `append` runs its callback under the lock; a
//! group is durable before the next is written; after a failed write or sync nothing is written any more and no later append
//! succeeds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;
use uuid::Uuid;

use super::committer::Pace;
use super::durable::Durable;
use super::frame::{self, SEGMENT_HEADER, SegmentHeader};
use super::group::{Open, OpenGroup};
use super::pins::Pins;
use super::record::Record;
use super::segment::Segment;
use super::segment_path;
use super::space::Space;
use crate::storage::disk::Disk;
use crate::storage::stats::{HeldLog, Latency};
use crate::{Error, Result};

/// A buffer of this size or less is used again.
const KEPT_BUFFER: usize = 1 << 20;

/// Where an append went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Appended {
    /// Durable when this group is.
    pub(crate) group: u64,
}

/// Where a log goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    pub(crate) log: Uuid,
    /// The segment's number, and its length if it is there, untouched.
    pub(crate) segment: u64,
    pub(crate) present: Option<u64>,
    pub(crate) first_group: u64,
    /// Sequence numbers go on above.
    pub(crate) last_sequence: u64,
    /// Space taken for a segment.
    pub(crate) segment_bytes: u64,
}

/// The commit log.
pub(crate) struct CommitLog {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) log: Uuid,
    pub(super) segment_bytes: u64,
    pub(super) open: Mutex<Open>,
    /// Wakes the committer.
    pub(super) asked: Condvar,
    /// Wakes appenders that found the group full.
    pub(super) taken: Condvar,
    /// Wakes the thread that keeps a spare segment.
    pub(super) looking: Condvar,
    /// One makes room at a time.
    pub(super) preparing: Mutex<()>,
    current: Mutex<Current>,
    pub(super) pins: Pins,
    pub(super) durable: Durable,
    durable_sequence: AtomicU64,
    syncs: AtomicU64,
    /// How long syncs took.
    pub(crate) sync_times: Latency,
}

/// The segment that is being written.
struct Current {
    segment: Segment,
    header: SegmentHeader,
    used: u64,
    /// Of the group written last.
    buffer: Vec<u8>,
}

impl CommitLog {
    /// Starts a segment, a new one or one that is there, untouched.
    pub(crate) fn start(disk: Arc<dyn Disk>, start: Start) -> Result<Self> {
        let header = SegmentHeader {
            log: start.log,
            first_group: start.first_group,
        };
        let segment = match start.present {
            Some(length) => Segment::reopen(disk.as_ref(), header, start.segment, length)?,
            None => Segment::create(disk.as_ref(), header, start.segment, start.segment_bytes)?,
        };
        let open = Open {
            group: OpenGroup::new(start.first_group, start.last_sequence, Vec::new()),
            space: Space::new(&segment),
            failed: false,
            closed: false,
            wake_at: 1,
        };
        Ok(Self {
            disk,
            log: start.log,
            segment_bytes: start.segment_bytes,
            open: Mutex::new(open),
            asked: Condvar::new(),
            taken: Condvar::new(),
            looking: Condvar::new(),
            preparing: Mutex::new(()),
            pins: Pins::new(segment.number, segment.length),
            current: Mutex::new(Current {
                segment,
                header,
                used: SEGMENT_HEADER as u64,
                buffer: Vec::new(),
            }),
            durable: Durable::new(start.first_group - 1),
            durable_sequence: AtomicU64::new(start.last_sequence),
            syncs: AtomicU64::new(0),
            sync_times: Latency::new(),
        })
    }

    /// Logs one row mutation. The record gets its first sequence number, one for each entry; `apply` puts it into memtables,
    /// or refuses, and nothing is logged. Waits where [`CommitLog::try_append`] does not; refuses where the disk is full.
    pub(crate) fn append(
        &self,
        record: &mut Record,
        apply: &mut dyn FnMut(&Record) -> Result<()>,
    ) -> Result<Appended> {
        loop {
            let mut open = self.open.lock();
            if let Some(appended) = self.append_at_once(&mut open, record, apply)? {
                return Ok(appended);
            }
            if open.group.is_full() {
                self.asked.notify_one();
                self.taken.wait(&mut open);
            } else {
                let payload = open.group.payload() + record.bytes();
                drop(open);
                self.make_room(payload)?;
            }
        }
    }

    /// Like [`CommitLog::append`], but `None` where that waits for a commit or the disk.
    pub(crate) fn try_append(
        &self,
        record: &mut Record,
        apply: &mut dyn FnMut(&Record) -> Result<()>,
    ) -> Result<Option<Appended>> {
        self.append_at_once(&mut self.open.lock(), record, apply)
    }

    fn append_at_once(
        &self,
        open: &mut Open,
        record: &mut Record,
        apply: &mut dyn FnMut(&Record) -> Result<()>,
    ) -> Result<Option<Appended>> {
        if open.failed || open.closed {
            return Err(self.durable.refusal());
        }
        let payload = open.group.payload() + record.bytes();
        if open.group.is_full() || !open.space.place(payload) {
            return Ok(None);
        }
        record.first_sequence = open.group.last_sequence + 1;
        apply(record)?;
        open.group.push(record);
        Ok(Some(Appended {
            group: open.group.number,
        }))
    }

    /// Runs `act` while no append can happen; it gets the newest written sequence number. Returns also the group that must
    /// be durable for all that was written to be.
    pub(crate) fn between_appends<T>(&self, act: impl FnOnce(u64) -> T) -> (T, Appended) {
        let open = self.open.lock();
        let result = act(open.group.last_sequence);
        let number = open.group.number;
        let group = if open.group.is_empty() {
            number - 1
        } else {
            number
        };
        (result, Appended { group })
    }

    /// Writes and syncs the open group. Returns false if it was empty.
    pub(crate) fn commit(&self) -> Result<bool> {
        Ok(self.commit_group()?.is_some())
    }

    /// Also tells what the committer goes by.
    pub(super) fn commit_group(&self) -> Result<Option<Pace>> {
        let mut current = self.current.lock();
        let Some((mut group, segment)) = self.take_group(&mut current.buffer)? else {
            return Ok(None);
        };
        let took = self.write(&mut current, segment, &mut group);
        let took = took.inspect_err(|error| self.fail(error))?;
        self.pins.pin(current.segment.number, group.tablets);
        self.durable_sequence
            .store(group.last_sequence, Ordering::Release);
        self.durable.reached(group.number);
        if group.frame.capacity() <= KEPT_BUFFER {
            current.buffer = group.frame;
        }
        Ok(Some(Pace::after(group.asked, took)))
    }

    /// The open group, and the segment it starts, if it does.
    fn take_group(&self, buffer: &mut Vec<u8>) -> Result<Option<(OpenGroup, Option<Segment>)>> {
        let mut open = self.open.lock();
        if open.failed {
            return Err(self.durable.refusal());
        }
        if open.group.is_empty() {
            return Ok(None);
        }
        let payload = open.group.payload();
        let segment = open.space.take(payload);
        let (number, last) = (open.group.number, open.group.last_sequence);
        let next = OpenGroup::new(number + 1, last, std::mem::take(buffer));
        let group = std::mem::replace(&mut open.group, next);
        drop(open);
        if segment.is_some() {
            self.looking.notify_one();
        }
        if group.is_full() {
            self.taken.notify_all();
        }
        Ok(Some((group, segment)))
    }

    /// Makes a group durable; returns how long the sync took.
    fn write(
        &self,
        current: &mut Current,
        segment: Option<Segment>,
        group: &mut OpenGroup,
    ) -> Result<Duration> {
        let number = segment.as_ref().unwrap_or(&current.segment).number;
        let path = || segment_path(self.log, number);
        let fail =
            |doing: &str, error| Error::Io(format!("{doing} log segment {}: {error}", path()));
        if let Some(segment) = segment {
            // Its header is durable with this group: both start in one sector.
            current.header.first_group = group.number;
            let header = current.header.encode();
            segment
                .file
                .write_at(0, &header)
                .map_err(|error| fail("write", error))?;
            (current.segment, current.used) = (segment, SEGMENT_HEADER as u64);
        }
        let synced = self.durable.group();
        frame::seal(&mut group.frame, &current.header, group.number, synced);
        let file = &current.segment.file;
        file.write_at(current.used, &group.frame)
            .map_err(|error| fail("write", error))?;
        let start = Instant::now();
        file.sync().map_err(|error| fail("sync", error))?;
        let took = start.elapsed();
        metrics::histogram!("tablemount_log_sync_seconds").record(took);
        self.sync_times.note(took);
        self.syncs.fetch_add(1, Ordering::Relaxed);
        current.used += group.frame.len() as u64;
        Ok(took)
    }

    /// Waits until `group` is durable.
    pub(crate) async fn durable(&self, group: u64) -> Result<()> {
        self.durable.wait(group).await
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
        self.durable.group() >= group
    }

    /// The failure that ends the server, when it comes.
    pub(crate) fn failure(&self) -> watch::Receiver<Option<Error>> {
        self.durable.failure()
    }

    /// What plain reads see up to.
    pub(crate) fn durable_sequence(&self) -> u64 {
        self.durable_sequence.load(Ordering::Acquire)
    }

    /// Fsyncs of groups since the start.
    pub(crate) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// The newest group that was appended to or is durable.
    pub(crate) fn newest_group(&self) -> u64 {
        self.between_appends(|_| ()).1.group
    }

    /// Tells that `tablet` has flushed all up to `sequence` (`u64::MAX`: it is gone), and removes segments nobody needs.
    pub(crate) fn flushed(&self, tablet: u64, sequence: u64) -> Result<()> {
        let disk = self.disk.as_ref();
        if self.pins.flushed(disk, self.log, tablet, sequence)? {
            self.look_for_room();
        }
        Ok(())
    }

    /// Bytes of all segments: those with records that some tablet needs, the current one whole, and the spare.
    pub(crate) fn bytes(&self) -> u64 {
        self.pins.bytes()
    }

    /// What a start would read, and what each tablet holds back.
    pub(crate) fn held(&self) -> HeldLog {
        let current = self.current.lock();
        self.pins.held(current.segment.number, current.used)
    }

    /// The tablets whose flush lets the oldest segment go.
    pub(crate) fn oldest_holders(&self) -> Vec<u64> {
        self.pins.oldest_holders()
    }
}

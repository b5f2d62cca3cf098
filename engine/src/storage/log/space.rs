//! Room for what is appended: the rest of the current segment, and a spare one that is made ahead.
//!
//! ```text
//! append: fits the rest of the current segment → it goes there │ outgrows it → the open group moves to the spare
//!         no spare, or too small → the appender makes room itself, not under the log's lock │ the disk is full → refused
//! ```
//! A thread keeps a spare ([`CommitLog::keep_spare`]), so that an append seldom makes one. It also writes the spare full of
//! zeros: a sync of a group then writes the group alone, and no change of what the file system knows of the file.
//!
//! **Invariants**: what was appended has its place on the disk; the spare's name is durable before anything is placed there;
//! a disk that is full costs nothing that was acknowledged and ends nothing: appends are refused until there is room again.

use std::io;
use std::time::Duration;

use super::frame::{Group, SEGMENT_HEADER};
use super::segment::{Segment, disk_full};
use super::writer::CommitLog;
use super::{folder, segment_path};
use crate::storage::disk::{WriteFile, ZEROS};
use crate::{Error, Result};

/// How often a full disk is asked for room again.
const RETRY: Duration = Duration::from_secs(1);
/// Zeros written between two syncs: groups' syncs wait for no more than these.
const ZEROED_BYTES: u64 = 1 << 20;

/// Where the open group goes.
pub(super) struct Space {
    /// The current segment, and the bytes it has left for the open group.
    current: u64,
    left: u64,
    spare: Option<Segment>,
    /// The open group has outgrown the current segment.
    to_spare: bool,
    /// Why there is no spare: set from when the disk is found full until there is one.
    full: Option<String>,
    /// Whether the thread that keeps a spare is to look now.
    look: bool,
}

impl Space {
    pub(super) fn new(current: &Segment) -> Self {
        Self {
            current: current.number,
            left: current.room(),
            spare: None,
            to_spare: false,
            full: None,
            look: true,
        }
    }

    /// Finds room for the open group at this size. False: there is none.
    pub(super) fn place(&mut self, payload: usize) -> bool {
        let framed = Group::framed_bytes(payload) as u64;
        if !self.to_spare && framed <= self.left {
            return true;
        }
        let fits = self
            .spare
            .as_ref()
            .is_some_and(|spare| framed <= spare.room());
        self.to_spare |= fits;
        fits
    }

    /// The open group is about to be written: its room is taken, and the spare if it goes there.
    pub(super) fn take(&mut self, payload: usize) -> Option<Segment> {
        let taken = self.spare.take_if(|_| self.to_spare);
        if let Some(spare) = &taken {
            (self.current, self.left) = (spare.number, spare.room());
            (self.to_spare, self.look) = (false, true);
        }
        self.left -= Group::framed_bytes(payload) as u64;
        taken
    }
}

impl CommitLog {
    /// Makes room for a group with this payload, or tells that the disk is full.
    pub(super) fn make_room(&self, payload: usize) -> Result<()> {
        let _one = self.preparing.lock();
        if let Some(full) = self.disk_full() {
            return Err(Error::Exhausted(full));
        }
        self.prepare(payload, false)
    }

    /// Keeps a spare until the log closes; the body of a thread.
    pub(crate) fn keep_spare(&self) {
        while self.wait_to_look() {
            // What fails is logged where it is known whether it ends the log.
            let _ = self.make_spare();
        }
    }

    /// Makes a spare if there is none.
    pub(crate) fn make_spare(&self) -> Result<()> {
        let _one = self.preparing.lock();
        self.prepare(0, true)
    }

    /// Has a full disk looked at again, now that there may be room.
    pub(crate) fn look_for_room(&self) {
        let mut open = self.open.lock();
        open.space.look |= open.space.full.is_some();
        self.looking.notify_one();
    }

    /// Why appends are refused, if the disk is full.
    pub(crate) fn disk_full(&self) -> Option<String> {
        self.open.lock().space.full.clone()
    }

    /// Returns false once the log is closed.
    fn wait_to_look(&self) -> bool {
        let mut open = self.open.lock();
        loop {
            if open.closed || open.failed {
                return false;
            }
            if std::mem::take(&mut open.space.look) {
                return true;
            }
            if open.space.full.is_none() {
                self.looking.wait(&mut open);
            } else if self.looking.wait_for(&mut open, RETRY).timed_out() {
                return true;
            }
        }
    }

    /// Sees to it that there is a spare with room for a group. The caller holds `preparing`.
    fn prepare(&self, payload: usize, zeroed: bool) -> Result<()> {
        let (current, spare) = {
            let open = self.open.lock();
            (open.space.current, open.space.spare.clone())
        };
        let spare = match spare {
            Some(spare) => spare,
            // Only a commit that takes the spare changes the current segment, and there is none to take.
            None => match self.create_spare(current + 1, zeroed)? {
                Some(spare) => spare,
                None => return Ok(()),
            },
        };
        let needed = (SEGMENT_HEADER + Group::framed_bytes(payload)) as u64;
        if needed <= spare.length {
            return Ok(());
        }
        self.grow(&spare, needed.next_multiple_of(self.segment_bytes))
    }

    /// `None`: the log was closed meanwhile.
    fn create_spare(&self, number: u64, zeroed: bool) -> Result<Option<Segment>> {
        let (path, length) = (segment_path(self.log, number), self.segment_bytes);
        let file = self
            .disk
            .create(&path, length)
            .map_err(|error| self.no_room(&path, length, &error, true))?;
        // Before its name is durable: until then nothing is placed there.
        if zeroed && !self.zero(file.as_ref(), length, &path)? {
            return Ok(None);
        }
        self.disk
            .sync_folder(&folder(self.log))
            .map_err(|error| self.failed("sync the folder of", &path, &error))?;
        let spare = Segment {
            number,
            file,
            length,
        };
        self.pins.takes(number, length);
        let mut open = self.open.lock();
        open.space.spare = Some(spare.clone());
        if open.space.full.take().is_some() {
            tracing::info!("the commit log has room again: writes are accepted");
        }
        Ok(Some(spare))
    }

    /// Writes zeros where groups will be. Returns false once the log is closed.
    fn zero(&self, file: &dyn WriteFile, length: u64, path: &str) -> Result<bool> {
        let chunk = |at: u64| -> io::Result<()> {
            let end = (at + ZEROED_BYTES).min(length);
            for from in (at..end).step_by(ZEROS.len()) {
                let bytes = (end - from).min(ZEROS.len() as u64) as usize;
                file.write_at(from, &ZEROS[..bytes])?;
            }
            file.sync()
        };
        for at in (0..length).step_by(ZEROED_BYTES as usize) {
            if self.open.lock().closed {
                return Ok(false);
            }
            chunk(at).map_err(|error| self.failed("write", path, &error))?;
        }
        Ok(true)
    }

    /// Makes a spare longer. It may become the current segment meanwhile.
    fn grow(&self, spare: &Segment, length: u64) -> Result<()> {
        let path = segment_path(self.log, spare.number);
        spare
            .file
            .grow(spare.length, length)
            .map_err(|error| self.no_room(&path, length, &error, false))?;
        self.pins.takes(spare.number, length);
        let mut open = self.open.lock();
        match &mut open.space.spare {
            Some(spare) => spare.length = length,
            None => open.space.left += length - spare.length,
        }
        Ok(())
    }

    /// What it means that a file could not get `length` bytes: a full disk, or the log's end.
    fn no_room(&self, path: &str, length: u64, error: &io::Error, lasting: bool) -> Error {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        if !full.contains(&error.kind()) {
            return self.failed("create", path, error);
        }
        let message = disk_full(self.disk.as_ref(), length, error);
        let message = format!("{message}; writes are refused until space returns");
        if lasting {
            let before = self.open.lock().space.full.replace(message.clone());
            if before.is_none() {
                tracing::error!("{message}");
            }
        }
        Error::Exhausted(message)
    }

    fn failed(&self, doing: &str, path: &str, error: &io::Error) -> Error {
        let error = Error::Io(format!("{doing} log segment {path}: {error}"));
        self.fail(&error);
        error
    }
}

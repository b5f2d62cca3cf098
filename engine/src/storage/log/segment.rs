//! A segment's file: made, gone on in, removed. What is in it is [`super::frame`]'s.
//!
//! **Invariants**: a segment's name is durable when it is made or gone on in; its header is with the first group: both start in
//! one sector. A removal is durable before the next, so that after a crash the segments are a contiguous run.

use std::io;
use std::sync::Arc;

use uuid::Uuid;

use super::frame::{SEGMENT_HEADER, SegmentHeader};
use super::{folder, segment_path};
use crate::storage::disk::{Disk, WriteFile};
use crate::{Error, Result};

/// A segment to write to.
#[derive(Clone)]
pub(crate) struct Segment {
    pub(super) number: u64,
    pub(super) file: Arc<dyn WriteFile>,
    pub(super) length: u64,
}

impl Segment {
    /// Makes a segment.
    pub(crate) fn create(
        disk: &dyn Disk,
        header: SegmentHeader,
        number: u64,
        length: u64,
    ) -> Result<Self> {
        let file = disk.create(&segment_path(header.log, number), length);
        Self::begin(disk, header, number, length, file)
    }

    /// Goes on in a segment that is there and holds no group, but perhaps a header.
    pub(crate) fn reopen(
        disk: &dyn Disk,
        header: SegmentHeader,
        number: u64,
        length: u64,
    ) -> Result<Self> {
        let file = disk.reopen(&segment_path(header.log, number), length);
        Self::begin(disk, header, number, length, file)
    }

    fn begin(
        disk: &dyn Disk,
        header: SegmentHeader,
        number: u64,
        length: u64,
        file: io::Result<Arc<dyn WriteFile>>,
    ) -> Result<Self> {
        let path = segment_path(header.log, number);
        let fail = |doing: &str, error| Error::Io(format!("{doing} log segment {path}: {error}"));
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Error::Exhausted(disk_full(disk, length, &error))
            }
            _ => fail("open", error),
        })?;
        file.write_at(0, &header.encode())
            .map_err(|error| fail("write", error))?;
        // Also where it is gone on in: it may have been a spare that was just being made.
        disk.sync_folder(&folder(header.log))
            .map_err(|error| fail("sync the folder of", error))?;
        Ok(Self {
            number,
            file,
            length,
        })
    }

    /// Bytes for groups.
    pub(super) fn room(&self) -> u64 {
        self.length.saturating_sub(SEGMENT_HEADER as u64)
    }
}

/// Removes a segment, the oldest.
pub(crate) fn remove_segment(disk: &dyn Disk, log: Uuid, number: u64) -> Result<()> {
    let path = segment_path(log, number);
    let fail = |error| Error::Io(format!("remove log segment {path}: {error}"));
    disk.remove(&path).map_err(fail)?;
    disk.sync_folder(&folder(log)).map_err(fail)
}

/// What is wrong where a segment cannot get its bytes.
pub(super) fn disk_full(disk: &dyn Disk, length: u64, error: &io::Error) -> String {
    let folder = disk.describe();
    format!(
        "the disk is full: data folder {folder} has no room for {length} bytes of the commit log: {error}"
    )
}

//! Reading the log back after a start: every durable group in order, up to the torn tail.
//!
//! A group that does not check is the **torn tail** (power was cut while it was written; it was never acknowledged), unless
//! something later proves that it was durable: a valid group that claims a sync at or beyond it, or a later segment that starts
//! above it. Then it is **corruption**: the log is refused with file, offset and advice, or read up to there when asked.
//!
//! The last segment may be one that was made ahead, or begun, and not written to: all zeros but for a header. A log goes on in it.
//!
//! **Invariants**: records come in log order; nothing after a torn tail or corruption is used; segments are a contiguous run; a
//! segment that holds anything, valid or not, is never written to again.

use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::frame::{self, BadHeader, Group, SEGMENT_HEADER, SegmentHeader};
use super::record::Record;
use super::search::Search;
use super::{folder, segment_path};
use crate::storage::disk::{Disk, ZEROS};
use crate::storage::objects::number;
use crate::{Error, Result};

/// What to do at corruption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnCorruption {
    Refuse,
    StopThere,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recovered {
    /// The segments that were read, in order.
    pub(crate) segments: Vec<u64>,
    /// The length of the last one, if it was never written to.
    pub(crate) untouched: Option<u64>,
    /// The number the next group takes.
    pub(crate) next_group: u64,
    /// The highest sequence number of any record; 0: no record.
    pub(crate) last_sequence: u64,
    /// Where the log is corrupted, if it is and reading stopped there.
    pub(crate) corruption: Option<String>,
}

/// Reads all segments of a log of which segment `at_least` must exist; `sink` gets each record.
pub(crate) fn replay(
    disk: &Arc<dyn Disk>,
    log: Uuid,
    at_least: u64,
    on_corruption: OnCorruption,
    mut sink: impl FnMut(Record),
) -> Result<Recovered> {
    let segments = segment_numbers(disk, log, at_least)?;
    let mut recovered = Recovered {
        segments: Vec::new(),
        untouched: None,
        next_group: 0,
        last_sequence: 0,
        corruption: None,
    };
    for number in segments {
        recovered.segments.push(number);
        recovered.untouched = None;
        if recovered.corruption.is_some() {
            continue;
        }
        let found = replay_segment(disk, log, number, &mut recovered, &mut sink);
        match (found, on_corruption) {
            (Err(Error::Corrupt(message)), OnCorruption::StopThere) => {
                recovered.corruption = Some(message)
            }
            (other, _) => other?,
        }
    }
    recovered.next_group = recovered.next_group.max(1);
    Ok(recovered)
}

fn segment_numbers(disk: &Arc<dyn Disk>, log: Uuid, at_least: u64) -> Result<Vec<u64>> {
    let folder = folder(log);
    let names = disk
        .list(&folder)
        .map_err(|error| Error::Io(format!("list {folder}: {error}")))?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| number(name)).collect();
    numbers.sort_unstable();
    let missing = |number: u64| {
        Error::Corrupt(format!(
            "log segment {} is missing in {}; acknowledged writes may be in it: restore the file, or open read-only",
            segment_path(log, number),
            disk.describe()
        ))
    };
    match numbers.last() {
        Some(last) if *last >= at_least => {}
        last => return Err(missing(last.map_or(at_least, |last| last + 1))),
    }
    match numbers.windows(2).find(|pair| pair[1] != pair[0] + 1) {
        Some(pair) => Err(missing(pair[0] + 1)),
        None => Ok(numbers),
    }
}

fn replay_segment(
    disk: &Arc<dyn Disk>,
    log: Uuid,
    number: u64,
    recovered: &mut Recovered,
    sink: &mut impl FnMut(Record),
) -> Result<()> {
    let path = segment_path(log, number);
    let bytes = read(disk, &path)?;
    if is_untouched(&bytes) {
        recovered.untouched = Some(bytes.len() as u64);
    }
    let Some(header) = check_header(&path, log, &bytes, recovered)? else {
        return Ok(());
    };
    let mut expected = header.first_group;
    let mut at = SEGMENT_HEADER;
    while let Some(group) = group_at(&bytes, at, &header).filter(|group| group.number == expected) {
        replay_group(&path, at, &group, recovered, sink)?;
        at += Group::framed_bytes(group.payload.len());
        expected += 1;
    }
    recovered.next_group = expected;
    match Search::new(&bytes, &header).find(at, |later| later.synced >= expected) {
        Some((_, proof)) => Err(corrupt(
            &path,
            at,
            &format!(
                "group {expected} is damaged, and group {} tells that it was durable",
                proof.number
            ),
        )),
        None => Ok(()),
    }
}

/// Whether there is room for groups and nothing but zeros, for all that may be in the header's place.
fn is_untouched(bytes: &Bytes) -> bool {
    let rest = bytes.get(SEGMENT_HEADER..).unwrap_or_default();
    let zero = |chunk: &[u8]| *chunk == ZEROS[..chunk.len()];
    !rest.is_empty() && rest.chunks(ZEROS.len()).all(zero)
}

/// The segment's header, or `None` if it was never begun or that was cut off.
fn check_header(
    path: &str,
    log: Uuid,
    bytes: &Bytes,
    recovered: &Recovered,
) -> Result<Option<SegmentHeader>> {
    // 0: not known yet.
    let next = recovered.next_group;
    match SegmentHeader::decode(bytes) {
        Ok(header) if header.log != log => Err(corrupt(path, 0, "the segment is of another log")),
        Ok(header) if next != 0 && header.first_group != next => Err(corrupt(
            path,
            0,
            &format!(
                "the segment starts with group {}, but the one before ends before group {next}",
                header.first_group
            ),
        )),
        Ok(header) => Ok(Some(header)),
        Err(BadHeader::Format(format)) => Err(Error::Precondition(format!(
            "{path} has format {format}; this version reads format {}",
            crate::storage::objects::FORMAT
        ))),
        Err(BadHeader::Damaged) if recovered.untouched.is_some() => Ok(None),
        // The header and the start of the first group are in one sector: without one there is not the other.
        Err(BadHeader::Damaged) if frame::candidates(bytes, 0).next().is_none() => Ok(None),
        Err(BadHeader::Damaged) => Err(corrupt(path, 0, "the header is damaged")),
    }
}

fn group_at(bytes: &Bytes, at: usize, header: &SegmentHeader) -> Option<Group> {
    (at < bytes.len())
        .then(|| frame::open(&bytes.slice(at..), header))
        .flatten()
}

fn replay_group(
    path: &str,
    at: usize,
    group: &Group,
    recovered: &mut Recovered,
    sink: &mut impl FnMut(Record),
) -> Result<()> {
    let mut payload = group.payload.clone();
    while !payload.is_empty() {
        let record = Record::decode(&mut payload).ok_or_else(|| {
            corrupt(
                path,
                at,
                &format!("group {} holds what is no record", group.number),
            )
        })?;
        recovered.last_sequence = recovered.last_sequence.max(record.last_sequence());
        sink(record);
    }
    Ok(())
}

fn read(disk: &Arc<dyn Disk>, path: &str) -> Result<Bytes> {
    let read = disk
        .open(path)
        .and_then(|file| file.read_at(0, file.length() as usize));
    read.map_err(|error| Error::Io(format!("read log segment {path}: {error}")))
}

fn corrupt(path: &str, at: usize, what: &str) -> Error {
    Error::Corrupt(format!(
        "log segment {path} at offset {at}: {what}; acknowledged writes may be lost from there on: restore the file from a \
         copy, or open read-only to read what comes before"
    ))
}

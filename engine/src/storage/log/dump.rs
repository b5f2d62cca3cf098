//! A log segment as text, for people: where it is damaged, and all that can be read besides.
//!
//! ```text
//! segment NAME: 1048576 bytes, format 1
//! log ID, first group 7
//! group 7 at 64: synced 6, 123 bytes
//!   tablet 3 ROW sequence 41 time 1700000000000000
//!     41 family 2 put QUALIFIER TIMESTAMP LENGTH
//!     42 family 2 delete column QUALIFIER MIN..MAX
//! damaged at offset 224: no group in 40 bytes; group 9 tells that group 8 was durable
//! group 9 at 264: …
//! end at 1024: 1047552 bytes of zeros
//! ```
//! Rows and qualifiers are in the encoding of names, whole.
//!
//! **Invariants**: what a crash leaves (a torn tail, see [`super::recovery`]) is a line of its own, `torn at offset N`, and no
//! damage, as far as one segment can tell; all else that is not what was written is a line `damaged at offset N` and in the end
//! an error; the work is bounded whatever the bytes.

use std::io::{self, Write};
use std::path::Path;

use bytes::Bytes;
use tablemount_api::Timestamp;
use tablemount_api::name::encode_whole;
use uuid::Uuid;

use super::frame::{
    self, BadHeader, GROUP_HEADER, Group, MAX_PAYLOAD, SEGMENT_HEADER, SegmentHeader,
};
use super::record::{Entry, Op, Record};
use super::search::Search;
use crate::storage::disk::{Disk, LocalDisk, ZEROS};
use crate::storage::objects::FORMAT;
use crate::{Error, Result};

/// The largest file that is looked into: more than any segment has.
const MAX_BYTES: u64 = 2 * MAX_PAYLOAD as u64;

/// Writes what the log segment `name` in `folder` holds to `out`; an error in the end if some of it is damaged.
pub(crate) fn dump(folder: &Path, name: &str, out: &mut dyn Write) -> Result<()> {
    let bytes = read(folder, name)?;
    let log = std::path::absolute(folder).ok();
    let log = log.and_then(|folder| Uuid::try_parse(folder.file_name()?.to_str()?).ok());
    match write(name, log, &bytes, out) {
        Ok(0) => Ok(()),
        Ok(damaged) => Err(Error::Corrupt(format!(
            "log segment {name} is damaged in {damaged} places"
        ))),
        Err(error) => Err(Error::Io(format!(
            "write what is in log segment {name}: {error}"
        ))),
    }
}

fn read(folder: &Path, name: &str) -> Result<Bytes> {
    let file = LocalDisk::open(folder, true)?.open(name);
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => {
            Error::NotFound(format!("{} does not exist", folder.join(name).display()))
        }
        _ => Error::Io(format!("read log segment {name}: {error}")),
    };
    let file = file.map_err(failed)?;
    match file.length() {
        length if length > MAX_BYTES => Err(Error::TooLarge(format!(
            "log segment {name} is {length} bytes; limit is {MAX_BYTES}"
        ))),
        length => file.read_at(0, length as usize).map_err(failed),
    }
}

/// Writes what a segment of the log `log`, if that is known, holds; returns in how many places it is damaged.
pub(crate) fn write(
    name: &str,
    log: Option<Uuid>,
    bytes: &Bytes,
    out: &mut dyn Write,
) -> io::Result<u64> {
    let mut dump = Dump {
        bytes,
        out,
        damaged: 0,
    };
    writeln!(
        dump.out,
        "segment {name}: {} bytes, format {FORMAT}",
        bytes.len()
    )?;
    if let Some(header) = dump.header(log)? {
        writeln!(
            dump.out,
            "log {}, first group {}",
            header.log, header.first_group
        )?;
        dump.groups(&header)?;
    }
    Ok(dump.damaged)
}

struct Dump<'a> {
    bytes: &'a Bytes,
    out: &'a mut dyn Write,
    damaged: u64,
}

impl Dump<'_> {
    /// The header, or what it must have been.
    fn header(&mut self, log: Option<Uuid>) -> io::Result<Option<SegmentHeader>> {
        match SegmentHeader::decode(self.bytes) {
            Ok(header) => Ok(Some(header)),
            Err(_) if is_zero(self.bytes) => {
                writeln!(self.out, "never written to")?;
                Ok(None)
            }
            Err(BadHeader::Format(format)) => {
                self.damage(
                    0,
                    &format!("has format {format}; this version reads format {FORMAT}"),
                )?;
                Ok(None)
            }
            Err(BadHeader::Damaged) => {
                let found = self.guess(log);
                let said = match found {
                    Some(_) => "the header is damaged; what follows goes by the groups",
                    None => "the header is damaged, and without it no group can be checked",
                };
                self.damage(0, said)?;
                Ok(found)
            }
        }
    }

    /// A header under which the group in the first place is valid: the log's id is also its folder's name, the first group's
    /// number also the group's own.
    fn guess(&self, log: Option<Uuid>) -> Option<SegmentHeader> {
        let written = self
            .bytes
            .get(8..24)
            .and_then(|id| Uuid::from_slice(id).ok());
        let group = self.bytes.slice(SEGMENT_HEADER.min(self.bytes.len())..);
        let number = |bytes: &[u8]| Some(u64::from_le_bytes(*bytes.first_chunk()?));
        let first_group = group.get(8..).and_then(number)?;
        let headers = [log, written].into_iter().flatten();
        headers
            .map(|log| SegmentHeader { log, first_group })
            .find(|header| frame::open(&group, header).is_some())
    }

    fn groups(&mut self, header: &SegmentHeader) -> io::Result<()> {
        let (mut at, mut expected) = (SEGMENT_HEADER.min(self.bytes.len()), header.first_group);
        let mut search = Search::new(self.bytes, header);
        while !is_zero(&self.bytes[at..]) {
            let Some((found, group)) = search.find(at, |_| true) else {
                return self.tail(at, expected);
            };
            let number = group.number;
            if found > at {
                self.gap(at, found, expected, &group)?;
            } else if number != expected {
                self.damage(at, &format!("group {number} in the place of {expected}"))?;
            }
            self.group(found, &group)?;
            at = (found + Group::framed_bytes(group.payload.len())).min(self.bytes.len());
            expected = number.saturating_add(1);
        }
        let rest = self.bytes.len() - at;
        writeln!(self.out, "end at {at}: {rest} bytes of zeros")
    }

    /// What lies before `found`, where group `expected` should be: only what was durable can be damaged.
    fn gap(&mut self, at: usize, found: usize, expected: u64, next: &Group) -> io::Result<()> {
        let (length, number) = (found - at, next.number);
        if next.synced >= expected {
            let proof = format!("group {number} tells that group {expected} was durable");
            return self.damage(at, &format!("no group in {length} bytes; {proof}"));
        }
        writeln!(
            self.out,
            "torn at offset {at}: no group in {length} bytes; group {number} does not tell that group {expected} was durable"
        )
    }

    /// What lies after the last valid group.
    fn tail(&mut self, at: usize, expected: u64) -> io::Result<()> {
        let length = self.bytes.len() - at;
        writeln!(
            self.out,
            "torn at offset {at}: group {expected} is not whole, and none follows in {length} bytes: it was being written, unless \
             a later segment starts above it"
        )
    }

    fn group(&mut self, at: usize, group: &Group) -> io::Result<()> {
        let (number, synced, length) = (group.number, group.synced, group.payload.len());
        writeln!(
            self.out,
            "group {number} at {at}: synced {synced}, {length} bytes"
        )?;
        let mut payload = group.payload.clone();
        while !payload.is_empty() {
            let offset = at + GROUP_HEADER + length - payload.len();
            match Record::decode(&mut payload) {
                Some(record) => self.record(&record)?,
                None => return self.damage(offset, &format!("no record, in group {number}")),
            }
        }
        Ok(())
    }

    fn record(&mut self, record: &Record) -> io::Result<()> {
        let (tablet, row) = (record.tablet, encode_whole(&record.row));
        let (first, time) = (record.first_sequence, record.server_timestamp.0);
        writeln!(
            self.out,
            "  tablet {tablet} {row} sequence {first} time {time}"
        )?;
        for (i, Entry { family, op }) in record.entries.iter().enumerate() {
            let sequence = first.saturating_add(i as u64);
            writeln!(self.out, "    {sequence} family {family} {}", text(op))?;
        }
        Ok(())
    }

    fn damage(&mut self, at: usize, what: &str) -> io::Result<()> {
        self.damaged += 1;
        writeln!(self.out, "damaged at offset {at}: {what}")
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes
        .chunks(ZEROS.len())
        .all(|chunk| *chunk == ZEROS[..chunk.len()])
}

fn text(op: &Op) -> String {
    match op {
        Op::Put {
            qualifier,
            timestamp,
            value,
        } => format!(
            "put {} {} {}",
            encode_whole(qualifier),
            timestamp.0,
            value.len()
        ),
        Op::DeleteCell {
            qualifier,
            timestamp,
        } => format!("delete cell {} {}", encode_whole(qualifier), timestamp.0),
        Op::DeleteColumn {
            qualifier,
            min,
            max,
        } => format!(
            "delete column {} {}..{}",
            encode_whole(qualifier),
            bound(*min),
            bound(*max)
        ),
        Op::DeleteFamily => "delete family".to_owned(),
        Op::DeleteRows { stop: Some(stop) } => format!("delete rows below {}", encode_whole(stop)),
        Op::DeleteRows { stop: None } => "delete rows to the end".to_owned(),
    }
}

/// A bound of a time range; the widest stand for none.
fn bound(time: Timestamp) -> String {
    match time {
        Timestamp::MIN | Timestamp::MAX => String::new(),
        Timestamp(micros) => micros.to_string(),
    }
}

#[cfg(test)]
mod tests;

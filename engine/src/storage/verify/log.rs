//! Checking the commit log, by the rules that recovery has: a torn tail is none of its faults.
//!
//! **Invariants**: a log that a server writes to is not read at one moment, so a fault is one only if the log, read anew, shows
//! the same.

use std::sync::Arc;

use super::{Newest, Rows, Verifier};
use crate::Result;
use crate::storage::catalog::{SERVERS, ServerRecord};
use crate::storage::disk::Disk;
use crate::storage::keys;
use crate::storage::log::frame::{SEGMENT_HEADER, SegmentHeader};
use crate::storage::log::recovery::{OnCorruption, replay};
use crate::storage::log::{self, Record};
use crate::verify::Finding;

/// Readings until two agree; a log that shows another fault each time is one that moves.
const READINGS: usize = 10;

/// What a reading of the log shows.
#[derive(Default)]
struct Reading {
    groups: u64,
    records: u64,
    faults: Vec<Finding>,
}

impl Verifier<'_> {
    pub(super) fn log(&mut self) -> Result<()> {
        let mut before: Option<Reading> = None;
        for _ in 0..READINGS {
            let Newest::Sound(_, server) = self.newest::<ServerRecord>(SERVERS)? else {
                return Ok(());
            };
            let reading = self.read_log(&server);
            let again = before
                .as_ref()
                .is_some_and(|before| before.faults == reading.faults);
            if reading.faults.is_empty() || again {
                self.summary.log_groups = reading.groups;
                self.summary.log_records = reading.records;
                for fault in reading.faults {
                    self.damage(&fault.path, fault.offset, fault.what);
                }
                return Ok(());
            }
            before = Some(reading);
        }
        Ok(())
    }

    fn read_log(&self, server: &ServerRecord) -> Reading {
        let mut reading = Reading::default();
        let mut last = 0;
        let mut odd = None;
        let sink = |record: Record| {
            reading.records += 1;
            let rows = self.rows.get(&record.tablet);
            let wrong = if record.first_sequence <= last {
                Some("sequence numbers do not rise")
            } else if !rows.is_none_or(|rows| holds(rows, &record)) {
                Some("a row is not of its tablet")
            } else {
                None
            };
            if let (None, Some(what)) = (&odd, wrong) {
                let (tablet, sequence) = (record.tablet, record.first_sequence);
                odd = Some(format!(
                    "{what}: tablet {tablet}, sequence number {sequence}"
                ));
            }
            last = record.last_sequence();
        };
        let stop = OnCorruption::StopThere;
        let fault = match replay(&self.disk, server.log, server.segment, stop, sink) {
            Ok(found) => {
                let first = found.segments.first();
                let first = first.and_then(|number| first_group(&self.disk, server, *number));
                reading.groups = first.map_or(0, |first| found.next_group.saturating_sub(first));
                found.corruption
            }
            Err(error) => Some(error.to_string()),
        };
        let folder = log::folder(server.log);
        let odd = odd.map(|what| finding(folder.clone(), None, what));
        reading
            .faults
            .extend(fault.map(|message| place(&folder, &message)));
        reading.faults.extend(odd);
        reading
    }
}

/// A delete of rows may begin at the empty row, before all.
fn holds(rows: &Rows, record: &Record) -> bool {
    record.row.is_empty() || rows.hold(&keys::row(&record.row))
}

fn first_group(disk: &Arc<dyn Disk>, server: &ServerRecord, number: u64) -> Option<u64> {
    let file = disk.open(&log::segment_path(server.log, number)).ok()?;
    let header = file.read_at(0, SEGMENT_HEADER).ok()?;
    Some(SegmentHeader::decode(&header).ok()?.first_group)
}

/// What recovery says, taken apart: `log segment PATH at offset N: …`.
fn place(folder: &str, message: &str) -> Finding {
    let rest = message.strip_prefix("log segment ").unwrap_or(message);
    let parts = rest
        .split_once(' ')
        .filter(|(path, _)| path.starts_with(folder));
    let Some((path, rest)) = parts else {
        return finding(folder.to_owned(), None, message.to_owned());
    };
    let offset = rest.strip_prefix("at offset ").and_then(|rest| {
        let (offset, what) = rest.split_once(": ")?;
        Some((offset.parse().ok()?, what))
    });
    match offset {
        Some((offset, what)) => finding(path.to_owned(), Some(offset), what.to_owned()),
        None => finding(path.to_owned(), None, rest.to_owned()),
    }
}

fn finding(path: String, offset: Option<u64>, what: String) -> Finding {
    Finding {
        path,
        offset,
        what,
        note: false,
    }
}

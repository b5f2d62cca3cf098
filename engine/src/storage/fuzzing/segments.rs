//! Log segments from bytes, by recovery, by `dump`, and by a search that is as plain as can be.

use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::Sink;
use super::memory::Memory;
use crate::storage::disk::Disk;
use crate::storage::log::dump::write;
use crate::storage::log::frame::{self, GROUP_HEADER, Group, SEGMENT_HEADER, SegmentHeader};
use crate::storage::log::recovery::{OnCorruption, replay};
use crate::storage::log::search::Search;
use crate::storage::log::{Record, segment_path};

/// Segments in one input.
const MAX_SEGMENTS: usize = 4;

/// Segments one after the other, each from its `TMLS` on: as they are, and with all checksums made right.
pub fn log(bytes: &[u8]) {
    let segments = split(bytes);
    read(&segments);
    let mended: Vec<_> = segments.iter().map(mend).collect();
    read(&mended);
    record(bytes);
}

fn split(bytes: &[u8]) -> Vec<Bytes> {
    let mut starts = vec![0];
    let more = (8..bytes.len()).step_by(8);
    starts.extend(more.filter(|at| bytes[*at..].starts_with(b"TMLS")));
    starts.truncate(MAX_SEGMENTS);
    let ends = starts[1..].iter().copied().chain([bytes.len()]);
    let segments = starts.iter().zip(ends);
    segments
        .map(|(start, end)| Bytes::copy_from_slice(&bytes[*start..end]))
        .collect()
}

fn read(segments: &[Bytes]) {
    let first = segments.first().map(|first| SegmentHeader::decode(first));
    let log = match first {
        Some(Ok(header)) => header.log,
        _ => Uuid::nil(),
    };
    let mut memory = Memory::default();
    for (segment, number) in segments.iter().zip(1..) {
        memory.put(&segment_path(log, number), segment.clone());
    }
    let disk: Arc<dyn Disk> = Arc::new(memory);
    for at_corruption in [OnCorruption::Refuse, OnCorruption::StopThere] {
        let mut last = 0;
        let sink = |record: Record| last = last.max(record.last_sequence());
        if let Ok(recovered) = replay(&disk, log, 1, at_corruption, sink) {
            assert_eq!(recovered.last_sequence, last);
            assert_eq!(recovered.segments.len(), segments.len());
        }
    }
    for segment in segments {
        for log in [None, Some(log)] {
            let _ = write("1", log, segment, &mut Sink::new());
        }
        search(segment);
    }
}

/// Compares the search for groups with one that checks each place on its own.
fn search(segment: &Bytes) {
    let Ok(header) = SegmentHeader::decode(segment) else {
        return;
    };
    let mut search = Search::new(segment, &header);
    let mut from = 0;
    let opens = |at: usize| Some((at, frame::open(&segment.slice(at..), &header)?));
    for expected in frame::candidates(segment, 0).filter_map(opens).take(64) {
        let found = search.find(from, |_| true);
        from = expected.0 + 1;
        assert_eq!(found, Some(expected));
    }
}

/// A payload's records: what is read is written as what is read as the same.
fn record(bytes: &[u8]) {
    let mut payload = Bytes::copy_from_slice(bytes);
    while let Some(record) = Record::decode(&mut payload) {
        let mut written = Vec::new();
        record.encode(&mut written);
        assert_eq!(Record::decode(&mut written.into()), Some(record));
    }
}

/// The same segment with right checksums, of the header and of all that looks like a group.
fn mend(segment: &Bytes) -> Bytes {
    let mut bytes = segment.to_vec();
    if bytes.len() < SEGMENT_HEADER {
        return segment.clone();
    }
    bytes[..4].copy_from_slice(b"TMLS");
    bytes[4..8].copy_from_slice(&crate::storage::objects::FORMAT.to_le_bytes());
    let checksum = crc32c::crc32c(&bytes[..32]);
    bytes[32..36].copy_from_slice(&checksum.to_le_bytes());
    let Ok(header) = SegmentHeader::decode(&bytes) else {
        return bytes.into();
    };
    let mut at = SEGMENT_HEADER;
    while let Some(frame) = bytes.get(at..at + GROUP_HEADER) {
        let word = |at: usize| frame[at..].first_chunk().map_or([0; 4], |word| *word);
        let payload = u32::from_le_bytes(word(4)) as usize;
        let end = at + GROUP_HEADER + payload;
        if word(0) != *b"TMLG" || end > bytes.len() {
            at += 8;
            continue;
        }
        let long = |at: usize| {
            frame[at..]
                .first_chunk()
                .map_or(0, |long| u64::from_le_bytes(*long))
        };
        let mut sealed = bytes[at..end].to_vec();
        frame::seal(&mut sealed, &header, long(8), long(16));
        bytes[at..end].copy_from_slice(&sealed[..GROUP_HEADER + payload]);
        at += Group::framed_bytes(payload);
    }
    bytes.into()
}

//! How a segment is framed: a header, then groups, then whatever was in the space reserved (zeros).
//!
//! ```text
//! segment = "TMLS" │ format u32 │ log id (16 B) │ first group u64 │ CRC-32C of the 32 bytes before u32 │ zeros to 64 B │ group …
//! group   = "TMLG" │ payload length u32 │ number u64 │ synced u64 │ CRC-32C u32 │ zero u32 │ payload │ zeros to a multiple of 8
//! ```
//! The checksum of a group covers log id, first group, its own header before the checksum, and payload: bytes of another log or
//! segment are no group here.
//!
//! **Invariants**: group numbers rise by one, over segments too; `synced` is the highest group known durable when the group was
//! written; all groups below a segment's `first group` were durable before the segment was made. Numbers stay below 2^63, so
//! that counting on from what a disk says never overflows.

use bytes::Bytes;
use uuid::Uuid;

use crate::storage::objects::{FORMAT, MAX_NUMBER};

pub(crate) const SEGMENT_HEADER: usize = 64;
pub(crate) const GROUP_HEADER: usize = 32;
const ALIGN: usize = 8;
/// What the checksum is of, of a group's header.
const CHECKED: usize = 24;
/// The largest payload: one row mutation with a 100 MiB value, and room.
pub(crate) const MAX_PAYLOAD: usize = 256 << 20;

/// What a segment's header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) log: Uuid,
    pub(crate) first_group: u64,
}

/// Why a header is not one of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BadHeader {
    Damaged,
    Format(u32),
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEADER] {
        let mut out = [0; SEGMENT_HEADER];
        out[..4].copy_from_slice(b"TMLS");
        out[4..8].copy_from_slice(&FORMAT.to_le_bytes());
        out[8..24].copy_from_slice(self.log.as_bytes());
        out[24..32].copy_from_slice(&self.first_group.to_le_bytes());
        let checksum = crc32c::crc32c(&out[..32]);
        out[32..36].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, BadHeader> {
        let damaged = BadHeader::Damaged;
        let header: &[u8; 36] = bytes.first_chunk().ok_or(damaged.clone())?;
        if &header[..4] != b"TMLS" || crc32c::crc32c(&header[..32]) != word(&header[32..]) {
            return Err(damaged);
        }
        match word(&header[4..]) {
            FORMAT if long(&header[24..]) > MAX_NUMBER => Err(damaged),
            FORMAT => Ok(Self {
                log: Uuid::from_slice(&header[8..24]).map_err(|_| damaged)?,
                first_group: long(&header[24..]),
            }),
            other => Err(BadHeader::Format(other)),
        }
    }
}

/// A group that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) number: u64,
    pub(crate) synced: u64,
    pub(crate) payload: Bytes,
}

impl Group {
    /// Bytes in the segment, padding included.
    pub(crate) fn framed_bytes(payload: usize) -> usize {
        (GROUP_HEADER + payload).next_multiple_of(ALIGN)
    }
}

/// Completes a group in place: `frame` starts with room for the header, then holds the payload.
pub(crate) fn seal(frame: &mut Vec<u8>, segment: &SegmentHeader, number: u64, synced: u64) {
    let length = (frame.len() - GROUP_HEADER) as u32;
    frame[..4].copy_from_slice(b"TMLG");
    frame[4..8].copy_from_slice(&length.to_le_bytes());
    frame[8..16].copy_from_slice(&number.to_le_bytes());
    frame[16..24].copy_from_slice(&synced.to_le_bytes());
    let sum = sum(segment, &frame[..CHECKED]);
    let checksum = crc32c::crc32c_append(sum, &frame[GROUP_HEADER..]);
    frame[CHECKED..CHECKED + 4].copy_from_slice(&checksum.to_le_bytes());
    frame.resize(frame.len().next_multiple_of(ALIGN), 0);
}

/// What a group's header says, before anything is checked against its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) number: u64,
    pub(crate) synced: u64,
    /// Bytes of payload.
    pub(crate) payload: usize,
    pub(crate) checksum: u32,
    header: [u8; CHECKED],
}

impl Frame {
    /// The header at the start of `bytes`; `None` if it is none, or its payload is not all there.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let header: &[u8; GROUP_HEADER] = bytes.first_chunk()?;
        let (checked, rest) = header.split_first_chunk()?;
        let payload = word(&checked[4..]) as usize;
        let number = long(&checked[8..]);
        let fits = payload <= MAX_PAYLOAD.min(bytes.len() - GROUP_HEADER);
        (checked.starts_with(b"TMLG") && fits && number <= MAX_NUMBER).then_some(Self {
            number,
            synced: long(&checked[16..]),
            payload,
            checksum: word(rest),
            header: *checked,
        })
    }

    /// The checksum of all that stands before the payload.
    pub(crate) fn sum(&self, segment: &SegmentHeader) -> u32 {
        sum(segment, &self.header)
    }

    /// The group that has this header, at `at`.
    pub(crate) fn group(&self, bytes: &Bytes, at: usize) -> Group {
        let start = at + GROUP_HEADER;
        Group {
            number: self.number,
            synced: self.synced,
            payload: bytes.slice(start..start + self.payload),
        }
    }
}

/// The group at the start of `bytes`, or `None` if no valid one is there.
pub(crate) fn open(bytes: &Bytes, segment: &SegmentHeader) -> Option<Group> {
    let frame = Frame::decode(bytes)?;
    let payload = &bytes[GROUP_HEADER..GROUP_HEADER + frame.payload];
    let sum = crc32c::crc32c_append(frame.sum(segment), payload);
    (sum == frame.checksum).then(|| frame.group(bytes, 0))
}

/// Offsets after `from` at which a group may start.
pub(crate) fn candidates(bytes: &Bytes, from: usize) -> impl Iterator<Item = usize> + '_ {
    (from.next_multiple_of(ALIGN)..bytes.len())
        .step_by(ALIGN)
        .filter(|at| bytes[*at..].starts_with(b"TMLG"))
}

fn sum(segment: &SegmentHeader, header: &[u8]) -> u32 {
    let sum = crc32c::crc32c(segment.log.as_bytes());
    let sum = crc32c::crc32c_append(sum, &segment.first_group.to_le_bytes());
    crc32c::crc32c_append(sum, header)
}

/// The first 4 bytes; callers have checked that they are there.
fn word(bytes: &[u8]) -> u32 {
    bytes
        .first_chunk()
        .map_or(0, |chunk| u32::from_le_bytes(*chunk))
}

fn long(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: SegmentHeader = SegmentHeader {
        log: Uuid::from_u128(7),
        first_group: 3,
    };

    #[test]
    fn groups_come_back_and_flipped_bits_are_noticed() {
        let mut frame = vec![0; GROUP_HEADER];
        frame.extend_from_slice(b"payload");
        seal(&mut frame, &SEGMENT, 5, 4);
        let good = Bytes::from(frame.clone());
        let group = Group {
            number: 5,
            synced: 4,
            payload: Bytes::from_static(b"payload"),
        };
        assert_eq!(open(&good, &SEGMENT), Some(group));
        assert_eq!(good.len(), Group::framed_bytes(7));
        for bit in (0..28 * 8).chain(GROUP_HEADER * 8..(GROUP_HEADER + 7) * 8) {
            let mut bad = frame.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(&bad.into(), &SEGMENT), None, "bit {bit}");
        }
        let mut last = vec![0; GROUP_HEADER];
        seal(&mut last, &SEGMENT, MAX_NUMBER, 4);
        assert!(open(&last.into(), &SEGMENT).is_some());
        let mut beyond = vec![0; GROUP_HEADER];
        seal(&mut beyond, &SEGMENT, MAX_NUMBER + 1, 4);
        assert_eq!(open(&beyond.into(), &SEGMENT), None, "no such number");
        let other = SegmentHeader {
            first_group: 4,
            ..SEGMENT
        };
        assert_eq!(
            open(&good, &other),
            None,
            "a group of another segment is none here"
        );
    }

    #[test]
    fn segment_headers_come_back() {
        let header = SEGMENT.encode();
        assert_eq!(SegmentHeader::decode(&header), Ok(SEGMENT));
        let beyond = SegmentHeader {
            first_group: MAX_NUMBER + 1,
            ..SEGMENT
        };
        assert_eq!(
            SegmentHeader::decode(&beyond.encode()),
            Err(BadHeader::Damaged)
        );
        for length in 0..36 {
            assert_eq!(
                SegmentHeader::decode(&header[..length]),
                Err(BadHeader::Damaged)
            );
        }
    }
}

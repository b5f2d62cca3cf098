//! Finding valid groups past damage, in time linear in the segment whatever its bytes.
//!
//! Every multiple of 8 may start a group, and what looks like one names its own length, so checking each on its own takes the
//! square of the segment's length where someone stored what looks like groups. Instead the checksum of any run of bytes comes
//! from the sums up to its two ends:
//!
//! ```text
//! sums[i]                  CRC-32C of the first i × STRIDE bytes
//! c, then bytes a..b    =  sum(b) ⊕ zeros(c ⊕ sum(a), b - a)        zeros(s, n): what n zero bytes make of s, linear in s
//! ```
//!
//! **Invariants**: what is found is what [`frame::open`] opens, no more and no less (test below).

use std::sync::LazyLock;

use bytes::Bytes;

use super::frame::{self, Frame, Group, SegmentHeader};

/// Bytes between two sums.
const STRIDE: usize = 64;
/// CRC-32C's polynomial, lowest bit first.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// A search through one segment.
pub(crate) struct Search<'a> {
    bytes: &'a Bytes,
    header: &'a SegmentHeader,
    /// Made when the first is needed.
    sums: Vec<u32>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(bytes: &'a Bytes, header: &'a SegmentHeader) -> Self {
        Self {
            bytes,
            header,
            sums: Vec::new(),
        }
    }

    /// The first valid group at `from` or after it whose frame is `wanted`, and its offset.
    pub(crate) fn find(
        &mut self,
        from: usize,
        wanted: impl Fn(&Frame) -> bool,
    ) -> Option<(usize, Group)> {
        let bytes = self.bytes;
        frame::candidates(bytes, from).find_map(|at| {
            let frame = Frame::decode(&bytes[at..]).filter(&wanted)?;
            let start = at + frame::GROUP_HEADER;
            let sum = self.append(frame.sum(self.header), start, start + frame.payload);
            (sum == frame.checksum).then(|| (at, frame.group(bytes, at)))
        })
    }

    /// The checksum of what `sum` is of and the bytes `from..to`.
    fn append(&mut self, sum: u32, from: usize, to: usize) -> u32 {
        if self.sums.is_empty() {
            self.sums = vec![0];
            self.sums
                .extend(self.bytes.chunks(STRIDE).scan(0, |sum, chunk| {
                    *sum = crc32c::crc32c_append(*sum, chunk);
                    Some(*sum)
                }));
        }
        self.up_to(to) ^ zeros(sum ^ self.up_to(from), to - from)
    }

    fn up_to(&self, end: usize) -> u32 {
        let stride = end / STRIDE;
        crc32c::crc32c_append(self.sums[stride], &self.bytes[stride * STRIDE..end])
    }
}

/// By power of two, what so many zero bytes make of each bit of a sum.
static POWERS: LazyLock<[[u32; 32]; 32]> = LazyLock::new(|| {
    let mut powers = [[0; 32]; 32];
    powers[0] = std::array::from_fn(|bit| {
        (0..8).fold(1 << bit, |sum: u32, _| {
            (sum >> 1) ^ if sum & 1 == 1 { POLYNOMIAL } else { 0 }
        })
    });
    for i in 1..powers.len() {
        powers[i] = powers[i - 1].map(|sum| apply(&powers[i - 1], sum));
    }
    powers
});

fn apply(matrix: &[u32; 32], sum: u32) -> u32 {
    let bits = matrix.iter().enumerate();
    bits.fold(0, |out, (bit, column)| {
        out ^ if sum >> bit & 1 == 1 { *column } else { 0 }
    })
}

/// What `count` zero bytes make of a sum; `count` is below 2^32.
fn zeros(sum: u32, count: usize) -> u32 {
    let powers = POWERS.iter().enumerate();
    powers
        .filter(|(i, _)| count >> i & 1 == 1)
        .fold(sum, |sum, (_, power)| apply(power, sum))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    const SEGMENT: SegmentHeader = SegmentHeader {
        log: Uuid::from_u128(7),
        first_group: 3,
    };

    fn group(number: u64, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; frame::GROUP_HEADER];
        frame.extend_from_slice(payload);
        frame::seal(&mut frame, &SEGMENT, number, number - 1);
        frame
    }

    /// Groups, one of them inside another, and what only looks like one; some bytes flipped.
    fn segment() -> impl Strategy<Value = Vec<u8>> {
        let payload = proptest::collection::vec(any::<u8>(), 0..200);
        let part = prop_oneof![
            payload.clone(),
            (1..50_u64, payload.clone()).prop_map(|(number, payload)| group(number, &payload)),
            payload
                .clone()
                .prop_map(|payload| group(7, &group(8, &payload))),
            payload.prop_map(|payload| [b"TMLG".as_slice(), &payload].concat()),
        ];
        let parts = proptest::collection::vec(part, 0..8).prop_map(|parts| {
            let aligned = |mut part: Vec<u8>| {
                part.resize(part.len().next_multiple_of(8), 0);
                part
            };
            parts.into_iter().flat_map(aligned).collect::<Vec<_>>()
        });
        (parts, proptest::collection::vec(any::<u16>(), 0..3)).prop_map(|(mut bytes, flips)| {
            for flip in flips {
                if let Some(byte) = bytes.get_mut(usize::from(flip) / 8) {
                    *byte ^= 1 << (flip % 8);
                }
            }
            bytes
        })
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_opens(bytes in segment(), from in 0..64_usize) {
            let bytes = Bytes::from(bytes);
            let mut search = Search::new(&bytes, &SEGMENT);
            let mut at = from;
            let opened = frame::candidates(&bytes, from)
                .filter_map(|at| Some((at, frame::open(&bytes.slice(at..), &SEGMENT)?)));
            for expected in opened.map(Some).chain([None]) {
                let found = search.find(at, |_| true);
                at = found.as_ref().map_or(bytes.len(), |(at, _)| at + 1);
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn a_segment_full_of_what_looks_like_groups_is_searched_fast() {
        // Each would be all that follows: 2^19 of them, 2^40 bytes to sum.
        let mut bytes = vec![0; 16 << 20];
        let length = bytes.len();
        for at in (0..length - frame::GROUP_HEADER).step_by(32) {
            let payload = (length - at - frame::GROUP_HEADER) as u32;
            bytes[at..at + 4].copy_from_slice(b"TMLG");
            bytes[at + 4..at + 8].copy_from_slice(&payload.to_le_bytes());
        }
        let bytes = Bytes::from(bytes);
        let start = std::time::Instant::now();
        assert!(Search::new(&bytes, &SEGMENT).find(0, |_| true).is_none());
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    }
}

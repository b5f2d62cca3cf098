//! What stands under a stored key: how it is kept, and how much of it there is.
//!
//! ```text
//! plain     the value's bytes
//! tombstone nothing: hides what is older at the same row, column and timestamp
//! packed    codec u8 │ value's length varint │ the value, compressed on its own
//! large     value's length varint │ offset u64 │ length of each stored chunk u32 …      (the chunks stand apart in the file)
//! ```
//! **Invariants**: a codec is one of the compressions'; a large value is cut into chunks of [`CHUNK_BYTES`], the last may be
//! shorter, so their number follows from its length.

use bytes::Bytes;

use super::sst::block::{push_varint, varint};
use super::sst::{MAX_RAW, decompress};

/// Bytes of a large value in a chunk, before compression.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;

/// How a value is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    Tombstone,
    Packed,
    Large,
}

impl Kind {
    /// Its number on disk.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Plain => 0,
            Self::Tombstone => 1,
            Self::Packed => 2,
            Self::Large => 3,
        }
    }

    pub(crate) fn of(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Plain,
            1 => Self::Tombstone,
            2 => Self::Packed,
            3 => Self::Large,
            _ => return None,
        })
    }
}

/// What is stored under a key, lent by a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored<'a> {
    pub(crate) kind: Kind,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Stored<'a> {
    pub(crate) const TOMBSTONE: Stored<'static> = Stored {
        kind: Kind::Tombstone,
        bytes: &[],
    };

    pub(crate) fn new(kind: Kind, bytes: &'a [u8]) -> Self {
        Self { kind, bytes }
    }

    pub(crate) fn is_tombstone(&self) -> bool {
        self.kind == Kind::Tombstone
    }

    /// The value's length; `None`: damaged.
    pub(crate) fn value_length(&self) -> Option<u64> {
        match self.kind {
            Kind::Plain => Some(self.bytes.len() as u64),
            Kind::Tombstone => Some(0),
            Kind::Packed => Some(Packed::decode(self.bytes)?.length),
            Kind::Large => Some(Large::decode(self.bytes)?.length),
        }
    }
}

/// A value compressed on its own.
pub(crate) struct Packed<'a> {
    pub(crate) codec: u8,
    pub(crate) length: u64,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Packed<'a> {
    pub(crate) fn decode(stored: &'a [u8]) -> Option<Self> {
        let codec = *stored.first()?;
        let mut at = 1;
        let length = varint(stored, &mut at)?;
        Some(Self {
            codec,
            length,
            bytes: stored.get(at..)?,
        })
    }

    /// The value; `None`: damaged.
    pub(crate) fn open(&self) -> Option<Bytes> {
        decompress(self.codec, self.bytes, usize::try_from(self.length).ok()?)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.codec);
        push_varint(out, self.length);
        out.extend_from_slice(self.bytes);
    }
}

/// Where a large value's chunks stand.
pub(crate) struct Large<'a> {
    pub(crate) length: u64,
    /// The first chunk's offset in the file; the others follow without gaps.
    pub(crate) offset: u64,
    lengths: &'a [u8],
}

impl<'a> Large<'a> {
    pub(crate) fn decode(stored: &'a [u8]) -> Option<Self> {
        let mut at = 0;
        let length = varint(stored, &mut at).filter(|length| *length <= MAX_RAW as u64)?;
        let offset = u64::from_le_bytes(*stored.get(at..)?.first_chunk()?);
        let lengths = stored.get(at + 8..)?;
        let chunks = length.div_ceil(CHUNK_BYTES as u64);
        (lengths.len() as u64 == chunks * 4).then_some(Self {
            length,
            offset,
            lengths,
        })
    }

    pub(crate) fn encode(length: u64, offset: u64, lengths: &[u32]) -> Vec<u8> {
        let mut out = Vec::with_capacity(14 + 4 * lengths.len());
        push_varint(&mut out, length);
        out.extend_from_slice(&offset.to_le_bytes());
        for length in lengths {
            out.extend_from_slice(&length.to_le_bytes());
        }
        out
    }

    /// Chunks: offset in the file, stored length.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (u64, u32)> + use<'a> {
        let lengths = self.lengths.chunks_exact(4).map(|word| {
            word.first_chunk()
                .map_or(0, |word| u32::from_le_bytes(*word))
        });
        lengths.scan(self.offset, |offset, length| {
            let at = *offset;
            *offset = at.saturating_add(u64::from(length));
            Some((at, length))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_values_come_back_and_their_chunks_follow_each_other() {
        let length = 2 * CHUNK_BYTES as u64 + 1;
        let stored = Large::encode(length, 77, &[10, 20, 30]);
        let large = Large::decode(&stored).expect("large");
        assert_eq!((large.length, large.offset), (length, 77));
        assert_eq!(
            large.chunks().collect::<Vec<_>>(),
            [(77, 10), (87, 20), (107, 30)]
        );
        assert_eq!(
            Stored::new(Kind::Large, &stored).value_length(),
            Some(length)
        );
        let length = MAX_RAW as u64 + 1;
        let lengths = vec![1; length.div_ceil(CHUNK_BYTES as u64) as usize];
        assert!(
            Large::decode(&Large::encode(length, 0, &lengths)).is_none(),
            "longer than any value"
        );
        for cut in 0..stored.len() {
            assert!(Large::decode(&stored[..cut]).is_none(), "{cut}");
        }
    }

    #[test]
    fn packed_values_come_back() {
        let mut stored = Vec::new();
        let bytes = b"xyz".as_slice();
        Packed {
            codec: 2,
            length: 300,
            bytes,
        }
        .encode(&mut stored);
        let packed = Packed::decode(&stored).expect("packed");
        assert_eq!((packed.codec, packed.length, packed.bytes), (2, 300, bytes));
        assert!(Packed::decode(&[]).is_none());
    }
}

//! Rows as the chunks of ReadRows, written straight into a message's bytes.
//!
//! ```text
//! row begins → cell… → row ends (its last chunk is marked) → … → take: a message
//! ```
//! **Invariants**: a row that was begun and had a cell ends with `commit_row` on its last chunk; row key, family and qualifier stand
//! only where they change; a value goes into pieces of at most [`PIECE_BYTES`], of which all but the last tell the whole length;
//! a message holds whole rows of at most [`MESSAGE_BYTES`] together, or one of at most [`ROW_MESSAGE_BYTES`]; longer rows go in parts.

use bytes::{BufMut, Bytes, BytesMut};
use prost::encoding::{DecodeContext, WireType, encode_varint, encoded_len_varint};
use prost::{DecodeError, Message};

use super::filter::{Cell, Emit};

/// A value's piece in one chunk.
const PIECE_BYTES: usize = 512 << 10;
/// The most bytes of a message, unless one row has more.
pub(crate) const MESSAGE_BYTES: usize = 1 << 20;
/// The most bytes of a message with one row: some clients take whole rows only, and no more than 4 MiB at once.
pub(crate) const ROW_MESSAGE_BYTES: usize = 3 << 20;
/// The length of a chunk is written after it, in as many bytes as the longest needs.
const LENGTH_BYTES: usize = 4;
/// What a chunk takes beside value and keys, at the most: tags, lengths, timestamp, family, label, size, the mark of a row's end.
const CHUNK_OVERHEAD: usize = 160;

// Fields, as tags with their wire types.
const CHUNKS: u8 = 1 << 3 | 2;
const LAST_SCANNED: u8 = 2 << 3 | 2;
const STATS: u8 = 3 << 3 | 2;
const ROW_KEY: u8 = 1 << 3 | 2;
const FAMILY: u8 = 2 << 3 | 2;
const QUALIFIER: u8 = 3 << 3 | 2;
const TIMESTAMP: u8 = 4 << 3;
const LABELS: u8 = 5 << 3 | 2;
const VALUE: u8 = 6 << 3 | 2;
const VALUE_SIZE: u8 = 7 << 3;
const COMMIT_ROW: u8 = 9 << 3;
/// Of the wrappers around family and qualifier.
const WRAPPED: u8 = 1 << 3 | 2;

/// A ReadRowsResponse, encoded.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(
    unreachable_pub,
    reason = "generated code has it in a public signature"
)]
pub struct ReadRowsMessage(Bytes);

impl Message for ReadRowsMessage {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        buf.put(self.0.clone());
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl bytes::Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        // A server sends these and receives none.
        prost::encoding::skip_field(wire_type, tag, buf, context)
    }

    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

/// Writes rows.
pub(crate) struct Chunks {
    out: BytesMut,
    /// Where messages end, between chunks of `out`.
    ends: Vec<usize>,
    /// Where the row begins in `out`, and whether it is so long that it goes in parts.
    row_start: usize,
    in_parts: bool,
    /// Names of the families, by their place.
    families: Vec<Box<str>>,
    row: Vec<u8>,
    /// The row's first cell was written.
    in_row: bool,
    family: usize,
    qualifier: Vec<u8>,
    /// Where the last chunk's length stands.
    chunk: usize,
    pub(crate) rows: u64,
    pub(crate) cells: u64,
}

impl Chunks {
    pub(crate) fn new(families: Vec<Box<str>>) -> Self {
        Self {
            out: BytesMut::new(),
            ends: Vec::new(),
            row_start: 0,
            in_parts: false,
            families,
            row: Vec::new(),
            in_row: false,
            family: usize::MAX,
            qualifier: Vec::new(),
            chunk: 0,
            rows: 0,
            cells: 0,
        }
    }

    /// A row begins; without a cell it leaves nothing behind.
    pub(crate) fn begin_row(&mut self, row: &[u8]) {
        self.row.clear();
        self.row.extend_from_slice(row);
        self.in_row = false;
        (self.row_start, self.in_parts) = (self.out.len(), false);
        self.family = usize::MAX;
    }

    /// The row is complete. Returns whether it had a cell.
    pub(crate) fn end_row(&mut self) -> bool {
        if self.in_row {
            self.out.put_slice(&[COMMIT_ROW, 1]);
            self.close_chunk();
            self.rows += 1;
        }
        std::mem::take(&mut self.in_row)
    }

    /// Ends a message here, between rows.
    pub(crate) fn end_message(&mut self) {
        self.ends.push(self.out.len());
    }

    /// Bytes that wait to be taken.
    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether none do.
    pub(crate) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Takes what was written as messages. Inside of a row its last chunk stays: it may be the row's last.
    pub(crate) fn take(&mut self) -> Vec<ReadRowsMessage> {
        let upto = match self.in_row {
            true => self.chunk - 1,
            false => self.out.len(),
        };
        self.ends.retain(|end| *end < upto);
        self.ends.push(upto);
        let (mut messages, mut from) = (Vec::with_capacity(self.ends.len()), 0);
        for end in self.ends.drain(..) {
            let message = self.out.split_to(end - from).freeze();
            messages.push(ReadRowsMessage(message));
            from = end;
        }
        self.chunk = self.chunk.saturating_sub(upto);
        self.row_start = self.row_start.saturating_sub(upto);
        messages.retain(|message| !message.0.is_empty());
        messages
    }

    /// Says that all rows up to this one are seen.
    pub(crate) fn last_scanned(&mut self, row: &[u8]) {
        field(&mut self.out, LAST_SCANNED, row);
    }

    /// Adds the request's statistics, encoded.
    pub(crate) fn stats(&mut self, stats: &[u8]) {
        field(&mut self.out, STATS, stats);
    }

    /// Begins a chunk with about so many bytes of value and keys.
    fn open_chunk(&mut self, bytes: usize) {
        let bytes = bytes + CHUNK_OVERHEAD;
        self.out.reserve(bytes);
        let (at, mut from) = (self.out.len(), self.ends.last().copied().unwrap_or(0));
        if at > from && at - from + bytes > MESSAGE_BYTES {
            if self.row_start > from {
                self.ends.push(self.row_start);
                from = self.row_start;
            }
            self.in_parts |= at - from + bytes > ROW_MESSAGE_BYTES;
            if self.in_parts && at - from + bytes > MESSAGE_BYTES {
                self.ends.push(at);
            }
        }
        self.out.put_u8(CHUNKS);
        self.chunk = self.out.len();
        self.out.put_bytes(0, LENGTH_BYTES);
    }

    /// Writes the last chunk's length.
    fn close_chunk(&mut self) {
        let mut length = self.out.len() - self.chunk - LENGTH_BYTES;
        let bytes = &mut self.out[self.chunk..self.chunk + LENGTH_BYTES];
        for (i, byte) in bytes.iter_mut().enumerate() {
            let more = if i + 1 < LENGTH_BYTES { 0x80 } else { 0 };
            *byte = (length & 0x7f) as u8 | more;
            length >>= 7;
        }
    }
}

impl Emit for Chunks {
    fn emit(&mut self, cell: Cell<'_>) {
        self.cells += 1;
        let mut pieces = cell.value.chunks(PIECE_BYTES);
        let first = pieces.next().unwrap_or_default();
        let row = if self.in_row { 0 } else { self.row.len() };
        self.open_chunk(first.len() + cell.qualifier.len() + row);
        if !self.in_row {
            field(&mut self.out, ROW_KEY, &self.row);
            self.in_row = true;
        }
        let new_family = self.family != cell.family;
        if new_family {
            self.family = cell.family;
            let name = self.families.get(cell.family).map_or("", |name| name);
            wrapped(&mut self.out, FAMILY, name.as_bytes());
        }
        if new_family || self.qualifier != cell.qualifier {
            self.qualifier.clear();
            self.qualifier.extend_from_slice(cell.qualifier);
            wrapped(&mut self.out, QUALIFIER, cell.qualifier);
        }
        if cell.timestamp != 0 {
            self.out.put_u8(TIMESTAMP);
            encode_varint(cell.timestamp as u64, &mut self.out);
        }
        if let Some(label) = cell.label {
            field(&mut self.out, LABELS, label.as_bytes());
        }
        let mut left = cell.value.len() - first.len();
        self.value(first, left, cell.value.len());
        for piece in pieces {
            left -= piece.len();
            self.open_chunk(piece.len());
            self.value(piece, left, cell.value.len());
        }
    }
}

impl Chunks {
    fn value(&mut self, piece: &[u8], left: usize, whole: usize) {
        if !piece.is_empty() {
            field(&mut self.out, VALUE, piece);
        }
        if left > 0 {
            self.out.put_u8(VALUE_SIZE);
            encode_varint(whole as u64, &mut self.out);
        }
        self.close_chunk();
    }
}

fn field(out: &mut BytesMut, tag: u8, bytes: &[u8]) {
    out.put_u8(tag);
    encode_varint(bytes.len() as u64, out);
    out.put_slice(bytes);
}

/// A StringValue or BytesValue.
fn wrapped(out: &mut BytesMut, tag: u8, bytes: &[u8]) {
    out.put_u8(tag);
    if bytes.is_empty() {
        out.put_u8(0);
        return;
    }
    let length = bytes.len() as u64;
    encode_varint(1 + encoded_len_varint(length) as u64 + length, out);
    field(out, WRAPPED, bytes);
}

#[cfg(test)]
pub(super) mod tests;

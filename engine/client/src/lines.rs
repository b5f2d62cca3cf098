//! Splits the bytes of a page, as they come, into lines.
//!
//! **Invariants**: a byte is looked at once, whatever the sizes of lines and chunks; no line is held beyond the limit.

use bytes::{Bytes, BytesMut};

/// The longest line: one cell of 100 MiB in base64, with row key, qualifier and room for the frame.
pub(crate) const MAX_LINE_BYTES: usize = 160 << 20;

/// Bytes that did not make a line yet.
pub(crate) struct LineBuffer {
    buffer: BytesMut,
    searched: usize,
    limit: usize,
}

/// A line is longer than the limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LongLine;

impl LineBuffer {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            limit,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line, without its line feed.
    pub(crate) fn next_line(&mut self) -> Result<Option<Bytes>, LongLine> {
        let found = self.buffer[self.searched..]
            .iter()
            .position(|byte| *byte == b'\n');
        let length = found.map_or(self.buffer.len(), |index| self.searched + index);
        if length > self.limit {
            return Err(LongLine);
        }
        self.searched = if found.is_some() { 0 } else { length };
        Ok(found.map(|_| {
            let line = self.buffer.split_to(length + 1).freeze();
            line.slice(..length)
        }))
    }

    /// Whether bytes are left that make no line.
    pub(crate) fn has_rest(&self) -> bool {
        !self.buffer.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_whole_whatever_the_chunks() {
        let text = b"first\n\nthird line\nrest";
        for size in 1..text.len() {
            let mut lines = LineBuffer::new(100);
            let mut found = Vec::new();
            for chunk in text.chunks(size) {
                lines.push(chunk);
                while let Some(line) = lines.next_line().expect("short") {
                    found.push(line);
                }
            }
            assert_eq!(found, ["first", "", "third line"], "chunks of {size}");
            assert!(lines.has_rest());
        }
    }

    #[test]
    fn a_line_over_the_limit_is_refused_before_its_end_comes() {
        let mut lines = LineBuffer::new(4);
        lines.push(b"1234");
        assert_eq!(lines.next_line(), Ok(None));
        lines.push(b"\n12345");
        assert_eq!(lines.next_line(), Ok(Some(Bytes::from_static(b"1234"))));
        assert_eq!(lines.next_line(), Err(LongLine));
    }
}

//! Blocks: sorted entries with prefix-compressed keys and restart points.
//!
//! ```text
//! block = entry … │ restart offset u32 … │ restarts u32                     (before compression)
//! entry = shared varint │ unshared varint │ kind u8 │ value length varint │ key's rest │ value
//! ```
//! Kinds are [`Kind`]'s. At a restart the key stands whole (`shared` = 0): every 16th entry of a data block, every one of an
//! index block.
//!
//! **Invariants**: keys rise strictly; bytes from disk are checked at each step, a bad length ends in `None`, never in a panic.

mod cursor;
#[cfg(test)]
mod tests;
mod view;
mod window;

pub(crate) use self::cursor::{BlockCursor, Skipped};
pub(super) use self::view::View;
use crate::storage::entry::Kind;

/// Entries between restarts of a data block.
pub(crate) const DATA_RESTARTS: usize = 16;
/// Every key of an index block stands whole: a search compares without decoding.
pub(crate) const INDEX_RESTARTS: usize = 1;

/// Builds a block.
pub(crate) struct BlockBuilder {
    out: Vec<u8>,
    restarts: Vec<u32>,
    interval: usize,
    since_restart: usize,
    last_key: Vec<u8>,
}

impl BlockBuilder {
    pub(crate) fn new(interval: usize) -> Self {
        Self {
            out: Vec::new(),
            restarts: Vec::new(),
            interval,
            since_restart: 0,
            last_key: Vec::new(),
        }
    }

    /// Appends an entry; keys rise.
    pub(crate) fn push(&mut self, key: &[u8], kind: Kind, value: &[u8]) {
        debug_assert!(self.is_empty() || self.last_key.as_slice() < key);
        let shared = if self.restarts.is_empty() || self.since_restart == self.interval {
            self.restarts.push(self.out.len() as u32);
            self.since_restart = 0;
            0
        } else {
            common(&self.last_key, key)
        };
        self.since_restart += 1;
        push_varint(&mut self.out, shared as u64);
        push_varint(&mut self.out, (key.len() - shared) as u64);
        self.out.push(kind.code());
        push_varint(&mut self.out, value.len() as u64);
        self.out.extend_from_slice(&key[shared..]);
        self.out.extend_from_slice(value);
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.restarts.is_empty()
    }

    /// Bytes so far.
    pub(crate) fn bytes(&self) -> usize {
        self.out.len() + 4 * self.restarts.len() + 4
    }

    /// The highest key.
    pub(crate) fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Puts the block into `out`; the builder is empty again.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.out);
        for restart in &self.restarts {
            out.extend_from_slice(&restart.to_le_bytes());
        }
        out.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        self.out.clear();
        self.restarts.clear();
        self.since_restart = 0;
        self.last_key.clear();
    }
}

/// Length of the longest prefix of both.
pub(crate) fn common(a: &[u8], b: &[u8]) -> usize {
    let most = a.len().min(b.len());
    let mut at = 0;
    while at + 8 <= most && a[at..at + 8] == b[at..at + 8] {
        at += 8;
    }
    while at < most && a[at] == b[at] {
        at += 1;
    }
    at
}

/// Reads a LEB128 number of at most 5 bytes (35 bits).
#[inline]
pub(crate) fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let first = *bytes.get(*at)?;
    *at += 1;
    if first < 0x80 {
        return Some(u64::from(first));
    }
    let mut value = u64::from(first & 0x7f);
    for shift in (7..35).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Appends a LEB128 number.
pub(crate) fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

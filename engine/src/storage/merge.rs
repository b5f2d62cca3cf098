//! Merging: one sorted stream of a family's entries over memtables and SSTs, which seeks.
//!
//! Owns neither visibility nor deletes: see [`crate::storage::visible`].
//!
//! **Invariants**: entries come in key order, each once (a key is unique: its sequence number is); those above the snapshot's
//! sequence number are left out at the memtables, and SSTs hold none (what is flushed is durable before the snapshot).

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use super::memtable::Memtable;
use super::sst::SstCursor;
use crate::Result;

/// What is stored under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stored {
    Put(Bytes),
    /// Hides what is older at the same row, column and timestamp.
    Tombstone,
}

impl Stored {
    /// Bytes of the value.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Put(value) => value.len(),
            Self::Tombstone => 0,
        }
    }
}

/// A place in one source.
pub(crate) enum Cursor {
    Memtable(MemtableCursor),
    Sst(Box<SstCursor>),
}

impl Cursor {
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        match self {
            Self::Memtable(cursor) => {
                cursor.fill(Bound::Included(key));
                Ok(())
            }
            Self::Sst(cursor) => cursor.seek(key),
        }
    }

    fn next(&mut self) -> Result<()> {
        match self {
            Self::Memtable(cursor) => {
                cursor.next();
                Ok(())
            }
            Self::Sst(cursor) => cursor.next(),
        }
    }

    fn key(&self) -> Option<&[u8]> {
        match self {
            Self::Memtable(cursor) => cursor.entry().map(|(key, _)| key.as_ref()),
            Self::Sst(cursor) => cursor.key(),
        }
    }

    fn stored(&self) -> Option<Stored> {
        match self {
            Self::Memtable(cursor) => cursor.entry().map(|(_, stored)| stored.clone()),
            Self::Sst(cursor) => cursor.stored(),
        }
    }

    /// The last key below `key`.
    fn last_below(&mut self, key: &[u8]) -> Result<Option<Bytes>> {
        match self {
            Self::Memtable(cursor) => Ok(cursor
                .memtable
                .last_below(key, cursor.sequence)
                .map(|(key, _)| key)),
            Self::Sst(cursor) => cursor.last_below(key),
        }
    }
}

/// Reads a memtable in chunks, so that a step is no search in the skip list.
pub(crate) struct MemtableCursor {
    memtable: Arc<Memtable>,
    sequence: u64,
    chunk: Vec<(Bytes, Stored)>,
    at: usize,
    /// Entries to fetch next: small after a seek (a get needs few), then growing.
    fetch: usize,
}

impl MemtableCursor {
    const FIRST_FETCH: usize = 4;
    const MAX_FETCH: usize = 256;

    pub(crate) fn new(memtable: Arc<Memtable>, sequence: u64) -> Self {
        Self {
            memtable,
            sequence,
            chunk: Vec::new(),
            at: 0,
            fetch: Self::FIRST_FETCH,
        }
    }

    fn entry(&self) -> Option<&(Bytes, Stored)> {
        self.chunk.get(self.at)
    }

    fn fill(&mut self, from: Bound<&[u8]>) {
        if let Bound::Included(key) = from {
            if self.holds(key) {
                self.at = self
                    .chunk
                    .partition_point(|(stored, _)| stored.as_ref() < key);
                return;
            }
            self.fetch = Self::FIRST_FETCH;
        }
        self.chunk.clear();
        self.at = 0;
        self.memtable
            .chunk(from, self.sequence, self.fetch, &mut self.chunk);
        self.fetch = (self.fetch * 2).min(Self::MAX_FETCH);
    }

    /// Whether the first entry at or after `key` is in the chunk.
    fn holds(&self, key: &[u8]) -> bool {
        match (self.chunk.first(), self.chunk.last()) {
            (Some((first, _)), Some((last, _))) => first.as_ref() <= key && key <= last.as_ref(),
            _ => false,
        }
    }

    fn next(&mut self) {
        self.at += 1;
        if self.at == self.chunk.len()
            && let Some((last, _)) = self.chunk.pop()
        {
            self.fill(Bound::Excluded(&last));
        }
    }
}

/// The merge of several sources.
pub(crate) struct MergeCursor {
    sources: Vec<Cursor>,
    /// The source with the lowest key.
    lowest: Option<usize>,
}

impl MergeCursor {
    pub(crate) fn new(sources: Vec<Cursor>) -> Self {
        Self {
            sources,
            lowest: None,
        }
    }

    /// Goes to the first entry at or after `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        for source in &mut self.sources {
            source.seek(key)?;
        }
        self.find_lowest();
        Ok(())
    }

    /// Like [`MergeCursor::seek`], where `key` is not before the present place: sources already there do not move.
    pub(crate) fn seek_forward(&mut self, key: &[u8]) -> Result<()> {
        for source in &mut self.sources {
            if source.key().is_some_and(|at| at < key) {
                source.seek(key)?;
            }
        }
        self.find_lowest();
        Ok(())
    }

    /// Goes to the next entry.
    pub(crate) fn next(&mut self) -> Result<()> {
        if let Some(lowest) = self.lowest {
            self.sources[lowest].next()?;
            self.find_lowest();
        }
        Ok(())
    }

    /// The key at this place; `None` at the end.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.sources[self.lowest?].key()
    }

    /// What is stored at this place.
    pub(crate) fn stored(&self) -> Option<Stored> {
        self.sources[self.lowest?].stored()
    }

    /// The last key below `key` in any source. The place is undefined afterwards: seek before reading on.
    pub(crate) fn last_below(&mut self, key: &[u8]) -> Result<Option<Bytes>> {
        let mut last: Option<Bytes> = None;
        for source in &mut self.sources {
            last = last.max(source.last_below(key)?);
        }
        Ok(last)
    }

    fn find_lowest(&mut self) {
        self.lowest = match self.sources.as_slice() {
            [only] => only.key().map(|_| 0),
            sources => {
                let keys = sources
                    .iter()
                    .enumerate()
                    .filter_map(|(i, source)| Some((source.key()?, i)));
                keys.min().map(|(_, i)| i)
            }
        };
    }
}

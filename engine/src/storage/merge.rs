//! Merging: one sorted stream of a family's entries over memtables and SSTs, which seeks, skips and walks down by rows.
//!
//! Owns neither visibility nor deletes: see [`crate::storage::visible`].
//!
//! **Invariants**: entries come in key order, each once (a key is unique: its sequence number is); those above the snapshot's
//! sequence number are left out at the memtables, and SSTs hold none (what is flushed is durable before the snapshot). Keys and
//! values are lent, nothing is allocated per entry. A source that waits (`not_before`) holds nothing below that key, and is
//! first looked into when the merge gets there.

use std::ops::{Bound, Range};
use std::sync::Arc;

use bytes::Bytes;

use super::entry::{Kind, Stored};
use super::keys;
use super::memtable::{Entries, Entry, Memtable};
use super::sst::SstCursor;
use crate::{Error, Result};

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

    #[inline]
    fn next(&mut self) -> Result<()> {
        match self {
            Self::Memtable(cursor) => {
                cursor.next();
                Ok(())
            }
            Self::Sst(cursor) => cursor.next(),
        }
    }

    fn skip_prefix(&mut self, length: usize, above: &[u8]) -> Result<()> {
        match self {
            Self::Memtable(cursor) => {
                cursor.fill(Bound::Included(above));
                Ok(())
            }
            Self::Sst(cursor) => cursor.skip_prefix(length, above),
        }
    }

    #[inline]
    fn key(&self) -> Option<&[u8]> {
        match self {
            Self::Memtable(cursor) => cursor.entry().map(Entry::key),
            Self::Sst(cursor) => cursor.key(),
        }
    }

    #[inline]
    fn key_and_kind(&self) -> Option<(&[u8], Kind)> {
        match self {
            Self::Memtable(cursor) => {
                let entry = cursor.entry()?;
                Some((entry.key(), entry.stored().kind))
            }
            Self::Sst(cursor) => cursor.key_and_kind(),
        }
    }

    #[inline]
    fn stored(&self) -> Option<Stored<'_>> {
        match self {
            Self::Memtable(cursor) => cursor.entry().map(Entry::stored),
            Self::Sst(cursor) => cursor.stored(),
        }
    }

    fn value(&self, range: Option<Range<u64>>) -> Result<Bytes> {
        match self {
            Self::Memtable(cursor) => {
                let value = cursor.entry().map(Entry::value_bytes).unwrap_or_default();
                Ok(match range {
                    Some(range) => value.slice(range.start as usize..range.end as usize),
                    None => value,
                })
            }
            Self::Sst(cursor) => cursor.value(range),
        }
    }

    /// Puts the last key below `key` into `out`; returns whether there is one.
    fn last_below(&mut self, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        match self {
            Self::Memtable(cursor) => {
                let last = cursor.entries().last_below(key, cursor.sequence);
                if let Some(last) = &last {
                    out.clear();
                    out.extend_from_slice(last.key());
                }
                Ok(last.is_some())
            }
            Self::Sst(cursor) => cursor.last_below(key, out),
        }
    }
}

/// Which of a memtable's sorted parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Cells,
    Wide,
}

/// Reads a memtable in chunks, so that a step is no search in the skip list.
pub(crate) struct MemtableCursor {
    memtable: Arc<Memtable>,
    part: Part,
    sequence: u64,
    chunk: Vec<Entry>,
    at: usize,
    /// Entries to fetch next: small after a seek (a get needs few), then growing.
    fetch: usize,
}

impl MemtableCursor {
    const FIRST_FETCH: usize = 4;
    const MAX_FETCH: usize = 256;

    pub(crate) fn new(memtable: Arc<Memtable>, part: Part, sequence: u64) -> Self {
        Self {
            memtable,
            part,
            sequence,
            chunk: Vec::new(),
            at: 0,
            fetch: Self::FIRST_FETCH,
        }
    }

    fn entries(&self) -> &Entries {
        match self.part {
            Part::Cells => &self.memtable.cells,
            Part::Wide => &self.memtable.wide,
        }
    }

    #[inline]
    fn entry(&self) -> Option<&Entry> {
        self.chunk.get(self.at)
    }

    fn fill(&mut self, from: Bound<&[u8]>) {
        if let Bound::Included(key) = from {
            if self.holds(key) {
                self.at = self.chunk.partition_point(|entry| entry.key() < key);
                return;
            }
            self.fetch = Self::FIRST_FETCH;
        }
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.clear();
        self.entries()
            .chunk(from, self.sequence, self.fetch, &mut chunk);
        (self.chunk, self.at) = (chunk, 0);
        self.fetch = (self.fetch * 2).min(Self::MAX_FETCH);
    }

    /// Whether the first entry at or after `key` is in the chunk.
    fn holds(&self, key: &[u8]) -> bool {
        match (self.chunk.first(), self.chunk.last()) {
            (Some(first), Some(last)) => first.key() <= key && key <= last.key(),
            _ => false,
        }
    }

    #[inline]
    fn next(&mut self) {
        self.at += 1;
        if self.at == self.chunk.len()
            && let Some(last) = self.chunk.pop()
        {
            self.fill(Bound::Excluded(last.key()));
        }
    }
}

/// A cursor and what the merge knows of it.
struct Source {
    cursor: Cursor,
    /// It holds nothing below this key, and has not been looked into yet.
    not_before: Option<Vec<u8>>,
    /// It has nothing in the row that the merge walks down through.
    parked: bool,
    /// Its last key below the row above, while the merge walks down.
    below: Below,
    below_key: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Below {
    Unknown,
    Nothing,
    Key,
}

impl Source {
    #[inline]
    fn key(&self) -> Option<&[u8]> {
        match &self.not_before {
            None if self.parked => None,
            None => self.cursor.key(),
            Some(key) => Some(key),
        }
    }
}

/// The merge of several sources.
pub(crate) struct MergeCursor {
    sources: Vec<Source>,
    /// The source with the lowest key, and the one with the lowest but for that.
    lowest: Option<usize>,
    second: Option<usize>,
    /// Where sources that wait are to be sought.
    target: Vec<u8>,
}

impl MergeCursor {
    pub(crate) fn new(cursors: Vec<Cursor>) -> Self {
        let source = |cursor| Source {
            cursor,
            not_before: None,
            parked: false,
            below: Below::Unknown,
            below_key: Vec::new(),
        };
        Self {
            sources: cursors.into_iter().map(source).collect(),
            lowest: None,
            second: None,
            target: Vec::new(),
        }
    }

    /// Goes to the first entry at or after `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        for source in &mut self.sources {
            (source.parked, source.not_before) = (false, None);
            source.cursor.seek(key)?;
        }
        self.find_lowest()
    }

    /// Goes to a column, encoded; sources that hold nothing as new as others are looked into only when it comes to that.
    /// `newest` is by source the highest timestamp it may hold.
    pub(crate) fn seek_column(
        &mut self,
        column: &[u8],
        newest: &[Option<tablemount_api::Timestamp>],
    ) -> Result<()> {
        self.target.clear();
        self.target.extend_from_slice(column);
        for (source, newest) in self.sources.iter_mut().zip(newest) {
            source.parked = false;
            source.not_before = newest.map(|newest| keys::key(column, newest, u64::MAX));
            if source.not_before.is_none() {
                source.cursor.seek(column)?;
            }
        }
        self.find_lowest()
    }

    /// Like [`MergeCursor::seek`], where `key` is not before the present place: sources already there do not move.
    pub(crate) fn seek_forward(&mut self, key: &[u8]) -> Result<()> {
        for source in &mut self.sources {
            if source.key().is_some_and(|at| at < key) {
                source.not_before = None;
                source.cursor.seek(key)?;
            }
        }
        self.find_lowest()
    }

    /// Goes past all entries that start with `prefix`, an encoded row or column that the present key starts with; `above` is
    /// the lowest key after them.
    pub(crate) fn skip_prefix(&mut self, prefix: &[u8], above: &[u8]) -> Result<()> {
        for source in &mut self.sources {
            if source
                .not_before
                .as_ref()
                .is_some_and(|key| key.as_slice() < above)
            {
                source.not_before = None;
                source.cursor.seek(above)?;
            } else if source.key().is_some_and(|key| key.starts_with(prefix)) {
                source.cursor.skip_prefix(prefix.len(), above)?;
            }
        }
        self.find_lowest()
    }

    /// Goes to the next entry.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<()> {
        let Some(lowest) = self.lowest else {
            return Ok(());
        };
        self.sources[lowest].cursor.next()?;
        // As long as it stays below the second it stays the lowest.
        let here = self.sources[lowest].key();
        match (here, self.second) {
            (Some(_), None) => Ok(()),
            (Some(here), Some(second)) if Some(here) < self.sources[second].key() => Ok(()),
            _ => self.find_lowest(),
        }
    }

    /// The key at this place; `None` at the end.
    #[inline]
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.sources[self.lowest?].cursor.key()
    }

    /// The key at this place, and what kind of entry it is.
    #[inline]
    pub(crate) fn key_and_kind(&self) -> Option<(&[u8], Kind)> {
        self.sources[self.lowest?].cursor.key_and_kind()
    }

    /// What is stored at this place.
    #[inline]
    pub(crate) fn stored(&self) -> Option<Stored<'_>> {
        self.sources[self.lowest?].cursor.stored()
    }

    /// The value at this place, sharing memory where it can, or a part of it.
    pub(crate) fn value(&self, range: Option<Range<u64>>) -> Result<Bytes> {
        match self.lowest {
            Some(lowest) => self.sources[lowest].cursor.value(range),
            None => Ok(Bytes::new()),
        }
    }

    /// The SST cursor at this place, if a large value is there.
    pub(crate) fn large(&self) -> Option<&SstCursor> {
        let cursor = &self.sources[self.lowest?].cursor;
        match cursor {
            Cursor::Sst(sst) if sst.stored()?.kind == Kind::Large => Some(sst),
            _ => None,
        }
    }

    /// The row (encoded) of the last key below `bound`, an encoded row, in any source. Bounds go down from call to call. The
    /// place is undefined afterwards: [`MergeCursor::enter_row`] or seek.
    pub(crate) fn row_below(&mut self, bound: &[u8]) -> Result<Option<&[u8]>> {
        for source in &mut self.sources {
            let known = match source.below {
                Below::Unknown => false,
                Below::Nothing => true,
                Below::Key => source.below_key.as_slice() < bound,
            };
            if !known {
                let found = source.cursor.last_below(bound, &mut source.below_key)?;
                source.below = if found { Below::Key } else { Below::Nothing };
            }
        }
        let with_key = self
            .sources
            .iter()
            .filter(|source| source.below == Below::Key);
        match with_key.map(|source| source.below_key.as_slice()).max() {
            Some(key) => keys::first(key).map(Some).ok_or_else(damaged),
            None => Ok(None),
        }
    }

    /// Goes to the first entry at or after `from` in `row`; sources in which [`MergeCursor::row_below`] found nothing of it stay
    /// out of it. Returns whether any has.
    pub(crate) fn enter_row(&mut self, row: &[u8], from: &[u8]) -> Result<bool> {
        let mut any = false;
        for source in &mut self.sources {
            let inside = source.below == Below::Key && source.below_key.starts_with(row);
            (source.parked, source.not_before) = (!inside, None);
            if inside {
                source.cursor.seek(from)?;
                any = true;
            }
        }
        self.find_lowest()?;
        Ok(any)
    }

    /// Forgets what walking down found, for a walk that starts higher.
    pub(crate) fn forget_below(&mut self) {
        for source in &mut self.sources {
            source.below = Below::Unknown;
        }
    }

    #[inline]
    fn find_lowest(&mut self) -> Result<()> {
        if let [source] = self.sources.as_slice()
            && source.not_before.is_none()
        {
            (self.lowest, self.second) = (source.key().map(|_| 0), None);
            return Ok(());
        }
        self.find_lowest_of_many()
    }

    fn find_lowest_of_many(&mut self) -> Result<()> {
        loop {
            (self.lowest, self.second) = (None, None);
            for i in 0..self.sources.len() {
                let Some(key) = self.sources[i].key() else {
                    continue;
                };
                let below =
                    |other: Option<usize>| other.is_none_or(|j| Some(key) < self.sources[j].key());
                if below(self.lowest) {
                    (self.lowest, self.second) = (Some(i), self.lowest);
                } else if below(self.second) {
                    self.second = Some(i);
                }
            }
            // The lowest may only be waiting: then it is its turn to be looked into.
            let Some(lowest) = self.lowest else {
                return Ok(());
            };
            let source = &mut self.sources[lowest];
            if source.not_before.take().is_none() {
                return Ok(());
            }
            source.cursor.seek(&self.target)?;
        }
    }
}

pub(crate) fn damaged() -> Error {
    Error::Corrupt("a stored key is damaged".to_owned())
}

//! Memtables: what was written and is not yet in SSTs, per tablet and family, sorted.
//!
//! Owns the in-memory form of cells, tombstones and wider deletes. Filled in log order under the log's lock; read without a lock.
//!
//! **Invariants**: entries are never changed or removed, so a reader that holds the memtable sees a snapshot once it leaves out
//! sequence numbers above its own; keys and values stand in chunks of the memtable's own, so nothing of a request stays;
//! `bytes` counts keys, values and an estimate of the nodes around them.

use std::borrow::Borrow;
use std::cmp::Ordering as Order;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use crossbeam_skiplist::SkipMap;
use parking_lot::{Mutex, RwLock};
use tablemount_api::Timestamp;

use super::entry::{Kind, Stored};
use super::keys;
use super::log::{Op, Record};
use super::ranges::RangeDelete;
use super::wide::{self, WideDelete};

/// What a skip list's node costs beside key and value.
const NODE_BYTES: usize = 96;
/// Keys and values are put into chunks of this size; larger entries stand alone.
const CHUNK_BYTES: usize = 256 << 10;
const STANDS_ALONE_BYTES: usize = 16 << 10;

/// A key and what is stored under it, in one piece of memory.
#[derive(Clone)]
pub(crate) struct Entry {
    bytes: Bytes,
    key: u32,
    kind: Kind,
}

impl Entry {
    pub(crate) fn key(&self) -> &[u8] {
        &self.bytes[..self.key as usize]
    }

    pub(crate) fn stored(&self) -> Stored<'_> {
        Stored::new(self.kind, &self.bytes[self.key as usize..])
    }

    /// The stored value, sharing the memtable's memory.
    pub(crate) fn value_bytes(&self) -> Bytes {
        self.bytes.slice(self.key as usize..)
    }
}

impl Borrow<[u8]> for Entry {
    fn borrow(&self) -> &[u8] {
        self.key()
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Order {
        self.key().cmp(other.key())
    }
}

/// Entries by key; keys end in their inverted sequence number.
#[derive(Default)]
pub(crate) struct Entries(SkipMap<Entry, ()>);

impl Entries {
    /// Up to `limit` entries from `from` on with a sequence number of at most `sequence`, in order.
    pub(crate) fn chunk(
        &self,
        from: Bound<&[u8]>,
        sequence: u64,
        limit: usize,
        out: &mut Vec<Entry>,
    ) {
        let range = self.0.range::<[u8], _>((from, Bound::Unbounded));
        let seen = range.filter(|entry| keys::sequence(entry.key().key()) <= sequence);
        out.extend(seen.take(limit).map(|entry| entry.key().clone()));
    }

    /// The last entry below `before` with a sequence number of at most `sequence`.
    pub(crate) fn last_below(&self, before: &[u8], sequence: u64) -> Option<Entry> {
        let range = self
            .0
            .range::<[u8], _>((Bound::Unbounded, Bound::Excluded(before)));
        let mut down = range.rev();
        down.find(|entry| keys::sequence(entry.key().key()) <= sequence)
            .map(|entry| entry.key().clone())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One family's part.
#[derive(Default)]
pub(crate) struct Memtable {
    pub(crate) cells: Entries,
    /// Wider deletes, as an SST's section of them.
    pub(crate) wide: Entries,
    ranges: RwLock<Vec<RangeDelete>>,
    chunk: Mutex<BytesMut>,
    bytes: AtomicU64,
    newest_cell: AtomicU64,
    /// Rows' mutations that touched it.
    writes: AtomicU64,
}

impl Memtable {
    /// The range deletes with a sequence number of at most `sequence` that `touch` what is read.
    pub(crate) fn ranges(
        &self,
        sequence: u64,
        touch: impl Fn(&RangeDelete) -> bool,
        out: &mut Vec<RangeDelete>,
    ) {
        let ranges = self.ranges.read();
        let wanted = ranges
            .iter()
            .filter(|range| range.sequence <= sequence && touch(range));
        out.extend(wanted.cloned());
    }

    /// Whether nothing was written.
    pub(crate) fn is_empty(&self) -> bool {
        self.cells.is_empty() && self.wide.is_empty() && self.ranges.read().is_empty()
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Rows' mutations that touched it, a row counted as often as it was written.
    pub(crate) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// The highest sequence number of a cell or tombstone.
    pub(crate) fn newest_cell(&self) -> u64 {
        self.newest_cell.load(Ordering::Relaxed)
    }

    /// An entry whose key takes at most `room` bytes.
    fn entry(
        &self,
        kind: Kind,
        value: &[u8],
        room: usize,
        write_key: impl FnOnce(&mut BytesMut),
    ) -> Entry {
        let needed = room + value.len();
        let mut alone = BytesMut::new();
        let mut chunk = self.chunk.lock();
        let out = match needed {
            ..STANDS_ALONE_BYTES => {
                if chunk.capacity() < needed {
                    *chunk = BytesMut::with_capacity(CHUNK_BYTES);
                }
                &mut *chunk
            }
            _ => {
                alone.reserve(needed);
                &mut alone
            }
        };
        write_key(out);
        let key = out.len() as u32;
        out.extend_from_slice(value);
        let bytes = out.split().freeze();
        Entry { bytes, key, kind }
    }

    fn insert_cell(
        &self,
        row: &[u8],
        qualifier: &[u8],
        timestamp: Timestamp,
        sequence: u64,
        stored: Stored<'_>,
    ) -> usize {
        let room = row.len() + 2 * qualifier.len() + keys::OVERHEAD;
        let entry = self.entry(stored.kind, stored.bytes, room, |key| {
            keys::write(key, row, qualifier, timestamp, sequence);
        });
        let raw = entry.bytes.len();
        self.newest_cell.fetch_max(sequence, Ordering::Relaxed);
        self.cells.0.insert(entry, ());
        raw + NODE_BYTES
    }

    fn insert_wide(&self, key: &[u8], delete: &WideDelete) -> usize {
        let entry = self.entry(Kind::Plain, &delete.encode(), key.len(), |out| {
            out.extend_from_slice(key);
        });
        let bytes = entry.bytes.len() + NODE_BYTES;
        self.wide.0.insert(entry, ());
        bytes
    }

    /// Applies one entry of a record; returns the bytes it took.
    fn apply(&self, row: &[u8], op: &Op, sequence: u64) -> usize {
        let all = WideDelete {
            min: Timestamp::MIN,
            max: Timestamp::MAX,
            sequence,
        };
        let bytes = match op {
            Op::Put {
                qualifier,
                timestamp,
                value,
            } => self.insert_cell(
                row,
                qualifier,
                *timestamp,
                sequence,
                Stored::new(Kind::Plain, value),
            ),
            Op::DeleteCell {
                qualifier,
                timestamp,
            } => self.insert_cell(row, qualifier, *timestamp, sequence, Stored::TOMBSTONE),
            Op::DeleteColumn {
                qualifier,
                min,
                max,
            } => {
                let key = wide::column_key(row, &keys::row(qualifier), sequence);
                let delete = WideDelete {
                    min: *min,
                    max: *max,
                    sequence,
                };
                self.insert_wide(&key, &delete)
            }
            Op::DeleteFamily => self.insert_wide(&wide::family_key(row, sequence), &all),
            Op::DeleteRows { stop } => {
                let range = RangeDelete {
                    from: row.to_vec(),
                    to: stop.as_ref().map(|stop| keys::row(stop)),
                    sequence,
                };
                let bytes = range.bytes();
                self.ranges.write().push(range);
                bytes
            }
        };
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        bytes
    }
}

/// The memtables of one tablet, by family id; a flush takes them together.
#[derive(Default)]
pub(crate) struct MemtableSet {
    families: RwLock<BTreeMap<u64, Arc<Memtable>>>,
    bytes: AtomicU64,
}

impl MemtableSet {
    /// Puts a record in; returns the bytes it took.
    pub(crate) fn apply(&self, record: &Record) -> u64 {
        let row = keys::row(&record.row);
        let mut bytes = 0;
        let mut last: Option<(u64, Arc<Memtable>)> = None;
        for (entry, sequence) in record.entries.iter().zip(record.first_sequence..) {
            let memtable = match &last {
                Some((family, memtable)) if *family == entry.family => memtable,
                _ => {
                    let memtable = self.family_or_new(entry.family);
                    memtable.writes.fetch_add(1, Ordering::Relaxed);
                    &last.insert((entry.family, memtable)).1
                }
            };
            bytes += memtable.apply(&row, &entry.op, sequence) as u64;
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        bytes
    }

    fn family_or_new(&self, family: u64) -> Arc<Memtable> {
        if let Some(memtable) = self.families.read().get(&family) {
            return memtable.clone();
        }
        self.families.write().entry(family).or_default().clone()
    }

    /// One family's memtable, if anything was written to it.
    pub(crate) fn family(&self, family: u64) -> Option<Arc<Memtable>> {
        self.families.read().get(&family).cloned()
    }

    /// Whether nothing was written.
    pub(crate) fn is_empty(&self) -> bool {
        self.families
            .read()
            .values()
            .all(|memtable| memtable.is_empty())
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

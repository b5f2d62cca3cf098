//! Memtables: what was written and is not yet in SSTs, per tablet and family, sorted.
//!
//! Owns the in-memory form of cells, tombstones and wider deletes. Filled in log order under the log's lock; read without a lock.
//!
//! **Invariants**: entries are never changed or removed, so a reader that holds the memtable sees a snapshot once it leaves out
//! sequence numbers above its own; `bytes` counts keys, values and an estimate of the nodes around them.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use crossbeam_skiplist::SkipMap;
use parking_lot::RwLock;
use tablemount_api::Timestamp;

use super::keys;
use super::log::{Op, Record};
use super::merge::Stored;
use super::wide::{self, WideDelete};

/// What a skip list's node costs beside key and value.
const NODE_BYTES: usize = 128;

/// One family's part.
#[derive(Default)]
pub(crate) struct Memtable {
    cells: SkipMap<Bytes, Stored>,
    wide: SkipMap<Bytes, WideDelete>,
    bytes: AtomicU64,
}

impl Memtable {
    /// Up to `limit` cells and tombstones from `from` on, with a sequence number of at most `sequence`, in order.
    pub(crate) fn chunk(
        &self,
        from: Bound<&[u8]>,
        sequence: u64,
        limit: usize,
        out: &mut Vec<(Bytes, Stored)>,
    ) {
        let visible = |key: &[u8]| keys::parse(key).is_some_and(|parts| parts.sequence <= sequence);
        let range = self.cells.range::<[u8], _>((from, Bound::Unbounded));
        out.extend(
            range
                .filter(|e| visible(e.key()))
                .take(limit)
                .map(|e| (e.key().clone(), e.value().clone())),
        );
    }

    /// The last key below `before` with a sequence number of at most `sequence`.
    pub(crate) fn last_below(&self, before: &[u8], sequence: u64) -> Option<(Bytes, Stored)> {
        let visible = |key: &[u8]| keys::parse(key).is_some_and(|parts| parts.sequence <= sequence);
        let range = self
            .cells
            .range::<[u8], _>((Bound::Unbounded, Bound::Excluded(before)));
        range
            .rev()
            .find(|e| visible(e.key()))
            .map(|e| (e.key().clone(), e.value().clone()))
    }

    /// The wider deletes whose keys are in `range`.
    pub(crate) fn wide(&self, from: &[u8], to: &[u8], out: &mut Vec<WideDelete>) {
        if self.wide.is_empty() {
            return;
        }
        let range = self
            .wide
            .range::<[u8], _>((Bound::Included(from), Bound::Excluded(to)));
        out.extend(range.map(|entry| *entry.value()));
    }

    /// Whether a wider delete in the bounds has a sequence number of at most `sequence`.
    pub(crate) fn any_wide(&self, from: &[u8], to: &[u8], sequence: u64) -> bool {
        let mut range = self
            .wide
            .range::<[u8], _>((Bound::Included(from), Bound::Excluded(to)));
        range.any(|entry| entry.value().sequence <= sequence)
    }

    /// All wider deletes, by key.
    pub(crate) fn all_wide(&self) -> Vec<(Bytes, WideDelete)> {
        self.wide
            .iter()
            .map(|entry| (entry.key().clone(), *entry.value()))
            .collect()
    }

    /// Whether there are wider deletes.
    pub(crate) fn has_wide(&self) -> bool {
        !self.wide.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.cells.is_empty() && self.wide.is_empty()
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn insert_cell(&self, key: Vec<u8>, stored: Stored) -> usize {
        let bytes = key.len() + stored.len() + NODE_BYTES;
        self.cells.insert(key.into(), stored);
        bytes
    }

    fn insert_wide(&self, key: Vec<u8>, delete: WideDelete) -> usize {
        let bytes = key.len() + NODE_BYTES;
        self.wide.insert(key.into(), delete);
        bytes
    }

    /// Applies one entry of a record; returns the bytes it took.
    fn apply(&self, row: &[u8], op: &Op, sequence: u64) -> usize {
        let column = |qualifier: &Bytes| keys::column(row, qualifier);
        let bytes = match op {
            Op::Put {
                qualifier,
                timestamp,
                value,
            } => self.insert_cell(
                keys::key(&column(qualifier), *timestamp, sequence),
                Stored::Put(value.clone()),
            ),
            Op::DeleteCell {
                qualifier,
                timestamp,
            } => self.insert_cell(
                keys::key(&column(qualifier), *timestamp, sequence),
                Stored::Tombstone,
            ),
            Op::DeleteColumn {
                qualifier,
                min,
                max,
            } => {
                let key = wide::column_key(row, &column(qualifier)[row.len()..], sequence);
                self.insert_wide(
                    key,
                    WideDelete {
                        min: *min,
                        max: *max,
                        sequence,
                    },
                )
            }
            Op::DeleteFamily => {
                let delete = WideDelete {
                    min: Timestamp::MIN,
                    max: Timestamp::MAX,
                    sequence,
                };
                self.insert_wide(wide::family_key(row, sequence), delete)
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
                    &last
                        .insert((entry.family, self.family_or_new(entry.family)))
                        .1
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

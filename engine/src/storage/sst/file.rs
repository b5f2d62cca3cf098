//! An SST, open: footer, properties, top indexes and range deletes in memory; all other blocks through the cache, or held in
//! memory whole for an in-memory family.
//!
//! **Invariants**: see the parent module. A file that a manifest has dropped is removed when its last reader goes
//! ([`Sst::retire`]), through the queue of dropped files, since a reader's end must not wait for a disk.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use parking_lot::Mutex;

use super::block::{BlockCursor, View};
use super::bloom;
use super::reader::{Fault, NOT_THE_MANIFESTS, RANGES_OVERLAP, Reader, SECTION_MISSING};
use super::{FileMeta, Handle};
use crate::storage::cache::{Block, Shared};
use crate::storage::entry::{CHUNK_BYTES, Large};
use crate::storage::ranges::RangeSet;
use crate::{Error, Result};

/// Paths of files that nothing refers to any more.
pub(crate) type DroppedFiles = Arc<Mutex<Vec<String>>>;

/// One of a file's two sorted parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Cells,
    Wide,
}

/// An entry of the cells' top index, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found(pub(super) usize);

/// An SST, open.
pub(crate) struct Sst {
    pub(crate) meta: FileMeta,
    /// Its number in this process.
    file: u64,
    shared: Arc<Shared>,
    cells: Option<Arc<Block>>,
    wide: Option<Arc<Block>>,
    pub(crate) ranges: RangeSet,
    resident: u64,
    /// All blocks by offset, of an in-memory family.
    pinned: ArcSwapOption<Pinned>,
    /// Bytes of its blocks in memory.
    cached: Arc<AtomicU64>,
    retired: AtomicBool,
    dropped: DroppedFiles,
}

/// A file's blocks, held in memory.
struct Pinned {
    blocks: HashMap<u64, Arc<Block>>,
    bytes: u64,
    /// What counts them.
    account: Arc<AtomicU64>,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.account.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Sst {
    /// Opens the file that a manifest names.
    pub(crate) fn open(
        shared: &Arc<Shared>,
        meta: FileMeta,
        dropped: DroppedFiles,
    ) -> Result<Arc<Self>> {
        let reader = Reader::new(shared, &meta.path, meta.bytes);
        let parts = Parts::read(&reader, &meta).map_err(|fault| fault.error(&meta.path))?;
        let Parts {
            cells,
            wide,
            ranges,
        } = parts;
        let file = reader.file;
        let bytes = |top: &Option<Arc<Block>>| top.as_ref().map_or(0, |top| top.bytes.len());
        let resident = (bytes(&cells) + bytes(&wide)) as u64;
        shared.reside(resident);
        Ok(Arc::new(Self {
            file,
            shared: shared.clone(),
            cells,
            wide,
            ranges,
            resident,
            pinned: ArcSwapOption::empty(),
            cached: Arc::default(),
            retired: AtomicBool::new(false),
            dropped,
            meta,
        }))
    }

    fn reader(&self) -> Reader<'_> {
        Reader {
            shared: &self.shared,
            file: self.file,
            path: &self.meta.path,
            bytes: self.meta.bytes,
        }
    }

    /// The top index of a section.
    pub(super) fn top(&self, section: Section) -> Option<&Arc<Block>> {
        match section {
            Section::Cells => self.cells.as_ref(),
            Section::Wide => self.wide.as_ref(),
        }
    }

    /// A block, from memory if it is there; `keep`: for the next reader too.
    pub(super) fn block(&self, handle: Handle, keep: bool) -> Result<Arc<Block>> {
        if let Some(pinned) = &*self.pinned.load()
            && let Some(block) = pinned.blocks.get(&handle.offset)
        {
            return Ok(block.clone());
        }
        if let Some(block) = self.shared.block(self.file, handle.offset) {
            return Ok(block);
        }
        let read = self.reader().block(handle);
        let bytes = read.map_err(|fault| fault.error(&self.meta.path))?;
        if !keep {
            return Ok(Block::new(bytes));
        }
        let block = Block::counted(bytes, &self.cached);
        self.shared.keep(self.file, handle.offset, &block);
        Ok(block)
    }

    /// A part of a large value, which lies in the bounds of the value.
    pub(crate) fn large(&self, large: &Large<'_>, range: std::ops::Range<u64>) -> Result<Bytes> {
        let chunk_bytes = CHUNK_BYTES as u64;
        let first = range.start / chunk_bytes;
        let wanted = large
            .chunks()
            .zip(0_u64..)
            .skip(first as usize)
            .take_while(|(_, i)| i * chunk_bytes < range.end);
        let mut out = Vec::with_capacity((range.end - range.start) as usize);
        for (place, i) in wanted {
            let chunk = self.chunk(place, large.length - i * chunk_bytes)?;
            let start = range.start.saturating_sub(i * chunk_bytes) as usize;
            let end = ((range.end - i * chunk_bytes) as usize).min(chunk.len());
            if start == 0 && range.end - range.start == chunk.len() as u64 {
                return Ok(chunk);
            }
            out.extend_from_slice(&chunk[start..end]);
        }
        Ok(out.into())
    }

    /// A chunk of a large value of which `rest` bytes are left.
    pub(crate) fn chunk(&self, (offset, length): (u64, u32), rest: u64) -> Result<Bytes> {
        let chunk = self.reader().chunk((offset, length), rest);
        chunk.map_err(|fault| fault.error(&self.meta.path))
    }

    /// Holds all blocks of the file in memory, counted in `account`, if they fit into `budget`. Returns whether they are.
    pub(crate) fn pin(&self, account: &Arc<AtomicU64>, budget: u64) -> Result<bool> {
        if self.pinned.load().is_some() {
            return Ok(true);
        }
        // Blocks take at least what they take on disk.
        let held = account.load(Ordering::Relaxed);
        if held.saturating_add(self.meta.bytes) > budget {
            return Ok(false);
        }
        let mut pinned = Pinned {
            blocks: HashMap::new(),
            bytes: 0,
            account: account.clone(),
        };
        let mut fits = true;
        self.each_block(&mut |handle, block| {
            let bytes = block.bytes.len() as u64;
            fits = account.fetch_add(bytes, Ordering::Relaxed) + bytes <= budget;
            pinned.bytes += bytes;
            pinned.blocks.insert(handle.offset, block);
            fits
        })?;
        if fits {
            self.pinned.store(Some(Arc::new(pinned)));
        }
        Ok(fits)
    }

    /// Holds it in memory no more.
    pub(crate) fn unpin(&self) {
        self.pinned.store(None);
    }

    /// Calls `act` with every block but top indexes and value chunks, as long as it says to go on.
    fn each_block(&self, act: &mut dyn FnMut(Handle, Arc<Block>) -> bool) -> Result<()> {
        for top in [&self.cells, &self.wide].into_iter().flatten() {
            let mut top = self.cursor(top.clone(), 0)?;
            while let Some((partition, filter)) = self.next_handles(&mut top)? {
                let block = self.block(partition, false)?;
                if !act(partition, block.clone()) {
                    return Ok(());
                }
                if filter.length > 0 && !act(filter, self.block(filter, false)?) {
                    return Ok(());
                }
                let mut blocks = self.cursor(block, partition.offset)?;
                while let Some((handle, _)) = self.next_handles(&mut blocks)? {
                    if !act(handle, self.block(handle, false)?) {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// The next entry's handles in an index block; the second is empty in a partition.
    fn next_handles(&self, cursor: &mut BlockCursor) -> Result<Option<(Handle, Handle)>> {
        let damaged = || self.corrupt(0, "the index is damaged");
        cursor.advance().ok_or_else(damaged)?;
        let Some(stored) = cursor.stored() else {
            return Ok(None);
        };
        let first = Handle::decode(stored.bytes).ok_or_else(damaged)?;
        let second = stored.bytes.get(Handle::BYTES..).and_then(Handle::decode);
        Ok(Some((first, second.unwrap_or_default())))
    }

    pub(super) fn cursor(&self, block: Arc<Block>, offset: u64) -> Result<BlockCursor> {
        BlockCursor::new(block).ok_or_else(|| self.corrupt(offset, "a block's frame is damaged"))
    }

    /// Tells that no manifest names the file any more.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    /// Bytes held in memory because the family asks for it.
    pub(crate) fn in_memory_bytes(&self) -> u64 {
        self.pinned.load().as_ref().map_or(0, |pinned| pinned.bytes)
    }

    /// Whether all of it is held in memory.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.pinned.load().is_some()
    }

    /// Bytes of its blocks in the block cache, and its top indexes.
    pub(crate) fn cached_bytes(&self) -> u64 {
        self.cached.load(Ordering::Relaxed) + self.resident
    }

    /// Its lowest and highest key of a cell; `None`: it has none.
    pub(crate) fn cell_keys(&self) -> Option<(&[u8], &[u8])> {
        let properties = &self.meta.properties;
        let keys = (&*properties.min_key.0, &*properties.max_key.0);
        (properties.entries > 0).then_some(keys)
    }

    /// Its lowest and highest key of a wider delete; `None`: it has none.
    pub(crate) fn wide_keys(&self) -> Option<(&[u8], &[u8])> {
        let properties = &self.meta.properties;
        let keys = (&*properties.min_wide_key.0, &*properties.max_wide_key.0);
        (properties.wide_deletes > 0).then_some(keys)
    }

    /// Where in the top index the cells of a row or column would begin; `None`: there are none, as the index shows, or the
    /// filter, where `probe` is its hash.
    pub(crate) fn find(
        &self,
        encoded: &[u8],
        probe: Option<u64>,
        keep: bool,
    ) -> Result<Option<Found>> {
        let damaged = || self.corrupt(0, "the index is damaged");
        let Some(top) = &self.cells else {
            return Ok(None);
        };
        let view = View::new(&top.bytes).ok_or_else(damaged)?;
        let Some(place) = view.restart_above(encoded).ok_or_else(damaged)? else {
            return Ok(None);
        };
        if let Some(probe) = probe {
            let handles = view.restart_value(place).ok_or_else(damaged)?;
            let filter = handles.get(Handle::BYTES..).and_then(Handle::decode);
            if !self.filter_knows(filter.ok_or_else(damaged)?, probe, keep)? {
                return Ok(None);
            }
        }
        Ok(Some(Found(place)))
    }

    /// Whether a filter (one without a length does for all) may know a row or column by its hash.
    pub(super) fn filter_knows(&self, filter: Handle, probe: u64, keep: bool) -> Result<bool> {
        Ok(filter.length == 0 || bloom::may_hold(&self.block(filter, keep)?.bytes, probe))
    }

    pub(super) fn corrupt(&self, offset: u64, what: &str) -> Error {
        Fault::at(offset, what).error(&self.meta.path)
    }
}

/// What an open file holds of its bytes.
struct Parts {
    cells: Option<Arc<Block>>,
    wide: Option<Arc<Block>>,
    ranges: RangeSet,
}

impl Parts {
    /// Reads and checks them against what the manifest says.
    fn read(reader: &Reader<'_>, meta: &FileMeta) -> std::result::Result<Self, Fault> {
        let [cells, wide, ranges, properties] = reader.footer()?;
        let top = |handle: Handle| match handle.length {
            0 => Ok(None),
            _ => reader.block(handle).map(|bytes| Some(Block::new(bytes))),
        };
        let (cells, wide) = (top(cells)?, top(wide)?);
        let pieces = reader.range_deletes(ranges)?;
        let ranges =
            RangeSet::of_pieces(pieces).ok_or_else(|| Fault::at(ranges.offset, RANGES_OVERLAP))?;
        let stored = reader.properties(properties)?;
        if stored != meta.properties {
            return Err(Fault::at(properties.offset, NOT_THE_MANIFESTS));
        }
        if (stored.entries > 0) != cells.is_some() || (stored.wide_deletes > 0) != wide.is_some() {
            return Err(Fault::at(properties.offset, SECTION_MISSING));
        }
        Ok(Self {
            cells,
            wide,
            ranges,
        })
    }
}

impl Drop for Sst {
    fn drop(&mut self) {
        self.shared.leave(self.resident);
        self.shared.forget(self.file);
        if self.retired.load(Ordering::Acquire) {
            self.dropped
                .lock()
                .push(std::mem::take(&mut self.meta.path));
        }
    }
}

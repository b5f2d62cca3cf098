//! Reads an SST: opens with footer, properties, index and wider deletes; data blocks by position as they are needed.
//!
//! **Invariants**: see the parent module. A file that a manifest has dropped is removed when its last reader goes
//! ([`Sst::retire`]), through the queue of dropped files, since a reader's end must not wait for a disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tablemount_api::Timestamp;

use super::block::BlockCursor;
use super::{FOOTER, FileMeta, Handle, MAGIC, Properties, TRAILER, compress};
use crate::storage::disk::{Disk, ReadFile};
use crate::storage::merge::Stored;
use crate::storage::objects::FORMAT;
use crate::storage::wide::{self, WideDelete, WideList};
use crate::{Error, Result};

/// Paths of files that nothing refers to any more.
pub(crate) type DroppedFiles = Arc<Mutex<Vec<String>>>;

/// An SST, open.
pub(crate) struct Sst {
    pub(crate) meta: FileMeta,
    source: Source,
    index: Bytes,
    pub(crate) wide: WideList,
    /// What counts the bytes kept in memory.
    account: Arc<AtomicU64>,
    retired: AtomicBool,
    dropped: DroppedFiles,
}

/// Where blocks are read from.
enum Source {
    File(Arc<dyn ReadFile>),
    /// The whole file, of an in-memory family.
    Memory(Bytes),
}

impl Source {
    fn length(&self) -> u64 {
        match self {
            Self::File(file) => file.length(),
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }

    fn read(&self, offset: u64, length: usize) -> std::io::Result<Bytes> {
        match self {
            Self::File(file) => file.read_at(offset, length),
            Self::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let range = start..start.saturating_add(length);
                if range.end > bytes.len() {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
                Ok(bytes.slice(range))
            }
        }
    }
}

impl Sst {
    /// Opens the file that a manifest names; `in_memory` reads it whole, and counts it in `account` as long as it is open.
    pub(crate) fn open(
        disk: &dyn Disk,
        meta: FileMeta,
        in_memory: bool,
        account: &Arc<AtomicU64>,
        dropped: DroppedFiles,
    ) -> Result<Arc<Self>> {
        let fail = |error| Error::Io(format!("open sst {}: {error}", meta.path));
        let file = disk.open(&meta.path).map_err(fail)?;
        if file.length() != meta.bytes {
            let what = format!(
                "sst {} is {} bytes; its manifest says {}",
                meta.path,
                file.length(),
                meta.bytes
            );
            return Err(Error::Corrupt(what));
        }
        let source = match in_memory {
            true => Source::Memory(file.read_at(0, file.length() as usize).map_err(fail)?),
            false => Source::File(file),
        };
        let [index, wide, properties] = read_footer(&meta.path, &source)?;
        let index = read_block(&meta.path, &source, index)?;
        let wide = read_wide(&meta.path, &source, wide)?;
        let json = read_block(&meta.path, &source, properties)?;
        let stored: Properties = serde_json::from_slice(&json).map_err(|error| {
            corrupt(
                &meta.path,
                properties.offset,
                &format!("properties: {error}"),
            )
        })?;
        if stored != meta.properties {
            return Err(corrupt(
                &meta.path,
                properties.offset,
                "properties are not those of the manifest",
            ));
        }
        let sst = Self {
            meta,
            source,
            index,
            wide,
            account: account.clone(),
            retired: AtomicBool::new(false),
            dropped,
        };
        account.fetch_add(sst.in_memory_bytes(), Ordering::Relaxed);
        Ok(Arc::new(sst))
    }

    /// Tells that no manifest names the file any more.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    /// Bytes kept in memory.
    pub(crate) fn in_memory_bytes(&self) -> u64 {
        match &self.source {
            Source::Memory(bytes) => bytes.len() as u64,
            Source::File(_) => 0,
        }
    }

    /// Whether the file may hold cells with keys in `from..to`.
    pub(crate) fn overlaps(&self, from: &[u8], to: Option<&[u8]>) -> bool {
        let properties = &self.meta.properties;
        properties.entries > 0
            && properties.max_key.as_ref() >= from
            && to.is_none_or(|to| properties.min_key.as_ref() < to)
    }

    /// Whether a wider delete in the bounds has a sequence number of at most `sequence`.
    pub(crate) fn any_wide(&self, from: &[u8], to: &[u8], sequence: u64) -> bool {
        wide::any_in_bounds(&self.wide, from, to, sequence)
    }

    /// Adds the wider deletes whose keys are in the bounds.
    pub(crate) fn wide(&self, from: &[u8], to: &[u8], out: &mut Vec<WideDelete>) {
        wide::in_bounds(&self.wide, from, to, out);
    }

    fn read_block(&self, handle: Handle) -> Result<Bytes> {
        read_block(&self.meta.path, &self.source, handle)
    }
}

impl Drop for Sst {
    fn drop(&mut self) {
        self.account
            .fetch_sub(self.in_memory_bytes(), Ordering::Relaxed);
        if self.retired.load(Ordering::Acquire) {
            self.dropped
                .lock()
                .push(std::mem::take(&mut self.meta.path));
        }
    }
}

fn read_footer(path: &str, source: &Source) -> Result<[Handle; 3]> {
    let at = source
        .length()
        .checked_sub(FOOTER as u64)
        .ok_or_else(|| corrupt(path, 0, "too short for a footer"))?;
    let bytes = read(path, source, at, FOOTER)?;
    let word = |at: usize| {
        bytes[at..]
            .first_chunk()
            .map_or(0, |chunk| u32::from_le_bytes(*chunk))
    };
    if &bytes[52..] != MAGIC || crc32c::crc32c(&bytes[..48]) != word(48) {
        return Err(corrupt(path, at, "the footer's checksum does not match"));
    }
    if word(44) != FORMAT {
        let what = format!(
            "sst {path} has format {}; this version reads format {FORMAT}",
            word(44)
        );
        return Err(Error::Precondition(what));
    }
    let handle =
        |i: usize| Handle::decode(&bytes[12 * i..]).ok_or_else(|| corrupt(path, at, "bad footer"));
    Ok([handle(0)?, handle(1)?, handle(2)?])
}

fn read_wide(path: &str, source: &Source, handle: Handle) -> Result<WideList> {
    let damaged = || corrupt(path, handle.offset, "the block of wider deletes is damaged");
    let mut cursor = BlockCursor::new(read_block(path, source, handle)?).ok_or_else(damaged)?;
    let mut list = Vec::new();
    cursor.advance().ok_or_else(damaged)?;
    while let (Some(key), Some(Stored::Put(bounds))) = (cursor.key(), cursor.stored()) {
        let time = |at: usize| {
            Some(Timestamp(i64::from_le_bytes(
                *bounds.get(at..)?.first_chunk()?,
            )))
        };
        let (Some(min), Some(max), Some(sequence)) = (time(0), time(8), wide::sequence_of(key))
        else {
            return Err(damaged());
        };
        list.push((
            Bytes::copy_from_slice(key),
            WideDelete { min, max, sequence },
        ));
        cursor.advance().ok_or_else(damaged)?;
    }
    Ok(list)
}

/// Reads a stored block, checks it, decompresses it.
fn read_block(path: &str, source: &Source, handle: Handle) -> Result<Bytes> {
    let length = handle.length as usize;
    if length < TRAILER || handle.offset.saturating_add(length as u64) > source.length() {
        return Err(corrupt(
            path,
            handle.offset,
            "a block lies outside the file",
        ));
    }
    let stored = read(path, source, handle.offset, length)?;
    let word = |at: usize| {
        stored[at..]
            .first_chunk()
            .map_or(0, |chunk| u32::from_le_bytes(*chunk))
    };
    if crc32c::crc32c(&stored[..length - 4]) != word(length - 4) {
        return Err(corrupt(
            path,
            handle.offset,
            "a block's checksum does not match",
        ));
    }
    let raw_length = word(length - 8) as usize;
    let codec = stored[length - TRAILER];
    compress::decompress(codec, &stored.slice(..length - TRAILER), raw_length)
        .ok_or_else(|| corrupt(path, handle.offset, "a block does not decompress"))
}

fn read(path: &str, source: &Source, offset: u64, length: usize) -> Result<Bytes> {
    source
        .read(offset, length)
        .map_err(|error| Error::Io(format!("read sst {path} at offset {offset}: {error}")))
}

fn corrupt(path: &str, offset: u64, what: &str) -> Error {
    Error::Corrupt(format!("sst {path} at offset {offset}: {what}"))
}

/// A place in an SST.
pub(crate) struct SstCursor {
    sst: Arc<Sst>,
    /// At the index entry of the block that `block` is of.
    index: BlockCursor,
    block: Option<BlockCursor>,
}

impl SstCursor {
    pub(crate) fn new(sst: Arc<Sst>) -> Result<Self> {
        let index = BlockCursor::new(sst.index.clone())
            .ok_or_else(|| corrupt(&sst.meta.path, 0, "the index is damaged"))?;
        Ok(Self {
            sst,
            index,
            block: None,
        })
    }

    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.block.as_ref()?.key()
    }

    pub(crate) fn stored(&self) -> Option<Stored> {
        self.block.as_ref()?.stored().cloned()
    }

    /// Goes to the first entry at or after `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        if self.is_within_block(key) {
            return self.seek_in_block(key);
        }
        self.index.seek(key).ok_or_else(|| self.index_damaged())?;
        self.load_block()?;
        self.seek_in_block(key)
    }

    pub(crate) fn next(&mut self) -> Result<()> {
        let Some(block) = &mut self.block else {
            return Ok(());
        };
        block
            .advance()
            .ok_or_else(|| damaged(&self.sst, &self.index))?;
        if block.key().is_none() {
            self.index.advance().ok_or_else(|| self.index_damaged())?;
            self.load_block()?;
            self.seek_in_block(&[])?;
        }
        Ok(())
    }

    /// The last key below `key`; moves.
    pub(crate) fn last_below(&mut self, key: &[u8]) -> Result<Option<Bytes>> {
        if !self.is_within_block(key) {
            self.index.seek(key).ok_or_else(|| self.index_damaged())?;
            self.load_block()?;
        }
        if let Some(block) = &mut self.block
            && let Some(last) = block
                .last_below(key)
                .ok_or_else(|| damaged(&self.sst, &self.index))?
        {
            return Ok(Some(last));
        }
        // It is the last of the block before, whose last key the index holds.
        let from = self
            .index
            .key()
            .map_or_else(|| key.to_vec(), <[u8]>::to_vec);
        self.index
            .last_below(&from)
            .ok_or_else(|| self.index_damaged())
            .inspect(|_| self.block = None)
    }

    /// Whether the first entry at or after `key` is in the block that is loaded, and not its first.
    fn is_within_block(&self, key: &[u8]) -> bool {
        let first_seen = self.block.as_ref().and_then(BlockCursor::key);
        matches!((first_seen, self.index.key()), (Some(at), Some(last)) if at < key && key <= last)
    }

    fn seek_in_block(&mut self, key: &[u8]) -> Result<()> {
        match &mut self.block {
            Some(block) => block
                .seek(key)
                .ok_or_else(|| damaged(&self.sst, &self.index)),
            None => Ok(()),
        }
    }

    fn load_block(&mut self) -> Result<()> {
        let Some(stored) = self.index.stored() else {
            self.block = None;
            return Ok(());
        };
        let handle = handle(stored).ok_or_else(|| self.index_damaged())?;
        let bytes = self.sst.read_block(handle)?;
        self.block = Some(BlockCursor::new(bytes).ok_or_else(|| damaged(&self.sst, &self.index))?);
        Ok(())
    }

    fn index_damaged(&self) -> Error {
        corrupt(&self.sst.meta.path, 0, "the index is damaged")
    }
}

fn handle(stored: &Stored) -> Option<Handle> {
    match stored {
        Stored::Put(bytes) => Handle::decode(bytes),
        Stored::Tombstone => None,
    }
}

fn damaged(sst: &Sst, index: &BlockCursor) -> Error {
    let offset = index
        .stored()
        .and_then(handle)
        .map_or(0, |handle| handle.offset);
    corrupt(&sst.meta.path, offset, "a block's entries are damaged")
}

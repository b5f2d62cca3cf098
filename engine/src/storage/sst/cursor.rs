//! A place in a section of an SST: top index → index partition → data block, each loaded as it is needed.
//!
//! **Invariants**: a block's fence is above all its keys and at or below all that follow, so the first entry at or after a key is
//! in the first block whose fence is above the key, or is the first of the next. With a probe, a partition whose filter does not
//! know the row or column is taken to hold nothing of it: the cursor then stands at the end.

use std::sync::Arc;

use bytes::Bytes;

use super::block::{BlockCursor, Skipped};
use super::file::Found;
use super::{Handle, Section, Sst};
use crate::Result;
use crate::storage::cache::Block;
use crate::storage::entry::{Kind, Large, Packed, Stored};

/// Blocks to look for the end of a prefix in before it is sought through the index.
const BLOCKS_TO_SKIP: usize = 2;

/// A place in a section.
pub(crate) struct SstCursor {
    sst: Arc<Sst>,
    /// At the entry of the partition that `partition` is.
    top: BlockCursor,
    /// At the entry of the block that `block` is.
    partition: Option<BlockCursor>,
    block: Option<BlockCursor>,
    /// Whether `block` is a block of this place; else the cursor is at the end, or nowhere yet.
    loaded: bool,
    /// Hash of the only row or column that is looked for.
    probe: Option<u64>,
    /// Where in the top index that is, if it was asked for before the first seek, and the filter with it.
    found: Option<Found>,
    /// Whether blocks stay in the cache for the next reader.
    keep: bool,
}

impl SstCursor {
    /// `None`: the section is empty.
    pub(crate) fn new(
        sst: &Arc<Sst>,
        section: Section,
        probe: Option<u64>,
        keep: bool,
    ) -> Result<Option<Self>> {
        let Some(top) = sst.top(section) else {
            return Ok(None);
        };
        Ok(Some(Self {
            top: sst.cursor(top.clone(), 0)?,
            sst: sst.clone(),
            partition: None,
            block: None,
            loaded: false,
            probe,
            found: None,
            keep,
        }))
    }

    /// The same for the row or column that [`Sst::find`] found, if it did, which is what is sought first.
    pub(crate) fn found_at(mut self, found: Option<Found>) -> Self {
        self.found = found;
        self
    }

    #[inline]
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.here()?.key()
    }

    #[inline]
    pub(crate) fn key_and_kind(&self) -> Option<(&[u8], Kind)> {
        self.here()?.key_and_kind()
    }

    #[inline]
    pub(crate) fn stored(&self) -> Option<Stored<'_>> {
        self.here()?.stored()
    }

    #[inline]
    fn here(&self) -> Option<&BlockCursor> {
        self.block.as_ref().filter(|_| self.loaded)
    }

    /// Goes to the first entry at or after `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        if self.seek_here(key)? {
            return self.over_the_edge();
        }
        let loaded = match self.found.take() {
            Some(Found(place)) => {
                let there = self.top.go_to(Some(place));
                there.ok_or_else(|| index_damaged(&self.sst))?;
                self.load_partition_unprobed()?
            }
            None => {
                let there = self.top.seek_above(key);
                there.ok_or_else(|| index_damaged(&self.sst))?;
                self.load_partition()?
            }
        };
        if !loaded {
            return Ok(());
        }
        self.seek_partition(key)?;
        if self.load_block()? {
            self.seek_block(key)?;
        }
        self.over_the_edge()
    }

    /// Goes to the first entry at or after `key` if that is in the present block for certain, or the next one's first.
    fn seek_here(&mut self, key: &[u8]) -> Result<bool> {
        if !self.loaded || self.fence().is_none_or(|fence| key >= fence) {
            return Ok(false);
        }
        let bad = || damaged(&self.sst, &self.partition);
        let (Some(block), Some(partition)) = (&mut self.block, &self.partition) else {
            return Ok(false);
        };
        if block.seek_here(key).ok_or_else(bad)? {
            return Ok(true);
        }
        // Nothing of the blocks before is at or after the fence of the last of them.
        let before = partition.key_before();
        let before = before.ok_or_else(|| index_damaged(&self.sst))?;
        if before.is_none_or(|fence| key < fence) {
            return Ok(false);
        }
        block.seek(key).ok_or_else(bad)?;
        Ok(true)
    }

    /// Goes to the next entry.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<()> {
        if !self.loaded {
            return Ok(());
        }
        let Some(block) = &mut self.block else {
            return Ok(());
        };
        block
            .advance()
            .ok_or_else(|| damaged(&self.sst, &self.partition))?;
        if block.key().is_none() {
            self.over_the_edge()
        } else {
            Ok(())
        }
    }

    /// Goes past all entries that start with the first `length` bytes of this one's key; `above` is the lowest key after them.
    pub(crate) fn skip_prefix(&mut self, length: usize, above: &[u8]) -> Result<()> {
        for _ in 0..BLOCKS_TO_SKIP {
            let Some(block) = self.block.as_mut().filter(|_| self.loaded) else {
                return Ok(());
            };
            let skipped = block.skip_prefix(length);
            match skipped.ok_or_else(|| damaged(&self.sst, &self.partition))? {
                Skipped::Prefix => return Ok(()),
                Skipped::TooFar => break,
                Skipped::Block => self.over_the_edge()?,
            }
            if self.key().is_none_or(|key| key >= above) {
                return Ok(());
            }
        }
        self.seek(above)
    }

    /// Puts the last key below `key` into `out`; returns whether there is one. The place is undefined afterwards.
    pub(crate) fn last_below(&mut self, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let near = self.loaded && self.fence().is_some_and(|fence| key < fence);
        if !near {
            self.seek_down(key)?;
        }
        while self.loaded {
            if let Some(block) = &mut self.block {
                let last = block
                    .last_below(key)
                    .ok_or_else(|| damaged(&self.sst, &self.partition))?;
                if let Some(last) = last {
                    out.clear();
                    out.extend_from_slice(last);
                    return Ok(true);
                }
            }
            self.step_block_back()?;
        }
        Ok(false)
    }

    /// Loads the block that holds the last key below `key`, or the one after it.
    fn seek_down(&mut self, key: &[u8]) -> Result<()> {
        let index = || index_damaged(&self.sst);
        self.top.seek_above(key).ok_or_else(index)?;
        if self.top.key().is_none() {
            self.top.seek_last().ok_or_else(index)?;
        }
        if !self.load_partition_unprobed()? {
            return Ok(());
        }
        self.seek_partition(key)?;
        let sst = self.sst.clone();
        if let Some(partition) = &mut self.partition
            && partition.key().is_none()
        {
            partition.seek_last().ok_or_else(|| index_damaged(&sst))?;
        }
        self.load_block().map(drop)
    }

    /// Loads the block before the present one, if there is one.
    fn step_block_back(&mut self) -> Result<()> {
        self.loaded = false;
        let sst = self.sst.clone();
        let index = || index_damaged(&sst);
        let Some(partition) = &mut self.partition else {
            return Ok(());
        };
        partition.step_back().ok_or_else(index)?;
        if partition.key().is_none() {
            self.top.step_back().ok_or_else(index)?;
            if !self.load_partition_unprobed()? {
                return Ok(());
            }
            if let Some(partition) = &mut self.partition {
                partition.seek_last().ok_or_else(index)?;
            }
        }
        self.load_block().map(drop)
    }

    /// While the place is past its block's last entry: goes to the next block's first.
    fn over_the_edge(&mut self) -> Result<()> {
        while self.loaded && self.here().is_some_and(|block| block.key().is_none()) {
            let Some(partition) = &mut self.partition else {
                self.loaded = false;
                return Ok(());
            };
            partition
                .advance()
                .ok_or_else(|| index_damaged(&self.sst))?;
            if partition.key().is_none() {
                self.top.advance().ok_or_else(|| index_damaged(&self.sst))?;
                if !self.load_partition()? {
                    return Ok(());
                }
                if let Some(partition) = &mut self.partition {
                    partition
                        .advance()
                        .ok_or_else(|| index_damaged(&self.sst))?;
                }
            }
            if self.load_block()?
                && let Some(block) = &mut self.block
            {
                block
                    .advance()
                    .ok_or_else(|| damaged(&self.sst, &self.partition))?;
            }
        }
        Ok(())
    }

    /// The present block's fence.
    fn fence(&self) -> Option<&[u8]> {
        self.partition.as_ref()?.key()
    }

    fn seek_partition(&mut self, key: &[u8]) -> Result<()> {
        match &mut self.partition {
            Some(partition) => partition
                .seek_above(key)
                .ok_or_else(|| index_damaged(&self.sst)),
            None => Ok(()),
        }
    }

    fn seek_block(&mut self, key: &[u8]) -> Result<()> {
        match &mut self.block {
            Some(block) => block
                .seek(key)
                .ok_or_else(|| damaged(&self.sst, &self.partition)),
            None => Ok(()),
        }
    }

    /// Loads the partition of the top index's place, unless its filter knows nothing of the probe. Returns whether it did.
    fn load_partition(&mut self) -> Result<bool> {
        if let (Some(probe), Some(stored)) = (self.probe, self.top.stored()) {
            let filter = stored.bytes.get(Handle::BYTES..).and_then(Handle::decode);
            let filter = filter.ok_or_else(|| index_damaged(&self.sst))?;
            if !self.sst.filter_knows(filter, probe, self.keep)? {
                self.loaded = false;
                return Ok(false);
            }
        }
        self.load_partition_unprobed()
    }

    fn load_partition_unprobed(&mut self) -> Result<bool> {
        self.loaded = false;
        let Some(stored) = self.top.stored() else {
            return Ok(false);
        };
        let handle = Handle::decode(stored.bytes).ok_or_else(|| index_damaged(&self.sst))?;
        let block = self.sst.block(handle, self.keep)?;
        set(&self.sst, &mut self.partition, block, handle)?;
        Ok(true)
    }

    /// Loads the block of the partition's place; returns whether there is one.
    fn load_block(&mut self) -> Result<bool> {
        self.loaded = false;
        let Some(stored) = self.partition.as_ref().and_then(BlockCursor::stored) else {
            return Ok(false);
        };
        let handle = Handle::decode(stored.bytes).ok_or_else(|| index_damaged(&self.sst))?;
        let block = self.sst.block(handle, self.keep)?;
        set(&self.sst, &mut self.block, block, handle)?;
        self.loaded = true;
        Ok(true)
    }

    /// The value at this place, or the part of it in `range`, which ends where the value does at the latest.
    pub(crate) fn value(&self, range: Option<std::ops::Range<u64>>) -> Result<Bytes> {
        let (Some(block), Some(stored)) = (self.here(), self.stored()) else {
            return Ok(Bytes::new());
        };
        let bad = || damaged(&self.sst, &self.partition);
        let whole = match stored.kind {
            Kind::Plain => block.value_bytes(),
            Kind::Tombstone => Bytes::new(),
            Kind::Packed => Packed::decode(stored.bytes)
                .and_then(|packed| packed.open())
                .ok_or_else(bad)?,
            Kind::Large => {
                let large = Large::decode(stored.bytes).ok_or_else(bad)?;
                return self.sst.large(&large, range.unwrap_or(0..large.length));
            }
        };
        Ok(match range {
            Some(range) => whole.slice(range.start as usize..range.end as usize),
            None => whole,
        })
    }

    /// The chunks of the large value at this place.
    pub(crate) fn chunks(&self) -> Result<(u64, impl Iterator<Item = Result<Bytes>> + '_)> {
        let large = self.stored().and_then(|stored| Large::decode(stored.bytes));
        let large = large.ok_or_else(|| damaged(&self.sst, &self.partition))?;
        let length = large.length;
        let mut rest = length;
        let chunks = large.chunks().map(move |place| {
            let chunk = self.sst.chunk(place, rest)?;
            rest -= chunk.len() as u64;
            Ok(chunk)
        });
        Ok((length, chunks))
    }
}

fn set(
    sst: &Sst,
    cursor: &mut Option<BlockCursor>,
    block: Arc<Block>,
    handle: Handle,
) -> Result<()> {
    match cursor {
        Some(cursor) => cursor
            .reset(block)
            .ok_or_else(|| sst.corrupt(handle.offset, "a block's frame is damaged")),
        None => {
            *cursor = Some(sst.cursor(block, handle.offset)?);
            Ok(())
        }
    }
}

fn index_damaged(sst: &Sst) -> crate::Error {
    sst.corrupt(0, "the index is damaged")
}

fn damaged(sst: &Sst, partition: &Option<BlockCursor>) -> crate::Error {
    let handle = partition
        .as_ref()
        .and_then(|partition| Handle::decode(partition.stored()?.bytes));
    sst.corrupt(
        handle.map_or(0, |handle| handle.offset),
        "a block's entries are damaged",
    )
}

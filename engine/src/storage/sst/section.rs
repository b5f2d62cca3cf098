//! Writing a section: data blocks, their index in partitions with filters, and the top index.
//!
//! **Invariants**: keys rise; each partition's filter knows every row (and column) that has an entry in the partition, also those
//! that began in the one before.

use tablemount_api::Compression;

use super::block::{BlockBuilder, DATA_RESTARTS, INDEX_RESTARTS, common};
use super::writer::Out;
use super::{Handle, PARTITION_BYTES, bloom};
use crate::Result;
use crate::storage::entry::Kind;

/// A section under way.
pub(super) struct SectionWriter {
    compression: Compression,
    block_bytes: usize,
    block: BlockBuilder,
    partition: BlockBuilder,
    top: BlockBuilder,
    /// The last block, whose fence needs the key that follows.
    pending: Option<(Handle, Vec<u8>)>,
    hashes: Vec<u64>,
    last_hashes: [u64; 2],
}

impl SectionWriter {
    pub(super) fn new(compression: Compression, block_bytes: usize) -> Self {
        Self {
            compression,
            block_bytes,
            block: BlockBuilder::new(DATA_RESTARTS),
            partition: BlockBuilder::new(INDEX_RESTARTS),
            top: BlockBuilder::new(INDEX_RESTARTS),
            pending: None,
            hashes: Vec::new(),
            last_hashes: [0; 2],
        }
    }

    /// Appends an entry; `hashes` are those of its row and column, 0: not in the filter.
    pub(super) fn push(
        &mut self,
        out: &mut Out,
        key: &[u8],
        kind: Kind,
        value: &[u8],
        hashes: [u64; 2],
    ) -> Result<()> {
        if let Some((handle, last)) = self.pending.take() {
            let fence = &key[..(common(&last, key) + 1).min(key.len())];
            self.index(out, handle, fence)?;
        }
        for (hash, last) in hashes.into_iter().zip(&mut self.last_hashes) {
            if hash != 0 && std::mem::replace(last, hash) != hash {
                self.hashes.push(hash);
            }
        }
        self.block.push(key, kind, value);
        if self.block.bytes() >= self.block_bytes {
            self.end_block(out)?;
        }
        Ok(())
    }

    /// Writes what is left, and the top index. `None`: the section is empty.
    pub(super) fn finish(&mut self, out: &mut Out) -> Result<Handle> {
        if !self.block.is_empty() {
            self.end_block(out)?;
        }
        let Some((handle, mut last)) = self.pending.take() else {
            return Ok(Handle::default());
        };
        last.push(0);
        self.index(out, handle, &last)?;
        if !self.partition.is_empty() {
            self.end_partition(out)?;
        }
        out.store(Compression::None, &mut self.top)
    }

    fn end_block(&mut self, out: &mut Out) -> Result<()> {
        let last = self.block.last_key().to_vec();
        let handle = out.store(self.compression, &mut self.block)?;
        self.pending = Some((handle, last));
        Ok(())
    }

    fn index(&mut self, out: &mut Out, handle: Handle, fence: &[u8]) -> Result<()> {
        self.partition.push(fence, Kind::Plain, &handle.encode());
        if self.partition.bytes() >= PARTITION_BYTES {
            self.end_partition(out)?;
        }
        Ok(())
    }

    fn end_partition(&mut self, out: &mut Out) -> Result<()> {
        let fence = self.partition.last_key().to_vec();
        let partition = out.store(Compression::None, &mut self.partition)?;
        let filter = match self.hashes.is_empty() {
            true => Handle::default(),
            false => out.store_bytes(Compression::None, &bloom::build(&self.hashes))?,
        };
        self.hashes.clear();
        self.last_hashes = [0; 2];
        let value = [partition.encode(), filter.encode()].concat();
        self.top.push(&fence, Kind::Plain, &value);
        Ok(())
    }
}

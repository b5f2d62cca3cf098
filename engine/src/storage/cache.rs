//! The block cache and the table of open files: what a server's reads share.
//!
//! **Invariants**: the cache holds at most its bytes, of which what open files keep resident (their top indexes) is taken off;
//! a block is counted to its file as long as anything holds it; at most `MAX_OPEN` files are open besides those being read.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::disk::{Disk, ReadFile};

/// Files that stay open for the next read.
const MAX_OPEN: usize = 512;
/// What a cached block costs beside its bytes.
const BLOCK_OVERHEAD: u64 = 160;

/// A block, checked and decompressed.
pub(crate) struct Block {
    pub(crate) bytes: Bytes,
    /// Where its bytes are counted.
    account: Option<Arc<AtomicU64>>,
}

impl Block {
    pub(crate) fn new(bytes: Bytes) -> Arc<Self> {
        Arc::new(Self {
            bytes,
            account: None,
        })
    }

    /// A block whose bytes count to `account` while it lives.
    pub(crate) fn counted(bytes: Bytes, account: &Arc<AtomicU64>) -> Arc<Self> {
        account.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Arc::new(Self {
            bytes,
            account: Some(account.clone()),
        })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(account) = &self.account {
            account.fetch_sub(self.bytes.len() as u64, Ordering::Relaxed);
        }
    }
}

#[derive(Clone)]
struct BlockBytes;

impl Weighter<(u64, u64), Arc<Block>> for BlockBytes {
    fn weight(&self, _: &(u64, u64), block: &Arc<Block>) -> u64 {
        block.bytes.len() as u64 + BLOCK_OVERHEAD
    }
}

/// What all files of a server share: block cache and open files.
pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    /// By the file's number in this process and the block's offset.
    blocks: Cache<(u64, u64), Arc<Block>, BlockBytes>,
    budget: u64,
    resident: AtomicU64,
    open: Cache<u64, Arc<dyn ReadFile>>,
    next_file: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl Shared {
    pub(crate) fn new(disk: Arc<dyn Disk>, cache_bytes: u64) -> Arc<Self> {
        let expected = (cache_bytes / 4096).clamp(16, 1 << 22) as usize;
        Arc::new(Self {
            disk,
            blocks: Cache::with_weighter(expected, cache_bytes, BlockBytes),
            budget: cache_bytes,
            resident: AtomicU64::new(0),
            open: Cache::new(MAX_OPEN),
            next_file: AtomicU64::new(1),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        })
    }

    /// A number for a file, for this process.
    pub(crate) fn next_file(&self) -> u64 {
        self.next_file.fetch_add(1, Ordering::Relaxed)
    }

    /// The block, if it is cached.
    #[inline]
    pub(crate) fn block(&self, file: u64, offset: u64) -> Option<Arc<Block>> {
        let found = self.blocks.get(&(file, offset));
        let count = if found.is_some() {
            &self.hits
        } else {
            &self.misses
        };
        count.fetch_add(1, Ordering::Relaxed);
        found
    }

    pub(crate) fn keep(&self, file: u64, offset: u64, block: &Arc<Block>) {
        self.blocks.insert((file, offset), block.clone());
    }

    /// An open file, or opens it.
    pub(crate) fn file(&self, file: u64, path: &str) -> io::Result<Arc<dyn ReadFile>> {
        if let Some(open) = self.open.get(&file) {
            return Ok(open);
        }
        let opened = self.disk.open(path)?;
        self.open.insert(file, opened.clone());
        Ok(opened)
    }

    /// Closes a file that nobody reads any more.
    pub(crate) fn forget(&self, file: u64) {
        self.open.remove(&file);
    }

    /// Counts bytes that stay in memory while a file is open, and takes them off the cache.
    pub(crate) fn reside(&self, bytes: u64) {
        let resident = self.resident.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.resize(resident);
    }

    /// Takes them off the account again.
    pub(crate) fn leave(&self, bytes: u64) {
        let resident = self.resident.fetch_sub(bytes, Ordering::Relaxed) - bytes;
        self.resize(resident);
    }

    fn resize(&self, resident: u64) {
        // Some room stays for blocks, whatever the indexes take.
        let room = self.budget.saturating_sub(resident).max(self.budget / 4);
        if room != self.blocks.capacity() {
            self.blocks.set_capacity(room);
        }
    }

    /// Bytes in the cache, and those that open files keep resident.
    pub(crate) fn used(&self) -> u64 {
        self.blocks.weight() + self.resident.load(Ordering::Relaxed)
    }

    /// Bytes the cache may hold.
    pub(crate) fn budget(&self) -> u64 {
        self.budget
    }

    /// Blocks found in the cache, and not, since the start.
    pub(crate) fn hits_and_misses(&self) -> (u64, u64) {
        (
            self.hits.load(Ordering::Relaxed),
            self.misses.load(Ordering::Relaxed),
        )
    }
}

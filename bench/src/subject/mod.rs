//! What is measured: an ordered store of rows, embedded in this process.

mod fjall;
mod rocksdb;
mod tablemount;

use std::error::Error;
use std::path::PathBuf;

pub use self::fjall::Fjall;
pub use self::rocksdb::RocksDb;
pub use self::tablemount::{Tablemount, config};
use crate::rows::Key;

/// What every benchmark answers: any failure ends it.
pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Which store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// RocksDB, Debian's library.
    Rocksdb,
    /// fjall.
    Fjall,
    /// Tablemount's engine.
    Tablemount,
}

impl Kind {
    /// All, the one that ratios refer to first.
    pub const ALL: [Self; 3] = [Self::Rocksdb, Self::Fjall, Self::Tablemount];

    /// Its name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rocksdb => "rocksdb",
            Self::Fjall => "fjall",
            Self::Tablemount => "tablemount",
        }
    }
}

/// How blocks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Compression {
    /// Not at all.
    None,
    /// LZ4.
    Lz4,
}

impl Compression {
    /// Its name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
        }
    }
}

/// Settings that all subjects get alike.
#[derive(Debug, Clone, clap::Args)]
pub struct Setup {
    /// Block cache
    #[arg(long, value_name = "MIB", default_value_t = 384)]
    pub cache_mib: u64,
    /// A memtable of this size is flushed; writers wait at twice as much in all memtables
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    pub write_buffer_mib: u64,
}

impl Setup {
    /// Bytes of the block cache.
    pub fn cache_bytes(&self) -> u64 {
        self.cache_mib << 20
    }

    /// Bytes of a memtable.
    pub fn write_buffer_bytes(&self) -> u64 {
        self.write_buffer_mib << 20
    }

    /// Bytes that the log may hold: enough that the memtables' size alone decides about flushes.
    pub fn log_bytes(&self) -> u64 {
        8 * self.write_buffer_bytes()
    }
}

/// Where and how a subject is opened.
#[derive(Debug, Clone)]
pub struct Place {
    /// The folder; created if absent.
    pub folder: PathBuf,
    /// How blocks are compressed.
    pub compression: Compression,
    /// The rest.
    pub setup: Setup,
}

/// Bytes of a data block before compression.
pub const BLOCK_BYTES: usize = 4096;
/// Bits of the bloom filter a key.
pub const BLOOM_BITS: u32 = 10;

/// Which rows a scan visits.
#[derive(Debug, Clone, Copy)]
pub struct Scan<'a> {
    /// From this key on, inclusive; absent: from the end that the direction starts at.
    pub from: Option<&'a Key>,
    /// From the highest key down.
    pub reverse: bool,
    /// At most so many.
    pub rows: u64,
}

/// What a subject has on disk.
#[derive(Debug, Clone, Copy, Default)]
pub struct Files {
    /// SSTs.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that wait to be compacted, where the subject tells.
    pub debt_bytes: Option<u64>,
}

/// An open store.
pub trait Subject: Send + Sync + Sized + 'static {
    /// Whether a write holds its thread until it is done: then each writer is a thread, else a task.
    const WRITES_BLOCK: bool;

    /// Opens or creates the store.
    fn open(place: &Place) -> impl Future<Output = Result<Self>> + Send;

    /// Closes it as its users do.
    fn close(self) -> impl Future<Output = Result<()>> + Send;

    /// Writes rows in one batch. With `sync` it returns when they survive a loss of power; without, a subject that can
    /// returns when the operating system has them.
    fn write(&self, rows: &[u64], sync: bool) -> impl Future<Output = Result<()>> + Send;

    /// Which row the value at a key is of.
    fn get(&self, key: &Key) -> Result<Option<u64>>;

    /// Visits rows in order: key, value.
    fn scan(&self, scan: Scan<'_>, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()>;

    /// Flushes the memtables and merges all files into one sorted run.
    fn settle(&self) -> impl Future<Output = Result<()>> + Send;

    /// What is on disk.
    fn files(&self) -> impl Future<Output = Result<Files>> + Send;
}

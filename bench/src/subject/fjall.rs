//! fjall: a journal, memtables, leveled compaction by its defaults. It has no group commit.

use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::{BLOCK_BYTES, BLOOM_BITS, Compression, Files, Place, Result, Scan, Subject};
use crate::rows::{self, Key};

/// An open database and its one keyspace.
pub struct Fjall {
    // Before the database: the last handle of that ends its threads.
    keyspace: Keyspace,
    db: Database,
}

impl Subject for Fjall {
    const WRITES_BLOCK: bool = true;

    async fn open(place: &Place) -> Result<Self> {
        let setup = &place.setup;
        let db = Database::builder(&place.folder)
            .cache_size(setup.cache_bytes())
            .max_journaling_size(setup.log_bytes())
            .open()?;
        let compression = match place.compression {
            Compression::None => CompressionType::None,
            Compression::Lz4 => CompressionType::Lz4,
        };
        let bloom =
            FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(BLOOM_BITS as f32));
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(setup.write_buffer_bytes())
                .data_block_size_policy(BlockSizePolicy::all(BLOCK_BYTES as u32))
                .data_block_compression_policy(CompressionPolicy::all(compression))
                .filter_policy(FilterPolicy::all(bloom))
        };
        Ok(Self {
            keyspace: db.keyspace("rows", options)?,
            db,
        })
    }

    async fn close(self) -> Result<()> {
        Ok(())
    }

    async fn write(&self, rows: &[u64], sync: bool) -> Result<()> {
        // A batch goes to the operating system, as a RocksDB write does. The sync stands apart from it: of writers that wait for
        // one another's sync, the later ones find little left to do. Within the batch each would sync alone.
        let mut batch = self.db.batch().durability(Some(PersistMode::Buffer));
        for row in rows {
            batch.insert(&self.keyspace, rows::key(*row), rows::value(*row));
        }
        batch.commit()?;
        if sync {
            self.db.persist(PersistMode::SyncData)?;
        }
        Ok(())
    }

    fn get(&self, key: &Key) -> Result<Option<u64>> {
        let value = self.keyspace.get(key)?;
        Ok(value.and_then(|value| rows::row_of(&value)))
    }

    fn scan(&self, scan: Scan<'_>, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let mut iter = match (scan.from, scan.reverse) {
            (None, _) => self.keyspace.iter(),
            (Some(key), false) => self.keyspace.range::<&Key, _>(key..),
            (Some(key), true) => self.keyspace.range::<&Key, _>(..=key),
        };
        for _ in 0..scan.rows {
            let row = if scan.reverse {
                iter.next_back()
            } else {
                iter.next()
            };
            let Some(row) = row else { break };
            let (key, value) = row.into_inner()?;
            visit(&key, &value);
        }
        Ok(())
    }

    async fn settle(&self) -> Result<()> {
        tokio::task::block_in_place(|| {
            self.keyspace.rotate_memtable_and_wait()?;
            Ok(self.keyspace.major_compact()?)
        })
    }

    async fn files(&self) -> Result<Files> {
        Ok(Files {
            count: self.keyspace.table_count() as u64,
            bytes: self.keyspace.disk_space(),
            debt_bytes: None,
        })
    }
}

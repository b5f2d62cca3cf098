//! RocksDB: a write-ahead log, two memtables, leveled compaction by its defaults (two background jobs).

use rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, Options, WriteBatch, WriteOptions};

use super::{BLOCK_BYTES, BLOOM_BITS, Compression, Files, Place, Result, Scan, Subject};
use crate::rows::{self, Key};

/// An open database.
pub struct RocksDb {
    db: DB,
}

impl Subject for RocksDb {
    const WRITES_BLOCK: bool = true;

    async fn open(place: &Place) -> Result<Self> {
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_size(BLOCK_BYTES);
        blocks.set_bloom_filter(BLOOM_BITS.into(), false);
        blocks.set_block_cache(&Cache::new_lru_cache(place.setup.cache_bytes() as usize)?);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&blocks);
        options.set_write_buffer_size(place.setup.write_buffer_bytes() as usize);
        options.set_max_write_buffer_number(2);
        options.set_max_total_wal_size(place.setup.log_bytes());
        options.set_compression_type(match place.compression {
            Compression::None => DBCompressionType::None,
            Compression::Lz4 => DBCompressionType::Lz4,
        });
        Ok(Self {
            db: DB::open(&options, &place.folder)?,
        })
    }

    async fn close(self) -> Result<()> {
        Ok(())
    }

    async fn write(&self, rows: &[u64], sync: bool) -> Result<()> {
        let mut options = WriteOptions::default();
        options.set_sync(sync);
        let mut batch = WriteBatch::default();
        for row in rows {
            batch.put(rows::key(*row), rows::value(*row));
        }
        Ok(self.db.write_opt(batch, &options)?)
    }

    fn get(&self, key: &Key) -> Result<Option<u64>> {
        let value = self.db.get_pinned(key)?;
        Ok(value.and_then(|value| rows::row_of(&value)))
    }

    fn scan(&self, scan: Scan<'_>, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let mut place = self.db.raw_iterator();
        match (scan.from, scan.reverse) {
            (None, false) => place.seek_to_first(),
            (None, true) => place.seek_to_last(),
            (Some(key), false) => place.seek(key),
            (Some(key), true) => place.seek_for_prev(key),
        }
        for _ in 0..scan.rows {
            let Some((key, value)) = place.item() else {
                break;
            };
            visit(key, value);
            if scan.reverse {
                place.prev();
            } else {
                place.next();
            }
        }
        Ok(place.status()?)
    }

    async fn settle(&self) -> Result<()> {
        tokio::task::block_in_place(|| {
            self.db.flush()?;
            self.db.compact_range::<Key, Key>(None, None);
            Ok(())
        })
    }

    async fn files(&self) -> Result<Files> {
        let property = |name: &str| -> Result<u64> {
            let value = self.db.property_int_value(name)?;
            value.ok_or_else(|| format!("rocksdb has no property {name}").into())
        };
        Ok(Files {
            count: self.db.live_files()?.len() as u64,
            bytes: property("rocksdb.live-sst-files-size")?,
            debt_bytes: Some(property("rocksdb.estimate-pending-compaction-bytes")?),
        })
    }
}

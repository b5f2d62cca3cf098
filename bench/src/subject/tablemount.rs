//! Tablemount's engine in this process: one table, one family that keeps one version, the cell's qualifier empty.
//!
//! A write returns when it is durable, whatever is asked: there is no other kind.

use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;
use tablemount_api::{
    Base64, Compression as BlockCompression, FamilyName, FamilySchema, GcClause, GcRule,
    MutateRequest, Mutation, PutTable, Qualifier, ReadRequest, RowKey, RowMutation, TableName,
};
use tablemount_engine::{CellRef, Config, Engine};

use super::{BLOCK_BYTES, Compression, Files, Place, Result, Scan, Subject};
use crate::rows::{self, Key};

/// Longer than any scan takes.
const SCAN_TIME: Duration = Duration::from_secs(3600);

/// An open engine and its one table.
pub struct Tablemount {
    engine: Engine,
    table: TableName,
    family: FamilyName,
    qualifier: Qualifier,
}

/// The budgets of an engine.
pub fn config(place: &Place) -> Config {
    Config {
        memtable_budget_bytes: 2 * place.setup.write_buffer_bytes(),
        log_budget_bytes: place.setup.log_bytes(),
        cache_bytes: place.setup.cache_bytes(),
        ..Config::new(&place.folder)
    }
}

impl Tablemount {
    fn put(&self, row: u64) -> Result<RowMutation> {
        Ok(RowMutation {
            row: row_key(&rows::key(row))?,
            check: None,
            mutations: vec![Mutation::Put {
                family: self.family.clone(),
                qualifier: self.qualifier.clone(),
                timestamp: None,
                value: Base64(Bytes::copy_from_slice(&rows::value(row))),
            }],
        })
    }
}

fn row_key(key: &Key) -> Result<RowKey> {
    Ok(RowKey::new(Bytes::copy_from_slice(key))?)
}

impl Subject for Tablemount {
    const WRITES_BLOCK: bool = false;

    async fn open(place: &Place) -> Result<Self> {
        let engine = Engine::open(config(place)).await?;
        let (table, family) = (TableName::new("rows")?, FamilyName::new("f")?);
        let newest = GcClause {
            max_versions: Some(1),
            max_age_micros: None,
        };
        let schema = FamilySchema {
            gc_rule: GcRule(vec![newest]),
            compression: match place.compression {
                Compression::None => BlockCompression::None,
                Compression::Lz4 => BlockCompression::Lz4,
            },
            block_bytes: BLOCK_BYTES as u32,
            ..FamilySchema::new(family.clone())
        };
        let put = PutTable {
            families: vec![schema],
            ..PutTable::default()
        };
        if engine.table(&table).is_err() {
            engine.put_table(&table, put).await?;
        }
        Ok(Self {
            engine,
            table,
            family,
            qualifier: Qualifier::default(),
        })
    }

    async fn close(self) -> Result<()> {
        Ok(self.engine.close().await?)
    }

    async fn write(&self, rows: &[u64], _sync: bool) -> Result<()> {
        let rows = rows.iter().map(|row| self.put(*row));
        let request = MutateRequest {
            rows: rows.collect::<Result<_>>()?,
        };
        self.engine.mutate(&self.table, request).await?;
        Ok(())
    }

    fn get(&self, key: &Key) -> Result<Option<u64>> {
        let row = row_key(key)?;
        let cell = self
            .engine
            .get(&self.table, &row, &self.family, &self.qualifier)?;
        Ok(cell.and_then(|cell| rows::row_of(&cell.value)))
    }

    fn scan(&self, scan: Scan<'_>, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let mut request = ReadRequest {
            reverse: scan.reverse,
            ..ReadRequest::default()
        };
        match scan.from {
            Some(key) if scan.reverse => request.stop = Some(after(key)?),
            from => request.start = from.map(row_key).transpose()?,
        }
        let mut rows = 0;
        let mut visit = |cell: &CellRef<'_>| {
            visit(cell.row, cell.value);
            rows += 1;
            match rows < scan.rows {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        self.engine
            .visit(&self.table, &request, SCAN_TIME, &mut visit)?;
        Ok(())
    }

    async fn settle(&self) -> Result<()> {
        self.engine.compact(&self.table, None).await?;
        Ok(())
    }

    async fn files(&self) -> Result<Files> {
        let stats = self.engine.table_stats(&self.table).await?;
        Ok(Files {
            count: stats.families.iter().map(|family| family.files).sum(),
            bytes: stats.disk_bytes,
            debt_bytes: None,
        })
    }
}

/// The lowest key above a key, since bounds exclude their end.
fn after(key: &Key) -> Result<RowKey> {
    let mut bytes = key.to_vec();
    bytes.push(0);
    Ok(RowKey::new(bytes)?)
}

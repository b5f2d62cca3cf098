//! The one table that a shape lives in, and what all shapes do with it.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tablemount_api::{
    Base64, FamilyName, FamilySchema, MutateRequest, Mutation, PutTable, Qualifier, ReadRequest,
    RowKey, RowMutation, TableName, Timestamp,
};
use tablemount_engine::{CellRef, Engine};

use crate::rows::Random;
use crate::subject::{Compression, Place, Result, Setup, config};

/// Requests that are on their way at once while a shape is loaded.
const LOADERS: usize = 8;
/// Longer than any read takes.
const READ_TIME: Duration = Duration::from_secs(3600);

/// An open engine and its table of one family that keeps all versions.
#[derive(Clone)]
pub struct World {
    pub engine: Engine,
    pub table: TableName,
    pub family: FamilyName,
}

impl World {
    /// Opens or makes it.
    pub async fn open(setup: &Setup, store: &Path) -> Result<Self> {
        let place = Place {
            folder: store.to_owned(),
            compression: Compression::None,
            setup: setup.clone(),
        };
        let world = Self {
            engine: Engine::open(config(&place)).await?,
            table: TableName::new("shape")?,
            family: FamilyName::new("f")?,
        };
        if world.engine.table(&world.table).is_err() {
            let put = PutTable {
                families: vec![FamilySchema::new(world.family.clone())],
                ..PutTable::default()
            };
            world.engine.put_table(&world.table, put).await?;
        }
        Ok(world)
    }

    /// Sends the requests numbered `0..count`, several at once; returns how long that took.
    pub async fn load(
        &self,
        count: u64,
        request: impl Fn(&Self, u64) -> Result<MutateRequest> + Send + Sync + 'static,
    ) -> Result<Duration> {
        let (started, next, request) = (
            Instant::now(),
            Arc::new(AtomicU64::new(0)),
            Arc::new(request),
        );
        let loaders: Vec<_> = (0..LOADERS)
            .map(|_| {
                let (world, next, request) = (self.clone(), next.clone(), request.clone());
                tokio::spawn(async move {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= count {
                            return Result::Ok(());
                        }
                        let body = request(&world, number)?;
                        world.engine.mutate(&world.table, body).await?;
                    }
                })
            })
            .collect();
        for loader in loaders {
            loader.await??;
        }
        Ok(started.elapsed())
    }

    /// Merges all files into one sorted run, then closes.
    pub async fn settle_and_close(self) -> Result<()> {
        self.engine.compact(&self.table, None).await?;
        Ok(self.engine.close().await?)
    }

    /// A cell to write.
    pub fn put(
        &self,
        qualifier: Qualifier,
        timestamp: Option<Timestamp>,
        value: Vec<u8>,
    ) -> Mutation {
        Mutation::Put {
            family: self.family.clone(),
            qualifier,
            timestamp,
            value: Base64(value.into()),
        }
    }

    /// Reads until `limit` calls; returns how many there were.
    pub fn visit(
        &self,
        request: &ReadRequest,
        limit: u64,
        visit: &mut dyn FnMut(&CellRef<'_>),
    ) -> Result<u64> {
        let mut count = 0;
        let mut visit = |cell: &CellRef<'_>| {
            visit(cell);
            count += 1;
            match count < limit {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        self.engine
            .visit(&self.table, request, READ_TIME, &mut visit)?;
        Ok(count)
    }

    /// Reads `times` times; every time there must be `expected` calls. Returns the mean time.
    pub fn time(&self, request: &ReadRequest, times: u32, expected: u64) -> Result<Duration> {
        let started = Instant::now();
        for _ in 0..times {
            let mut bytes = 0;
            let count = self.visit(request, u64::MAX, &mut |cell| bytes += cell.value.len())?;
            if count != expected {
                return Err(
                    format!("a read visited {count} (with {bytes} bytes), not {expected}").into(),
                );
            }
        }
        Ok(started.elapsed() / times)
    }
}

/// A row's mutation.
pub fn row(key: impl Into<Bytes>, mutations: Vec<Mutation>) -> Result<RowMutation> {
    Ok(RowMutation {
        row: RowKey::new(key)?,
        check: None,
        mutations,
    })
}

/// The qualifier with a number, 16 bytes.
pub fn qualifier(number: u64) -> Result<Qualifier> {
    Ok(Qualifier::new(format!("q{number:015}"))?)
}

/// A pseudo-random value.
pub fn value(number: u64, bytes: usize) -> Vec<u8> {
    let mut value = vec![0; bytes];
    Random::new(number).fill(&mut value);
    value
}

//! Calls to the engine: as many at a time as allowed, none while the breaker is open, none longer than its time limit.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tablemount_api::stats::{ServerStats, TableStats};
use tablemount_api::{ErrorCode, ReadRequest, TableInfo, TableName, ValueRequest};
use tablemount_client::{Error, Page, Value};
use tokio::sync::Semaphore;

use crate::config::Options;
use crate::deadline::Breaker;
use crate::errno::Failure;
use crate::source::Source;

/// The engine, as the filesystem calls it.
pub(crate) struct Remote {
    source: Arc<dyn Source>,
    breaker: Arc<Breaker>,
    permits: Semaphore,
    metadata_timeout: Duration,
    value_timeout: Duration,
}

impl Remote {
    pub(crate) fn new(source: Arc<dyn Source>, options: &Options) -> Self {
        Self {
            breaker: Breaker::new(source.clone(), options.probe_every),
            source,
            permits: Semaphore::new(options.concurrent_requests),
            metadata_timeout: options.metadata_timeout,
            value_timeout: options.value_timeout,
        }
    }

    /// Runs an operation, which may call several times, within the time limit of metadata.
    pub(crate) async fn within_metadata_timeout<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        self.within(self.metadata_timeout, work).await
    }

    /// Runs an operation within the time limit of values.
    pub(crate) async fn within_value_timeout<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        self.within(self.value_timeout, work).await
    }

    pub(crate) async fn tables(&self) -> Result<Vec<TableInfo>, Failure> {
        self.call(self.source.tables()).await
    }

    pub(crate) async fn table(&self, table: &TableName) -> Result<TableInfo, Failure> {
        self.call(self.source.table(table)).await
    }

    pub(crate) async fn read_page(
        &self,
        table: &TableName,
        request: &ReadRequest,
    ) -> Result<Page, Failure> {
        self.call(self.source.read_page(table, request)).await
    }

    pub(crate) async fn value(
        &self,
        table: &TableName,
        request: &ValueRequest,
        range: Range<u64>,
    ) -> Result<Value, Failure> {
        self.call(self.source.value(table, request, range)).await
    }

    pub(crate) async fn table_stats(&self, table: &TableName) -> Result<TableStats, Failure> {
        self.call(self.source.table_stats(table)).await
    }

    pub(crate) async fn server_stats(&self) -> Result<ServerStats, Failure> {
        self.call(self.source.server_stats()).await
    }

    async fn call<T>(&self, request: BoxFuture<'_, Result<T, Error>>) -> Result<T, Failure> {
        if self.breaker.is_open() {
            return Err(Failure::Deadline);
        }
        let _permit = self
            .permits
            .acquire()
            .await
            .map_err(|_| Failure::Deadline)?;
        if self.breaker.is_open() {
            return Err(Failure::Deadline);
        }
        request.await.map_err(|error| {
            // The server gives up a little before the client would.
            let late = error.code() == Some(ErrorCode::DeadlineExceeded);
            if late || matches!(error, Error::Timeout { .. }) {
                self.breaker.trip();
            }
            error.into()
        })
    }

    async fn within<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
            self.breaker.trip();
            Err(Failure::Deadline)
        })
    }
}

//! Where tables and cells come from: the engine's client, or a fake in tests.

use std::ops::Range;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tablemount_api::stats::{ServerStats, TableStats};
use tablemount_api::{ReadRequest, TableInfo, TableName, ValueRequest};
use tablemount_client::{Client, Error, Page, Value};

use crate::config::Options;

type Answer<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// What the filesystem asks of the engine. Each call is one request.
pub(crate) trait Source: Send + Sync + 'static {
    /// All tables by name.
    fn tables(&self) -> Answer<'_, Vec<TableInfo>>;
    /// One table.
    fn table<'a>(&'a self, table: &'a TableName) -> Answer<'a, TableInfo>;
    /// One page of a read.
    fn read_page<'a>(&'a self, table: &'a TableName, request: &'a ReadRequest) -> Answer<'a, Page>;
    /// A cell's bytes, or a range of them.
    fn value<'a>(
        &'a self,
        table: &'a TableName,
        request: &'a ValueRequest,
        range: Range<u64>,
    ) -> Answer<'a, Value>;
    /// A table's statistics.
    fn table_stats<'a>(&'a self, table: &'a TableName) -> Answer<'a, TableStats>;
    /// The server's statistics.
    fn server_stats(&self) -> Answer<'_, ServerStats>;
    /// Whether the engine answers.
    fn ready(&self) -> Answer<'_, ()>;
}

/// The engine, with a time limit for values and another for the rest.
pub(crate) struct Engine {
    metadata: Client,
    values: Client,
    probe: Client,
}

impl Engine {
    pub(crate) fn new(client: &Client, options: &Options) -> Self {
        Self {
            metadata: client.with_timeout(options.metadata_timeout),
            values: client.with_timeout(options.value_timeout),
            probe: client.with_timeout(options.probe_every),
        }
    }
}

impl Source for Engine {
    fn tables(&self) -> Answer<'_, Vec<TableInfo>> {
        self.metadata.tables().boxed()
    }

    fn table<'a>(&'a self, table: &'a TableName) -> Answer<'a, TableInfo> {
        self.metadata.table(table).boxed()
    }

    fn read_page<'a>(&'a self, table: &'a TableName, request: &'a ReadRequest) -> Answer<'a, Page> {
        self.metadata.read_page(table, request).boxed()
    }

    fn value<'a>(
        &'a self,
        table: &'a TableName,
        request: &'a ValueRequest,
        range: Range<u64>,
    ) -> Answer<'a, Value> {
        self.values.value(table, request, Some(range)).boxed()
    }

    fn table_stats<'a>(&'a self, table: &'a TableName) -> Answer<'a, TableStats> {
        self.metadata.table_stats(table).boxed()
    }

    fn server_stats(&self) -> Answer<'_, ServerStats> {
        self.metadata.server_stats().boxed()
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.probe.ready().boxed()
    }
}

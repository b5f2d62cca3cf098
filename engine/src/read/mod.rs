//! Reads: gets, scans and listings, all one mechanism: bounds → rows over tablets → lines of a page.

pub(crate) mod bounds;
pub(crate) mod direct;
pub(crate) mod family;
pub(crate) mod page;
pub(crate) mod scan;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tablemount_api::{ReadLine, ReadRequest, TableName, ValueRequest};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

pub use self::direct::{CellRef, CellValue};
use self::page::{Batch, Gone, Page, Sink};
use crate::storage::store::Store;
use crate::{Error, Result};

/// Bytes of all lines that wait for their readers; a page whose reader is slow waits, and in the end others do too.
pub(crate) const READ_BYTES: usize = 256 << 20;

/// How long a page waits for room.
const ROOM_WAIT: Duration = Duration::from_secs(10);

/// Batches of lines that may wait for a slow reader.
const CHANNEL: usize = 2;

/// One page's lines: rows with cells, then one line with `end` or `error`.
pub struct ReadStream {
    batches: mpsc::Receiver<Result<(Vec<ReadLine>, OwnedSemaphorePermit)>>,
    lines: VecDeque<ReadLine>,
    /// The room that `lines` take.
    room: Option<OwnedSemaphorePermit>,
}

impl ReadStream {
    /// The next line; `None` after the `end` or `error` line. Dropping the stream ends the read.
    pub async fn next(&mut self) -> Option<ReadLine> {
        // A page that fails before its first line sends an empty batch first.
        while self.lines.is_empty() {
            // Before the wait: what comes next may be waiting for this very room.
            self.room = None;
            match self.batches.recv().await? {
                Ok((lines, room)) => (self.lines, self.room) = (lines.into(), Some(room)),
                Err(error) => {
                    return Some(ReadLine {
                        error: Some(error.into()),
                        ..ReadLine::default()
                    });
                }
            }
        }
        self.lines.pop_front()
    }
}

fn no_room() -> Error {
    let seconds = ROOM_WAIT.as_secs();
    Error::Exhausted(format!(
        "{READ_BYTES} bytes of lines have waited for slow readers for {seconds} s; read again later"
    ))
}

/// Starts reading a page.
pub(crate) fn read(
    store: &Arc<Store>,
    table: &TableName,
    request: &ReadRequest,
    time_budget: Duration,
) -> Result<ReadStream> {
    let (sink, batches) = mpsc::channel(CHANNEL);
    let (runtime, rooms) = (tokio::runtime::Handle::current(), store.read_bytes.clone());
    let send: Sink = Box::new(move |batch| {
        let Batch { lines, bytes } = match batch {
            Ok(batch) => batch,
            Err(error) => return sink.blocking_send(Err(error)).map_err(|_| Gone),
        };
        let room = rooms
            .clone()
            .acquire_many_owned(bytes.min(READ_BYTES) as u32);
        // Nobody closes the semaphore: what fails is the wait.
        let Ok(Ok(room)) = runtime.block_on(async { tokio::time::timeout(ROOM_WAIT, room).await })
        else {
            let _ = sink.blocking_send(Err(no_room()));
            return Err(Gone);
        };
        sink.blocking_send(Ok((lines, room))).map_err(|_| Gone)
    });
    let page = Page::new(store, store.table(table)?, request, time_budget, send)?;
    let store = store.clone();
    tokio::task::spawn_blocking(move || page.run(&store));
    Ok(ReadStream {
        batches,
        lines: VecDeque::new(),
        room: None,
    })
}

/// Reads one cell, or the part of its value that `part` chooses by its length.
pub(crate) async fn value(
    store: &Arc<Store>,
    table: &TableName,
    request: ValueRequest,
    part: impl Fn(u64) -> Range<u64> + Send + 'static,
) -> Result<CellValue> {
    let (store, table) = (store.clone(), store.table(table)?);
    let read = move || {
        let found = direct::get(&store, &table, (&request).into(), &part)?;
        found.ok_or_else(|| direct::not_found(&table, &request))
    };
    tokio::task::spawn_blocking(read)
        .await
        .map_err(|error| Error::Io(format!("a read ended: {error}")))?
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tablemount_api::{
        Base64, FamilyName, FamilySchema, MutateRequest, Mutation, PutTable, Qualifier,
        ReadRequest, RowKey, RowMutation, TableName,
    };

    use super::READ_BYTES;
    use crate::{Config, Engine};

    #[tokio::test(flavor = "multi_thread")]
    async fn pages_that_need_more_than_all_room_wait_for_each_other_and_end() {
        let folder = tempfile::tempdir().expect("tempdir");
        let engine = Engine::open(Config::new(folder.path()))
            .await
            .expect("open");
        let table = TableName::new("t").expect("valid");
        let family = FamilyName::new("f").expect("valid");
        let body = PutTable {
            families: vec![FamilySchema::new(family.clone())],
            ..PutTable::default()
        };
        engine.put_table(&table, body).await.expect("put table");
        // On the wire a value takes a third more: two do not fit.
        let bytes = FamilySchema::MAX_VALUE_BYTES as usize;
        assert!(bytes * 4 / 3 * 2 > READ_BYTES);
        let value = Base64(vec![b'v'; bytes].into());
        let put = Mutation::Put {
            family,
            qualifier: Qualifier::default(),
            timestamp: None,
            value,
        };
        let row = RowMutation {
            row: RowKey::new("r").expect("valid"),
            check: None,
            mutations: vec![put],
        };
        engine
            .mutate(&table, MutateRequest { rows: vec![row] })
            .await
            .expect("put");
        let read = || {
            engine
                .read(&table, ReadRequest::default(), Duration::from_secs(60))
                .expect("read")
        };
        let mut first = read();
        assert_eq!(first.next().await.expect("a line").cells.len(), 1);
        let mut second = read();
        // The second waits for room, and the first's end comes behind it.
        let rest = tokio::time::timeout(Duration::from_secs(30), async {
            tokio::join!(async { first.next().await }, async { second.next().await })
        });
        let (end, line) = rest.await.expect("neither waits for ever");
        assert!(end.expect("an end").end.is_some());
        assert_eq!(line.expect("a line").cells.len(), 1);
        drop((first, second));
        engine.close().await.expect("close");
    }
}

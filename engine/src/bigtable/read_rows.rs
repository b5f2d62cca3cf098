//! ReadRows: pages of rows through the filter into messages, as fast as the client takes them.
//!
//! ```text
//! request ─ row set × filter's bounds ─► page: scan → machine → chunks ─► messages ─► client
//!                                          ▲ next page once its messages wait to be sent │
//! ```
//! **Invariants**: between pages nothing of storage is held, so a slow client costs its waiting messages only; a page ends between
//! rows, so a row is of one moment, unless a long stretch of deleted cells in it used up the page's time; memory is bounded
//! whatever a row holds; a client that went away ends the read at the next message.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prost::Message as _;
use tablemount_api::{FamilyInfo, Position, ReadRequest};
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tonic::codegen::BoxStream;

use super::chunks::{Chunks, MESSAGE_BYTES, ROW_MESSAGE_BYTES, ReadRowsMessage};
use super::data::family_ids;
use super::filter::{self, Machine, Pushdown};
use super::proto::v2;
use super::row_set::{self, Rows};
use super::row_visit;
use crate::read::bounds::decoded;
use crate::read::family::FamilyReader;
use crate::read::scan::{Flow, Scan, Visitor};
use crate::storage::keys;
use crate::storage::merge::damaged;
use crate::storage::store::Store;
use crate::storage::table::Table;
use crate::{Error, Result};

/// A page ends after a row that brings it to so many bytes; the first earlier, so that a client sees its first rows soon.
const PAGE_BYTES: usize = MESSAGE_BYTES - (64 << 10);
const FIRST_PAGE_BYTES: usize = 64 << 10;
/// So many rows are sent in messages of their own, so that what reads few rows, or shows the first, need not take many at once.
const EAGER_ROWS: u64 = 8;
/// What a page may gather inside a row before a part of it is sent: the row is then longer than any message.
const ROW_BYTES: usize = ROW_MESSAGE_BYTES + 2 * MESSAGE_BYTES;
/// Messages that wait for the client.
const WAITING: usize = 2;
/// How long a client may take for one message.
const PATIENCE: Duration = Duration::from_secs(300);
/// A page that finds nothing says after this time how far it is.
const PAGE_TIME: Duration = Duration::from_secs(2);
/// So many single rows are read by the task that was asked, if not too many do so already.
const INLINE_ROWS: usize = 16;

/// Reads that run on the threads of tasks: one of these threads always stays free.
pub(crate) fn inline_reads() -> Semaphore {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Semaphore::new(threads.saturating_sub(1).max(1))
}

/// A read under way.
struct Read {
    table: Arc<Table>,
    families: Vec<FamilyInfo>,
    /// What is left of the row set, in the order of reading.
    ranges: VecDeque<Rows>,
    /// Where to go on inside the first of them.
    after: Option<Position>,
    pushdown: Pushdown,
    reverse: bool,
    rows: Output,
    stats: Option<Instant>,
}

/// Where rows go.
struct Output {
    machine: Machine,
    chunks: Chunks,
    ids: Vec<u64>,
    values: bool,
    /// Rows that may still be sent.
    left: u64,
    page_bytes: usize,
    /// The row that is read, and whether a page stopped inside it.
    row: Vec<u8>,
    interrupted: bool,
    rows_seen: u64,
    cells_seen: u64,
    /// Takes parts of rows that are too long to wait for.
    drain: Option<mpsc::Sender<std::result::Result<ReadRowsMessage, Status>>>,
    /// There was such a row, and nothing to take it.
    too_long: bool,
}

/// Answers a request.
pub(crate) async fn read_rows(
    store: &Arc<Store>,
    table: Arc<Table>,
    request: v2::ReadRowsRequest,
    inline: &Semaphore,
) -> Result<BoxStream<ReadRowsMessage>> {
    let mut read = Read::new(table.clone(), &request)?;
    if read.is_small()
        && let Ok(_permit) = inline.try_acquire()
    {
        if read.page(store)? {
            let messages = read.rows.chunks.take();
            return Ok(Box::pin(futures::stream::iter(
                messages.into_iter().map(Ok),
            )));
        }
        if read.rows.too_long {
            // Nothing of it was sent.
            read = Read::new(table, &request)?;
        }
    }
    let (send, messages) = mpsc::channel(WAITING);
    let store = store.clone();
    tokio::spawn(async move {
        if let Err(error) = read.run(&store, &send).await {
            let _ = send.send_timeout(Err(error.into()), PATIENCE).await;
        }
    });
    Ok(Box::pin(ReceiverStream::new(messages)))
}

impl Read {
    fn new(table: Arc<Table>, request: &v2::ReadRowsRequest) -> Result<Self> {
        let schema = table.schema();
        let families = &schema.record.families;
        let root = filter::compile(request.filter.as_ref(), families)?;
        let pushdown = Pushdown::of(&root, families.len());
        let mut ranges = row_set::rows(request.rows.as_ref())?;
        if request.reversed {
            ranges = ranges.into_iter().rev().collect();
        }
        if pushdown.is_nothing() {
            ranges.clear();
        }
        let left = match request.rows_limit {
            0 => u64::MAX,
            limit => u64::try_from(limit).map_err(|_| {
                Error::Invalid(format!("rows_limit is {limit}; it must be 0 or more"))
            })?,
        };
        let full = v2::read_rows_request::RequestStatsView::RequestStatsFull;
        let name = |family: &FamilyInfo| family.schema.name.as_str().into();
        Ok(Self {
            rows: Output {
                machine: Machine::new(root),
                chunks: Chunks::new(families.iter().map(name).collect()),
                ids: family_ids(families),
                values: pushdown.values,
                left,
                page_bytes: FIRST_PAGE_BYTES,
                row: Vec::new(),
                interrupted: false,
                rows_seen: 0,
                cells_seen: 0,
                drain: None,
                too_long: false,
            },
            families: families.clone(),
            table,
            ranges,
            after: None,
            pushdown,
            reverse: request.reversed,
            stats: (request.request_stats_view() == full).then(Instant::now),
        })
    }

    /// Whether it is worth less than handing it to another thread.
    fn is_small(&self) -> bool {
        self.ranges.len() <= INLINE_ROWS && self.ranges.iter().all(Rows::is_one_row)
    }

    /// Sends what was read and reads on, page after page.
    async fn run(
        mut self,
        store: &Arc<Store>,
        send: &mpsc::Sender<std::result::Result<ReadRowsMessage, Status>>,
    ) -> Result<()> {
        self.rows.drain = Some(send.clone());
        let mut done = false;
        loop {
            for message in self.rows.chunks.take() {
                if send.send_timeout(Ok(message), PATIENCE).await.is_err() {
                    return Ok(());
                }
            }
            if done || send.is_closed() {
                return Ok(());
            }
            let store = store.clone();
            let page = tokio::task::spawn_blocking(move || {
                let done = self.page(&store);
                (self, done)
            });
            let (read, ended) = page
                .await
                .map_err(|error| Error::Io(format!("a read ended: {error}")))?;
            self = read;
            done = ended?;
            self.rows.page_bytes = PAGE_BYTES;
        }
    }

    /// Reads on until a page is full. Returns whether that was all.
    fn page(&mut self, store: &Store) -> Result<bool> {
        let until = Instant::now() + PAGE_TIME;
        while let Some(range) = self.ranges.front() {
            let mut request = ReadRequest {
                reverse: self.reverse,
                after: self.after.take(),
                ..ReadRequest::default()
            };
            range.apply(&mut request)?;
            self.pushdown.apply(&mut request, &self.families);
            let mut scan = Scan::new(store, self.table.clone(), &request, until)?;
            self.after = scan.run(store, &mut self.rows)?;
            if self.rows.left == 0 {
                break;
            }
            match &self.after {
                Some(after) => {
                    // Inside of a row it is not seen: who begins anew behind it would miss the rest.
                    if self.rows.chunks.is_empty() && after.cell.is_none() {
                        self.rows.chunks.last_scanned(after.row.bytes());
                    }
                    return Ok(false);
                }
                None => drop(self.ranges.pop_front()),
            }
            self.rows.end_interrupted()?;
            if self.rows.left == 0 {
                break;
            }
        }
        if let Some(started) = self.stats {
            self.rows.stats(started);
        }
        Ok(true)
    }
}

impl Output {
    fn stats(&mut self, started: Instant) {
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let stats = v2::RequestStats {
            stats_view: Some(v2::request_stats::StatsView::FullReadStatsView(
                v2::FullReadStatsView {
                    read_iteration_stats: Some(v2::ReadIterationStats {
                        rows_seen_count: count(self.rows_seen),
                        rows_returned_count: count(self.chunks.rows),
                        cells_seen_count: count(self.cells_seen),
                        cells_returned_count: count(self.chunks.cells),
                    }),
                    request_latency_stats: Some(v2::RequestLatencyStats {
                        frontend_server_latency: started.elapsed().try_into().ok(),
                    }),
                },
            )),
        };
        self.chunks.stats(&stats.encode_to_vec());
    }

    /// Nothing more came of the row that a page stopped inside.
    fn end_interrupted(&mut self) -> Result<()> {
        match std::mem::take(&mut self.interrupted) {
            true => self.end_row().map(drop),
            false => Ok(()),
        }
    }

    /// Sends what a long row has gathered so far, if there is anything that takes it.
    fn send_part(&mut self) -> Result<Flow> {
        let Some(drain) = &self.drain else {
            self.too_long = true;
            return Ok(Flow::Stop);
        };
        let runtime = tokio::runtime::Handle::current();
        for message in self.chunks.take() {
            let sent = runtime.block_on(drain.send_timeout(Ok(message), PATIENCE));
            if sent.is_err() {
                return Err(Error::Deadline(format!(
                    "the client took no message for {} s",
                    PATIENCE.as_secs()
                )));
            }
        }
        Ok(Flow::Continue)
    }
}

impl Visitor for Output {
    fn row(&mut self, row: &[u8]) -> Result<Flow> {
        if self.interrupted {
            if *decoded(row)? == *self.row {
                self.interrupted = false;
                return Ok(Flow::Continue);
            }
            self.end_interrupted()?;
            if self.left == 0 {
                return Ok(Flow::NextRow);
            }
        }
        self.row.clear();
        keys::unescape(row, &mut self.row).ok_or_else(damaged)?;
        self.rows_seen += 1;
        self.chunks.begin_row(&self.row);
        Ok(match self.machine.begin_row(&self.row) {
            true => Flow::Continue,
            false => Flow::NextRow,
        })
    }

    fn cell(&mut self, reader: &FamilyReader) -> Result<Flow> {
        self.cells_seen += 1;
        let flow = row_visit::feed(
            &mut self.machine,
            &self.ids,
            self.values,
            reader,
            &mut self.chunks,
        )?;
        if self.chunks.len() > ROW_BYTES && self.send_part()? == Flow::Stop {
            return Ok(Flow::Stop);
        }
        Ok(flow)
    }

    fn end_row(&mut self) -> Result<Flow> {
        self.machine.end_row(&mut self.chunks);
        if self.chunks.end_row() {
            self.left -= 1;
            if self.chunks.rows <= EAGER_ROWS {
                self.chunks.end_message();
            }
        }
        Ok(
            match self.left == 0 || self.chunks.len() >= self.page_bytes {
                true => Flow::Stop,
                false => Flow::Continue,
            },
        )
    }

    fn interrupted(&mut self) -> Result<()> {
        self.interrupted = true;
        Ok(())
    }
}

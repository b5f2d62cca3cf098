//! Sends row mutations in batches: four lanes, each with one request at a time, so that requests overlap but lines of one row
//! keep their order.
//!
//! **Invariants**: a request that failed for want of an answer is sent again, which is exact because every cell has its
//! timestamp; a batch that the server refuses as a whole is halved until the bad lines are found; everything else ends the
//! import.

use std::hash::{BuildHasher as _, RandomState};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use tablemount_api::{
    ErrorCode, FamilyName, MutateRequest, Mutation, Qualifier, RowKey, RowMutation, TableName,
    Timestamp,
};
use tablemount_client::{Client, Error};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Line, Report, Source};
use crate::cmd::put::LARGE_VALUE_BYTES;

const LANES: usize = 4;
const BATCH_ROWS: usize = 2_000;
const BATCH_BYTES: usize = 1 << 20;
/// What a cell takes in a request besides its bytes, roughly.
const CELL_BYTES: usize = 100;
/// For how long a request without an answer is sent again.
const RETRY_FOR: Duration = Duration::from_secs(60);
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LONGEST: Duration = Duration::from_secs(5);

/// Where rows go.
#[derive(Clone)]
struct Target {
    client: Client,
    table: TableName,
    report: Arc<Report>,
}

/// A line, or a part of it that is sent on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    /// The line's number.
    line: u64,
    /// With this one the line is written.
    last: bool,
}

/// What one request carries.
enum Batch {
    Rows {
        parts: Vec<Part>,
        rows: Vec<RowMutation>,
    },
    /// A value too long for JSON.
    Value { part: Part, row: RowKey, cell: Cell },
}

struct Cell {
    family: FamilyName,
    qualifier: Qualifier,
    timestamp: Option<Timestamp>,
    value: Bytes,
}

/// Writes all lines of `source`; an error says why the import stopped before the end.
pub(crate) async fn load(
    client: Client,
    table: TableName,
    source: Box<dyn Source>,
    report: Arc<Report>,
) -> anyhow::Result<()> {
    let target = Target {
        client,
        table,
        report: Arc::clone(&report),
    };
    let mut lanes = tokio::task::JoinSet::new();
    let mut queues = Vec::with_capacity(LANES);
    for _ in 0..LANES {
        let (queue, batches) = mpsc::channel(1);
        queues.push(Queue {
            queue,
            parts: Vec::new(),
            rows: Vec::new(),
            bytes: 0,
        });
        lanes.spawn(lane(target.clone(), batches));
    }
    let reader = tokio::task::spawn_blocking(move || read(source, queues, &report));
    let mut failed = None;
    while let Some(done) = lanes.join_next().await {
        if let Err(error) = done.context("lane")? {
            failed.get_or_insert(error);
        }
    }
    let read = reader.await.context("reader")?;
    failed.map_or(read, Err)
}

/// Hands the lines out. Ends early, without an error, when a lane has ended: that lane knows why.
fn read(
    mut source: Box<dyn Source>,
    mut queues: Vec<Queue>,
    report: &Report,
) -> anyhow::Result<()> {
    let hasher = RandomState::new();
    let end = loop {
        let (number, row) = match source.next() {
            Ok(Some(Line::Row { number, row })) => (number, row),
            Ok(Some(Line::Bad { number, reason })) => {
                report.bad(number, &reason);
                continue;
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        };
        let lane = (hasher.hash_one(row.row.bytes()) % LANES as u64) as usize;
        if queues[lane].push(number, row).is_err() {
            return Ok(());
        }
    };
    // What was read before the file broke off is written too.
    for queue in &mut queues {
        let _ = queue.flush();
    }
    end
}

/// The lane has ended.
struct Ended;

/// A lane's batch in the making.
struct Queue {
    queue: mpsc::Sender<Batch>,
    parts: Vec<Part>,
    rows: Vec<RowMutation>,
    bytes: usize,
}

impl Queue {
    fn push(&mut self, line: u64, mut row: RowMutation) -> Result<(), Ended> {
        let large = take_large(&mut row);
        let key = row.row.clone();
        let mut rest = row.mutations;
        while !rest.is_empty() {
            let after = rest.split_off(rest.len().min(RowMutation::MAX_MUTATIONS));
            let last = after.is_empty() && large.is_empty();
            let row = RowMutation {
                row: key.clone(),
                check: None,
                mutations: rest,
            };
            self.add(Part { line, last }, row)?;
            rest = after;
        }
        let mut large = large.into_iter().peekable();
        while let Some(cell) = large.next() {
            // In its place: what was read before it is sent before it.
            self.flush()?;
            let last = large.peek().is_none();
            self.send(Batch::Value {
                part: Part { line, last },
                row: key.clone(),
                cell,
            })?;
        }
        Ok(())
    }

    fn add(&mut self, part: Part, row: RowMutation) -> Result<(), Ended> {
        self.bytes += weight(&row);
        self.parts.push(part);
        self.rows.push(row);
        if self.rows.len() >= BATCH_ROWS || self.bytes >= BATCH_BYTES {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<(), Ended> {
        if self.rows.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        let parts = std::mem::take(&mut self.parts);
        let rows = std::mem::take(&mut self.rows);
        self.send(Batch::Rows { parts, rows })
    }

    fn send(&self, batch: Batch) -> Result<(), Ended> {
        self.queue.blocking_send(batch).map_err(|_| Ended)
    }
}

fn weight(row: &RowMutation) -> usize {
    let cells = row.mutations.iter().map(|mutation| match mutation {
        Mutation::Put {
            qualifier, value, ..
        } => qualifier.bytes().len() + value.0.len() + CELL_BYTES,
        _ => CELL_BYTES,
    });
    row.row.bytes().len() + cells.sum::<usize>()
}

/// Takes out the values that are too long for JSON.
fn take_large(row: &mut RowMutation) -> Vec<Cell> {
    let is_large = |mutation: &Mutation| matches!(mutation, Mutation::Put { value, .. } if value.0.len() > LARGE_VALUE_BYTES);
    if !row.mutations.iter().any(is_large) {
        return Vec::new();
    }
    let (large, small) = std::mem::take(&mut row.mutations)
        .into_iter()
        .partition(is_large);
    row.mutations = small;
    let cell = |mutation| match mutation {
        Mutation::Put {
            family,
            qualifier,
            timestamp,
            value,
        } => Some(Cell {
            family,
            qualifier,
            timestamp,
            value: value.0,
        }),
        _ => None,
    };
    Vec::into_iter(large).filter_map(cell).collect()
}

async fn lane(target: Target, mut batches: mpsc::Receiver<Batch>) -> anyhow::Result<()> {
    while let Some(batch) = batches.recv().await {
        match batch {
            Batch::Rows { numbers, rows } => target.rows(&numbers, rows).await?,
            Batch::Value {
                number,
                row,
                cell,
                closes_row,
            } => target.value(number, &row, &cell, closes_row).await?,
        }
    }
    Ok(())
}

impl Target {
    async fn rows(&self, numbers: &[u64], rows: Vec<RowMutation>) -> anyhow::Result<()> {
        let request = MutateRequest { rows };
        match self.mutate(&request).await {
            Ok(()) => self.report.written(numbers.len() as u64),
            Err(error) if is_bad_line(&error) => {
                self.find_bad(numbers, &request.rows, error).await?
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Halves a refused batch until the lines that the server does not take are known by their numbers.
    async fn find_bad(
        &self,
        numbers: &[u64],
        rows: &[RowMutation],
        refusal: Error,
    ) -> anyhow::Result<()> {
        let mut refused: Vec<(Range<usize>, Error)> = vec![(0..rows.len(), refusal)];
        while let Some((range, error)) = refused.pop() {
            if range.len() == 1 {
                self.report.bad(numbers[range.start], &error.to_string());
                continue;
            }
            let middle = range.start + range.len() / 2;
            for half in [middle..range.end, range.start..middle] {
                match self
                    .mutate(&MutateRequest {
                        rows: rows[half.clone()].to_vec(),
                    })
                    .await
                {
                    Ok(()) => self.report.written(half.len() as u64),
                    Err(error) if is_bad_line(&error) => refused.push((half, error)),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    async fn mutate(&self, request: &MutateRequest) -> Result<(), Error> {
        self.send(Request::Mutate(request)).await
    }

    async fn value(
        &self,
        number: u64,
        row: &RowKey,
        cell: &Cell,
        closes_row: bool,
    ) -> anyhow::Result<()> {
        match self.send(Request::Value(row, cell)).await {
            Ok(()) => self.report.written(u64::from(closes_row)),
            Err(error) if is_bad_line(&error) => self.report.bad(number, &error.to_string()),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Sends the request until it has an answer, for a minute.
    async fn send(&self, request: Request<'_>) -> Result<(), Error> {
        let end = Instant::now() + RETRY_FOR;
        let mut pause = RETRY_FIRST;
        loop {
            match self.send_once(request).await {
                Err(error) if is_passing(&error) && Instant::now() + pause < end => {
                    tracing::debug!(%error, ?pause, "send again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(RETRY_LONGEST);
                }
                result => return result,
            }
        }
    }

    async fn send_once(&self, request: Request<'_>) -> Result<(), Error> {
        match request {
            Request::Mutate(request) => self.client.mutate(&self.table, request).await.map(drop),
            Request::Value(
                row,
                Cell {
                    family,
                    qualifier,
                    timestamp,
                    value,
                },
            ) => {
                let sent = self.client.put_value(
                    &self.table,
                    row,
                    family,
                    qualifier,
                    *timestamp,
                    value.clone(),
                );
                sent.await.map(drop)
            }
        }
    }
}

/// What is sent, and sent again.
#[derive(Clone, Copy)]
enum Request<'a> {
    Mutate(&'a MutateRequest),
    Value(&'a RowKey, &'a Cell),
}

/// Whether the refusal is about what was sent.
fn is_bad_line(error: &Error) -> bool {
    matches!(
        error.code(),
        Some(ErrorCode::InvalidArgument | ErrorCode::TooLarge)
    )
}

/// Whether the same request may well succeed later.
fn is_passing(error: &Error) -> bool {
    match error {
        Error::Timeout { .. } | Error::Unreachable { .. } => true,
        Error::Refused(error) => {
            matches!(
                error.code,
                ErrorCode::Unavailable | ErrorCode::DeadlineExceeded | ErrorCode::ResourceExhausted
            )
        }
        Error::Protocol { .. } | Error::Config(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use tablemount_api::Base64;

    use super::*;

    fn put(value_bytes: usize) -> Mutation {
        Mutation::Put {
            family: FamilyName::new("f").expect("name"),
            qualifier: Qualifier::default(),
            timestamp: Some(Timestamp(1)),
            value: Base64(vec![0; value_bytes].into()),
        }
    }

    fn pushed(mutations: Vec<Mutation>) -> Vec<(usize, bool)> {
        let (queue, mut batches) = mpsc::channel(100);
        let mut queue = Queue {
            queue,
            numbers: Vec::new(),
            rows: Vec::new(),
            bytes: 0,
        };
        let row = RowMutation {
            row: RowKey::new("r").expect("key"),
            check: None,
            mutations,
        };
        assert!(queue.push(1, row).is_ok() && queue.flush().is_ok());
        let mut sent = Vec::new();
        while let Ok(batch) = batches.try_recv() {
            sent.push(match batch {
                Batch::Rows { rows, .. } => {
                    (rows.iter().map(|row| row.mutations.len()).sum(), true)
                }
                Batch::Value {
                    cell, closes_row, ..
                } => (cell.value.len(), closes_row),
            });
        }
        sent
    }

    #[test]
    fn long_values_go_alone_and_after_the_rest() {
        let large = LARGE_VALUE_BYTES + 1;
        assert_eq!(
            pushed(vec![put(large), put(1), put(large)]),
            [(1, true), (large, false), (large, false)]
        );
        assert_eq!(
            pushed(vec![put(large), put(large)]),
            [(large, false), (large, true)]
        );
    }

    #[test]
    fn rows_of_many_cells_are_split() {
        let sent = pushed(vec![put(1); RowMutation::MAX_MUTATIONS + 5]);
        assert_eq!(
            sent.iter().map(|(cells, _)| cells).sum::<usize>(),
            RowMutation::MAX_MUTATIONS + 5
        );
        assert!(sent.len() > 1, "{sent:?}");
    }
}

//! Sends batches: one lane, one request at a time.
//!
//! **Invariants**: a request that failed for want of an answer is sent again, which is exact because every cell has its
//! timestamp; a batch that the server refuses as a whole is halved, in order, until the bad lines are found; everything else
//! ends the import.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tablemount_api::{
    ErrorCode, FamilyName, MutateRequest, Qualifier, RowKey, RowMutation, TableName, Timestamp,
};
use tablemount_client::{Client, Error};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Report;

/// For how long a request without an answer is sent again.
const RETRY_FOR: Duration = Duration::from_secs(60);
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LONGEST: Duration = Duration::from_secs(5);

/// A line, or a part of it that is sent on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// The line's number.
    pub(super) line: u64,
    /// With this one the line is written.
    pub(super) last: bool,
}

/// What one request carries.
pub(super) enum Batch {
    /// Rows, and the part of a line that each is.
    Rows {
        parts: Vec<Part>,
        rows: Vec<RowMutation>,
    },
    /// A value too long for JSON.
    Value { part: Part, row: RowKey, cell: Cell },
}

/// A cell with a long value.
pub(super) struct Cell {
    pub(super) family: FamilyName,
    pub(super) qualifier: Qualifier,
    pub(super) timestamp: Option<Timestamp>,
    pub(super) value: Bytes,
}

/// Where rows go.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) client: Client,
    pub(super) table: TableName,
    pub(super) report: Arc<Report>,
}

/// Sends batches as they come, until there are no more.
pub(super) async fn lane(target: Target, mut batches: mpsc::Receiver<Batch>) -> anyhow::Result<()> {
    while let Some(batch) = batches.recv().await {
        match batch {
            Batch::Rows { parts, rows } => target.rows(&parts, rows).await?,
            Batch::Value { part, row, cell } => target.value(part, &row, &cell).await?,
        }
    }
    Ok(())
}

impl Target {
    async fn rows(&self, parts: &[Part], rows: Vec<RowMutation>) -> anyhow::Result<()> {
        let request = MutateRequest { rows };
        match self.send(Request::Mutate(&request)).await {
            Ok(()) => self.written(parts),
            Err(error) if is_bad_line(&error) => {
                self.find_bad(parts, &request.rows, &error).await?
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Halves a refused batch until the lines that the server does not take are known by their numbers.
    async fn find_bad(
        &self,
        parts: &[Part],
        rows: &[RowMutation],
        refusal: &Error,
    ) -> anyhow::Result<()> {
        if let [only] = parts {
            self.report.bad(only.line, &refusal.to_string());
            return Ok(());
        }
        // The top of the stack is the next in order.
        let mut left = halves(0..rows.len()).to_vec();
        while let Some(range) = left.pop() {
            let request = MutateRequest {
                rows: rows[range.clone()].to_vec(),
            };
            match self.send(Request::Mutate(&request)).await {
                Ok(()) => self.written(&parts[range]),
                Err(error) if !is_bad_line(&error) => return Err(error.into()),
                Err(error) if range.len() == 1 => {
                    self.report.bad(parts[range.start].line, &error.to_string());
                }
                Err(_) => left.extend(halves(range)),
            }
        }
        Ok(())
    }

    async fn value(&self, part: Part, row: &RowKey, cell: &Cell) -> anyhow::Result<()> {
        match self.send(Request::Value(row, cell)).await {
            Ok(()) => self.written(&[part]),
            Err(error) if is_bad_line(&error) => self.report.bad(part.line, &error.to_string()),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn written(&self, parts: &[Part]) {
        let rows = parts.iter().filter(|part| part.last).count();
        self.report.written(rows as u64);
    }

    /// Sends the request until it has an answer, for a minute.
    async fn send(&self, request: Request<'_>) -> Result<(), Error> {
        let end = Instant::now() + RETRY_FOR;
        let mut pause = RETRY_FIRST;
        loop {
            match self.send_once(request).await {
                Err(error) if is_passing(&error) && Instant::now() + pause < end => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(RETRY_LONGEST);
                }
                result => return result,
            }
        }
    }

    async fn send_once(&self, request: Request<'_>) -> Result<(), Error> {
        let (client, table) = (&self.client, &self.table);
        match request {
            Request::Mutate(request) => client.mutate(table, request).await.map(drop),
            Request::Value(row, cell) => {
                let value = cell.value.clone();
                let (family, qualifier) = (&cell.family, &cell.qualifier);
                let sent = client.put_value(table, row, family, qualifier, cell.timestamp, value);
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

/// The second half and the first, as a stack takes them.
fn halves(range: Range<usize>) -> [Range<usize>; 2] {
    let middle = range.start + range.len() / 2;
    [middle..range.end, range.start..middle]
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

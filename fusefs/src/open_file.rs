//! An open file: a value, read in pieces, or bytes that are there already.
//!
//! **Invariants**: a value of up to [`PIECE`] bytes costs one request, a longer one a request for each piece, read in order;
//! every piece is of the version and length that the file had when it was opened, else the file is stale; pieces kept for
//! all open files together take at most [`MAX_KEPT_BYTES`].

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};
use tablemount_api::{Timestamp, ValueRequest};
use tokio::sync::Mutex;

use crate::errno::Failure;
use crate::fetch::{qualifier, row_key};
use crate::filesystem::Filesystem;
use crate::node::{Column, Generated, Node};
use crate::row_json::RowJson;

/// How much of a value is asked for at a time.
const PIECE: u64 = 4 << 20;
const MAX_KEPT_BYTES: usize = 64 << 20;

/// An open file.
pub(crate) enum OpenFile {
    /// All its bytes.
    Bytes(Bytes),
    /// A value, piece by piece.
    Value(OpenValue),
    /// A row's cells as JSON, written as they are read.
    RowJson(Mutex<RowJson>),
}

/// A version of a cell, as it was when it was opened.
pub(crate) struct OpenValue {
    column: Column,
    timestamp: Timestamp,
    length: u64,
    kept: Mutex<Option<Kept>>,
    budget: Arc<KeptBytes>,
}

/// The piece read last.
struct Kept {
    start: u64,
    bytes: Bytes,
    budget: Arc<KeptBytes>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

/// What all open files keep.
#[derive(Default)]
pub(crate) struct KeptBytes(AtomicUsize);

impl Filesystem {
    /// Opens a file.
    pub(crate) async fn open_file(&self, node: &Node) -> Result<OpenFile, Failure> {
        match node {
            Node::Cell(column, timestamp) => {
                let place = self.facts.version_place(column, *timestamp).await?;
                self.open_cell(column, &place, Some(*timestamp)).await
            }
            Node::Newest(column) => {
                let place = self.facts.column_place(column).await?;
                self.open_cell(column, &place, None).await
            }
            Node::Generated(base, Generated::RowJson) => match &**base {
                Node::Row(row) => Ok(OpenFile::RowJson(Mutex::new(RowJson::new(row.clone())))),
                _ => Err(Failure::WrongKind),
            },
            Node::Generated(base, file) => Ok(OpenFile::Bytes(self.generate(base, *file).await?)),
            _ => Err(Failure::WrongKind),
        }
    }

    async fn open_cell(
        &self,
        column: &Column,
        place: &crate::place::Place,
        timestamp: Option<Timestamp>,
    ) -> Result<OpenFile, Failure> {
        let ahead = self
            .facts
            .value_ahead(&column.family.row.scope, place)
            .await?;
        if let Some(bytes) = ahead.and_then(|cell| cell.value) {
            return Ok(OpenFile::Bytes(bytes));
        }
        let value = self.read_value(column, timestamp, 0..PIECE).await?;
        let open = OpenValue {
            column: column.clone(),
            timestamp: value.timestamp,
            length: value.length,
            kept: Mutex::default(),
            budget: self.kept_bytes.clone(),
        };
        *open.kept.lock().await = open.keep(0, &value.bytes);
        Ok(OpenFile::Value(open))
    }

    /// Reads an open file.
    pub(crate) async fn read_file(
        &self,
        file: &OpenFile,
        offset: u64,
        size: u32,
    ) -> Result<Bytes, Failure> {
        match file {
            OpenFile::Bytes(bytes) => Ok(part(bytes, offset, size.into())),
            OpenFile::Value(value) => self.read_open_value(value, offset, size.into()).await,
            OpenFile::RowJson(json) => json.lock().await.read(self, offset, size as usize).await,
        }
    }

    async fn read_open_value(
        &self,
        open: &OpenValue,
        offset: u64,
        size: u64,
    ) -> Result<Bytes, Failure> {
        let end = open.length.min(offset.saturating_add(size));
        let mut kept = open.kept.lock().await;
        let mut read = BytesMut::new();
        let mut at = offset;
        while at < end {
            let known = kept.as_ref().map(|kept| match at.checked_sub(kept.start) {
                Some(skip) => part(&kept.bytes, skip, end - at),
                None => Bytes::new(),
            });
            let bytes = match known {
                Some(bytes) if !bytes.is_empty() => bytes,
                _ => {
                    let piece = self.piece(open, at..open.length.min(at + PIECE)).await?;
                    *kept = None;
                    *kept = open.keep(at, &piece);
                    part(&piece, 0, end - at)
                }
            };
            at += bytes.len() as u64;
            if at == end && read.is_empty() {
                return Ok(bytes);
            }
            read.extend_from_slice(&bytes);
        }
        Ok(read.freeze())
    }

    /// A piece of the very value that was opened.
    async fn piece(&self, open: &OpenValue, range: Range<u64>) -> Result<Bytes, Failure> {
        let size = range.end - range.start;
        let value = match self
            .read_value(&open.column, Some(open.timestamp), range)
            .await
        {
            Err(failure) if failure.is_absent() => return Err(Failure::Stale),
            other => other?,
        };
        let same = value.timestamp == open.timestamp
            && value.length == open.length
            && value.bytes.len() as u64 == size;
        same.then_some(value.bytes).ok_or(Failure::Stale)
    }

    async fn read_value(
        &self,
        column: &Column,
        timestamp: Option<Timestamp>,
        range: Range<u64>,
    ) -> Result<tablemount_client::Value, Failure> {
        let row = &column.family.row;
        let request = ValueRequest {
            row: row_key(&row.key)?,
            family: column.family.family.clone(),
            qualifier: qualifier(&column.qualifier)?,
            at: row.scope.at,
            timestamp,
        };
        self.remote.value(&row.scope.table, &request, range).await
    }
}

impl OpenValue {
    /// Keeps a piece, unless too much is kept already.
    fn keep(&self, start: u64, bytes: &Bytes) -> Option<Kept> {
        let before = self.budget.0.fetch_add(bytes.len(), Ordering::Relaxed);
        let kept = Kept {
            start,
            bytes: bytes.clone(),
            budget: self.budget.clone(),
        };
        (before + bytes.len() <= MAX_KEPT_BYTES).then_some(kept)
    }
}

/// What lies in `bytes` from `offset` on, at most `size` bytes.
fn part(bytes: &Bytes, offset: u64, size: u64) -> Bytes {
    let start = usize::try_from(offset)
        .unwrap_or(usize::MAX)
        .min(bytes.len());
    let end = start
        .saturating_add(usize::try_from(size).unwrap_or(usize::MAX))
        .min(bytes.len());
    bytes.slice(start..end)
}

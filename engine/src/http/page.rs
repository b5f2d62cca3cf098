//! A page of a read as NDJSON, encoded while it is sent.
//!
//! ```text
//! {"row":"YQ==","cells":[{"family":"f","qualifier":"","timestamp":1,"value":"eA=="}]}
//! {"end":{"next":{"row":"YQ=="}}}
//! ```
//!
//! **Invariants**: lines go out in chunks of about [`CHUNK_BYTES`], or after [`LINGER`] when the engine is slower; nothing is
//! encoded before the connection takes the chunk before it; the last line is an end or an error, also when the deadline
//! passes.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use bytes::{BufMut, Bytes, BytesMut};
use futures::{FutureExt, stream};
use tablemount_api::{ApiError, ErrorCode, ReadLine};
use tokio::time::{Instant, timeout, timeout_at};

use super::app::Context;
use super::edge::deadline_passed;
use super::refusal::Refusal;
use crate::ReadStream;

const CHUNK_BYTES: usize = 64 << 10;
const LINGER: Duration = Duration::from_millis(20);

/// The answer with the page's lines. An error that comes before the first line is the answer itself.
pub(crate) async fn respond(mut lines: ReadStream, context: Context) -> Result<Response, Refusal> {
    let first = match lines.next().await {
        Some(ReadLine {
            error: Some(error), ..
        }) => return Err(error.into()),
        Some(line) => line,
        None => return Err(broken_off().into()),
    };
    let page = Page {
        lines,
        first: Some(first),
        buffer: BytesMut::new(),
        context,
        ended: false,
    };
    let chunks = stream::unfold(page, async |mut page| {
        let chunk = page.next_chunk().await?;
        Some((Ok::<_, Infallible>(chunk), page))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/x-ndjson"),
    );
    Ok(response)
}

struct Page {
    lines: ReadStream,
    first: Option<ReadLine>,
    buffer: BytesMut,
    context: Context,
    ended: bool,
}

impl Page {
    async fn next_chunk(&mut self) -> Option<Bytes> {
        while !self.ended && self.buffer.len() < CHUNK_BYTES {
            match self.next_line().await {
                Some(line) => self.encode(&line),
                None => break,
            }
        }
        (!self.buffer.is_empty()).then(|| self.buffer.split().freeze())
    }

    /// The next line; `None`: it does not come soon, and others wait to be sent.
    async fn next_line(&mut self) -> Option<ReadLine> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let line = match self.lines.next().now_or_never() {
            Some(line) => line,
            None if self.buffer.is_empty() => {
                match timeout_at(self.context.deadline, self.lines.next()).await {
                    Ok(line) => line,
                    Err(_) => return Some(error_line(deadline_passed(self.context.timeout))),
                }
            }
            None => timeout(LINGER, self.lines.next()).await.ok()?,
        };
        let late = Instant::now() >= self.context.deadline;
        Some(match line {
            Some(line) if !late || is_last(&line) => line,
            Some(_) => error_line(deadline_passed(self.context.timeout)),
            None => error_line(broken_off()),
        })
    }

    fn encode(&mut self, line: &ReadLine) {
        self.ended = is_last(line);
        if self.buffer.capacity() - self.buffer.len() < CHUNK_BYTES {
            self.buffer.reserve(CHUNK_BYTES);
        }
        let length = self.buffer.len();
        if let Err(error) = serde_json::to_writer((&mut self.buffer).writer(), line) {
            tracing::error!(%error, "encode a line of a page");
            self.buffer.truncate(length);
            self.ended = true;
        }
        self.buffer.put_u8(b'\n');
    }
}

fn is_last(line: &ReadLine) -> bool {
    line.end.is_some() || line.error.is_some()
}

fn error_line(error: ApiError) -> ReadLine {
    ReadLine {
        error: Some(error),
        ..ReadLine::default()
    }
}

fn broken_off() -> ApiError {
    ApiError {
        code: ErrorCode::Internal,
        message: "the page broke off before its end".to_owned(),
    }
}

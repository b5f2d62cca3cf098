//! Request bodies: read whole, within a limit, after room for them was found.
//!
//! **Invariants**: bytes are read only once the server's budget has room for them, and count until the handler is done; a
//! body over its limit is refused by its announced length before any of it is read.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Json;
use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tablemount_api::{ErrorCode, FamilySchema, MAX_JSON_BODY_BYTES};
use tokio::sync::OwnedSemaphorePermit;

use super::app::App;
use super::refusal::Refusal;

/// Bodies beyond this are decoded off the threads that serve connections.
const DECODE_INLINE_BYTES: usize = 256 << 10;
/// What is read of a body that nobody wants, so that the client gets to read the answer: see [`discard`].
const DISCARD_BYTES: usize = 32 << 20;
const DISCARD_TIME: Duration = Duration::from_secs(5);

/// Room for a body in the server's budget, given back when dropped.
pub(crate) type Room = OwnedSemaphorePermit;

/// A JSON body. The room it takes is to be kept until the request is done.
pub(crate) struct JsonBody<T>(pub(crate) T, pub(crate) Room);

impl<T: DeserializeOwned + Send + 'static> FromRequest<Arc<App>> for JsonBody<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Refusal> {
        check_json_type(request.headers())?;
        let (bytes, room) = read(app, request, MAX_JSON_BODY_BYTES, "JSON body").await?;
        let value = if bytes.len() <= DECODE_INLINE_BYTES {
            decode(&bytes)?
        } else {
            let decoded = tokio::task::spawn_blocking(move || decode(&bytes)).await;
            decoded.map_err(|_| {
                Refusal::new(ErrorCode::Internal, "decoding the request body failed")
            })??
        };
        Ok(Self(value, room))
    }
}

/// A body of raw bytes: a cell's value.
pub(crate) struct ValueBody(pub(crate) Bytes, pub(crate) Room);

impl FromRequest<Arc<App>> for ValueBody {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Refusal> {
        let (bytes, room) = read(
            app,
            request,
            FamilySchema::MAX_VALUE_BYTES as usize,
            "value",
        )
        .await?;
        Ok(Self(bytes, room))
    }
}

/// Requires the type, which browsers do not send to other sites unasked: a web page cannot write to a server on localhost.
fn check_json_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let found = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("none");
    let essence = found.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Refusal::invalid(format!(
        "content type is {found}; this takes application/json"
    )))
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    Json::from_bytes(bytes)
        .map(|Json(value)| value)
        .map_err(|rejection| {
            let source = std::error::Error::source(&rejection)
                .map_or_else(|| rejection.body_text(), ToString::to_string);
            Refusal::invalid(format!("request body: {source}"))
        })
}

async fn read(
    app: &App,
    request: Request,
    limit: usize,
    what: &str,
) -> Result<(Bytes, Room), Refusal> {
    let announced = announced_length(request.headers());
    if let Some(length) = announced.filter(|length| *length > limit as u64) {
        return Err(too_large(what, Some(length), limit));
    }
    let most = announced
        .and_then(|length| usize::try_from(length).ok())
        .unwrap_or(limit);
    let room = Arc::clone(&app.body_bytes)
        .acquire_many_owned(app.limits.body_bytes.min(most as u32))
        .await;
    let room = room.map_err(|_| Refusal::new(ErrorCode::Unavailable, "the server is stopping"))?;
    let mut chunks = request.into_body().into_data_stream();
    let mut whole = BytesMut::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk
            .map_err(|error| Refusal::invalid(format!("{what}: the body broke off: {error}")))?;
        if whole.len() + chunk.len() > limit {
            return Err(too_large(what, None, limit));
        }
        if whole.is_empty() && chunk.len() == most {
            return Ok((chunk, room));
        }
        if whole.is_empty() && announced.is_some() {
            whole.reserve(most);
        }
        whole.extend_from_slice(&chunk);
    }
    Ok((whole.freeze(), room))
}

fn announced_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn too_large(what: &str, length: Option<u64>, limit: usize) -> Refusal {
    let message = match length {
        Some(length) => format!("{what} of {length} bytes; limit is {limit}"),
        None => format!("{what} is longer than the limit of {limit} bytes"),
    };
    Refusal::new(ErrorCode::TooLarge, message)
}

/// Reads and drops what is left of a body that is refused, up to a bound. Closing the connection on bytes not read would
/// reset it, and the client might see that instead of the answer.
pub(crate) async fn discard(body: Body) {
    let _ = tokio::time::timeout(DISCARD_TIME, discard_bytes(body)).await;
}

async fn discard_bytes(body: Body) {
    let mut chunks = body.into_data_stream();
    let mut left = DISCARD_BYTES;
    while let Some(Ok(chunk)) = chunks.next().await {
        left = left.saturating_sub(chunk.len());
        if left == 0 {
            return;
        }
    }
}

/// A body that is lent to a handler, so that what the handler leaves of it can be discarded.
#[derive(Clone)]
pub(crate) struct Lent(Arc<Mutex<Body>>);

impl Lent {
    /// Puts a lent body into the request, if it has any. A client that waits to be asked for its body is not asked by
    /// anybody but the handler.
    pub(crate) fn to(request: &mut Request) -> Option<Self> {
        if request.body().is_end_stream() || request.headers().contains_key(EXPECT) {
            return None;
        }
        let lent = Self(Arc::new(Mutex::new(mem::take(request.body_mut()))));
        *request.body_mut() = Body::new(lent.clone());
        Some(lent)
    }
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut *self.0.lock()).poll_frame(task)
    }

    fn is_end_stream(&self) -> bool {
        self.0.lock().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        HttpBody::size_hint(&*self.0.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_json_is_refused_by_its_type() {
        let check = |found: Option<&'static str>, expected: Result<(), &str>| {
            let mut headers = HeaderMap::new();
            headers.extend(found.map(|found| (CONTENT_TYPE, found.parse().expect("valid"))));
            assert_eq!(
                check_json_type(&headers).map_err(|refusal| refusal.0.message),
                expected.map_err(str::to_owned)
            );
        };
        check(Some("application/json"), Ok(()));
        check(Some("Application/JSON; charset=utf-8"), Ok(()));
        check(
            None,
            Err("content type is none; this takes application/json"),
        );
        check(
            Some("text/plain"),
            Err("content type is text/plain; this takes application/json"),
        );
    }
}

//! What happens around every handler: admission, access, the deadline, panics, measurement.
//!
//! ```text
//! deadline header → room among the requests in flight → access → handler within the deadline → body, guarded to its end
//! ```
//!
//! **Invariants**: a request counts as in flight until its answer's body is sent or dropped; at its deadline, one second
//! later at the latest, its connection is closed if the answer is not complete; a panic answers 500 and ends nothing else.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, HOST, X_CONTENT_TYPE_OPTIONS};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::FutureExt;
use hyper::body::{Frame, SizeHint};
use tablemount_api::{ApiError, ErrorCode};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use super::app::{App, Context};
use super::body::{Lent, discard};
use super::connection::Clock;
use super::metrics::Measured;
use super::refusal::Refusal;
use crate::access::Access;

/// The header that sets a request's deadline, in milliseconds from its arrival.
const TIMEOUT_HEADER: &str = "tablemount-timeout-ms";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const TIMEOUT_MS: std::ops::RangeInclusive<u64> = 1..=300_000;
/// What a complete answer about a passed deadline gets to reach the client.
const GRACE: Duration = Duration::from_secs(1);

/// A route, as the edge needs it.
#[derive(Clone)]
pub(crate) struct Guarded {
    pub(crate) app: Arc<App>,
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// What the caller must be allowed to do; `None`: anybody may, and nothing is counted against limits.
    pub(crate) needs: Option<Access>,
}

/// Serves one request of a route.
pub(crate) async fn serve(
    State(route): State<Guarded>,
    mut request: Request,
    next: Next,
) -> Response {
    let mut measured = Measured::start(route.method, route.path);
    let clock = request
        .extensions()
        .get::<Clock>()
        .cloned()
        .unwrap_or_default();
    let body = Lent::to(&mut request);
    let (permit, answer) = match admit(&route, &mut request, &clock).await {
        Ok((context, permit)) => (permit, run(context, request, next).await),
        Err(refusal) => (None, Err(refusal)),
    };
    let mut response = answer.unwrap_or_else(IntoResponse::into_response);
    measured.status(response.status());
    if let Some(body) = body.filter(|_| wants_rest_discarded(response.status())) {
        discard(Body::new(body)).await;
    }
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let in_flight = InFlight {
        clock,
        _measured: measured,
        _permit: permit,
    };
    response.map(|body| {
        Body::new(GuardedBody {
            body,
            _in_flight: in_flight,
        })
    })
}

/// After an error, the client is to get the answer rather than a reset connection; unless it was the client that stalled.
fn wants_rest_discarded(status: StatusCode) -> bool {
    !status.is_success() && status != StatusCode::GATEWAY_TIMEOUT
}

type Permit = Option<OwnedSemaphorePermit>;

/// Lets the request in, or says why not.
async fn admit(
    route: &Guarded,
    request: &mut Request,
    clock: &Clock,
) -> Result<(Context, Permit), Refusal> {
    let app = &route.app;
    let timeout = timeout_of(request.headers());
    let deadline = Instant::now() + *timeout.as_ref().unwrap_or(&DEFAULT_TIMEOUT);
    clock.start(deadline + GRACE);
    let timeout = timeout?;
    let mut context = Context {
        access: Access::None,
        deadline,
        timeout,
    };
    let Some(needed) = route.needs else {
        request.extensions_mut().insert(context);
        return Ok((context, None));
    };
    let permit = Arc::clone(&app.requests).try_acquire_owned().map_err(|_| {
        let limit = app.limits.requests;
        Refusal::new(
            ErrorCode::ResourceExhausted,
            format!("{limit} requests are in flight, which is the limit; try again later"),
        )
    })?;
    let bearer = bearer(request.headers())?;
    if app.on_loopback && bearer.is_none() {
        check_host(request.headers())?;
    }
    let access = timeout_at(deadline, app.authenticator.authenticate(bearer)).await;
    context.access = access.map_err(|_| deadline_passed(timeout))??;
    context.access.require(needed)?;
    request.extensions_mut().insert(context);
    Ok((context, Some(permit)))
}

async fn run(context: Context, request: Request, next: Next) -> Result<Response, Refusal> {
    let handled = AssertUnwindSafe(next.run(request)).catch_unwind();
    match timeout_at(context.deadline, handled).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(_)) => Err(Refusal::new(
            ErrorCode::Internal,
            "the server failed on this request; its log says where",
        )),
        Err(_) => Err(deadline_passed(context.timeout).into()),
    }
}

/// What a request is told whose deadline has passed.
pub(crate) fn deadline_passed(timeout: Duration) -> ApiError {
    let message = format!(
        "not done within {} ms ({TIMEOUT_HEADER})",
        timeout.as_millis()
    );
    ApiError {
        code: ErrorCode::DeadlineExceeded,
        message,
    }
}

fn timeout_of(headers: &HeaderMap) -> Result<Duration, Refusal> {
    let Some(header) = headers.get(TIMEOUT_HEADER) else {
        return Ok(DEFAULT_TIMEOUT);
    };
    let number = header.to_str().ok().and_then(|text| text.parse().ok());
    number
        .filter(|number| TIMEOUT_MS.contains(number))
        .map(Duration::from_millis)
        .ok_or_else(|| {
            let shown = String::from_utf8_lossy(header.as_bytes())
                .chars()
                .take(40)
                .collect::<String>();
            Refusal::invalid(format!(
                "header {TIMEOUT_HEADER} is {shown:?}; it must be 1 to 300000"
            ))
        })
}

/// Refuses what a web page sends whose name was made to lead to this machine: without a token, on a loopback address, that page
/// would read and write tables as its user may.
fn check_host(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(header) = headers.get(HOST) else {
        return Ok(());
    };
    let shown = String::from_utf8_lossy(header.as_bytes());
    let authority: Option<Authority> = shown.parse().ok();
    let name = authority.as_ref().map_or("", |authority| authority.host());
    let address = name.trim_start_matches('[').trim_end_matches(']');
    if name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok() {
        return Ok(());
    }
    let shown: String = shown.chars().take(100).collect();
    Err(Refusal::new(
        ErrorCode::PermissionDenied,
        format!(
            "header host is {shown:?}; on a loopback address, requests without a token must name localhost or an IP address"
        ),
    ))
}

fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let Some(header) = headers.get(AUTHORIZATION) else {
        return Ok(None);
    };
    let token = header.to_str().ok().and_then(|text| text.split_once(' '));
    match token {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(Some(token.trim())),
        _ => Err(Refusal::new(
            ErrorCode::Unauthenticated,
            "header authorization is not of the form \"Bearer TOKEN\"",
        )),
    }
}

/// A path that is no route.
pub(crate) async fn not_found(request: Request) -> Response {
    let path: String = request.uri().path().chars().take(200).collect();
    refuse(
        request,
        Refusal::new(
            ErrorCode::NotFound,
            format!("no such path: {path}; see /v1/openapi.json"),
        ),
    )
    .await
}

/// A method that a route does not have.
pub(crate) async fn method_not_allowed(request: Request) -> Response {
    let message = format!(
        "{} is not possible on {}; see /v1/openapi.json",
        request.method(),
        request.uri().path()
    );
    refuse(request, Refusal::new(ErrorCode::MethodNotAllowed, message)).await
}

async fn refuse(request: Request, refusal: Refusal) -> Response {
    let mut measured = Measured::start("other", "other");
    discard(request.into_body()).await;
    let response = refusal.into_response();
    measured.status(response.status());
    response
}

/// What a request holds until its answer is sent or dropped.
struct InFlight {
    clock: Clock,
    _measured: Measured,
    _permit: Permit,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.clock.answered();
    }
}

struct GuardedBody {
    body: Body,
    _in_flight: InFlight,
}

impl HttpBody for GuardedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(task)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        HttpBody::size_hint(&self.body)
    }
}

#[cfg(test)]
mod tests {
    use axum::middleware::from_fn_with_state;
    use tower::ServiceExt;

    use super::*;
    use crate::access::{Anonymous, StaticAuthenticator};
    use crate::http::{EngineSlot, Limits};

    #[test]
    fn the_timeout_header_has_bounds() {
        let check = |text: &'static str, expected: Result<u64, &str>| {
            let mut headers = HeaderMap::new();
            headers.insert(TIMEOUT_HEADER, HeaderValue::from_static(text));
            let timeout = timeout_of(&headers).map_err(|refusal| refusal.0.message);
            assert_eq!(
                timeout,
                expected.map(Duration::from_millis).map_err(str::to_owned)
            );
        };
        check("1", Ok(1));
        check("300000", Ok(300_000));
        check(
            "0",
            Err("header tablemount-timeout-ms is \"0\"; it must be 1 to 300000"),
        );
        check(
            "300001",
            Err("header tablemount-timeout-ms is \"300001\"; it must be 1 to 300000"),
        );
        check(
            "1s",
            Err("header tablemount-timeout-ms is \"1s\"; it must be 1 to 300000"),
        );
        assert_eq!(
            timeout_of(&HeaderMap::new()).expect("default"),
            Duration::from_secs(30)
        );
    }

    #[tokio::test]
    async fn a_panic_answers_500_and_gives_its_place_back() {
        let authenticator = Arc::new(StaticAuthenticator::new(Anonymous::ReadOnly));
        let limits = Limits {
            requests: 1,
            ..Limits::default()
        };
        let app = App::new(
            EngineSlot::default(),
            authenticator,
            limits,
            crate::http::metrics::recorder(),
        );
        let (app, needs) = (Arc::new(app), Some(Access::Read));
        let guarded = Guarded {
            app: app.clone(),
            method: "GET",
            path: "/",
            needs,
        };
        let handler = axum::routing::get(async || -> &'static str { panic!("on purpose") });
        let router: axum::Router =
            axum::Router::new().route("/", handler.route_layer(from_fn_with_state(guarded, serve)));
        for _ in 0..2 {
            let response = router
                .clone()
                .oneshot(Request::new(Body::empty()))
                .await
                .expect("answered");
            assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        }
        assert_eq!(app.requests.available_permits(), 1);
    }

    #[test]
    fn only_bearer_tokens_are_taken() {
        let check = |text: &'static str, expected: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_static(text));
            assert_eq!(bearer(&headers).ok().flatten(), expected, "{text}");
        };
        check("Bearer abc", Some("abc"));
        check("bearer  abc ", Some("abc"));
        check("Basic abc", None);
        check("abc", None);
    }
}

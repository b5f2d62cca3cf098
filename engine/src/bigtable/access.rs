//! Who may call what: the bearer token of a call, against the access that its RPC needs.
//!
//! RPCs that are not served are answered here with their name.
//!
//! **Invariants**: nothing of a call is looked at before its caller may make it; health and reflection need no token, and name no
//! keys. An RPC that is not known here needs the most.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::http::{HeaderMap, Request, Response, header};
use tablemount_api::ErrorCode;
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service};

use crate::access::{Access, Authenticator};

/// Puts the check in front of services.
#[derive(Clone)]
pub(crate) struct AccessLayer {
    authenticator: Arc<dyn Authenticator>,
}

impl AccessLayer {
    pub(crate) fn new(authenticator: Arc<dyn Authenticator>) -> Self {
        Self { authenticator }
    }
}

impl<S> Layer<S> for AccessLayer {
    type Service = Checked<S>;

    fn layer(&self, inner: S) -> Checked<S> {
        Checked {
            inner,
            authenticator: self.authenticator.clone(),
        }
    }
}

/// A service behind the check.
#[derive(Clone)]
pub(crate) struct Checked<S> {
    inner: S,
    authenticator: Arc<dyn Authenticator>,
}

impl<S, B> Service<Request<B>> for Checked<S>
where
    S: Service<Request<B>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let authenticator = self.authenticator.clone();
        Box::pin(async move {
            match check(&*authenticator, request.uri().path(), request.headers()).await {
                Ok(()) => {
                    let path = request.uri().path().to_owned();
                    inner
                        .call(request)
                        .await
                        .map(|response| named(&path, response))
                }
                Err(status) => Ok(status.into_http()),
            }
        })
    }
}

async fn check(
    authenticator: &dyn Authenticator,
    path: &str,
    headers: &HeaderMap,
) -> Result<(), Status> {
    let Some(needed) = needed(path) else {
        return Ok(());
    };
    let bearer = match headers.get(header::AUTHORIZATION) {
        None => None,
        Some(value) => Some(
            value
                .to_str()
                .ok()
                .and_then(|value| value.strip_prefix("Bearer "))
                .ok_or_else(|| Status::unauthenticated("authorization is no bearer token"))?,
        ),
    };
    let refused = |error: tablemount_api::ApiError| match error.code {
        ErrorCode::Unauthenticated => Status::unauthenticated(error.message),
        ErrorCode::PermissionDenied => Status::permission_denied(error.message),
        _ => Status::unavailable(error.message),
    };
    let access = authenticator.authenticate(bearer).await.map_err(refused)?;
    access.require(needed).map_err(refused)
}

/// Says which RPC is not served.
fn named(path: &str, response: Response<Body>) -> Response<Body> {
    let unimplemented = response
        .headers()
        .get("grpc-status")
        .is_some_and(|status| status.as_bytes() == b"12");
    match unimplemented {
        true => Status::unimplemented(format!("{path} is not served by Tablemount")).into_http(),
        false => response,
    }
}

/// The access that an RPC needs; `None`: none.
fn needed(path: &str) -> Option<Access> {
    let (service, rpc) = path.trim_start_matches('/').split_once('/')?;
    if service.starts_with("grpc.health.") || service.starts_with("grpc.reflection.") {
        return None;
    }
    let reads = matches!(
        rpc,
        "ReadRows"
            | "SampleRowKeys"
            | "PingAndWarm"
            | "CheckConsistency"
            | "GenerateConsistencyToken"
    ) || rpc.starts_with("Get")
        || rpc.starts_with("List");
    Some(match reads {
        true => Access::Read,
        false => Access::ReadWrite,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rpcs_need_what_they_do() {
        let check = |path: &str, expected| assert_eq!(needed(path), expected, "{path}");
        check("/grpc.health.v1.Health/Check", None);
        check("/google.bigtable.v2.Bigtable/ReadRows", Some(Access::Read));
        check(
            "/google.bigtable.v2.Bigtable/MutateRow",
            Some(Access::ReadWrite),
        );
        check(
            "/google.bigtable.admin.v2.BigtableTableAdmin/GetTable",
            Some(Access::Read),
        );
        check(
            "/google.bigtable.admin.v2.BigtableTableAdmin/DeleteTable",
            Some(Access::ReadWrite),
        );
        check("/other.Service/Anything", Some(Access::ReadWrite));
    }
}

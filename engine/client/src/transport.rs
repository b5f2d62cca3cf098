//! Requests and answers: addresses, tokens, deadlines, bounded bodies, and what each failure means.
//!
//! **Invariants**: every request carries its deadline, which the server is told a little shorter, so that its own error comes
//! back before the client gives up; no redirect is followed; no body is read beyond its limit.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Response, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tablemount_api::{ApiError, ErrorBody, ErrorCode, MAX_JSON_BODY_BYTES};

use crate::error::innermost_reason;
use crate::token::Authorization;
use crate::{Config, Error};

/// The longest answer that is not a page: a table of 1,000 splits of 64 KiB in base64, or a value, fits.
pub(crate) const MAX_BODY_BYTES: usize = 128 << 20;
const MAX_ERROR_BYTES: usize = 256 << 10;
const MAX_CONNECT: Duration = Duration::from_secs(10);
/// Half of what the server allows, so that no request meets a connection being closed.
const POOL_IDLE: Duration = Duration::from_secs(15);
/// The longest deadline that the server takes.
const MAX_SERVER_DEADLINE: Duration = Duration::from_secs(300);

/// Connections to one server, and how long a call may take.
#[derive(Clone)]
pub(crate) struct Transport {
    shared: Arc<Shared>,
    pub(crate) timeout: Duration,
}

struct Shared {
    http: reqwest::Client,
    base: String,
    authorization: Authorization,
}

/// What to ask.
pub(crate) struct Request<'a> {
    pub(crate) method: Method,
    /// Below the base URL, starting with `/`.
    pub(crate) path: &'a str,
    pub(crate) query: &'a [(&'a str, &'a str)],
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl<'a> Request<'a> {
    pub(crate) fn new(method: Method, path: &'a str) -> Self {
        Self {
            method,
            path,
            query: &[],
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }

    pub(crate) fn json(
        method: Method,
        path: &'a str,
        body: &impl Serialize,
    ) -> Result<Self, Error> {
        let mut request = Self::new(method, path);
        let body = serde_json::to_vec(body)
            .map_err(|error| Error::Config(format!("request body: {error}")))?;
        check_length("JSON body", body.len(), MAX_JSON_BODY_BYTES)?;
        request.body = body.into();
        request
            .headers
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(request)
    }
}

impl Transport {
    pub(crate) fn new(config: Config) -> Result<Self, Error> {
        let url = parse_base(&config.url)?;
        let mut builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(config.timeout.min(MAX_CONNECT))
            .tcp_nodelay(true)
            .pool_idle_timeout(POOL_IDLE)
            .user_agent(concat!("tablemount/", env!("CARGO_PKG_VERSION")));
        if url.scheme() == "http" {
            // Without this, building the client fails where no CA certificates are installed, as on an empty image.
            builder = builder.tls_certs_only(std::iter::empty());
        }
        if is_loopback(&url) {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| {
            Error::Config(format!(
                "server URL {:?}: set up the HTTP client: {}",
                config.url,
                innermost_reason(&error)
            ))
        })?;
        let base = url.as_str().trim_end_matches('/').to_owned();
        let authorization = Authorization::new(config.token)?;
        Ok(Self {
            shared: Arc::new(Shared {
                http,
                base,
                authorization,
            }),
            timeout: config.timeout,
        })
    }

    pub(crate) fn base(&self) -> &str {
        &self.shared.base
    }

    pub(crate) fn protocol_error(&self, reason: impl Into<String>) -> Error {
        Error::Protocol {
            url: self.base().to_owned(),
            reason: reason.into(),
        }
    }

    /// What a failure of the connection means.
    pub(crate) fn connection_error(&self, error: &reqwest::Error) -> Error {
        let url = self.base().to_owned();
        if error.is_timeout() {
            Error::Timeout {
                url,
                seconds: self.timeout.as_secs_f64(),
            }
        } else if error.is_builder() {
            Error::Config(format!("{url}: {}", innermost_reason(error)))
        } else {
            Error::Unreachable {
                url,
                reason: innermost_reason(error),
            }
        }
    }

    /// Sends the request and waits for the head of an answer that is no error, or has `also` as its status.
    pub(crate) async fn send(
        &self,
        request: Request<'_>,
        also: Option<StatusCode>,
    ) -> Result<Response, Error> {
        let mut url = Url::parse(&format!("{}{}", self.base(), request.path))
            .map_err(|error| Error::Config(format!("{}{}: {error}", self.base(), request.path)))?;
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(request.query);
        }
        let mut builder = self
            .shared
            .http
            .request(request.method, url)
            .timeout(self.timeout)
            .headers(request.headers)
            .header("tablemount-timeout-ms", server_deadline_ms(self.timeout))
            .header(ACCEPT, "*/*")
            .body(request.body);
        if let Some(header) = self.shared.authorization.header()? {
            builder = builder.header(AUTHORIZATION, header);
        }
        let response = builder
            .send()
            .await
            .map_err(|error| self.connection_error(&error))?;
        let status = response.status();
        if status.is_success() || Some(status) == also {
            Ok(response)
        } else {
            Err(self.refusal(response).await)
        }
    }

    /// Sends the request and decodes the JSON answer.
    pub(crate) async fn call<T: DeserializeOwned>(&self, request: Request<'_>) -> Result<T, Error> {
        let response = self.send(request, None).await?;
        self.decode(response).await
    }

    /// Decodes a JSON answer.
    pub(crate) async fn decode<T: DeserializeOwned>(&self, response: Response) -> Result<T, Error> {
        let body = self.body(response, MAX_BODY_BYTES).await?;
        serde_json::from_slice(&body)
            .map_err(|error| self.protocol_error(format!("answer is not as expected: {error}")))
    }

    /// The whole body.
    pub(crate) async fn body(&self, mut response: Response, limit: usize) -> Result<Bytes, Error> {
        let too_long = || self.protocol_error(format!("answer is longer than {limit} bytes"));
        let announced = response.content_length().unwrap_or(0);
        if announced > limit as u64 {
            return Err(too_long());
        }
        let mut whole = BytesMut::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.connection_error(&error))?
        {
            if whole.is_empty() && chunk.len() as u64 == announced {
                return Ok(chunk);
            }
            if whole.len() + chunk.len() > limit {
                return Err(too_long());
            }
            if whole.is_empty() {
                whole.reserve(announced as usize);
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.freeze())
    }

    async fn refusal(&self, response: Response) -> Error {
        let status = response.status();
        let body = match self.body(response, MAX_ERROR_BYTES).await {
            Ok(body) => body,
            Err(Error::Protocol { .. }) => Bytes::new(),
            Err(error) => return error,
        };
        match serde_json::from_slice(&body) {
            Ok(ErrorBody {
                error: ApiError { code, message },
            }) => Error::Refused(ApiError { code, message }),
            Err(_) => {
                let shown: String = String::from_utf8_lossy(&body)
                    .trim()
                    .chars()
                    .take(200)
                    .collect();
                self.protocol_error(format!(
                    "answered {status} without a Tablemount error: {shown:?}"
                ))
            }
        }
    }
}

/// Refuses what the server would refuse, in its words: it may close the connection before a long body is through.
pub(crate) fn check_length(what: &str, length: usize, limit: usize) -> Result<(), Error> {
    if length <= limit {
        return Ok(());
    }
    let message = format!("{what} of {length} bytes; limit is {limit}");
    Err(Error::Refused(ApiError {
        code: ErrorCode::TooLarge,
        message,
    }))
}

fn parse_base(text: &str) -> Result<Url, Error> {
    let refuse = |reason: &str| {
        Err(Error::Config(format!(
            "server URL {text:?} is not valid: {reason}; expected such as http://127.0.0.1:8080"
        )))
    };
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(error) => return refuse(&error.to_string()),
    };
    if !url.username().is_empty() || url.password().is_some() {
        // The text is not shown: it holds a password.
        return Err(Error::Config(
            "server URL must not hold a user or password; use a token".to_owned(),
        ));
    }
    match url.scheme() {
        "http" | "https" if url.query().is_none() && url.fragment().is_none() => Ok(url),
        "http" | "https" => refuse("it has a query or fragment"),
        other => refuse(&format!("its scheme is {other:?}")),
    }
}

/// Whether requests stay on this machine: they go through no proxy, as with Go's and kubectl's rule.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn server_deadline_ms(timeout: Duration) -> u64 {
    let shortened = (timeout - timeout / 20).min(MAX_SERVER_DEADLINE);
    u64::try_from(shortened.as_millis())
        .unwrap_or(u64::MAX)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_urls_are_named() {
        let check = |url: &str, expected: &str| {
            assert_eq!(parse_base(url).expect_err("refused").to_string(), expected);
        };
        let example = "expected such as http://127.0.0.1:8080";
        check(
            "engine:8080",
            &format!(
                "server URL \"engine:8080\" is not valid: its scheme is \"engine\"; {example}"
            ),
        );
        check(
            "",
            &format!("server URL \"\" is not valid: relative URL without a base; {example}"),
        );
        check(
            "http://a?b",
            &format!(
                "server URL \"http://a?b\" is not valid: it has a query or fragment; {example}"
            ),
        );
        check(
            "http://me:secret@a",
            "server URL must not hold a user or password; use a token",
        );
        assert_eq!(
            parse_base("http://[::1]:80/x/").expect("valid").as_str(),
            "http://[::1]/x/"
        );
    }

    #[test]
    fn only_loopback_goes_past_proxies() {
        let check = |url: &str, expected| {
            assert_eq!(
                is_loopback(&Url::parse(url).expect("valid")),
                expected,
                "{url}"
            )
        };
        check("http://127.0.0.1:8080", true);
        check("http://[::1]", true);
        check("http://localhost:1", true);
        check("http://engine.example", false);
    }

    #[test]
    fn the_server_is_told_a_shorter_deadline() {
        assert_eq!(server_deadline_ms(Duration::from_secs(30)), 28_500);
        assert_eq!(server_deadline_ms(Duration::from_nanos(1)), 1);
        assert_eq!(server_deadline_ms(Duration::MAX), 300_000);
    }
}

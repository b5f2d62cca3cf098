//! Errors by what the caller must do.

use std::io;

use tablemount_api::{ApiError, ErrorCode};

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The engine answered with an error.
    #[error("{0}")]
    Refused(ApiError),
    /// The deadline passed; a write may or may not have happened.
    #[error("{url}: no answer within {seconds} s")]
    Timeout {
        /// The server.
        url: String,
        /// The time limit.
        seconds: f64,
    },
    /// The engine could not be reached, or the connection broke; a write may or may not have happened.
    #[error("{url}: {reason}")]
    Unreachable {
        /// The server.
        url: String,
        /// The innermost reason, such as "connection refused".
        reason: String,
    },
    /// What answered does not speak this protocol.
    #[error("{url}: {reason}")]
    Protocol {
        /// The server.
        url: String,
        /// What was wrong with the answer.
        reason: String,
    },
    /// The client is set up wrongly (a bad URL, an unreadable token file).
    #[error("{0}")]
    Config(String),
}

impl Error {
    /// The code, if the engine answered with an error.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused(error) => Some(error.code),
            _ => None,
        }
    }
}

/// The innermost cause of a failed request, which is the one that says something.
pub(crate) fn innermost_reason(error: &reqwest::Error) -> String {
    let mut cause: &(dyn std::error::Error + 'static) = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match cause.downcast_ref::<io::Error>() {
        Some(io_error) if io_error.raw_os_error().is_some() => match io_error.kind().to_string() {
            kind if kind == "uncategorized error" || kind == "other error" => io_error.to_string(),
            kind => kind,
        },
        _ if std::ptr::eq(cause, error as &dyn std::error::Error) => error.to_string(),
        _ => cause.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_server_and_the_limit() {
        let url = || "http://127.0.0.1:1".to_owned();
        let check = |error: Error, expected: &str| assert_eq!(error.to_string(), expected);
        check(
            Error::Timeout {
                url: url(),
                seconds: 30.0,
            },
            "http://127.0.0.1:1: no answer within 30 s",
        );
        check(
            Error::Timeout {
                url: url(),
                seconds: 0.5,
            },
            "http://127.0.0.1:1: no answer within 0.5 s",
        );
        let reason = "connection refused".to_owned();
        check(
            Error::Unreachable { url: url(), reason },
            "http://127.0.0.1:1: connection refused",
        );
    }
}

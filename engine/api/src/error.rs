//! Errors as they travel: a code that a program can act on and a message for a person.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What went wrong, by what the caller should do about it. Each maps to one HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
pub enum ErrorCode {
    /// 400: the request is wrong and will stay wrong.
    InvalidArgument,
    /// 401: a token is missing or not known.
    Unauthenticated,
    /// 403: the caller may not do this.
    PermissionDenied,
    /// 404: no such table, family, row or cell.
    NotFound,
    /// 405: the path exists, the method does not.
    MethodNotAllowed,
    /// 409: it exists already, or the version to be changed is not the current one.
    Conflict,
    /// 412: the state of the table or the server does not allow it (read-only, owned by a custom resource).
    FailedPrecondition,
    /// 413: the body or a value is over its limit.
    TooLarge,
    /// 416: the Range header lies outside the value.
    RangeNotSatisfiable,
    /// 429: too much at once; again later.
    ResourceExhausted,
    /// 500: a fault of the server.
    Internal,
    /// 500: bytes on disk do not match their checksum; the message names file and offset.
    DataLoss,
    /// 503: not serving now; a write may or may not have happened.
    Unavailable,
    /// 504: the deadline passed; a write may or may not have happened.
    DeadlineExceeded,
}

impl ErrorCode {
    /// The HTTP status of the code.
    pub fn http_status(self) -> u16 {
        match self {
            Self::InvalidArgument => 400,
            Self::Unauthenticated => 401,
            Self::PermissionDenied => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Conflict => 409,
            Self::FailedPrecondition => 412,
            Self::TooLarge => 413,
            Self::RangeNotSatisfiable => 416,
            Self::ResourceExhausted => 429,
            Self::Internal | Self::DataLoss => 500,
            Self::Unavailable => 503,
            Self::DeadlineExceeded => 504,
        }
    }
}

/// An error as the engine answers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ApiError {
    /// What a program acts on.
    pub code: ErrorCode,
    /// What a person reads: names object, value and limit or remedy.
    pub message: String,
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

/// The body of every answer that is not 2xx.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ErrorBody {
    /// The error.
    pub error: ApiError,
}

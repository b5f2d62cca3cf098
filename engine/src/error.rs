//! What can go wrong in the engine, by what the caller must do; one exhaustive match to the wire's codes.

use tablemount_api::{ApiError, ErrorCode, InvalidDeleteRows, InvalidModel, InvalidSchema};
use thiserror::Error;

/// The engine's result.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of the engine.
#[derive(Debug, Clone, Error)]
pub enum Error {
    /// The request is wrong, and stays so.
    #[error("{0}")]
    Invalid(String),
    /// No such table, family or cell.
    #[error("{0}")]
    NotFound(String),
    /// It exists already, or changed meanwhile.
    #[error("{0}")]
    Conflict(String),
    /// The table's or server's state forbids it.
    #[error("{0}")]
    Precondition(String),
    /// Over a limit of size.
    #[error("{0}")]
    TooLarge(String),
    /// Too much at once; again later.
    #[error("{0}")]
    Exhausted(String),
    /// The deadline passed; a write may or may not have happened.
    #[error("{0}")]
    Deadline(String),
    /// Bytes on disk are not what was written: names file and offset.
    #[error("{0}")]
    Corrupt(String),
    /// The disk or its file system failed: names the operation and the file.
    #[error("{0}")]
    Io(String),
    /// The server is starting or ending.
    #[error("{0}")]
    Unavailable(String),
}

impl Error {
    /// The wire's code for the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Invalid(_) => ErrorCode::InvalidArgument,
            Self::NotFound(_) => ErrorCode::NotFound,
            Self::Conflict(_) => ErrorCode::Conflict,
            Self::Precondition(_) => ErrorCode::FailedPrecondition,
            Self::TooLarge(_) => ErrorCode::TooLarge,
            Self::Exhausted(_) => ErrorCode::ResourceExhausted,
            Self::Deadline(_) => ErrorCode::DeadlineExceeded,
            Self::Corrupt(_) => ErrorCode::DataLoss,
            Self::Io(_) => ErrorCode::Internal,
            Self::Unavailable(_) => ErrorCode::Unavailable,
        }
    }

    /// Puts what was being done before the message.
    pub fn context(mut self, doing: impl std::fmt::Display) -> Self {
        let (Self::Invalid(message)
        | Self::NotFound(message)
        | Self::Conflict(message)
        | Self::Precondition(message)
        | Self::TooLarge(message)
        | Self::Exhausted(message)
        | Self::Deadline(message)
        | Self::Corrupt(message)
        | Self::Io(message)
        | Self::Unavailable(message)) = &mut self;
        *message = format!("{doing}: {message}");
        self
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        Self {
            code: error.code(),
            message: error.to_string(),
        }
    }
}

impl From<InvalidModel> for Error {
    fn from(error: InvalidModel) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl From<InvalidSchema> for Error {
    fn from(error: InvalidSchema) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl From<InvalidDeleteRows> for Error {
    fn from(error: InvalidDeleteRows) -> Self {
        Self::Invalid(error.to_string())
    }
}

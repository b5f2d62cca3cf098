//! Errors as gRPC statuses.

use tonic::{Code, Status};

use crate::Error;

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        Self::new(code(&error), error.to_string())
    }
}

/// The code of an error.
pub(crate) fn code(error: &Error) -> Code {
    match error {
        Error::Invalid(_) | Error::TooLarge(_) => Code::InvalidArgument,
        Error::NotFound(_) => Code::NotFound,
        Error::Conflict(_) => Code::Aborted,
        Error::Precondition(_) => Code::FailedPrecondition,
        Error::Exhausted(_) => Code::ResourceExhausted,
        Error::Deadline(_) => Code::DeadlineExceeded,
        Error::Corrupt(_) => Code::DataLoss,
        Error::Io(_) => Code::Internal,
        Error::Unavailable(_) => Code::Unavailable,
    }
}

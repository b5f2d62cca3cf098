//! Why an operation failed, and the errno that says so.
//!
//! **Invariant**: one exhaustive match, without a wildcard arm, from every failure to its errno ([`Failure::errno`]).

use fuser::Errno;
use tablemount_api::{ApiError, ErrorCode};
use tablemount_client::Error;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The engine, or the way to it.
    #[error(transparent)]
    Client(#[from] Error),
    /// The operation did not end in time, or one before it did not and the engine has not been found again.
    #[error("no answer in time")]
    Deadline,
    /// There is no such name.
    #[error("no such file or directory")]
    Absent,
    /// The cell is gone, or has become another one, since the file was opened.
    #[error("the cell is gone since the file was opened")]
    Stale,
    /// The directory has more names than it may list; `@more` leads to the rest.
    #[error("more names than a directory lists; see @more")]
    TooManyNames,
    /// The generated file is longer than it may be.
    #[error("longer than a generated file may be")]
    TooLong,
    /// Not a directory.
    #[error("not a directory")]
    NotDirectory,
    /// Not a symbolic link, or not a regular file.
    #[error("of another kind")]
    WrongKind,
    /// Nothing is written here.
    #[error("the filesystem is read-only")]
    ReadOnly,
    /// There is no such extended attribute.
    #[error("no such attribute")]
    NoAttribute,
    /// Too many files are open.
    #[error("too many open files")]
    TooManyOpen,
    /// The caller's buffer is too small for the attribute.
    #[error("the buffer is too small")]
    SmallBuffer,
}

impl Failure {
    /// What the kernel is told.
    pub(crate) fn errno(&self) -> Errno {
        match self {
            Self::Client(error) => client_errno(error),
            Self::Deadline => Errno::ETIMEDOUT,
            Self::Absent => Errno::ENOENT,
            Self::Stale => Errno::ESTALE,
            Self::TooManyNames | Self::TooLong => Errno::EFBIG,
            Self::NotDirectory => Errno::ENOTDIR,
            Self::WrongKind => Errno::EINVAL,
            Self::ReadOnly => Errno::EROFS,
            Self::NoAttribute => Errno::ENODATA,
            Self::SmallBuffer => Errno::ERANGE,
            Self::TooManyOpen => Errno::ENFILE,
        }
    }

    /// Whether the engine says that what was asked for is not there.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(
            self,
            Self::Absent
                | Self::Client(Error::Refused(ApiError {
                    code: ErrorCode::NotFound,
                    ..
                }))
        )
    }

    /// Whether someone should look after the engine or the way to it.
    pub(crate) fn is_trouble(&self) -> bool {
        matches!(self, Self::Client(_) | Self::Deadline) && !self.is_absent()
    }
}

fn client_errno(error: &Error) -> Errno {
    match error {
        Error::Refused(ApiError { code, .. }) => code_errno(*code),
        Error::Timeout { .. } => Errno::ETIMEDOUT,
        Error::Unreachable { .. } | Error::Protocol { .. } | Error::Config(_) => Errno::EIO,
    }
}

fn code_errno(code: ErrorCode) -> Errno {
    match code {
        ErrorCode::NotFound => Errno::ENOENT,
        ErrorCode::Unauthenticated | ErrorCode::PermissionDenied => Errno::EACCES,
        ErrorCode::DeadlineExceeded => Errno::ETIMEDOUT,
        ErrorCode::ResourceExhausted => Errno::EAGAIN,
        ErrorCode::TooLarge => Errno::EFBIG,
        ErrorCode::InvalidArgument => Errno::EINVAL,
        ErrorCode::RangeNotSatisfiable => Errno::ESTALE,
        ErrorCode::MethodNotAllowed
        | ErrorCode::Conflict
        | ErrorCode::FailedPrecondition
        | ErrorCode::Internal
        | ErrorCode::DataLoss
        | ErrorCode::Unavailable => Errno::EIO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_engine_and_their_errnos() {
        let check = |code: ErrorCode, errno: Errno| {
            let failure = Failure::from(Error::Refused(ApiError {
                code,
                message: String::new(),
            }));
            assert_eq!(failure.errno().code(), errno.code(), "{code:?}");
        };
        check(ErrorCode::NotFound, Errno::ENOENT);
        check(ErrorCode::Unauthenticated, Errno::EACCES);
        check(ErrorCode::PermissionDenied, Errno::EACCES);
        check(ErrorCode::Internal, Errno::EIO);
        check(ErrorCode::DataLoss, Errno::EIO);
        check(ErrorCode::Unavailable, Errno::EIO);
        check(ErrorCode::DeadlineExceeded, Errno::ETIMEDOUT);
    }

    #[test]
    fn failures_of_the_way_to_it() {
        let url = || "http://host".to_owned();
        let check = |failure: Failure, errno: Errno| {
            assert_eq!(failure.errno().code(), errno.code(), "{failure:?}")
        };
        check(
            Error::Timeout {
                url: url(),
                seconds: 5.0,
            }
            .into(),
            Errno::ETIMEDOUT,
        );
        check(
            Error::Unreachable {
                url: url(),
                reason: "connection refused".into(),
            }
            .into(),
            Errno::EIO,
        );
        check(
            Error::Protocol {
                url: url(),
                reason: "not JSON".into(),
            }
            .into(),
            Errno::EIO,
        );
        check(Failure::Deadline, Errno::ETIMEDOUT);
        check(Failure::TooManyNames, Errno::EFBIG);
        check(Failure::Stale, Errno::ESTALE);
        check(Failure::ReadOnly, Errno::EROFS);
    }
}

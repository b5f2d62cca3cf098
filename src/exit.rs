//! Exit codes, and the one line that tells why.
//!
//! 0 done · 1 error · 2 wrong usage · 3 not found · 4 done in part (`import` met bad lines).

use std::fmt;
use std::io;
use std::process::ExitCode;

use tablemount_api::ErrorCode;

/// Shown under the help of the command.
pub(crate) const CODES: &str = "\
Exit codes: 0 done, 1 error, 2 wrong usage, 3 not found (table, column family, row or cell), 4 done in part (import met bad lines).";

const ERROR: u8 = 1;
const USAGE: u8 = 2;
const NOT_FOUND: u8 = 3;
const PARTIAL: u8 = 4;

/// An error with an exit code of its own.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// The arguments contradict each other or the input.
    pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
        Self {
            code: USAGE,
            message: message.into(),
        }
        .into()
    }

    /// What was asked for is not there.
    pub(crate) fn not_found(message: impl Into<String>) -> anyhow::Error {
        Self {
            code: NOT_FOUND,
            message: message.into(),
        }
        .into()
    }

    /// A part was done, the rest was reported.
    pub(crate) fn partial(message: impl Into<String>) -> anyhow::Error {
        Self {
            code: PARTIAL,
            message: message.into(),
        }
        .into()
    }

    /// Another process has said why.
    pub(crate) fn told(code: u8) -> anyhow::Error {
        let message = String::new();
        Self { code, message }.into()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// Prints the error, if any, and says with what code to end.
pub(crate) fn code(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let message = message(&error);
            if !message.is_empty() {
                report(&message);
            }
            ExitCode::from(code_of(&error))
        }
    }
}

/// One line on stderr; line breaks inside become spaces.
pub(crate) fn report(message: &str) {
    use io::Write as _;
    let line = message
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    // With stderr gone too there is nobody left to tell.
    let _ = writeln!(io::stderr(), "tablemount: {line}");
}

/// The error with its causes, but for those that it tells itself.
fn message(error: &anyhow::Error) -> String {
    error
        .chain()
        .skip(1)
        .map(ToString::to_string)
        .fold(error.to_string(), |message, cause| {
            if message.contains(&cause) {
                message
            } else {
                format!("{message}: {cause}")
            }
        })
}

fn code_of(error: &anyhow::Error) -> u8 {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return failure.code;
    }
    match error
        .downcast_ref::<tablemount_client::Error>()
        .and_then(tablemount_client::Error::code)
    {
        Some(ErrorCode::NotFound) => NOT_FOUND,
        _ => ERROR,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use anyhow::{Context as _, anyhow};
    use tablemount_api::ApiError;

    use super::*;

    #[test]
    fn each_kind_of_error_has_its_code() {
        let refused = |code| {
            tablemount_client::Error::Refused(ApiError {
                code,
                message: "m".to_owned(),
            })
        };
        assert_eq!(code_of(&anyhow!("any")), 1);
        assert_eq!(code_of(&Failure::usage("u")), 2);
        assert_eq!(code_of(&Failure::not_found("n").context("read")), 3);
        assert_eq!(code_of(&refused(ErrorCode::NotFound).into()), 3);
        assert_eq!(code_of(&refused(ErrorCode::InvalidArgument).into()), 1);
        assert_eq!(code_of(&Failure::partial("p")), 4);
    }

    #[test]
    fn causes_are_told_once() {
        let error = anyhow!("connection refused")
            .context("server: connection refused")
            .context("read");
        assert_eq!(message(&error), "read: server: connection refused");
    }

    #[test]
    fn a_reader_that_went_away_is_no_error() {
        let error = Err::<(), _>(io::Error::from(io::ErrorKind::BrokenPipe))
            .context("write")
            .expect_err("error");
        assert!(is_broken_pipe(&error));
        assert!(!is_broken_pipe(&anyhow!("x")));
    }
}

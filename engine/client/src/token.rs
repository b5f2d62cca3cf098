//! Where a bearer token comes from.
//!
//! **Invariants**: a token file is read again once its inode, size or time of change differs; a token is never shown, not
//! even by `Debug`.

use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use reqwest::header::HeaderValue;

use crate::Error;

/// The longest token file, in bytes: what a header can hold, with room to spare.
const MAX_TOKEN_BYTES: u64 = 64 * 1024;

/// Where a bearer token comes from.
#[derive(Clone, Default)]
pub enum TokenSource {
    /// No token: anonymous.
    #[default]
    None,
    /// This token.
    Static(String),
    /// The file's content, read again when it changes (Kubernetes rotates projected tokens).
    File(PathBuf),
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Static(_) => f.write_str("Static(…)"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

/// Makes the `Authorization` header of each request.
pub(crate) enum Authorization {
    None,
    Static(HeaderValue),
    File {
        path: PathBuf,
        cached: Mutex<Option<Cached>>,
    },
}

pub(crate) struct Cached {
    seen: Seen,
    header: HeaderValue,
}

#[derive(PartialEq, Eq)]
struct Seen {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl From<&Metadata> for Seen {
    fn from(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            size: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl Authorization {
    pub(crate) fn new(source: TokenSource) -> Result<Self, Error> {
        Ok(match source {
            TokenSource::None => Self::None,
            TokenSource::Static(token) => Self::Static(bearer(&token).map_err(Error::Config)?),
            TokenSource::File(path) => Self::File {
                path,
                cached: Mutex::new(None),
            },
        })
    }

    /// The header to send now.
    pub(crate) fn header(&self) -> Result<Option<HeaderValue>, Error> {
        match self {
            Self::None => Ok(None),
            Self::Static(header) => Ok(Some(header.clone())),
            Self::File { path, cached } => {
                let mut cached = cached.lock().unwrap_or_else(PoisonError::into_inner);
                let fail = |reason: String| {
                    Error::Config(format!("token file {}: {reason}", path.display()))
                };
                let metadata = fs::metadata(path).map_err(|error| fail(reason(&error)))?;
                let seen = Seen::from(&metadata);
                if let Some(cached) = cached.as_ref().filter(|cached| cached.seen == seen) {
                    return Ok(Some(cached.header.clone()));
                }
                let header = read_header(path, metadata.len()).map_err(fail)?;
                *cached = Some(Cached {
                    seen,
                    header: header.clone(),
                });
                Ok(Some(header))
            }
        }
    }
}

fn read_header(path: &Path, size: u64) -> Result<HeaderValue, String> {
    if size > MAX_TOKEN_BYTES {
        return Err(format!("{size} bytes; limit is {MAX_TOKEN_BYTES}"));
    }
    bearer(&fs::read_to_string(path).map_err(|error| reason(&error))?)
}

fn bearer(token: &str) -> Result<HeaderValue, String> {
    let token = token.trim();
    if token.is_empty() {
        return Err("the token is empty".to_owned());
    }
    let mut header = HeaderValue::try_from(format!("Bearer {token}"))
        .map_err(|_| "the token holds characters that a header cannot".to_owned())?;
    header.set_sensitive(true);
    Ok(header)
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        kind => kind.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_file_is_read_again_when_it_changes() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("token");
        let authorization = Authorization::new(TokenSource::File(path.clone())).expect("valid");
        let missing = authorization.header().expect_err("refused").to_string();
        assert_eq!(
            missing,
            format!("token file {}: no such file", path.display())
        );

        let header = || {
            authorization
                .header()
                .expect("readable")
                .expect("a token")
                .to_str()
                .map(str::to_owned)
        };
        fs::write(&path, "first\n").expect("written");
        assert_eq!(header().expect("text"), "Bearer first");
        assert_eq!(header().expect("text"), "Bearer first");
        fs::write(folder.path().join("new"), "other").expect("written");
        fs::rename(folder.path().join("new"), &path).expect("renamed");
        assert_eq!(header().expect("text"), "Bearer other");
    }

    #[test]
    fn bad_tokens_are_refused_without_being_shown() {
        let check = |token: &str, expected: &str| {
            let error = Authorization::new(TokenSource::Static(token.to_owned()))
                .err()
                .expect("refused");
            assert_eq!(error.to_string(), expected);
        };
        check(" \n", "the token is empty");
        check(
            "se\u{0}cret",
            "the token holds characters that a header cannot",
        );
        assert_eq!(
            format!("{:?}", TokenSource::Static("secret".to_owned())),
            "Static(…)"
        );
    }
}

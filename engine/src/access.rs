//! Who may do what: the [`Authenticator`] that each request is put to, and one that knows tokens from a file.
//!
//! Owns the levels of access and the messages that say what to do about a refusal. Does not know Kubernetes: an
//! authenticator that asks it is supplied from outside.
//!
//! **Invariants**: a wrong token is refused even where anonymous access is allowed; tokens are compared in constant time and
//! never shown, neither in messages nor by `Debug`; a change of the token file counts within [`RECHECK`].

use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;
use subtle::ConstantTimeEq;
use tablemount_api::{ApiError, ErrorCode};

/// How long a token file that was looked at is taken to be unchanged. A token that is not known is always looked for anew.
const RECHECK: Duration = Duration::from_secs(1);
const MAX_TOKEN_FILE_BYTES: u64 = 64 * 1024;

/// What a caller may do, each including those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Nothing.
    None,
    /// Read cells, schemas and statistics.
    Read,
    /// Also write cells, and make, change and drop tables that no custom resource declares.
    ReadWrite,
    /// Everything.
    Admin,
}

impl Access {
    /// Refuses unless this access includes `needed`.
    pub fn require(self, needed: Self) -> Result<(), ApiError> {
        if self >= needed {
            return Ok(());
        }
        Err(ApiError {
            code: ErrorCode::PermissionDenied,
            message: format!("this needs the access {needed:?}; the caller has {self:?}"),
        })
    }
}

/// Says what the bearer of a token may do.
#[async_trait]
pub trait Authenticator: Send + Sync {
    /// The access of a request with this bearer token, or without any. An error answers the request.
    async fn authenticate(&self, bearer: Option<&str>) -> Result<Access, ApiError>;
}

/// What requests without a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Anonymous {
    /// Nothing.
    #[default]
    None,
    /// Read.
    ReadOnly,
    /// Read and write.
    ReadWrite,
}

/// Knows anonymous callers and administrators by token.
#[derive(Default)]
pub struct StaticAuthenticator {
    anonymous: Anonymous,
    admin_token: Option<String>,
    token_file: Option<TokenFile>,
}

impl fmt::Debug for StaticAuthenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticAuthenticator")
            .field("anonymous", &self.anonymous)
            .finish_non_exhaustive()
    }
}

impl StaticAuthenticator {
    /// Knows no token yet.
    pub fn new(anonymous: Anonymous) -> Self {
        Self {
            anonymous,
            ..Self::default()
        }
    }

    /// The bearer of `token` is an administrator (for callers in the same process).
    pub fn admin_token(mut self, token: String) -> Self {
        self.admin_token = Some(token).filter(|token| !token.is_empty());
        self
    }

    /// The bearer of a token in the file, one a line, is an administrator. The file may come and change later.
    pub fn token_file(mut self, path: PathBuf) -> Self {
        self.token_file = Some(TokenFile {
            path,
            cached: Mutex::default(),
        });
        self
    }

    fn knows(&self, token: &str) -> io::Result<bool> {
        if self
            .admin_token
            .as_ref()
            .is_some_and(|known| equal(known, token))
        {
            return Ok(true);
        }
        self.token_file
            .as_ref()
            .map_or(Ok(false), |file| file.holds(token))
    }
}

#[async_trait]
impl Authenticator for StaticAuthenticator {
    async fn authenticate(&self, bearer: Option<&str>) -> Result<Access, ApiError> {
        let Some(token) = bearer else {
            return match self.anonymous {
                Anonymous::None => Err(unauthenticated(
                    "this server takes no anonymous requests; send a bearer token (header \"authorization: Bearer TOKEN\")",
                )),
                Anonymous::ReadOnly => Ok(Access::Read),
                Anonymous::ReadWrite => Ok(Access::ReadWrite),
            };
        };
        match self.knows(token) {
            Ok(true) => Ok(Access::Admin),
            Ok(false) => Err(unauthenticated(
                "the bearer token is not known to this server",
            )),
            Err(error) => {
                tracing::warn!(%error, "read the token file");
                let message = "the server cannot read its token file; its log says why".to_owned();
                Err(ApiError {
                    code: ErrorCode::Unavailable,
                    message,
                })
            }
        }
    }
}

struct TokenFile {
    path: PathBuf,
    cached: Mutex<Option<Cached>>,
}

struct Cached {
    checked: Instant,
    seen: Seen,
    tokens: Vec<String>,
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

impl TokenFile {
    fn holds(&self, token: &str) -> io::Result<bool> {
        let mut cached = self.cached.lock();
        let now = Instant::now();
        if let Some(cached) = cached.as_ref()
            && now.duration_since(cached.checked) < RECHECK
            && contains(&cached.tokens, token)
        {
            return Ok(true);
        }
        let metadata = match fs::metadata(&self.path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                *cached = None;
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        let seen = Seen::from(&metadata);
        let tokens = match cached.take() {
            Some(cached) if cached.seen == seen => cached.tokens,
            _ => read_tokens(&self.path, metadata.len())?,
        };
        let found = contains(&tokens, token);
        *cached = Some(Cached {
            checked: now,
            seen,
            tokens,
        });
        Ok(found)
    }
}

fn read_tokens(path: &Path, size: u64) -> io::Result<Vec<String>> {
    if size > MAX_TOKEN_FILE_BYTES {
        return Err(io::Error::other(format!(
            "{size} bytes; limit is {MAX_TOKEN_FILE_BYTES}"
        )));
    }
    let text = fs::read_to_string(path)?;
    Ok(text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect())
}

/// Looks at all, so that the time does not tell which one it was.
fn contains(tokens: &[String], token: &str) -> bool {
    tokens
        .iter()
        .fold(false, |found, known| found | equal(known, token))
}

fn equal(known: &str, token: &str) -> bool {
    known.as_bytes().ct_eq(token.as_bytes()).into()
}

fn unauthenticated(message: &str) -> ApiError {
    ApiError {
        code: ErrorCode::Unauthenticated,
        message: message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn anonymous_callers_get_what_the_server_allows() {
        let check = async |anonymous, expected: Result<Access, ErrorCode>| {
            let authenticator =
                StaticAuthenticator::new(anonymous).admin_token("secret".to_owned());
            let outcome = authenticator
                .authenticate(None)
                .await
                .map_err(|error| error.code);
            assert_eq!(outcome, expected, "{anonymous:?}");
            let wrong = authenticator
                .authenticate(Some("secre"))
                .await
                .map_err(|error| error.code);
            assert_eq!(wrong, Err(ErrorCode::Unauthenticated), "{anonymous:?}");
            assert_eq!(
                authenticator.authenticate(Some("secret")).await,
                Ok(Access::Admin)
            );
            assert!(!format!("{authenticator:?}").contains("secret"));
        };
        check(Anonymous::None, Err(ErrorCode::Unauthenticated)).await;
        check(Anonymous::ReadOnly, Ok(Access::Read)).await;
        check(Anonymous::ReadWrite, Ok(Access::ReadWrite)).await;
    }

    #[tokio::test]
    async fn an_empty_token_opens_nothing() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("token");
        fs::write(&path, "\n \n").expect("written");
        let authenticator = StaticAuthenticator::new(Anonymous::None)
            .admin_token(String::new())
            .token_file(path);
        assert!(authenticator.authenticate(Some("")).await.is_err());
    }

    #[test]
    fn a_new_token_counts_at_once_and_an_old_one_ends() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("token");
        let file = TokenFile {
            path: path.clone(),
            cached: Mutex::default(),
        };
        assert!(!file.holds("a").expect("a missing file holds none"));
        fs::write(&path, "a\nb\n").expect("written");
        assert!(file.holds("a").expect("readable") && file.holds("b").expect("readable"));
        fs::write(folder.path().join("new"), "c").expect("written");
        fs::rename(folder.path().join("new"), &path).expect("renamed");
        assert!(file.holds("c").expect("readable"));
        assert!(!file.holds("a").expect("readable"));
    }

    #[test]
    fn levels_include_those_below() {
        assert_eq!(Access::Admin.require(Access::ReadWrite), Ok(()));
        assert_eq!(
            Access::Read
                .require(Access::ReadWrite)
                .expect_err("refused")
                .message,
            "this needs the access ReadWrite; the caller has Read"
        );
    }
}

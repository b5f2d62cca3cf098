//! What a mount can be told.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use tablemount_client::Client;

/// Where and how to mount. [`MountConfig::new`] has the defaults.
#[derive(Clone)]
pub struct MountConfig {
    /// Talks to the engine. Its time limit is not used: the two below are.
    pub client: Client,
    /// An empty directory.
    pub mountpoint: PathBuf,
    /// How many names a directory lists before it ends in `@more` and the error EFBIG; 0: all. Default 1,000,000.
    pub listing_limit: u64,
    /// Who owns everything. Default: the user that mounts.
    pub uid: u32,
    /// The group that owns everything. Default: that of the user that mounts.
    pub gid: u32,
    /// Permission bits of directories. Default 0o555.
    pub dir_mode: u16,
    /// Permission bits of files. Default 0o444.
    pub file_mode: u16,
    /// Whether other users than the one that mounts get in, as far as owner and permission bits let them. Default false.
    pub allow_other: bool,
    /// Time limit of anything but values: names, sizes, listings. Default 5 s.
    pub metadata_timeout: Duration,
    /// Time limit of opening and reading values. Default 30 s.
    pub value_timeout: Duration,
    /// How many requests go to the engine at a time; more wait within their time limits. Default 64.
    pub concurrent_requests: usize,
}

impl MountConfig {
    /// `client`'s tables on `mountpoint`, with the defaults above.
    pub fn new(client: Client, mountpoint: impl Into<PathBuf>) -> Self {
        Self {
            client,
            mountpoint: mountpoint.into(),
            listing_limit: 1_000_000,
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            dir_mode: 0o555,
            file_mode: 0o444,
            allow_other: false,
            metadata_timeout: Duration::from_secs(5),
            value_timeout: Duration::from_secs(30),
            concurrent_requests: 64,
        }
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            server: self.client.url().to_owned(),
            listing_limit: self.listing_limit,
            uid: self.uid,
            gid: self.gid,
            dir_mode: self.dir_mode & 0o555,
            file_mode: self.file_mode & 0o444,
            metadata_timeout: self.metadata_timeout,
            value_timeout: self.value_timeout,
            concurrent_requests: self.concurrent_requests.max(1),
            probe_every: Duration::from_secs(1),
        }
    }
}

/// The part of the configuration that the filesystem itself works by, and shows as `@config`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Options {
    pub(crate) server: String,
    pub(crate) listing_limit: u64,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    #[serde(serialize_with = "octal")]
    pub(crate) dir_mode: u16,
    #[serde(serialize_with = "octal")]
    pub(crate) file_mode: u16,
    #[serde(rename = "metadataTimeoutSeconds", serialize_with = "seconds")]
    pub(crate) metadata_timeout: Duration,
    #[serde(rename = "valueTimeoutSeconds", serialize_with = "seconds")]
    pub(crate) value_timeout: Duration,
    pub(crate) concurrent_requests: usize,
    /// Time between two looks for an engine that did not answer, and time limit of each.
    #[serde(skip)]
    pub(crate) probe_every: Duration,
}

fn octal<S: serde::Serializer>(mode: &u16, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{mode:04o}"))
}

fn seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

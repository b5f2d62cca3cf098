//! The filesystem, without FUSE: operations on inode numbers and handles.
//!
//! Each operation ends by its time limit (metadata or values), whatever it waits for.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use tablemount_api::Timestamp;
use tokio::sync::Mutex;

use crate::clock::Clock;
use crate::config::Options;
use crate::errno::Failure;
use crate::facts::Facts;
use crate::handles::Handles;
use crate::inodes::{Inodes, ROOT};
use crate::listing::{Listing, MoreLinks};
use crate::long_names::LongNames;
use crate::node::{Kind, Node};
use crate::open_file::{KeptBytes, OpenFile};
use crate::path::timestamp_name;
use crate::remote::Remote;
use crate::source::Source;
use crate::stat::Stat;
use crate::xattr;

/// The filesystem's state.
pub(crate) struct Filesystem {
    pub(crate) options: Options,
    pub(crate) remote: Arc<Remote>,
    pub(crate) facts: Facts,
    pub(crate) inodes: Arc<Inodes>,
    pub(crate) long_names: LongNames,
    pub(crate) more_links: MoreLinks,
    pub(crate) kept_bytes: Arc<KeptBytes>,
    /// The time of what has none of its own.
    pub(crate) mounted: Timestamp,
    files: Handles<OpenFile>,
    directories: Handles<Mutex<Listing>>,
}

/// A name in a directory, as readdir gives it.
pub(crate) struct Entry<'a> {
    pub(crate) number: u64,
    /// From which to go on after this one.
    pub(crate) offset: u64,
    pub(crate) name: &'a str,
    pub(crate) stat: Stat,
}

impl Filesystem {
    pub(crate) fn new(
        source: Arc<dyn Source>,
        options: Options,
        inodes: Arc<Inodes>,
        clock: Clock,
        mounted: SystemTime,
    ) -> Self {
        let remote = Arc::new(Remote::new(source, &options));
        let micros = mounted
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_micros());
        Self {
            options,
            facts: Facts::new(remote.clone(), clock),
            remote,
            inodes,
            long_names: LongNames::default(),
            more_links: MoreLinks::default(),
            kept_bytes: Arc::default(),
            mounted: Timestamp(i64::try_from(micros).unwrap_or(i64::MAX)),
            files: Handles::default(),
            directories: Handles::default(),
        }
    }

    fn node(&self, number: u64) -> Result<Arc<Node>, Failure> {
        self.inodes
            .get(number)
            .map(|(node, _)| node)
            .ok_or(Failure::Stale)
    }

    /// Looks a name up. The kernel is told of its number, and will forget it.
    pub(crate) async fn lookup(&self, parent: u64, name: &OsStr) -> Result<(u64, Stat), Failure> {
        let directory = self.node(parent)?;
        let found = self
            .remote
            .within_metadata_timeout(self.resolve(&directory, name))
            .await;
        let (node, stat) = found.map_err(absent)?;
        Ok((self.inodes.remember(parent, name, node), stat))
    }

    pub(crate) fn forget(&self, number: u64, times: u64) {
        self.inodes.forget(number, times);
    }

    pub(crate) async fn getattr(&self, number: u64) -> Result<Stat, Failure> {
        let node = self.node(number)?;
        self.remote
            .within_metadata_timeout(self.stat(&node))
            .await
            .map_err(absent)
    }

    pub(crate) async fn readlink(&self, number: u64) -> Result<String, Failure> {
        match &*self.node(number)? {
            Node::Link(target) => Ok(target.clone()),
            Node::Latest(column) => {
                let newest = self
                    .remote
                    .within_metadata_timeout(self.newest(column))
                    .await
                    .map_err(absent)?;
                Ok(timestamp_name(Timestamp(newest.timestamp)))
            }
            _ => Err(Failure::WrongKind),
        }
    }

    pub(crate) fn opendir(&self, number: u64) -> Result<u64, Failure> {
        let directory = self.node(number)?;
        if directory.kind() != Kind::Directory {
            return Err(Failure::NotDirectory);
        }
        let handle = self
            .directories
            .insert(Mutex::new(Listing::new(directory)))?;
        self.inodes.count_open(number, true);
        Ok(handle)
    }

    /// Gives names from `offset` on to `add`, until it says that it is full. An error comes only if no name came before it.
    /// With `remember` the kernel is told of each name's number, and will forget it.
    pub(crate) async fn readdir(
        &self,
        number: u64,
        handle: u64,
        offset: u64,
        remember: bool,
        mut add: impl FnMut(&Entry<'_>) -> bool,
    ) -> Result<(), Failure> {
        let listing = self.directories.get(handle)?;
        let mut listing = listing.lock().await;
        if offset == 0 {
            listing.rewind();
        }
        let dots = self.dots(number);
        let mut added = false;
        for dot in dots.iter().filter(|dot| dot.offset > offset) {
            if add(dot) {
                return Ok(());
            }
            added = true;
        }
        let mut index = offset.saturating_sub(2);
        loop {
            let item = match self
                .remote
                .within_metadata_timeout(listing.get(self, index))
                .await
            {
                Ok(Some(item)) => item,
                Ok(None) => return Ok(()),
                Err(_) if added => return Ok(()),
                Err(failure) => return Err(absent(failure)),
            };
            let number = match remember {
                true => self
                    .inodes
                    .remember(number, OsStr::new(&item.name), item.node.clone()),
                false => self.inodes.next(),
            };
            let full = add(&Entry {
                number,
                offset: index + 3,
                name: &item.name,
                stat: item.stat,
            });
            if full {
                if remember {
                    self.inodes.forget(number, 1);
                }
                return Ok(());
            }
            added = true;
            index += 1;
        }
    }

    /// The names that every directory has.
    fn dots(&self, number: u64) -> [Entry<'static>; 2] {
        let parent = self.inodes.get(number).map_or(ROOT, |(_, parent)| parent);
        let stat = Stat::directory(self.mounted);
        let dot = |number, offset, name| Entry {
            number,
            offset,
            name,
            stat,
        };
        [dot(number, 1, "."), dot(parent, 2, "..")]
    }

    pub(crate) fn releasedir(&self, number: u64, handle: u64) {
        self.directories.remove(handle);
        self.inodes.count_open(number, false);
    }

    pub(crate) async fn open(&self, number: u64) -> Result<u64, Failure> {
        let node = self.node(number)?;
        let file = self
            .remote
            .within_value_timeout(self.open_file(&node))
            .await
            .map_err(absent)?;
        let handle = self.files.insert(file)?;
        self.inodes.count_open(number, true);
        Ok(handle)
    }

    pub(crate) async fn read(&self, handle: u64, offset: u64, size: u32) -> Result<Bytes, Failure> {
        let file = self.files.get(handle)?;
        let read = self
            .remote
            .within_value_timeout(self.read_file(&file, offset, size))
            .await;
        read.map_err(|failure| {
            if failure.is_absent() {
                Failure::Stale
            } else {
                failure
            }
        })
    }

    pub(crate) fn release(&self, number: u64, handle: u64) {
        self.files.remove(handle);
        self.inodes.count_open(number, false);
    }

    pub(crate) fn getxattr(&self, number: u64, name: &OsStr) -> Result<Bytes, Failure> {
        xattr::get(&*self.node(number)?, name.as_encoded_bytes())
    }

    pub(crate) fn listxattr(&self, number: u64) -> Result<Bytes, Failure> {
        Ok(xattr::list(&*self.node(number)?))
    }
}

/// The engine's word for what is not there is this one.
fn absent(failure: Failure) -> Failure {
    if failure.is_absent() {
        Failure::Absent
    } else {
        failure
    }
}

#[cfg(test)]
mod tests;

//! Inode numbers: which node each stands for, for as long as the kernel remembers it.
//!
//! **Invariants**: numbers come from a counter, rise in the order in which names are listed, and are never given twice; one
//! path has one number while the kernel knows it (two paths to one row have two: a directory must not have two parents); a
//! number goes when the kernel has forgotten it as often as it was told of it.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::node::Node;

/// The mount point's number.
pub(crate) const ROOT: u64 = 1;
/// Above so many the kernel is asked to forget.
pub(crate) const MAX_INODES: usize = 20_000;
/// Those in use within this time are not forgotten.
const SPARED: Duration = Duration::from_secs(2);

type Key = (u64, Arc<OsStr>);

#[derive(Debug)]
struct Inode {
    parent: u64,
    name: Arc<OsStr>,
    node: Arc<Node>,
    /// How often the kernel was told of it.
    lookups: u64,
    /// Open files and directories.
    opens: u32,
    used: Instant,
}

/// All inodes that the kernel knows.
pub(crate) struct Inodes {
    table: Mutex<Table>,
    counter: AtomicU64,
    crowded: SyncSender<()>,
}

struct Table {
    /// Oldest first.
    by_number: BTreeMap<u64, Inode>,
    by_path: HashMap<Key, u64>,
    /// Up to where the kernel was asked to forget.
    swept: u64,
}

impl Inodes {
    /// `crowded` is told when there are more than [`MAX_INODES`].
    pub(crate) fn new(crowded: SyncSender<()>) -> Self {
        let root = Inode {
            parent: ROOT,
            name: OsStr::new("").into(),
            node: Arc::new(Node::Root),
            lookups: u64::MAX,
            opens: 0,
            used: Instant::now(),
        };
        let table = Table {
            by_number: BTreeMap::from([(ROOT, root)]),
            by_path: HashMap::new(),
            swept: ROOT,
        };
        Self {
            table: Mutex::new(table),
            counter: AtomicU64::new(ROOT + 1),
            crowded,
        }
    }

    /// A number that no path has, for a listing that says no more than that there is a name.
    pub(crate) fn next(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed)
    }

    /// The number of `name` in `parent`, which is `node`. The kernel is told of it, and will forget it.
    pub(crate) fn remember(&self, parent: u64, name: &OsStr, node: Node) -> u64 {
        let key: Key = (parent, name.into());
        let mut table = self.table.lock();
        if let Some(number) = table.by_path.get(&key).copied()
            && let Some(inode) = table.by_number.get_mut(&number)
            && *inode.node == node
        {
            inode.lookups += 1;
            inode.used = Instant::now();
            return number;
        }
        let number = self.next();
        let name = key.1.clone();
        table.by_path.insert(key, number);
        let inode = Inode {
            parent,
            name,
            node: Arc::new(node),
            lookups: 1,
            opens: 0,
            used: Instant::now(),
        };
        table.by_number.insert(number, inode);
        if table.by_number.len() > MAX_INODES {
            // Whoever listens is told once, or is at it already.
            let _ = self.crowded.try_send(());
        }
        number
    }

    /// The kernel forgot `number` that many times.
    pub(crate) fn forget(&self, number: u64, times: u64) {
        let mut table = self.table.lock();
        let Some(inode) = table.by_number.get_mut(&number).filter(|_| number != ROOT) else {
            return;
        };
        inode.lookups = inode.lookups.saturating_sub(times);
        if inode.lookups > 0 {
            return;
        }
        if let Some(Inode { parent, name, .. }) = table.by_number.remove(&number) {
            let key = (parent, name);
            // Another node may have come to that path since.
            if table.by_path.get(&key) == Some(&number) {
                table.by_path.remove(&key);
            }
        }
    }

    /// What `number` stands for, and the number of its parent.
    pub(crate) fn get(&self, number: u64) -> Option<(Arc<Node>, u64)> {
        let mut table = self.table.lock();
        let inode = table.by_number.get_mut(&number)?;
        inode.used = Instant::now();
        Some((inode.node.clone(), inode.parent))
    }

    /// A file or directory was opened, or closed.
    pub(crate) fn count_open(&self, number: u64, opened: bool) {
        if let Some(inode) = self.table.lock().by_number.get_mut(&number) {
            inode.opens = if opened {
                inode.opens.saturating_add(1)
            } else {
                inode.opens.saturating_sub(1)
            };
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.table.lock().by_number.len()
    }

    /// Up to `count` paths that the kernel should forget: the oldest that are not in use. Goes round over time.
    pub(crate) fn forgettable(&self, count: usize) -> Vec<(u64, OsString)> {
        let now = Instant::now();
        let mut table = self.table.lock();
        let swept = table.swept;
        let (mut paths, mut last) = (Vec::new(), ROOT);
        for (number, inode) in table
            .by_number
            .range((Bound::Excluded(swept), Bound::Unbounded))
        {
            last = *number;
            if inode.opens == 0 && now.saturating_duration_since(inode.used) >= SPARED {
                paths.push((inode.parent, inode.name.to_os_string()));
                if paths.len() == count {
                    break;
                }
            }
        }
        table.swept = if paths.len() == count { last } else { ROOT };
        paths
    }
}

#[cfg(test)]
mod tests;

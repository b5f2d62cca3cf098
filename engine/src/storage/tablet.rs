//! A tablet: a range of a table's rows, with its memtables and SSTs.
//!
//! ```text
//! state = active memtables ← appends │ frozen memtables ← being flushed │ SSTs by family, oldest first
//! ```
//! **Invariants**: the state is swapped whole, so a reader that took it keeps a consistent set and pins its files; the state is
//! taken before the sequence number, so that all in its SSTs is at or below; freezing happens between appends; manifests are
//! written one at a time, and the state follows only a manifest that was won.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use parking_lot::{Mutex, RwLock};
use tablemount_api::{RowKey, Timestamp};

use super::catalog::{Manifest, manifest_folder};
use super::debt::WrittenBytes;
use super::memtable::MemtableSet;
use super::objects::Objects;
use super::pressure::Brake;
use super::sources::Sources;
use super::sst::Sst;
use super::stats::TabletActivity;
use crate::{Error, Result};

/// What a tablet holds at one moment.
#[derive(Clone, Default)]
pub(crate) struct TabletState {
    pub(crate) active: Arc<MemtableSet>,
    /// Oldest first, each with the sequence number up to which it goes.
    pub(crate) frozen: Vec<(Arc<MemtableSet>, u64)>,
    /// By family id, oldest first.
    pub(crate) files: BTreeMap<u64, Vec<Arc<Sst>>>,
}

impl TabletState {
    /// All memtables, oldest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<MemtableSet>> {
        self.frozen.iter().map(|(set, _)| set).chain([&self.active])
    }

    /// One family's sources, at a sequence number.
    pub(crate) fn sources(&self, family: u64, sequence: u64) -> Sources<'_> {
        Sources {
            memtables: self
                .memtables()
                .filter_map(|set| set.family(family))
                .collect(),
            files: self.files.get(&family).map_or(&[], Vec::as_slice),
            sequence,
        }
    }

    pub(crate) fn memtable_bytes(&self) -> u64 {
        self.memtables().map(|set| set.bytes()).sum()
    }
}

/// The newest manifest and its number.
pub(crate) struct Published {
    pub(crate) number: u64,
    pub(crate) manifest: Manifest,
}

/// A tablet.
pub(crate) struct Tablet {
    pub(crate) id: u64,
    /// First row, inclusive; `None`: from the start.
    pub(crate) start: Option<RowKey>,
    /// End, exclusive; `None`: to the end.
    pub(crate) stop: Option<RowKey>,
    state: RwLock<Arc<TabletState>>,
    published: Mutex<Published>,
    /// One flush at a time.
    pub(crate) flushing: Mutex<()>,
    pub(crate) activity: TabletActivity,
    /// Slows its writers down.
    pub(crate) brake: Brake,
    pub(crate) written: WrittenBytes,
    server_timestamp: AtomicI64,
    dropped: AtomicBool,
}

impl Tablet {
    pub(crate) fn new(
        id: u64,
        start: Option<RowKey>,
        stop: Option<RowKey>,
        number: u64,
        manifest: Manifest,
        files: BTreeMap<u64, Vec<Arc<Sst>>>,
    ) -> Self {
        let state = TabletState {
            files,
            ..TabletState::default()
        };
        let server_timestamp = AtomicI64::new(manifest.server_timestamp.0);
        let tablet = Self {
            id,
            start,
            stop,
            state: RwLock::new(Arc::new(state)),
            published: Mutex::new(Published { number, manifest }),
            flushing: Mutex::new(()),
            activity: TabletActivity::new(),
            brake: Brake::default(),
            written: WrittenBytes::default(),
            server_timestamp,
            dropped: AtomicBool::new(false),
        };
        tablet.count_files();
        tablet
    }

    /// What the tablet holds now.
    pub(crate) fn state(&self) -> Arc<TabletState> {
        self.state.read().clone()
    }

    /// Changes the state.
    fn swap<T>(&self, change: impl FnOnce(&mut TabletState) -> T) -> T {
        let mut guard = self.state.write();
        let mut state = TabletState::clone(&guard);
        let result = change(&mut state);
        *guard = Arc::new(state);
        result
    }

    /// Freezes the active memtables, if they hold anything. Only between appends.
    pub(crate) fn freeze(&self, last_sequence: u64) {
        if self.state.read().active.is_empty() {
            return;
        }
        self.swap(|state| {
            let full = std::mem::take(&mut state.active);
            state.frozen.push((full, last_sequence));
        });
        self.activity.froze(last_sequence);
    }

    /// Takes no appends and no manifests any more. Only between appends.
    pub(crate) fn refuse(&self) {
        self.dropped.store(true, Ordering::Release);
    }

    /// Forgets what it holds, and returns that, once it refuses changes and none is under way.
    pub(crate) fn forget(&self) -> TabletState {
        let _none_under_way = self.published.lock();
        self.swap(std::mem::take)
    }

    /// Refuses a change that raced with the drop of the table.
    pub(crate) fn check_live(&self) -> Result<()> {
        match self.dropped.load(Ordering::Acquire) {
            true => Err(Error::NotFound(format!(
                "tablet {}: its table was dropped meanwhile",
                self.id
            ))),
            false => Ok(()),
        }
    }

    /// Writes the next manifest, then changes the state accordingly.
    pub(crate) fn publish(
        &self,
        objects: &Objects,
        edit: impl FnOnce(&mut Manifest),
        install: impl FnOnce(&mut TabletState),
    ) -> Result<()> {
        let mut published = self.published.lock();
        self.check_live()?;
        let mut manifest = published.manifest.clone();
        edit(&mut manifest);
        manifest.server_timestamp = Timestamp(self.server_timestamp.load(Ordering::Relaxed));
        let number = published.number + 1;
        let folder = manifest_folder(self.id);
        objects.create_numbered(&folder, number, &manifest)?;
        *published = Published { number, manifest };
        self.swap(install);
        // The one before stays, for a look at what was.
        objects.clean_numbered(&folder, number - 1);
        Ok(())
    }

    /// All up to this sequence number is in SSTs.
    pub(crate) fn flushed_sequence(&self) -> u64 {
        self.published.lock().manifest.flushed_sequence
    }

    /// A timestamp for cells that bring none: the time in whole milliseconds, never below one given out before.
    pub(crate) fn give_timestamp(&self, now: Timestamp) -> Timestamp {
        let millis = now.0.div_euclid(1000) * 1000;
        Timestamp(
            self.server_timestamp
                .fetch_max(millis, Ordering::Relaxed)
                .max(millis),
        )
    }

    /// The highest timestamp given out.
    pub(crate) fn server_timestamp(&self) -> Timestamp {
        Timestamp(self.server_timestamp.load(Ordering::Relaxed))
    }

    /// Takes note of a timestamp given out before the start.
    pub(crate) fn saw_timestamp(&self, given: Timestamp) {
        self.server_timestamp.fetch_max(given.0, Ordering::Relaxed);
    }

    /// Bytes of memtables.
    pub(crate) fn memtable_bytes(&self) -> u64 {
        self.state.read().memtable_bytes()
    }
}

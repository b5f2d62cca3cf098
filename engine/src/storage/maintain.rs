//! Flushes, and how the new files of flushes and compactions come into a manifest.
//!
//! **Invariants**: a flush takes all families of a tablet, after the log is durable up to where it was frozen, so no crash shows
//! half a mutation; the manifest's flushed sequence number is where replay starts.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::counters;
use super::sst::Sst;
use super::store::Store;
use super::table::Table;
use super::tablet::{Tablet, TabletState};
use crate::{Error, Result};

impl Store {
    /// Flushes a tablet's memtables. Returns whether there was anything.
    pub(crate) fn flush(&self, table: &Table, tablet: &Tablet) -> Result<bool> {
        let log = self.log()?;
        let _one = tablet.flushing.lock();
        let ((), frozen_at) = log.between_appends(|last| tablet.freeze(last));
        let state = tablet.state();
        let Some((_, upto)) = state.frozen.last().cloned() else {
            return Ok(false);
        };
        log.make_durable(frozen_at.group)?;
        let doing = |error: Error| error.context(format!("flush tablet {}", tablet.id));
        while !self
            .flush_frozen(table, tablet, &state, upto)
            .map_err(doing)?
        {}
        self.release(&state, upto);
        tablet.activity.flushed(upto);
        log.flushed(tablet.id, upto)?;
        self.wake(|work| work.compact = true);
        Ok(true)
    }

    /// Writes and publishes the files of one flush. Returns false if the schema or the hold changed meanwhile: they are to be
    /// written again.
    fn flush_frozen(
        &self,
        table: &Table,
        tablet: &Tablet,
        state: &TabletState,
        upto: u64,
    ) -> Result<bool> {
        let (collect, schema) = (!self.held(), table.schema());
        let mut new = NewFiles::default();
        for family in &schema.record.families {
            if let Some(meta) = self.flush_family(tablet, family, state, collect)? {
                new.0.push((family.id, self.open_sst(meta)?));
            }
        }
        let _schema_stays = table.changing.read();
        let hold = self.hold.read();
        if table.schema().version != schema.version || (collect && hold.1.held) {
            return Ok(false);
        }
        let bytes: Vec<(u64, u64)> = new
            .0
            .iter()
            .map(|(family, sst)| (*family, sst.meta.bytes))
            .collect();
        let published = tablet.publish(
            &self.objects,
            |manifest| {
                (manifest.epoch, manifest.log, manifest.flushed_sequence) =
                    (self.epoch, self.log_id, upto);
                for (family, sst) in &new.0 {
                    manifest
                        .files
                        .entry(*family)
                        .or_default()
                        .push(sst.meta.clone());
                }
            },
            |state| {
                state.frozen.retain(|(_, sequence)| *sequence > upto);
                for (family, sst) in &new.0 {
                    state.files.entry(*family).or_default().push(sst.clone());
                }
            },
        );
        self.conclude(published, new)?;
        for (family, bytes) in &bytes {
            tablet.written.add(*family, *bytes, 0);
        }
        tablet.count_files();
        counters::flushed(bytes.iter().map(|(_, bytes)| bytes).sum());
        Ok(true)
    }

    /// Keeps new files that a manifest names, or may name.
    pub(super) fn conclude(&self, published: Result<()>, new: NewFiles) -> Result<()> {
        let published = self.fatal_if_unclear(published);
        if published.as_ref().err().is_none_or(is_unclear) {
            new.keep();
        }
        published
    }

    /// A manifest that may or may not be there: the server ends, and the next start reads which.
    pub(crate) fn fatal_if_unclear(&self, published: Result<()>) -> Result<()> {
        if let (Err(error), Some(log)) = (&published, &self.log)
            && is_unclear(error)
        {
            log.fail(error);
        }
        published
    }

    /// The tablet to flush next, if memtables are over half of their budget, or the log over its own or out of disk.
    pub(crate) fn choose_flush(&self) -> Result<Option<(Arc<Table>, Arc<Tablet>)>> {
        let log = self.log()?;
        if log.bytes() > self.options.log_budget_bytes || log.disk_full().is_some() {
            let holders = log.oldest_holders();
            let holding = self
                .tablets()
                .into_iter()
                .find(|(_, tablet)| holders.contains(&tablet.id));
            if holding.is_some() {
                return Ok(holding);
            }
        }
        if self.memtable_bytes.load(Ordering::Relaxed) <= self.options.memtable_budget_bytes / 2 {
            return Ok(None);
        }
        let largest = self
            .tablets()
            .into_iter()
            .max_by_key(|(_, tablet)| tablet.memtable_bytes());
        Ok(largest.filter(|(_, tablet)| tablet.memtable_bytes() > 0))
    }
}

/// Files that no manifest names yet: unless they are kept, they go.
#[derive(Default)]
pub(super) struct NewFiles(pub(super) Vec<(u64, Arc<Sst>)>);

impl NewFiles {
    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for NewFiles {
    fn drop(&mut self) {
        self.0.iter().for_each(|(_, file)| file.retire());
    }
}

/// After this error of a put, the object may or may not be there.
fn is_unclear(error: &Error) -> bool {
    matches!(error, Error::Unavailable(_) | Error::Precondition(_))
}

/// Puts `merged` in the place of the first that is gone.
pub(super) fn replace<T>(files: &mut Vec<T>, gone: impl Fn(&T) -> bool, merged: Option<T>) {
    let Some(first) = files.iter().position(&gone) else {
        return;
    };
    let mut rest = files.split_off(first);
    rest.retain(|file| !gone(file));
    files.extend(merged);
    files.append(&mut rest);
}

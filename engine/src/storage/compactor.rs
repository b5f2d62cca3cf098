//! Performing compactions: takes what [`choose`] picks, merges it, puts the result in its place.
//!
//! ```text
//! next_merge (under the lock of jobs): families → files that are free → choice → job
//! merge: inputs → new SST (paced, given up on a stop) → manifest n + 1, if schema and hold still allow it → files retired
//! ```
//! **Invariants**: never blocks reads or writes; a merge that may leave out tombstones has the family's oldest file in it;
//! nothing is collected by a schema or in a store that changed meanwhile; what was not published leaves no file.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Instant;

use tablemount_api::{CompactResponse, FamilyInfo, FamilyName};

use super::compaction::{Choice, FileFacts, Reason, choose, choose_held, choose_young};
use super::counters;
use super::debt::facts;
use super::jobs::{Free, Job, Place};
use super::maintain::{NewFiles, replace};
use super::pace::Pace;
use super::rewrite::merge_of;
use super::sst::Sst;
use super::store::Store;
use super::table::{Schema, Table};
use super::tablet::Tablet;
use crate::{Error, Result};

/// A merge on demand begins anew so often when the schema or the hold changes under it.
const TRIES: usize = 5;

/// A family in a tablet, by one version of its table's schema.
#[derive(Clone)]
pub(crate) struct Target {
    table: Arc<Table>,
    tablet: Arc<Tablet>,
    schema: Arc<Schema>,
    pub(crate) family: FamilyInfo,
}

/// Files to merge, taken.
pub(crate) struct Merge {
    pub(crate) target: Target,
    files: Vec<Arc<Sst>>,
    /// The family's oldest is among them.
    bottom: bool,
    /// All in them is past the age rule.
    expired: bool,
    /// Deletes and the GC rule take effect; not while the store is held.
    collect: bool,
    _job: Job,
}

impl Merge {
    /// The tablet's and the family's id.
    pub(crate) fn place(&self) -> Place {
        (self.target.tablet.id, self.target.family.id)
    }

    pub(crate) fn tablet(&self) -> &Tablet {
        &self.target.tablet
    }

    /// Says what failed.
    fn context(&self, error: Error) -> Error {
        let Target {
            table,
            tablet,
            family,
            ..
        } = &self.target;
        let (table, family, tablet) = (&table.name, &family.schema.name, tablet.id);
        error.context(format!(
            "compact table \"{table}\", column family \"{family}\", tablet {tablet}"
        ))
    }
}

/// Which of a family's files could be merged.
struct Candidate {
    files: Vec<Arc<Sst>>,
    bottom: bool,
    expired: bool,
    bytes: u64,
    /// How urgent it is: the most files first, of those the least work; what costs nothing before all.
    rank: (bool, usize, Reverse<u64>),
}

impl Store {
    /// Takes the most urgent merge that the disk has room for; `only`: of this tablet.
    pub(crate) fn next_merge(&self, only: Option<u64>) -> Option<Merge> {
        let held = self.held();
        let mut jobs = self.jobs.lock();
        jobs.keep_failures(|place| self.has_family(place));
        let (room, mut waits) = (self.merge_room().saturating_sub(jobs.bytes()), false);
        let mut best: Option<(Candidate, Target)> = None;
        for (table, tablet) in self.tablets() {
            if only.is_some_and(|only| only != tablet.id) {
                continue;
            }
            let (schema, state) = (table.schema(), tablet.state());
            for family in &schema.record.families {
                let free = jobs.free((tablet.id, family.id), Instant::now());
                let files = state.files.get(&family.id).map(Vec::as_slice);
                let found = self.candidate(family, files.unwrap_or_default(), free, held);
                let Some(found) = found else {
                    continue;
                };
                if !found.expired && found.bytes > room {
                    waits = true;
                    continue;
                }
                let better = best.as_ref().is_none_or(|(best, _)| best.rank < found.rank);
                if better && jobs.takes(found.bytes, self.options.compaction_threads) {
                    let target = Target {
                        table: table.clone(),
                        tablet: tablet.clone(),
                        schema: schema.clone(),
                        family: family.clone(),
                    };
                    best = Some((found, target));
                }
            }
        }
        self.merges_wait(waits);
        let (found, target) = best?;
        let place = (target.tablet.id, target.family.id);
        let newest = found.files.last()?.meta.path.clone();
        Some(Merge {
            _job: self.jobs.start(&mut jobs, place, newest, found.bytes),
            target,
            files: found.files,
            bottom: found.bottom,
            expired: found.expired,
            collect: !held,
        })
    }

    fn has_family(&self, (tablet, family): Place) -> bool {
        let tables = self.tables.load();
        let mut having = tables
            .values()
            .filter(|table| table.schema().family_by_id(family).is_some());
        having.any(|table| table.tablets.iter().any(|held| held.id == tablet))
    }

    /// What of a family could be merged now.
    fn candidate(
        &self,
        family: &FamilyInfo,
        files: &[Arc<Sst>],
        free: Free,
        held: bool,
    ) -> Option<Candidate> {
        let skipped = match &free {
            Free::None => return None,
            Free::All => 0,
            Free::YoungerThan(path) => 1 + files.iter().position(|file| file.meta.path == *path)?,
        };
        let facts = facts(&files[skipped..], family, self.clock.now());
        let choice: Choice = match free {
            Free::All if held => choose_held(&facts),
            Free::All => choose(&facts),
            _ if held => None,
            _ => choose_young(&facts),
        }?;
        let chosen: &[FileFacts] = &facts[choice.files.clone()];
        let bytes = chosen.iter().map(|file| file.bytes).sum();
        let expired = choice.reason == Reason::Expired;
        Some(Candidate {
            bottom: skipped + choice.files.start == 0,
            files: files[skipped..][choice.files].to_vec(),
            expired,
            bytes,
            rank: (expired, files.len(), Reverse(bytes)),
        })
    }

    /// Performs a merge. `None`: the schema or the hold changed meanwhile, and all stays as it was.
    pub(crate) fn merge(&self, merge: &Merge) -> Result<Option<CompactResponse>> {
        counters::compactions_running(1.0);
        let merged = self.perform(merge);
        counters::compactions_running(-1.0);
        if merged.is_ok() {
            self.jobs.succeeded(merge.place());
        }
        merged
    }

    fn perform(&self, merge: &Merge) -> Result<Option<CompactResponse>> {
        let Target { tablet, family, .. } = &merge.target;
        let context = |error| merge.context(error);
        let mut done = CompactResponse::default();
        let mut new = NewFiles::default();
        if !(merge.expired && merge.collect) {
            done.bytes_read = merge.files.iter().map(|file| file.meta.bytes).sum();
            let pace = Pace::new(self, tablet, &merge.files);
            let inputs = merge_of(&merge.files, merge.bottom, merge.collect);
            let merged = self
                .write_merged(tablet, family, inputs, pace)
                .map_err(context)?;
            if let Some(meta) = merged {
                done.bytes_written = meta.bytes;
                let sst = self.open_sst(meta).map_err(context)?;
                new.0.push((family.id, sst));
            }
        }
        if !self.publish_merge(merge, new).map_err(context)? {
            return Ok(None);
        }
        tablet.written.add(family.id, 0, done.bytes_written);
        tablet.count_files();
        counters::compacted(done.bytes_read, done.bytes_written);
        Ok(Some(done))
    }

    /// Puts the new file in the place of those merged, unless the schema or the hold changed since they were taken.
    fn publish_merge(&self, merge: &Merge, new: NewFiles) -> Result<bool> {
        let Target {
            table,
            tablet,
            schema,
            family,
        } = &merge.target;
        let files = &merge.files;
        let _schema_stays = table.changing.read();
        let hold = self.hold.read();
        if table.schema().version != schema.version || (merge.collect && hold.1.held) {
            return Ok(false);
        }
        let gone = |path: &str| files.iter().any(|file| file.meta.path == path);
        let sst = new.0.first().map(|(_, sst)| sst.clone());
        let published = tablet.publish(
            &self.objects,
            |manifest| {
                (manifest.epoch, manifest.log) = (self.epoch, self.log_id);
                let present = manifest.files.entry(family.id).or_default();
                let meta = sst.as_ref().map(|sst| sst.meta.clone());
                replace(present, |file| gone(&file.path), meta);
            },
            |state| {
                let present = state.files.entry(family.id).or_default();
                replace(present, |file| gone(&file.meta.path), sst.clone());
            },
        );
        self.conclude(published, new)?;
        files.iter().for_each(|file| file.retire());
        Ok(true)
    }

    /// Flushes the table and merges all files of each family, or of one, in each tablet into one.
    pub(crate) fn compact_table(
        &self,
        table: &Arc<Table>,
        family: Option<&FamilyName>,
    ) -> Result<CompactResponse> {
        self.log()?;
        let families: Vec<u64> = match family {
            Some(name) => vec![table.schema().family(name)?.id],
            None => table
                .schema()
                .record
                .families
                .iter()
                .map(|family| family.id)
                .collect(),
        };
        let mut done = CompactResponse::default();
        for tablet in &table.tablets {
            self.flush(table, tablet)?;
            for family in &families {
                let one = self.compact_family(table, tablet, *family)?;
                done.bytes_read += one.bytes_read;
                done.bytes_written += one.bytes_written;
            }
        }
        self.wake(|work| work.compact = true);
        Ok(done)
    }

    /// Merges all files of a family in the tablet into one, once no other merge of it runs. A family that was dropped
    /// meanwhile has none.
    pub(crate) fn compact_family(
        &self,
        table: &Arc<Table>,
        tablet: &Arc<Tablet>,
        family: u64,
    ) -> Result<CompactResponse> {
        for _ in 0..TRIES {
            let job = self
                .jobs
                .demand((tablet.id, family), &|| self.check_goes_on(tablet))?;
            let (collect, schema) = (!self.held(), table.schema());
            let files = tablet
                .state()
                .files
                .get(&family)
                .cloned()
                .unwrap_or_default();
            let (Some(family), Some(newest)) = (schema.family_by_id(family).cloned(), files.last())
            else {
                return Ok(CompactResponse::default());
            };
            job.narrow(newest.meta.path.clone());
            let target = Target {
                table: table.clone(),
                tablet: tablet.clone(),
                schema,
                family,
            };
            let merge = Merge {
                target,
                files,
                bottom: true,
                expired: false,
                collect,
                _job: job,
            };
            if let Some(done) = self.merge(&merge)? {
                return Ok(done);
            }
        }
        Err(Error::Conflict(format!(
            "compact table \"{}\": its schema changed {TRIES} times meanwhile",
            table.name
        )))
    }

    /// Whether work on the tablet makes sense: the store does not stop, and the table is not dropped.
    pub(super) fn check_goes_on(&self, tablet: &Tablet) -> Result<()> {
        if self.stopping() {
            return Err(Error::Unavailable("the server is ending".to_owned()));
        }
        tablet.check_live()
    }
}

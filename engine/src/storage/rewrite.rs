//! Rewriting: what a flush or a compaction keeps of its inputs, written into a new SST.
//!
//! **Invariants**: a tombstone or wider delete goes only in a merge of all the family's files (memtables hold higher sequence
//! numbers only); age rules get an hour's grace here, none in reads.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tablemount_api::{FamilyInfo, Timestamp};

use super::catalog::sst_path;
use super::keys;
use super::merge::{Cursor, MemtableCursor, MergeCursor, Stored};
use super::pace::Pace;
use super::sst::{FileMeta, Sst, SstCursor, SstWriter};
use super::store::Store;
use super::tablet::{Tablet, TabletState};
use super::visible::{Judge, Verdict, WideSource};
use super::wide::WideList;
use crate::{Error, Result};

/// How long a compaction keeps what an age rule collects: a clock that jumps ahead must not destroy data at once.
pub(super) const AGE_GRACE_MICROS: i64 = 3_600_000_000;

/// What is merged into one file.
pub(super) struct Inputs {
    pub(super) cells: MergeCursor,
    wide_sources: Vec<WideSource>,
    wide: WideList,
    /// Nothing older remains outside: tombstones and wider deletes have done their work.
    bottom: bool,
    /// Deletes and the GC rule take effect; else every entry is kept as it is, since the store is held.
    collect: bool,
}

impl Store {
    /// Writes a family's frozen memtables; `None`: nothing is left of them.
    pub(super) fn flush_family(
        &self,
        tablet: &Tablet,
        family: &FamilyInfo,
        state: &TabletState,
        collect: bool,
    ) -> Result<Option<FileMeta>> {
        let memtables: Vec<_> = state
            .frozen
            .iter()
            .filter_map(|(set, _)| set.family(family.id))
            .collect();
        if memtables.is_empty() {
            return Ok(None);
        }
        let cursor = |memtable| Cursor::Memtable(MemtableCursor::new(memtable, u64::MAX));
        let mut wide: WideList = memtables
            .iter()
            .flat_map(|memtable| memtable.all_wide())
            .collect();
        wide.sort_by(|a, b| a.0.cmp(&b.0));
        self.write_merged(
            tablet,
            family,
            Inputs {
                cells: MergeCursor::new(memtables.iter().cloned().map(cursor).collect()),
                wide_sources: memtables.into_iter().map(WideSource::Memtable).collect(),
                wide,
                bottom: state.files.get(&family.id).is_none_or(Vec::is_empty),
                collect,
            },
            Pace::default(),
        )
    }

    /// Writes what is kept of the inputs into a new SST; `None`: nothing is.
    pub(super) fn write_merged(
        &self,
        tablet: &Tablet,
        family: &FamilyInfo,
        inputs: Inputs,
        mut pace: Pace<'_>,
    ) -> Result<Option<FileMeta>> {
        let Inputs {
            mut cells,
            wide_sources,
            wide,
            bottom,
            collect,
        } = inputs;
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        let path = sst_path(tablet.id, family.id, self.epoch, number);
        let mut writer = SstWriter::create(self.objects.clone(), path, &family.schema)?;
        let now = Timestamp(self.clock.now().0.saturating_sub(AGE_GRACE_MICROS));
        let mut judge = Judge::new(wide_sources, u64::MAX, family.schema.gc_rule.clone(), now);
        cells.seek(&[])?;
        while let (Some(key), Some(stored)) = (cells.key(), cells.stored()) {
            let read = key.len() + stored.len();
            let kept = match collect {
                true => kept(&mut judge, key, stored, bottom)?,
                false => Some(stored),
            };
            let mut written = 0;
            if let Some(kept) = kept {
                written = key.len() + kept.len();
                writer.push(key, &kept)?;
            }
            if let Err(stopped) = pace.moved(read + written) {
                writer.abandon()?;
                return Err(stopped);
            }
            cells.next()?;
        }
        if !bottom || !collect {
            wide.iter()
                .for_each(|(key, delete)| writer.push_wide(key, delete));
        }
        if writer.is_empty() {
            writer.abandon()?;
            return Ok(None);
        }
        writer.finish().map(Some)
    }
}

/// Files as inputs.
pub(super) fn merge_of(files: &[Arc<Sst>], bottom: bool, collect: bool) -> Result<Inputs> {
    let cursor = |file: &Arc<Sst>| Ok(Cursor::Sst(Box::new(SstCursor::new(file.clone())?)));
    let mut wide: WideList = files.iter().flat_map(|file| file.wide.clone()).collect();
    wide.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(Inputs {
        cells: MergeCursor::new(files.iter().map(cursor).collect::<Result<_>>()?),
        wide_sources: files.iter().cloned().map(WideSource::Sst).collect(),
        wide,
        bottom,
        collect,
    })
}

/// What a merge keeps of an entry. Where older files remain, a tombstone stays in the place of what was collected: what it
/// overwrote there must not show again should the rule be loosened.
fn kept(judge: &mut Judge, key: &[u8], stored: Stored, bottom: bool) -> Result<Option<Stored>> {
    let parts =
        keys::parse(key).ok_or_else(|| Error::Corrupt("a stored key is damaged".to_owned()))?;
    Ok(match judge.judge(&parts, &stored) {
        Verdict::Visible => Some(stored),
        Verdict::Tombstone | Verdict::Collected => (!bottom).then_some(Stored::Tombstone),
        Verdict::Hidden => None,
    })
}

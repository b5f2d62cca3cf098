//! Rewriting: what a flush or a compaction keeps of its inputs, written into a new SST.
//!
//! **Invariants**: a tombstone or wider delete goes only in a merge of all the family's files (memtables hold higher sequence
//! numbers only); age rules get an hour's grace here, none in reads; where nothing is to be collected, every entry and every
//! delete is kept as it is.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tablemount_api::{FamilyInfo, Timestamp};

use super::catalog::sst_path;
use super::entry::Kind;
use super::judge::{Judge, Verdict};
use super::merge::{MergeCursor, damaged};
use super::pace::Pace;
use super::ranges::{RangeDelete, RangeSet};
use super::sources::{Sources, Wanted};
use super::sst::{FileMeta, Sst, SstWriter};
use super::store::Store;
use super::tablet::{Tablet, TabletState};
use super::wide::WideDelete;
use crate::{Error, Result};

/// How long a compaction keeps what an age rule collects: a clock that jumps ahead must not destroy data at once.
pub(super) const AGE_GRACE_MICROS: i64 = 3_600_000_000;
const ALL: Wanted<'static> = Wanted::Range {
    from: &[],
    to: None,
};

/// What is merged into one file.
pub(super) struct Inputs<'a> {
    pub(super) sources: Sources<'a>,
    /// Nothing older remains outside: tombstones and wider deletes have done their work.
    pub(super) bottom: bool,
    /// Deletes and the GC rule take effect; else every entry is kept as it is, since the store is held.
    pub(super) collect: bool,
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
        self.write_merged(
            tablet,
            family,
            Inputs {
                sources: Sources {
                    memtables,
                    files: &[],
                    sequence: u64::MAX,
                },
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
        inputs: Inputs<'_>,
        mut pace: Pace<'_>,
    ) -> Result<Option<FileMeta>> {
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        let path = sst_path(tablet.id, family.id, self.epoch, number);
        let mut writer = SstWriter::create(self.objects.clone(), path, &family.schema)?;
        let now = Timestamp(self.clock.now().0.saturating_sub(AGE_GRACE_MICROS));
        let sources = &inputs.sources;
        let (mut cells, _) = sources.cells(ALL, false)?;
        let deletes = sources.deletes(ALL, false)?;
        let mut judge = Judge::new(deletes, family.schema.gc_rule.clone(), now);
        cells.seek(&[])?;
        while let (Some(key), Some(stored)) = (cells.key(), cells.stored()) {
            let kept = match inputs.collect {
                true => kept(judge.judge(key, stored.kind)?.0, inputs.bottom),
                false => Kept::AsItIs,
            };
            let read = key.len() as u64 + stored.value_length().unwrap_or(0);
            let written = match kept {
                Kept::AsItIs => {
                    copy(&cells, &mut writer)?;
                    read
                }
                Kept::Tombstone => {
                    writer.push_tombstone(key)?;
                    key.len() as u64
                }
                Kept::Nothing => 0,
            };
            if let Err(stopped) = pace.moved(read + written) {
                writer.abandon()?;
                return Err(stopped);
            }
            cells.next()?;
        }
        if !(inputs.bottom && inputs.collect) {
            copy_deletes(sources, &mut writer)?;
        }
        if writer.is_empty() {
            writer.abandon()?;
            return Ok(None);
        }
        writer.finish().map(Some)
    }
}

/// Files as inputs.
pub(super) fn merge_of(files: &[Arc<Sst>], bottom: bool, collect: bool) -> Inputs<'_> {
    Inputs {
        sources: Sources {
            memtables: Vec::new(),
            files,
            sequence: u64::MAX,
        },
        bottom,
        collect,
    }
}

enum Kept {
    AsItIs,
    Tombstone,
    Nothing,
}

/// What a merge keeps of an entry. Where older files remain, a tombstone stays in the place of what was collected: what it
/// overwrote there must not show again should the rule be loosened.
fn kept(verdict: Verdict, bottom: bool) -> Kept {
    match verdict {
        Verdict::Visible => Kept::AsItIs,
        Verdict::Tombstone | Verdict::Collected if !bottom => Kept::Tombstone,
        Verdict::Tombstone | Verdict::Collected | Verdict::Hidden | Verdict::RowsDeleted => {
            Kept::Nothing
        }
    }
}

/// Writes the entry that the merge stands at.
fn copy(cells: &MergeCursor, writer: &mut SstWriter) -> Result<()> {
    let (Some(key), Some(stored)) = (cells.key(), cells.stored()) else {
        return Ok(());
    };
    match stored.kind {
        Kind::Tombstone => writer.push_tombstone(key),
        Kind::Plain => writer.push_value(key, stored.bytes),
        Kind::Packed => writer.push_value(key, &cells.value(None)?),
        Kind::Large => {
            let sst = cells.large().ok_or_else(damaged)?;
            let (length, mut chunks) = sst.chunks()?;
            writer.push_large(key, length, &mut chunks)
        }
    }
}

/// Writes the wider deletes of all sources.
fn copy_deletes(sources: &Sources<'_>, writer: &mut SstWriter) -> Result<()> {
    if let Some(mut wide) = sources.wide(ALL, false)? {
        wide.seek(&[])?;
        while let (Some(key), Some(stored)) = (wide.key(), wide.stored()) {
            let delete = WideDelete::decode(key, stored)
                .ok_or_else(|| Error::Corrupt("a stored delete is damaged".to_owned()))?;
            writer.push_wide(key, &delete)?;
            wide.next()?;
        }
    }
    let mut ranges: Vec<RangeDelete> = Vec::new();
    for memtable in &sources.memtables {
        memtable.ranges(u64::MAX, |_| true, &mut ranges);
    }
    for file in sources.files {
        ranges.extend_from_slice(file.ranges.pieces());
    }
    writer.set_ranges(RangeSet::new(&ranges));
    Ok(())
}

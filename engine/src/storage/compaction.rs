//! Which of a family's SSTs to merge: a pure choice.
//!
//! A hybrid of tiered and leveled: the oldest file is the base and holds nearly everything; the younger files over it are
//! merged with each other in tiers, files of similar size at a time, and all together into the base once they hold a share
//! of it. So a read looks into few files, a byte is rewritten a bounded number of times, and what is overwritten or deleted
//! takes a bounded part of the disk. `simulation` compares it with others; the figures are in docs/architecture.md.
//!
//! **Invariants** (`tests`): pure; the files chosen are a run without gaps, so that age order stays order; performing choices
//! until there are none comes to an end, with at most [`MAX_FILES`] files; no list is left as it was, so none is chosen twice.

use std::ops::Range;

use tablemount_api::{GcRule, Timestamp};

use super::sst::FileMeta;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

/// A family has at most so many files once its compactions are done.
pub(crate) const MAX_FILES: usize = 12;

/// What a choice depends on.
#[derive(Debug, Clone, Copy)]
struct Shape {
    /// Young files of similar size that are merged with each other.
    tier_files: usize,
    /// A tier grows over an older file of up to this many times what its newer files hold.
    similar: u64,
    /// The young files go into the base once they hold one part in this many of it.
    base_parts: u64,
    /// … and are at least so many.
    min_young: usize,
    max_files: usize,
}

const SHAPE: Shape = Shape {
    tier_files: 4,
    similar: 2,
    base_parts: 3,
    min_young: 3,
    max_files: MAX_FILES,
};

/// Once one entry in this many of the oldest files is dead, they are merged.
const DEAD_PART: u64 = 4;

/// A file, as far as the choice is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FileFacts {
    pub(crate) bytes: u64,
    /// Cells, tombstones and wider deletes.
    pub(crate) entries: u64,
    /// Of them those that a merge with all older files leaves out: deletes, and, estimated, what an age rule collects.
    pub(crate) dead: u64,
    /// An age rule collects each cell of it, whatever else there is.
    pub(crate) expired: bool,
}

impl FileFacts {
    /// Of a file of a family with this rule; `now`: less the grace that compactions give.
    pub(crate) fn of(meta: &FileMeta, rule: &GcRule, now: Timestamp) -> Self {
        let properties = &meta.properties;
        let apart = properties
            .wide_deletes
            .saturating_add(properties.range_deletes);
        let deletes = apart.saturating_add(properties.tombstones);
        let times = (properties.min_timestamp, properties.max_timestamp);
        let (past, expired) = past_age(properties.entries, times, rule, now);
        let entries = properties.entries.saturating_add(apart);
        Self {
            bytes: meta.bytes,
            entries,
            dead: deletes.saturating_add(past).min(entries),
            expired,
        }
    }
}

/// Of `cells` entries whose timestamps lie evenly between the bounds: how many an age rule collects, and whether it is all.
fn past_age(
    cells: u64,
    (min, max): (Timestamp, Timestamp),
    rule: &GcRule,
    now: Timestamp,
) -> (u64, bool) {
    if cells == 0 || !rule.collects(0, min, now) {
        return (0, false);
    }
    if rule.collects(0, max, now) {
        return (cells, true);
    }
    // The newest that the rule collects lies between.
    let (mut collected, mut kept) = (i128::from(min.0), i128::from(max.0));
    while kept - collected > 1 {
        let middle = (collected + kept).div_euclid(2);
        match rule.collects(0, Timestamp(middle as i64), now) {
            true => collected = middle,
            false => kept = middle,
        }
    }
    let (past, span) = (
        kept - i128::from(min.0),
        i128::from(max.0) - i128::from(min.0),
    );
    (
        u64::try_from(i128::from(cells) * past / span).unwrap_or(cells),
        false,
    )
}

/// Why files are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// They are the oldest, and all in them is past the age rule: nothing is left of them.
    Expired,
    /// They are the oldest, and much of what they hold is deletes or past the age rule.
    Dead,
    /// The young files hold a share of the base.
    Base,
    /// Files of similar size.
    Tier,
    /// There are too many.
    Files,
}

/// The files to merge, by their place. If the oldest is among them, tombstones and wider deletes need not be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) files: Range<usize>,
    pub(crate) reason: Reason,
}

impl Choice {
    fn some(files: Range<usize>, reason: Reason) -> Option<Self> {
        Some(Self { files, reason })
    }
}

/// Chooses among all of a family's files, oldest first.
pub(crate) fn choose(files: &[FileFacts]) -> Option<Choice> {
    choose_by(&SHAPE, files)
}

/// Chooses among files that are younger than one which is being merged: the places are theirs.
pub(crate) fn choose_young(files: &[FileFacts]) -> Option<Choice> {
    tier(&SHAPE, files, 0)
}

/// Chooses while the store is held, so that a merge frees nothing: only what keeps the number of files bounded.
pub(crate) fn choose_held(files: &[FileFacts]) -> Option<Choice> {
    too_many(&SHAPE, files)
}

fn choose_by(shape: &Shape, files: &[FileFacts]) -> Option<Choice> {
    expired(files)
        .or_else(|| dead(files))
        .or_else(|| base(shape, files))
        .or_else(|| tier(shape, files, 1))
        .or_else(|| too_many(shape, files))
}

fn sum(files: &[FileFacts], of: impl Fn(&FileFacts) -> u64) -> u64 {
    files
        .iter()
        .fold(0, |sum, file| sum.saturating_add(of(file)))
}

fn expired(files: &[FileFacts]) -> Option<Choice> {
    match files.iter().take_while(|file| file.expired).count() {
        0 => None,
        count => Choice::some(0..count, Reason::Expired),
    }
}

/// The longest run of oldest files of which enough is dead: what goes pays for what is rewritten.
fn dead(files: &[FileFacts]) -> Option<Choice> {
    let enough = |count: &usize| {
        let (entries, dead) = (
            sum(&files[..*count], |file| file.entries),
            sum(&files[..*count], |file| file.dead),
        );
        dead > 0 && dead.saturating_mul(DEAD_PART) >= entries
    };
    let count = (1..=files.len()).rev().find(enough)?;
    Choice::some(0..count, Reason::Dead)
}

fn base(shape: &Shape, files: &[FileFacts]) -> Option<Choice> {
    let (base, young) = files.split_first()?;
    let young_bytes = sum(young, |file| file.bytes);
    (young.len() >= shape.min_young && young_bytes.saturating_mul(shape.base_parts) >= base.bytes)
        .then_some(Choice {
            files: 0..files.len(),
            reason: Reason::Base,
        })
}

/// The youngest run of files of similar size that is long enough, from place `from` on.
fn tier(shape: &Shape, files: &[FileFacts], from: usize) -> Option<Choice> {
    let run = |end: usize| {
        let mut start = end - 1;
        let mut total = files[start].bytes;
        while start > from && files[start - 1].bytes <= total.saturating_mul(shape.similar) {
            start -= 1;
            total = total.saturating_add(files[start].bytes);
        }
        (end - start >= shape.tier_files).then_some(start..end)
    };
    let files = (from + 1..=files.len()).rev().find_map(run)?;
    Choice::some(files, Reason::Tier)
}

/// The cheapest run that brings the number of files down to what is allowed.
fn too_many(shape: &Shape, files: &[FileFacts]) -> Option<Choice> {
    let over = files
        .len()
        .checked_sub(shape.max_files)
        .filter(|over| *over > 0)?;
    let length = (over + 1).max(shape.tier_files).min(files.len());
    let cost = |start: &usize| sum(&files[*start..start + length], |file| file.bytes);
    let start = (0..=files.len() - length).min_by_key(cost)?;
    Choice::some(start..start + length, Reason::Files)
}

/// The files after a choice was performed, as far as that can be told beforehand: nothing is overwritten.
pub(crate) fn performed(files: &[FileFacts], choice: &Choice) -> Vec<FileFacts> {
    let chosen = &files[choice.files.clone()];
    let (bytes, entries, dead) = (
        sum(chosen, |file| file.bytes),
        sum(chosen, |file| file.entries),
        sum(chosen, |file| file.dead),
    );
    let merged = match choice.files.start {
        0 => FileFacts {
            // Of bytes as large a part goes as of entries.
            bytes: scaled(bytes, entries.saturating_sub(dead), entries),
            entries: entries.saturating_sub(dead),
            ..FileFacts::default()
        },
        _ => FileFacts {
            bytes,
            entries,
            dead,
            expired: false,
        },
    };
    let merged = (merged.entries > 0 && choice.reason != Reason::Expired).then_some(merged);
    let (before, after) = (&files[..choice.files.start], &files[choice.files.end..]);
    before
        .iter()
        .copied()
        .chain(merged)
        .chain(after.iter().copied())
        .collect()
}

/// `bytes` × `part` ÷ `whole`.
fn scaled(bytes: u64, part: u64, whole: u64) -> u64 {
    let scaled = u128::from(bytes) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(scaled).unwrap_or(bytes)
}

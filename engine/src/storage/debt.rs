//! What compactions owe and cost: figures of families and tablets for statistics and metrics.
//!
//! **Invariants**: debt is what [`choose`] would write until it chooses nothing more, so it is zero exactly when there is
//! nothing to do; amplification counts bytes of SSTs since the start.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tablemount_api::{FamilyInfo, Timestamp};

use super::compaction::{FileFacts, choose, performed};
use super::ranges::RangeDelete;
use super::rewrite::AGE_GRACE_MICROS;
use super::sst::Sst;
use super::store::Store;
use super::table::Table;
use super::tablet::Tablet;

/// Range deletes of a file that are looked at to learn what they hide.
const MAX_PIECES: usize = 64;

/// Bytes of SSTs written for one family of a tablet since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Written {
    pub(crate) flushed: u64,
    pub(crate) compacted: u64,
}

/// By family id.
#[derive(Debug, Default)]
pub(crate) struct WrittenBytes(Mutex<BTreeMap<u64, Written>>);

impl WrittenBytes {
    pub(crate) fn add(&self, family: u64, flushed: u64, compacted: u64) {
        let mut families = self.0.lock();
        let written = families.entry(family).or_default();
        written.flushed += flushed;
        written.compacted += compacted;
    }

    fn of(&self, family: u64) -> Written {
        self.0.lock().get(&family).copied().unwrap_or_default()
    }
}

/// A family in one tablet, or summed over several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Debt {
    /// Bytes that compactions still have to write to reach the shape they aim at; an estimate, since nothing is read.
    pub(crate) debt_bytes: u64,
    /// Files that a read may have to look into, at the most: of one family in one tablet.
    pub(crate) read_files: u64,
    /// Bytes of SSTs, and of the largest of each family and tablet.
    pub(crate) bytes: u64,
    pub(crate) base_bytes: u64,
    pub(crate) written: Written,
}

impl Debt {
    /// With another's.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            debt_bytes: self.debt_bytes + other.debt_bytes,
            read_files: self.read_files.max(other.read_files),
            bytes: self.bytes + other.bytes,
            base_bytes: self.base_bytes + other.base_bytes,
            written: Written {
                flushed: self.written.flushed + other.written.flushed,
                compacted: self.written.compacted + other.written.compacted,
            },
        }
    }

    /// Bytes written by flushes and compactions for each byte flushed, since the start; 1 before the first flush.
    pub(crate) fn write_amplification(&self) -> f64 {
        let Written { flushed, compacted } = self.written;
        match flushed {
            0 => 1.0,
            flushed => (flushed + compacted) as f64 / flushed as f64,
        }
    }

    /// Bytes on disk for each byte of the largest file: about what a full compaction would leave. 1 if there is nothing.
    pub(crate) fn space_amplification_estimate(&self) -> f64 {
        match self.base_bytes {
            0 => 1.0,
            base => self.bytes as f64 / base as f64,
        }
    }
}

/// What is known of files without reading them; `now`: the time, from which compactions' grace is taken off here.
pub(super) fn facts(files: &[Arc<Sst>], family: &FamilyInfo, now: Timestamp) -> Vec<FileFacts> {
    let now = Timestamp(now.0.saturating_sub(AGE_GRACE_MICROS));
    let of = |(i, file): (usize, &Arc<Sst>)| {
        let mut facts = FileFacts::of(&file.meta, &family.schema.gc_rule, now);
        if files[i + 1..]
            .iter()
            .any(|younger| deletes_all(younger, file))
        {
            facts.dead = facts.entries;
        }
        facts
    };
    files.iter().enumerate().map(of).collect()
}

/// Whether a range delete of `younger` hides all of `file`.
fn deletes_all(younger: &Sst, file: &Sst) -> bool {
    let of = &file.meta.properties;
    let hides = |delete: &RangeDelete| {
        delete.covers(&of.min_key.0)
            && delete.covers(&of.max_key.0)
            && delete.sequence > of.max_sequence
    };
    younger.ranges.pieces().iter().take(MAX_PIECES).any(hides)
}

/// Bytes that choices write until there are none.
pub(super) fn debt_bytes(mut files: Vec<FileFacts>) -> u64 {
    let mut bytes = 0_u64;
    while let Some(choice) = choose(&files) {
        let after = performed(&files, &choice);
        // What is not among the files before is the one merged.
        let outside = files.len() - choice.files.len();
        if after.len() > outside {
            bytes = bytes.saturating_add(after[choice.files.start].bytes);
        }
        files = after;
    }
    bytes
}

impl Tablet {
    /// A family's figures.
    pub(crate) fn family_debt(&self, family: &FamilyInfo, now: Timestamp) -> Debt {
        let state = self.state();
        let files = state.files.get(&family.id).map(Vec::as_slice);
        let files = files.unwrap_or_default();
        let bytes = || files.iter().map(|file| file.meta.bytes);
        Debt {
            debt_bytes: debt_bytes(facts(files, family, now)),
            read_files: files.len() as u64,
            bytes: bytes().sum(),
            base_bytes: bytes().max().unwrap_or(0),
            written: self.written.of(family.id),
        }
    }

    /// All families' figures.
    pub(crate) fn debt(&self, families: &[FamilyInfo], now: Timestamp) -> Debt {
        let each = families.iter().map(|family| self.family_debt(family, now));
        each.fold(Debt::default(), Debt::plus)
    }
}

impl Table {
    /// A family's figures over all tablets.
    pub(crate) fn family_debt(&self, family: &FamilyInfo, now: Timestamp) -> Debt {
        let each = self
            .tablets
            .iter()
            .map(|tablet| tablet.family_debt(family, now));
        each.fold(Debt::default(), Debt::plus)
    }
}

impl Store {
    /// The whole store's figures.
    pub(crate) fn debt(&self) -> Debt {
        let now = self.clock.now();
        self.tablets()
            .iter()
            .map(|(table, tablet)| tablet.debt(&table.schema().record.families, now))
            .fold(Debt::default(), Debt::plus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debt_is_what_choices_would_write() {
        let check = |bytes: &[u64], expected: u64| {
            let file = |bytes: &u64| FileFacts {
                bytes: *bytes,
                entries: *bytes,
                ..FileFacts::default()
            };
            let files = bytes.iter().map(file).collect();
            assert_eq!(debt_bytes(files), expected, "{bytes:?}");
        };
        check(&[], 0);
        check(&[100, 10, 10], 0);
        check(&[100, 10, 10, 20], 140);
        check(&[1000, 10, 10, 10, 10], 40);
        check(&[1000, 280, 10, 10, 10, 10], 40);
        check(&[1000, 300, 10, 10, 10, 10], 1340);

        let dead = FileFacts {
            bytes: 100,
            entries: 10,
            dead: 4,
            expired: false,
        };
        assert_eq!(debt_bytes(vec![dead]), 60);
        let expired = FileFacts {
            expired: true,
            ..dead
        };
        assert_eq!(debt_bytes(vec![expired]), 0, "nothing is written");
    }

    #[test]
    fn amplification_is_a_ratio_of_what_was_written() {
        let written = WrittenBytes::default();
        let debt = |written: &WrittenBytes| Debt {
            bytes: 150,
            base_bytes: 100,
            written: written.of(1),
            ..Debt::default()
        };
        assert_eq!(debt(&written).write_amplification(), 1.0);
        written.add(1, 100, 0);
        written.add(1, 0, 150);
        written.add(2, 7, 7);
        assert_eq!(debt(&written).write_amplification(), 2.5);
        assert_eq!(debt(&written).space_amplification_estimate(), 1.5);
        assert_eq!(Debt::default().space_amplification_estimate(), 1.0);
        let both = debt(&written).plus(debt(&written));
        assert_eq!((both.bytes, both.written.flushed), (300, 200));
    }
}

//! Checking an SST: what it is built of, and that it holds what its properties and the manifest say.
//!
//! **Invariants**: a block at a time; damage in one does not end the check of the others. What cannot be known any more because
//! of damage is not reported besides.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use tablemount_api::{Base64, BloomFilter};

use super::Rows;
use crate::storage::cache::Shared;
use crate::storage::entry::{Kind, Large, Packed, Stored};
use crate::storage::keys;
use crate::storage::ranges::RangeSet;
use crate::storage::sst::reader::{
    Cause, Fault, NOT_THE_MANIFESTS, RANGES_OVERLAP, Reader, SECTION_MISSING,
};
use crate::storage::sst::walk::{Event, walk};
use crate::storage::sst::{FOOTER, FileMeta, Handle, Properties, bloom};
use crate::storage::wide::{self, WideDelete};

/// What a check of a file came to.
pub(super) enum Checked {
    /// There is no such file, or no more.
    Gone,
    Here {
        blocks: u64,
        entries: u64,
    },
}

/// The file went away.
struct Gone;

/// Takes what is wrong, and where.
type Tell<'a> = &'a mut dyn FnMut(Option<u64>, String);

/// Checks a file of a tablet.
pub(super) fn check(shared: &Arc<Shared>, meta: &FileMeta, rows: &Rows, tell: Tell<'_>) -> Checked {
    let reader = Reader::new(shared, &meta.path, meta.bytes);
    let mut check = Check {
        reader: &reader,
        rows,
        tell,
        found: Properties::empty(meta.properties.bloom_filter),
        blocks: 0,
        bytes: FOOTER as u64,
        sound: true,
        filter: None,
        row: Vec::new(),
        column: Vec::new(),
        fresh: true,
        last_key: Vec::new(),
        block: Handle::default(),
        told: BTreeSet::new(),
    };
    let checked = check.file(meta);
    let entries = check.found.entries + check.found.wide_deletes;
    let blocks = check.blocks;
    reader.close();
    match checked {
        Ok(()) => Checked::Here { blocks, entries },
        Err(Gone) => Checked::Gone,
    }
}

struct Check<'a> {
    reader: &'a Reader<'a>,
    rows: &'a Rows,
    tell: Tell<'a>,
    /// What the properties should be.
    found: Properties,
    blocks: u64,
    /// Bytes of the file that are accounted for.
    bytes: u64,
    /// Whether nothing was damaged: else not all can be counted.
    sound: bool,
    /// The present partition's filter and its place.
    filter: Option<(Handle, Bytes)>,
    /// Row and column of the entry before, and whether that was in another partition.
    row: Vec<u8>,
    column: Vec<u8>,
    fresh: bool,
    last_key: Vec<u8>,
    block: Handle,
    /// What was told of the present block or partition.
    told: BTreeSet<(u64, &'static str)>,
}

impl Check<'_> {
    fn file(&mut self, meta: &FileMeta) -> Result<(), Gone> {
        let [cells, wide, ranges, place] = match self.reader.footer() {
            Ok(handles) => handles,
            Err(fault) => return self.fault(fault),
        };
        let said = match self.reader.properties(place) {
            Ok(stored) => stored,
            Err(fault) => {
                self.fault(fault)?;
                meta.properties.clone()
            }
        };
        if said != meta.properties {
            (self.tell)(Some(place.offset), NOT_THE_MANIFESTS.to_owned());
        }
        let holds = [
            (said.entries > 0, cells),
            (said.wide_deletes > 0, wide),
            (said.range_deletes > 0, ranges),
        ];
        if holds.iter().any(|(some, top)| *some != (top.length > 0)) {
            (self.tell)(Some(place.offset), SECTION_MISSING.to_owned());
        }
        self.found.bloom_filter = said.bloom_filter;
        self.count(place);
        self.cells(cells)?;
        self.wide(wide)?;
        self.ranges(ranges)?;
        if self.sound {
            self.compare(&said, place);
        }
        Ok(())
    }

    fn cells(&mut self, top: Handle) -> Result<(), Gone> {
        if top.length == 0 {
            return Ok(());
        }
        self.count(top);
        let reader = self.reader;
        walk(reader, top, &mut |event| match event {
            Event::Entry { key, stored } => self.cell(key, stored),
            other => self.frame(&other),
        })?;
        self.filter = None;
        self.found.max_key = copy(&self.last_key);
        self.last_key.clear();
        Ok(())
    }

    fn wide(&mut self, top: Handle) -> Result<(), Gone> {
        if top.length == 0 {
            return Ok(());
        }
        self.count(top);
        let reader = self.reader;
        walk(reader, top, &mut |event| match event {
            Event::Entry { key, stored } => {
                self.wide_delete(key, stored);
                Ok(())
            }
            other => self.frame(&other),
        })?;
        self.found.max_wide_key = copy(&self.last_key);
        Ok(())
    }

    /// What is the same in both sections.
    fn frame(&mut self, event: &Event<'_>) -> Result<(), Gone> {
        match event {
            Event::Partition { handle, filter, .. } => {
                self.count(*handle);
                self.told.clear();
                self.load_filter(*filter)
            }
            Event::Block { handle, .. } => {
                self.count(*handle);
                self.block = *handle;
                self.told.clear();
                Ok(())
            }
            Event::Damage(fault) => self.fault(fault.clone()),
            Event::Entry { .. } => Ok(()),
        }
    }

    fn load_filter(&mut self, handle: Handle) -> Result<(), Gone> {
        self.filter = None;
        // What began before is to be in this partition's filter too.
        self.fresh = true;
        if handle.length == 0 {
            return Ok(());
        }
        self.count(handle);
        match self.reader.block(handle) {
            Ok(filter) => {
                if filter.is_empty() || !filter.len().is_multiple_of(bloom::LINE) {
                    self.once(handle.offset, "a filter has a broken length");
                }
                self.filter = Some((handle, filter));
                Ok(())
            }
            Err(fault) => self.fault(fault),
        }
    }

    fn cell(&mut self, key: &[u8], stored: Stored<'_>) -> Result<(), Gone> {
        let at = self.block.offset;
        let Some(parts) = keys::parse(key).filter(has_one_qualifier) else {
            self.sound = false;
            self.once(at, "a key is none");
            return Ok(());
        };
        if !self.rows.hold(parts.row) {
            self.once(at, "a row is not of this tablet");
        }
        self.names(&parts);
        let Some(length) = self.value(stored)? else {
            return Ok(());
        };
        let found = &mut self.found;
        if found.entries == 0 {
            found.min_key = copy(key);
        }
        found.entries += 1;
        found.tombstones += u64::from(stored.is_tombstone());
        found.raw_bytes += key.len() as u64 + length;
        found.min_timestamp = found.min_timestamp.min(parts.timestamp);
        found.max_timestamp = found.max_timestamp.max(parts.timestamp);
        found.saw_sequence(parts.sequence);
        found.max_cell_sequence = found.max_cell_sequence.max(parts.sequence);
        replace(&mut self.last_key, key);
        Ok(())
    }

    /// Counts rows and columns, and looks for them in the filter.
    fn names(&mut self, parts: &keys::Parts<'_>) {
        let bloom_filter = self.found.bloom_filter;
        let fresh = std::mem::take(&mut self.fresh);
        let (row, column) = (self.row != parts.row, self.column != parts.column);
        if row {
            self.found.rows += 1;
            replace(&mut self.row, parts.row);
        }
        if column {
            self.found.columns += 1;
            replace(&mut self.column, parts.column);
        }
        if (row || fresh) && bloom_filter != BloomFilter::None {
            self.probe(parts.row, "a row is not in its filter");
        }
        if (column || fresh) && bloom_filter == BloomFilter::RowColumn {
            self.probe(parts.column, "a column is not in its filter");
        }
    }

    fn probe(&mut self, name: &[u8], what: &'static str) {
        if let Some((handle, filter)) = &self.filter
            && !bloom::may_hold(filter, bloom::hash(name))
        {
            let at = handle.offset;
            self.once(at, what);
        }
    }

    /// The value's length, all of it checked; `None`: damaged.
    fn value(&mut self, stored: Stored<'_>) -> Result<Option<u64>, Gone> {
        let at = self.block.offset;
        match stored.kind {
            Kind::Plain => return Ok(Some(stored.bytes.len() as u64)),
            Kind::Tombstone if stored.bytes.is_empty() => return Ok(Some(0)),
            Kind::Tombstone => {}
            Kind::Packed => {
                let packed = Packed::decode(stored.bytes);
                let value = packed.and_then(|packed| packed.open());
                if let Some(value) = value {
                    return Ok(Some(value.len() as u64));
                }
            }
            Kind::Large => {
                if let Some(large) = Large::decode(stored.bytes) {
                    return self.chunks(&large);
                }
            }
        }
        self.sound = false;
        self.once(at, "a value is damaged");
        Ok(None)
    }

    fn chunks(&mut self, large: &Large<'_>) -> Result<Option<u64>, Gone> {
        let mut rest = large.length;
        for place in large.chunks() {
            match self.reader.chunk(place, rest) {
                Ok(chunk) => rest -= chunk.len() as u64,
                Err(fault) => {
                    self.fault(fault)?;
                    return Ok(None);
                }
            }
            let (offset, length) = place;
            self.count(Handle { offset, length });
        }
        Ok(Some(large.length))
    }

    fn wide_delete(&mut self, key: &[u8], stored: Stored<'_>) {
        let at = self.block.offset;
        let sound = stored.kind == Kind::Plain && stored.bytes.len() == 16;
        let (Some((row, _)), Some(delete), true) =
            (wide::parse(key), WideDelete::decode(key, stored), sound)
        else {
            self.sound = false;
            return self.once(at, "a wider delete is none");
        };
        if !self.rows.hold(row) {
            self.once(at, "a row is not of this tablet");
        }
        let found = &mut self.found;
        if found.wide_deletes == 0 {
            found.min_wide_key = copy(key);
        }
        found.wide_deletes += 1;
        found.saw_sequence(delete.sequence);
        replace(&mut self.last_key, key);
    }

    fn ranges(&mut self, place: Handle) -> Result<(), Gone> {
        let deletes = match self.reader.range_deletes(place) {
            Ok(deletes) => deletes,
            Err(fault) => return self.fault(fault),
        };
        self.bytes += u64::from(place.length);
        self.blocks += u64::from(place.length > 0);
        if RangeSet::of_pieces(deletes.clone()).is_none() {
            self.once(place.offset, RANGES_OVERLAP);
        }
        let inside = deletes.iter().all(|delete| {
            let to = (delete.to.as_ref(), self.rows.to.as_ref());
            // No row is empty, so one may begin there.
            let from = self.rows.from <= delete.from;
            from && to.1.is_none_or(|end| to.0.is_some_and(|to| to <= end))
        });
        if !inside {
            self.once(place.offset, "a range delete is not of this tablet");
        }
        self.found.range_deletes = deletes.len() as u64;
        for delete in &deletes {
            self.found.saw_sequence(delete.sequence);
        }
        Ok(())
    }

    /// Tells where the properties say something else than what is there, and what bytes belong to nothing.
    fn compare(&mut self, said: &Properties, place: Handle) {
        let fields = |properties: &Properties| serde_json::to_value(properties).unwrap_or_default();
        let (said, found) = (fields(said), fields(&self.found));
        let (Some(said), Some(found)) = (said.as_object(), found.as_object()) else {
            return;
        };
        for (name, is) in found {
            if let Some(said) = said.get(name).filter(|said| *said != is) {
                let what = format!("properties say {name} {said}; it is {is}");
                (self.tell)(Some(place.offset), what);
            }
        }
        if self.bytes != self.reader.bytes() {
            let what = format!(
                "{} of {} bytes belong to its blocks",
                self.bytes,
                self.reader.bytes()
            );
            (self.tell)(None, what);
        }
    }

    fn count(&mut self, handle: Handle) {
        self.blocks += 1;
        self.bytes += u64::from(handle.length);
    }

    /// Tells what is wrong in a block, once.
    fn once(&mut self, offset: u64, what: &'static str) {
        if self.told.insert((offset, what)) {
            (self.tell)(Some(offset), what.to_owned());
        }
    }

    fn fault(&mut self, fault: Fault) -> Result<(), Gone> {
        if fault.cause == Cause::Missing {
            return Err(Gone);
        }
        self.sound = false;
        (self.tell)(fault.offset, fault.what);
        Ok(())
    }
}

fn has_one_qualifier(parts: &keys::Parts<'_>) -> bool {
    let qualifier = &parts.column[parts.row.len()..];
    keys::first(qualifier).is_some_and(|first| first.len() == qualifier.len())
}

fn replace(old: &mut Vec<u8>, new: &[u8]) {
    old.clear();
    old.extend_from_slice(new);
}

fn copy(key: &[u8]) -> Base64 {
    Base64(Bytes::copy_from_slice(key))
}

//! Read-modify-write of one row, while its lock is held exclusively.
//!
//! Each mutation sees the results of those before it: they are applied to scratch memtables in front of the row's state.
//!
//! **Invariants**: what is returned are results (puts and deletes), never operations. A delete limited to timestamps also deletes
//! every version below the oldest that the GC rule shows at that moment, so collected versions never come back, whether or not a
//! compaction ran.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use tablemount_api::{
    Base64, Cell, CellCheck, FamilyInfo, FamilyName, Mutation, Qualifier, ReadRequest, Timestamp,
    name,
};

use crate::read::scan::{self, Visitor};
use crate::storage::judge::Judge;
use crate::storage::keys;
use crate::storage::log::{Entry, Op, Record};
use crate::storage::sources::Wanted;
use crate::storage::table::Schema;
use crate::storage::tablet::TabletState;
use crate::storage::visible::{FamilyCursor, VisibleCell};
use crate::write::{MAX_ROW_BYTES, check_value, mutation_reads, push_plain};
use crate::{Error, Result};

/// How long one row's update may read.
const PATIENCE: Duration = Duration::from_secs(10);
/// Sequence numbers of scratch entries: above all real ones.
const SCRATCH: u64 = 1 << 62;

/// One row's update under way.
pub(crate) struct RowUpdate<'a> {
    state: TabletState,
    schema: &'a Schema,
    row: &'a Bytes,
    encoded: Vec<u8>,
    timestamp: Timestamp,
    now: Timestamp,
    entries: Vec<Entry>,
    cells: Vec<Cell>,
    bytes: usize,
    until: Instant,
}

impl<'a> RowUpdate<'a> {
    pub(crate) fn new(
        state: Arc<TabletState>,
        schema: &'a Schema,
        row: &'a Bytes,
        timestamp: Timestamp,
        now: Timestamp,
    ) -> Self {
        let mut state = TabletState::clone(&state);
        let active = std::mem::take(&mut state.active);
        state.frozen.push((active, u64::MAX));
        Self {
            state,
            schema,
            row,
            encoded: keys::row(row),
            timestamp,
            now,
            entries: Vec::new(),
            cells: Vec::new(),
            bytes: 0,
            until: Instant::now() + PATIENCE,
        }
    }

    /// Whether the check holds.
    pub(crate) fn holds(&self, check: &CellCheck) -> Result<bool> {
        let newest = self.newest(self.schema.family(&check.family)?, &check.qualifier)?;
        Ok(newest.map(|cell| cell.value) == check.value.as_ref().map(|value| value.0.clone()))
    }

    /// Visits the row's cells as the updates before left them, inside the request's bounds.
    pub(crate) fn visit(&self, request: &ReadRequest, visitor: &mut impl Visitor) -> Result<()> {
        let times = (self.now, self.until);
        scan::visit_written(
            &self.state,
            request,
            self.schema,
            &self.encoded,
            times,
            visitor,
        )
    }

    /// Applies a mutation.
    pub(crate) fn apply(&mut self, mutation: &Mutation) -> Result<()> {
        let before = self.entries.len();
        match mutation {
            Mutation::Increment {
                family,
                qualifier,
                by,
            } => self.increment(family, qualifier, *by)?,
            Mutation::Append {
                family,
                qualifier,
                value,
            } => self.append(family, qualifier, &value.0)?,
            Mutation::Merge {
                family,
                qualifier,
                timestamp,
                value,
            } => self.merge(
                family,
                qualifier,
                timestamp.unwrap_or(self.timestamp),
                &value.0,
            )?,
            _ => {
                if mutation_reads(self.schema, mutation) {
                    self.fence(mutation)?;
                }
                push_plain(
                    self.schema,
                    mutation.clone(),
                    self.timestamp,
                    &mut self.entries,
                )?;
            }
        }
        self.bytes += self.entries[before..]
            .iter()
            .map(Entry::bytes)
            .sum::<usize>();
        if self.bytes > MAX_ROW_BYTES {
            let bytes = self.bytes;
            return Err(Error::TooLarge(format!(
                "the mutations come to {bytes} bytes; limit is {MAX_ROW_BYTES}"
            )));
        }
        self.state.active.apply(&Record {
            tablet: 0,
            first_sequence: SCRATCH + before as u64,
            server_timestamp: Timestamp::MIN,
            row: self.row.clone(),
            entries: self.entries[before..].to_vec(),
        });
        Ok(())
    }

    /// What to log, and the cells that increments and appends wrote.
    pub(crate) fn finish(self) -> (Vec<Entry>, Vec<Cell>) {
        (self.entries, self.cells)
    }

    fn increment(&mut self, family: &FamilyName, qualifier: &Qualifier, by: i64) -> Result<()> {
        let info = self.schema.family(family)?;
        let old = self.newest(info, qualifier)?;
        let number = match &old {
            None => 0,
            Some(cell) => i64::from_be_bytes(cell.value.as_ref().try_into().map_err(|_| {
                Error::Invalid(format!(
                    "column {family}:{}: increment of a value of {} bytes; it takes 8",
                    name::encode(qualifier.bytes()),
                    cell.value.len()
                ))
            })?),
        };
        let value = Bytes::copy_from_slice(&number.wrapping_add(by).to_be_bytes());
        self.put(info.id, family, qualifier, old, value);
        Ok(())
    }

    fn append(&mut self, family: &FamilyName, qualifier: &Qualifier, tail: &[u8]) -> Result<()> {
        let info = self.schema.family(family)?;
        let old = self.newest(info, qualifier)?;
        let head = old
            .as_ref()
            .map(|cell| cell.value.clone())
            .unwrap_or_default();
        check_value(
            self.schema.record.name.as_str(),
            info,
            head.len() + tail.len(),
        )?;
        let mut value = BytesMut::with_capacity(head.len() + tail.len());
        value.extend_from_slice(&head);
        value.extend_from_slice(tail);
        self.put(info.id, family, qualifier, old, value.freeze());
        Ok(())
    }

    /// Merges an input into the cell of an aggregate family at the timestamp.
    fn merge(
        &mut self,
        family: &FamilyName,
        qualifier: &Qualifier,
        timestamp: Timestamp,
        input: &[u8],
    ) -> Result<()> {
        let info = self.schema.family(family)?;
        let number = |bytes: &[u8]| {
            let bytes = bytes.try_into().map_err(|_| {
                Error::Invalid(format!(
                    "column {family}:{}: {} bytes are no integer; it has 8",
                    name::encode(qualifier.bytes()),
                    bytes.len()
                ))
            });
            bytes.map(i64::from_be_bytes)
        };
        let mut value = number(input)?;
        let mut cursor = self.cursor(info, qualifier)?;
        while let Some(cell) = cursor.next_cell()?
            && cell.timestamp >= timestamp
        {
            if cell.timestamp == timestamp
                && let Some(aggregate) = info.schema.aggregate
            {
                value = aggregate.merge(number(&cell.value)?, value);
            }
        }
        self.entries.push(Entry {
            family: info.id,
            op: Op::Put {
                qualifier: qualifier.bytes().clone(),
                timestamp,
                value: Bytes::copy_from_slice(&value.to_be_bytes()),
            },
        });
        Ok(())
    }

    /// A put at the server's time, or at the old version's where that is later, so that the result is the newest.
    fn put(
        &mut self,
        id: u64,
        family: &FamilyName,
        qualifier: &Qualifier,
        old: Option<VisibleCell>,
        value: Bytes,
    ) {
        let timestamp = old.map_or(self.timestamp, |cell| cell.timestamp.max(self.timestamp));
        self.cells.push(Cell {
            family: family.clone(),
            qualifier: qualifier.clone(),
            timestamp,
            value: Some(Base64(value.clone())),
            length: None,
        });
        let qualifier = qualifier.bytes().clone();
        self.entries.push(Entry {
            family: id,
            op: Op::Put {
                qualifier,
                timestamp,
                value,
            },
        });
    }

    /// Deletes what the GC rule hides below the versions it shows.
    fn fence(&mut self, mutation: &Mutation) -> Result<()> {
        let (Mutation::DeleteCell {
            family, qualifier, ..
        }
        | Mutation::DeleteColumn {
            family, qualifier, ..
        }) = mutation
        else {
            return Ok(());
        };
        let info = self.schema.family(family)?;
        let mut cursor = self.cursor(info, qualifier)?;
        let mut oldest = None;
        while let Some(cell) = cursor.next_cell()? {
            oldest = Some(cell.timestamp);
        }
        if let Some(below) = oldest.and_then(|oldest| oldest.0.checked_sub(1)) {
            let qualifier = qualifier.bytes().clone();
            let op = Op::DeleteColumn {
                qualifier,
                min: Timestamp::MIN,
                max: Timestamp(below),
            };
            self.entries.push(Entry {
                family: info.id,
                op,
            });
        }
        Ok(())
    }

    fn newest(&self, family: &FamilyInfo, qualifier: &Qualifier) -> Result<Option<VisibleCell>> {
        self.cursor(family, qualifier)?.next_cell()
    }

    /// The visible versions of one column of the row.
    fn cursor(&self, family: &FamilyInfo, qualifier: &Qualifier) -> Result<FamilyCursor> {
        let column = keys::column(&self.encoded, qualifier.bytes());
        let end = keys::above(&column);
        // The lock keeps all other writers off the row, so what is written of it is what was written before.
        let sources = self.state.sources(family.id, u64::MAX);
        let (wanted, keep) = (Wanted::Column(&column), family.schema.block_cache);
        let (merge, _) = sources.cells(wanted, keep)?;
        let deletes = sources.deletes(wanted, keep)?;
        let judge = Judge::new(deletes, family.schema.gc_rule.clone(), self.now);
        let mut cursor = FamilyCursor::new(merge, judge, self.until);
        cursor.seek(&column, Some(&end))?;
        Ok(cursor)
    }
}

//! What mutations do.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use bytes::Bytes;
use tablemount_api::{
    Base64, Cell, CellCheck, FamilyInfo, FamilyName, Mutation, Qualifier, RowKey, RowMutation,
    RowResult, Timestamp, name,
};

use super::{Key, Table};
use crate::{Error, Result};

impl Table {
    pub(super) fn validate(&self, row: &RowMutation) -> Result<()> {
        if !(1..=RowMutation::MAX_MUTATIONS).contains(&row.mutations.len()) {
            return Err(Error::Invalid(format!(
                "row {}: {} mutations; a row has 1 to {}",
                name::encode(row.row.bytes()),
                row.mutations.len(),
                RowMutation::MAX_MUTATIONS
            )));
        }
        if let Some(check) = &row.check {
            self.family(&check.family)?;
        }
        row.mutations
            .iter()
            .try_for_each(|mutation| match mutation {
                Mutation::Put { family, value, .. }
                | Mutation::Append { family, value, .. }
                | Mutation::Merge { family, value, .. } => {
                    self.check_length(self.family(family)?, value.0.len())
                }
                Mutation::DeleteCell { family, .. }
                | Mutation::DeleteColumn { family, .. }
                | Mutation::DeleteFamily { family }
                | Mutation::Increment { family, .. } => self.family(family).map(|_| ()),
                Mutation::DeleteRow {} => Ok(()),
            })
    }

    fn check_length(&self, family: &FamilyInfo, length: usize) -> Result<()> {
        let limit = family.schema.max_value_bytes;
        if length <= limit as usize {
            return Ok(());
        }
        let (table, family) = (&self.info.name, &family.schema.name);
        Err(Error::TooLarge(format!(
            "value of {length} bytes in table \"{table}\", column family \"{family}\"; limit is {limit} (maxValueBytes)"
        )))
    }

    pub(super) fn apply_row(
        &mut self,
        row: &RowMutation,
        given: Timestamp,
        now: Timestamp,
    ) -> Result<RowResult> {
        if let Some(check) = &row.check
            && !self.holds(&row.row, check, now)?
        {
            return Ok(RowResult {
                applied: false,
                cells: Vec::new(),
            });
        }
        let before = self.row(row.row.bytes());
        let mut cells = Vec::new();
        for mutation in &row.mutations {
            match self.apply(row.row.bytes(), mutation, given, now) {
                Ok(cell) => cells.extend(cell),
                Err(error) => {
                    self.remove(|key| key.0 == row.row.bytes(), row.row.bytes());
                    self.cells.extend(before);
                    return Err(error);
                }
            }
        }
        Ok(RowResult {
            applied: true,
            cells,
        })
    }

    fn holds(&self, row: &RowKey, check: &CellCheck, now: Timestamp) -> Result<bool> {
        let newest = self.newest(
            row.bytes(),
            self.family(&check.family)?,
            check.qualifier.bytes(),
            now,
        );
        Ok(newest.map(|(_, value)| value) == check.value.as_ref().map(|value| value.0.clone()))
    }

    fn apply(
        &mut self,
        row: &Bytes,
        mutation: &Mutation,
        given: Timestamp,
        now: Timestamp,
    ) -> Result<Option<Cell>> {
        match mutation {
            Mutation::Put {
                family,
                qualifier,
                timestamp,
                value,
            } => {
                let key = (
                    row.clone(),
                    self.family(family)?.id,
                    qualifier.bytes().clone(),
                );
                self.put(key, timestamp.unwrap_or(given), value.0.clone());
            }
            Mutation::DeleteCell {
                family,
                qualifier,
                timestamp,
            } => {
                self.delete_versions(row, family, qualifier, (*timestamp, *timestamp), now)?;
            }
            Mutation::DeleteColumn {
                family,
                qualifier,
                min_timestamp,
                max_timestamp,
            } => {
                let range = (
                    min_timestamp.unwrap_or(Timestamp::MIN),
                    max_timestamp.unwrap_or(Timestamp::MAX),
                );
                self.delete_versions(row, family, qualifier, range, now)?;
            }
            Mutation::DeleteFamily { family } => {
                let id = self.family(family)?.id;
                self.remove(|key| key.1 == id, row);
            }
            Mutation::DeleteRow {} => self.remove(|_| true, row),
            Mutation::Increment {
                family,
                qualifier,
                by,
            } => {
                let old = self
                    .newest(row, self.family(family)?, qualifier.bytes(), now)
                    .map(|(_, value)| value);
                let old = old.map_or(Ok(0), |value| integer(&value)).map_err(|length| {
                    Error::Precondition(format!(
                        "increment in table \"{}\", row {}, column {}: the value is {length} bytes; an integer has 8",
                        self.info.name,
                        name::encode(row),
                        column_text(family, qualifier.bytes())
                    ))
                })?;
                let value = Bytes::copy_from_slice(&old.wrapping_add(*by).to_be_bytes());
                return self
                    .rewrite(row, family, qualifier, value, (given, now))
                    .map(Some);
            }
            Mutation::Append {
                family,
                qualifier,
                value,
            } => {
                let old = self.newest(row, self.family(family)?, qualifier.bytes(), now);
                let mut joined = old.map(|(_, value)| value.to_vec()).unwrap_or_default();
                joined.extend_from_slice(&value.0);
                return self
                    .rewrite(row, family, qualifier, joined.into(), (given, now))
                    .map(Some);
            }
            Mutation::Merge { .. } => {
                return Err(Error::Invalid("merges are not modelled".to_owned()));
            }
        }
        Ok(None)
    }

    fn put(
        &mut self,
        (row, family, qualifier): (Bytes, u64, Bytes),
        timestamp: Timestamp,
        value: Bytes,
    ) {
        self.cells
            .insert((row, family, qualifier, Reverse(timestamp.0)), value);
    }

    /// Writes what a read-modify-write made, at the server's time or the newest version's, whichever is later.
    fn rewrite(
        &mut self,
        row: &Bytes,
        family: &FamilyName,
        qualifier: &Qualifier,
        value: Bytes,
        (given, now): (Timestamp, Timestamp),
    ) -> Result<Cell> {
        let info = self.family(family)?;
        self.check_length(info, value.len())?;
        let newest = self.newest(row, info, qualifier.bytes(), now);
        let timestamp = newest.map_or(given, |(newest, _)| given.max(newest));
        let key = (row.clone(), info.id, qualifier.bytes().clone());
        self.put(key, timestamp, value.clone());
        let (family, qualifier) = (family.clone(), qualifier.clone());
        Ok(Cell {
            family,
            qualifier,
            timestamp,
            value: Some(Base64(value)),
            length: None,
        })
    }

    /// Deletes a column's versions from `range.0` to `range.1`, and with them those that the GC rule collects at this
    /// moment, so that none of these comes back.
    fn delete_versions(
        &mut self,
        row: &Bytes,
        family: &FamilyName,
        qualifier: &Qualifier,
        range: (Timestamp, Timestamp),
        now: Timestamp,
    ) -> Result<()> {
        let family = self.family(family)?;
        let rule = &family.schema.gc_rule;
        let mut deleted = Vec::new();
        for (newer, (key, _)) in self.column(row, family.id, qualifier.bytes()).enumerate() {
            let timestamp = Timestamp(key.3.0);
            if (range.0..=range.1).contains(&timestamp)
                || rule.collects(newer as u64, timestamp, now)
            {
                deleted.push(key.clone());
            }
        }
        for key in deleted {
            self.cells.remove(&key);
        }
        Ok(())
    }

    fn remove(&mut self, deleted: impl Fn(&Key) -> bool, row: &Bytes) {
        for key in self.row(row).into_keys().filter(deleted) {
            self.cells.remove(&key);
        }
    }

    fn row(&self, row: &Bytes) -> BTreeMap<Key, Bytes> {
        let first = (row.clone(), 0, Bytes::new(), Reverse(i64::MAX));
        let cells = self
            .cells
            .range(first..)
            .take_while(|(key, _)| key.0 == *row);
        cells
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    fn column<'a>(
        &'a self,
        row: &Bytes,
        family: u64,
        qualifier: &Bytes,
    ) -> impl Iterator<Item = (&'a Key, &'a Bytes)> {
        let key = |timestamp| (row.clone(), family, qualifier.clone(), Reverse(timestamp));
        self.cells.range(key(i64::MAX)..=key(i64::MIN))
    }

    fn newest(
        &self,
        row: &Bytes,
        family: &FamilyInfo,
        qualifier: &Bytes,
        now: Timestamp,
    ) -> Option<(Timestamp, Bytes)> {
        let (key, value) = self.column(row, family.id, qualifier).next()?;
        let timestamp = Timestamp(key.3.0);
        (!family.schema.gc_rule.collects(0, timestamp, now)).then(|| (timestamp, value.clone()))
    }
}

fn integer(value: &[u8]) -> std::result::Result<i64, usize> {
    value
        .try_into()
        .map(i64::from_be_bytes)
        .map_err(|_| value.len())
}

fn column_text(family: &FamilyName, qualifier: &[u8]) -> String {
    format!("{family}:{}", name::encode(qualifier))
}

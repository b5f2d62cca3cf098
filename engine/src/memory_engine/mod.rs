//! A table store in a `BTreeMap`: what reads, writes and schema changes mean, without files, threads or clocks.
//!
//! Owns: all tables and their cells, in memory. Time comes in as a parameter. Written to be obviously right, not fast.
//!
//! **Invariants**: cells stand in the order in which reads show them (row, family by creation, qualifier, newest version
//! first); a row's mutations apply in order, all or none; what the GC rule collects is never shown.

mod read;
mod write;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use bytes::Bytes;
use tablemount_api::{
    FamilyInfo, FamilyName, MutateRequest, MutateResponse, Mutation, PutTable, ReadLine,
    ReadRequest, TableInfo, TableName, Timestamp, name,
};

use crate::{Error, Result};

type Key = (Bytes, u64, Bytes, Reverse<i64>);

/// All tables.
#[derive(Default, Clone)]
pub(crate) struct MemoryEngine {
    tables: BTreeMap<TableName, Table>,
    last_id: u64,
    last_timestamp: i64,
}

#[derive(Clone)]
struct Table {
    info: TableInfo,
    cells: BTreeMap<Key, Bytes>,
}

impl MemoryEngine {
    pub(crate) fn put_table(
        &mut self,
        name: &TableName,
        body: PutTable,
        now: Timestamp,
    ) -> Result<TableInfo> {
        body.validate()?;
        check_version(
            name,
            self.tables.get(name).map(|table| table.info.version),
            body.if_version,
        )?;
        let old = self.tables.get(name).map(|table| table.info.clone());
        let new = match &old {
            None => self.created(name, body, now),
            Some(old) => self.changed(old, body)?,
        };
        let table = self.tables.entry(name.clone()).or_insert_with(|| Table {
            info: new.clone(),
            cells: BTreeMap::new(),
        });
        table
            .cells
            .retain(|key, _| new.families.iter().any(|family| family.id == key.1));
        table.info = new.clone();
        Ok(new)
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn created(&mut self, name: &TableName, body: PutTable, now: Timestamp) -> TableInfo {
        let mut splits = body.splits;
        splits.sort();
        TableInfo {
            name: name.clone(),
            uid: format!("{:08}", self.next_id()),
            version: 1,
            created: now,
            families: body
                .families
                .into_iter()
                .map(|schema| FamilyInfo {
                    id: self.next_id(),
                    schema,
                })
                .collect(),
            splits,
            owner: body.owner,
            deletion_protection: body.deletion_protection.unwrap_or_default(),
        }
    }

    fn changed(&mut self, old: &TableInfo, body: PutTable) -> Result<TableInfo> {
        let name = &old.name;
        let mut splits = body.splits;
        splits.sort();
        if !splits.is_empty() && splits != old.splits {
            let are: Vec<_> = old
                .splits
                .iter()
                .map(|key| name::encode(key.bytes()))
                .collect();
            let are = if are.is_empty() {
                "none".to_owned()
            } else {
                are.join(", ")
            };
            let message =
                format!("table \"{name}\": splits cannot change after creation (they are {are})");
            return Err(Error::Precondition(message));
        }
        let mut new = old.clone();
        new.families.clear();
        for family in &old.families {
            match body
                .families
                .iter()
                .find(|schema| schema.name == family.schema.name)
            {
                Some(schema) => new.families.push(FamilyInfo {
                    id: family.id,
                    schema: schema.clone(),
                }),
                None if body.drop_families.contains(&family.schema.name) => {}
                None => {
                    return Err(Error::Precondition(format!(
                        "table \"{name}\": column family \"{}\" is missing from the request; \
                         name it in dropFamilies to delete its data",
                        family.schema.name
                    )));
                }
            }
        }
        for schema in body.families {
            if !old
                .families
                .iter()
                .any(|family| family.schema.name == schema.name)
            {
                new.families.push(FamilyInfo {
                    id: self.next_id(),
                    schema,
                });
            }
        }
        new.owner = body.owner.or(new.owner);
        new.version += u64::from(new != *old);
        Ok(new)
    }

    pub(crate) fn mutate(
        &mut self,
        name: &TableName,
        request: MutateRequest,
        now: Timestamp,
    ) -> Result<MutateResponse> {
        let table = self.tables.get_mut(name).ok_or_else(|| not_found(name))?;
        request
            .rows
            .iter()
            .try_for_each(|row| table.validate(row))?;
        let given = Timestamp(self.last_timestamp.max(now.0.div_euclid(1000) * 1000));
        self.last_timestamp = given.0;
        let brought_none = |mutation: &Mutation| {
            matches!(
                mutation,
                Mutation::Put {
                    timestamp: None,
                    ..
                }
            )
        };
        let any_given = request
            .rows
            .iter()
            .flat_map(|row| &row.mutations)
            .any(brought_none);
        let results = request
            .rows
            .iter()
            .map(|row| table.apply_row(row, given, now))
            .collect::<Result<_>>()?;
        Ok(MutateResponse {
            results,
            timestamp: any_given.then_some(given),
        })
    }

    /// Deletes all cells of the rows that `within` names.
    pub(crate) fn delete_rows(&mut self, name: &TableName, within: impl Fn(&Bytes) -> bool) {
        if let Some(table) = self.tables.get_mut(name) {
            table.cells.retain(|key, _| !within(&key.0));
        }
    }

    pub(crate) fn read(
        &self,
        name: &TableName,
        request: &ReadRequest,
        now: Timestamp,
    ) -> Result<Vec<ReadLine>> {
        self.find(name)?.read(request, now)
    }

    fn find(&self, name: &TableName) -> Result<&Table> {
        self.tables.get(name).ok_or_else(|| not_found(name))
    }
}

impl Table {
    fn family(&self, name: &FamilyName) -> Result<&FamilyInfo> {
        self.info
            .families
            .iter()
            .find(|family| family.schema.name == *name)
            .ok_or_else(|| {
                let known: Vec<_> = self
                    .info
                    .families
                    .iter()
                    .map(|family| format!("\"{}\"", family.schema.name))
                    .collect();
                Error::NotFound(format!(
                    "column family \"{name}\" not found in table \"{}\" (families: {})",
                    self.info.name,
                    known.join(", ")
                ))
            })
    }
}

fn check_version(name: &TableName, is: Option<u64>, expected: Option<u64>) -> Result<()> {
    match (expected, is) {
        (None, _) | (Some(0), None) => Ok(()),
        (Some(expected), Some(is)) if expected == is => Ok(()),
        (Some(0), Some(is)) => Err(Error::Conflict(format!(
            "table \"{name}\" exists already, at version {is}; ifVersion is 0"
        ))),
        (Some(expected), Some(is)) => Err(Error::Conflict(format!(
            "table \"{name}\" is at version {is}; ifVersion is {expected}"
        ))),
        (Some(expected), None) => Err(Error::Conflict(format!(
            "table \"{name}\" does not exist; ifVersion is {expected}"
        ))),
    }
}

fn not_found(name: &TableName) -> Error {
    Error::NotFound(format!("table \"{name}\" not found"))
}

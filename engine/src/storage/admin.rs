//! Making, changing and dropping tables.
//!
//! **Invariants**: one at a time; checked whole before anything is written; the catalog (create, drop) or the schema (change) is
//! the commit point, what a crash leaves before it is removed at the next start. A family's id is never reused, so nothing of a
//! dropped family shows in one made again under its name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tablemount_api::{
    DropTable, FamilyInfo, PutTable, RowKey, TableInfo, TableName, Timestamp, name,
};

use super::catalog::{
    CATALOG, Catalog, CatalogTable, CatalogTablet, Manifest, SchemaRecord, TABLES, TABLETS,
    manifest_folder, schema_folder,
};
use super::store::Store;
use super::table::{Schema, Table};
use super::tablet::Tablet;
use crate::{Error, Result};

impl Store {
    /// Makes the table, or changes it to be as the body says.
    pub(crate) fn put_table(&self, name: &TableName, body: &PutTable) -> Result<TableInfo> {
        body.validate()?;
        self.log()?;
        let mut admin = self.admin.lock();
        let table = self.tables.load().get(name.as_str()).cloned();
        let version = table.as_ref().map_or(0, |table| table.schema().version);
        if let Some(wanted) = body.if_version.filter(|wanted| *wanted != version) {
            return Err(Error::Conflict(match (wanted, version) {
                (0, _) => format!("table \"{name}\" exists (version {version})"),
                (_, 0) => format!("table \"{name}\" does not exist, so it has no version {wanted}"),
                _ => format!("table \"{name}\" has version {version}, not {wanted}"),
            }));
        }
        match table {
            Some(table) => self.change_table(&table, body)?,
            None => self.create_table(&mut admin, name, body)?,
        }
        Ok(self.table(name)?.info())
    }

    fn create_table(
        &self,
        admin: &mut (u64, Catalog),
        name: &TableName,
        body: &PutTable,
    ) -> Result<()> {
        let uid = self.options.ids.next();
        let record = SchemaRecord {
            epoch: self.epoch,
            name: name.clone(),
            created: self.clock.now(),
            next_family: body.families.len() as u64 + 1,
            families: body
                .families
                .iter()
                .zip(1..)
                .map(|(schema, id)| FamilyInfo {
                    id,
                    schema: schema.clone(),
                })
                .collect(),
            owner: body.owner.clone(),
            deletion_protection: body.deletion_protection.unwrap_or_default(),
        };
        self.objects
            .create_numbered(&schema_folder(uid), 1, &record)?;
        let mut splits = body.splits.clone();
        splits.sort();
        let starts: Vec<Option<RowKey>> = std::iter::once(None)
            .chain(splits.into_iter().map(Some))
            .collect();
        let first = admin.1.next_tablet;
        admin.1.next_tablet += starts.len() as u64;
        let mut tablets = Vec::new();
        for (i, start) in starts.iter().enumerate() {
            tablets.push(self.create_tablet(
                first + i as u64,
                start.clone(),
                starts.get(i + 1).cloned().flatten(),
            )?);
        }
        let entry = CatalogTable {
            uid,
            tablets: starts
                .into_iter()
                .zip(first..)
                .map(|(start, id)| CatalogTablet { id, start })
                .collect(),
        };
        self.change_catalog(admin, |tables| {
            tables.insert(name.to_string(), entry);
        })?;
        let table = Arc::new(Table::new(uid, tablets, 1, record));
        self.change_tables(|tables| {
            tables.insert(name.to_string(), table.clone());
        });
        Ok(())
    }

    fn create_tablet(
        &self,
        id: u64,
        start: Option<RowKey>,
        stop: Option<RowKey>,
    ) -> Result<Arc<Tablet>> {
        let manifest = Manifest {
            epoch: self.epoch,
            log: self.log_id,
            flushed_sequence: self.durable_sequence(),
            server_timestamp: Timestamp::MIN,
            files: BTreeMap::new(),
        };
        self.objects
            .create_numbered(&manifest_folder(id), 1, &manifest)?;
        Ok(Arc::new(Tablet::new(
            id,
            start,
            stop,
            1,
            manifest,
            BTreeMap::new(),
        )))
    }

    fn change_catalog(
        &self,
        admin: &mut (u64, Catalog),
        change: impl FnOnce(&mut BTreeMap<String, CatalogTable>),
    ) -> Result<()> {
        let (number, catalog) = admin;
        let mut next = catalog.clone();
        change(&mut next.tables);
        next.epoch = self.epoch;
        self.fatal_if_unclear(self.objects.create_numbered(CATALOG, *number + 1, &next))?;
        *number += 1;
        *catalog = next;
        self.objects.clean_numbered(CATALOG, *number - 1);
        Ok(())
    }

    fn change_tables(&self, change: impl Fn(&mut BTreeMap<String, Arc<Table>>)) {
        self.tables.rcu(|tables| {
            let mut tables = BTreeMap::clone(tables);
            change(&mut tables);
            tables
        });
    }

    fn change_table(&self, table: &Table, body: &PutTable) -> Result<()> {
        let schema = table.schema();
        check_splits(table, body)?;
        let record = changed(table, &schema, body, self.epoch)?;
        let unchanged = SchemaRecord {
            epoch: self.epoch,
            ..schema.record.clone()
        };
        if record == unchanged {
            return Ok(());
        }
        let version = schema.version + 1;
        let folder = schema_folder(table.uid);
        self.fatal_if_unclear(self.objects.create_numbered(&folder, version, &record))?;
        table.set_schema(version, record);
        self.objects.clean_numbered(&folder, version - 1);
        for family in &schema.record.families {
            if table.schema().family_by_id(family.id).is_none() {
                self.drop_family_files(table, family.id)?;
            }
        }
        self.wake(|work| work.compact = true);
        Ok(())
    }

    fn drop_family_files(&self, table: &Table, family: u64) -> Result<()> {
        for tablet in &table.tablets {
            let state = tablet.state();
            let Some(files) = state.files.get(&family) else {
                continue;
            };
            let published = tablet.publish(
                &self.objects,
                |manifest| drop(manifest.files.remove(&family)),
                |state| drop(state.files.remove(&family)),
            );
            self.fatal_if_unclear(published)?;
            files.iter().for_each(|file| file.retire());
        }
        Ok(())
    }

    /// Drops a table and its data.
    pub(crate) fn drop_table(&self, name: &TableName, query: &DropTable) -> Result<()> {
        let log = self.log()?;
        let mut admin = self.admin.lock();
        let table = self.table(name)?;
        if let Some(uid) = query
            .if_uid
            .as_ref()
            .filter(|uid| **uid != table.uid.to_string())
        {
            return Err(Error::Conflict(format!(
                "table \"{name}\" has uid {}, not {uid}",
                table.uid
            )));
        }
        if table.schema().record.deletion_protection {
            return Err(Error::Precondition(format!(
                "table \"{name}\" is protected from being dropped (deletionProtection)"
            )));
        }
        self.change_catalog(&mut admin, |tables| {
            tables.remove(name.as_str());
        })?;
        self.change_tables(|tables| {
            tables.remove(name.as_str());
        });
        for tablet in &table.tablets {
            let ((), appended) = log.between_appends(|_| tablet.refuse());
            // What was appended pins log segments once it is committed; then it is let go.
            log.make_durable(appended.group)?;
            let held = tablet.forget();
            self.memtable_bytes
                .fetch_sub(held.memtable_bytes(), Ordering::Relaxed);
            log.flushed(tablet.id, u64::MAX)?;
        }
        self.work.flushed.notify_waiters();
        let tablets = table
            .tablets
            .iter()
            .map(|tablet| format!("{TABLETS}/{:08}", tablet.id));
        for folder in tablets.chain([format!("{TABLES}/{}", table.uid)]) {
            self.drop_folder(&folder);
        }
        if let Err(error) = self.remove_dropped() {
            tracing::warn!(%error, "files of what was dropped stay for now");
        }
        Ok(())
    }
}

fn check_splits(table: &Table, body: &PutTable) -> Result<()> {
    let mut wanted = body.splits.clone();
    wanted.sort();
    let present: Vec<RowKey> = table
        .tablets
        .iter()
        .filter_map(|tablet| tablet.start.clone())
        .collect();
    if body.splits.is_empty() || wanted == present {
        return Ok(());
    }
    let shown: Vec<_> = present
        .iter()
        .map(|split| format!("\"{}\"", name::encode(split.bytes())))
        .collect();
    let shown = if shown.is_empty() {
        "none".to_owned()
    } else {
        shown.join(", ")
    };
    let table = &table.name;
    Err(Error::Precondition(format!(
        "table \"{table}\": splits cannot change after creation (they are {shown})"
    )))
}

/// The schema as the body wants it: families keep their place and id, new ones come last.
fn changed(table: &Table, schema: &Schema, body: &PutTable, epoch: u64) -> Result<SchemaRecord> {
    let mut record = SchemaRecord {
        epoch,
        ..schema.record.clone()
    };
    if record.deletion_protection && !body.drop_families.is_empty() {
        return Err(Error::Precondition(format!(
            "table \"{}\" is protected from deletion: its column families cannot be dropped (deletionProtection)",
            table.name
        )));
    }
    record
        .families
        .retain(|family| !body.drop_families.contains(&family.schema.name));
    for family in &mut record.families {
        match body
            .families
            .iter()
            .find(|wanted| wanted.name == family.schema.name)
        {
            Some(wanted) if wanted.aggregate != family.schema.aggregate => {
                let (table, family) = (&table.name, &family.schema.name);
                return Err(Error::Precondition(format!(
                    "table \"{table}\", column family \"{family}\": its aggregate cannot change; drop it and make it again"
                )));
            }
            Some(wanted) => family.schema = wanted.clone(),
            None => {
                let (table, family) = (&table.name, &family.schema.name);
                return Err(Error::Precondition(format!(
                    "table \"{table}\": column family \"{family}\" is missing from the request; name it in dropFamilies to \
                     delete its data"
                )));
            }
        }
    }
    for wanted in &body.families {
        if record
            .families
            .iter()
            .all(|family| family.schema.name != wanted.name)
        {
            record.families.push(FamilyInfo {
                id: record.next_family,
                schema: wanted.clone(),
            });
            record.next_family += 1;
        }
    }
    if let Some(owner) = &body.owner {
        record.owner = Some(owner.clone());
    }
    if let Some(protection) = body.deletion_protection {
        record.deletion_protection = protection;
    }
    Ok(record)
}

//! Tables: a schema that changes by versions, and tablets in row order.

use std::sync::Arc;

use parking_lot::RwLock;
use tablemount_api::{FamilyInfo, FamilyName, RowKey, TableInfo, TableName};
use uuid::Uuid;

use super::catalog::SchemaRecord;
use super::tablet::Tablet;
use crate::{Error, Result};

/// A schema and its version.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    pub(crate) version: u64,
    pub(crate) record: SchemaRecord,
}

impl Schema {
    /// The family with this id; `None`: it was dropped.
    pub(crate) fn family_by_id(&self, id: u64) -> Option<&FamilyInfo> {
        self.record.families.iter().find(|family| family.id == id)
    }

    /// The family with this name.
    pub(crate) fn family(&self, name: &FamilyName) -> Result<&FamilyInfo> {
        let families = &self.record.families;
        families
            .iter()
            .find(|family| family.schema.name == *name)
            .ok_or_else(|| {
                let known: Vec<_> = families
                    .iter()
                    .map(|family| format!("\"{}\"", family.schema.name))
                    .collect();
                let table = &self.record.name;
                let known = known.join(", ");
                Error::NotFound(format!(
                    "column family \"{name}\" not found in table \"{table}\" (families: {known})"
                ))
            })
    }
}

/// A table.
pub(crate) struct Table {
    pub(crate) name: TableName,
    pub(crate) uid: Uuid,
    /// In row order.
    pub(crate) tablets: Vec<Arc<Tablet>>,
    schema: RwLock<Arc<Schema>>,
    /// Held shared while files written by a schema are published, so that they are only if it still holds.
    pub(crate) changing: RwLock<()>,
}

impl Table {
    pub(crate) fn new(
        uid: Uuid,
        tablets: Vec<Arc<Tablet>>,
        version: u64,
        record: SchemaRecord,
    ) -> Self {
        let name = record.name.clone();
        Self {
            name,
            uid,
            tablets,
            schema: RwLock::new(Arc::new(Schema { version, record })),
            changing: RwLock::new(()),
        }
    }

    /// The schema now.
    pub(crate) fn schema(&self) -> Arc<Schema> {
        self.schema.read().clone()
    }

    /// Replaces the schema.
    pub(crate) fn set_schema(&self, version: u64, record: SchemaRecord) {
        let _none_publishes = self.changing.write();
        *self.schema.write() = Arc::new(Schema { version, record });
    }

    /// The tablet that holds `row`.
    pub(crate) fn tablet(&self, row: &RowKey) -> &Arc<Tablet> {
        let after = self
            .tablets
            .partition_point(|tablet| tablet.start.as_ref().is_none_or(|start| start <= row));
        // The first tablet has no start, so at least one is before.
        &self.tablets[after.saturating_sub(1)]
    }

    pub(crate) fn info(&self) -> TableInfo {
        let schema = self.schema();
        let record = &schema.record;
        TableInfo {
            name: self.name.clone(),
            uid: self.uid.to_string(),
            version: schema.version,
            created: record.created,
            families: record.families.clone(),
            splits: self
                .tablets
                .iter()
                .filter_map(|tablet| tablet.start.clone())
                .collect(),
            owner: record.owner.clone(),
            deletion_protection: record.deletion_protection,
        }
    }
}

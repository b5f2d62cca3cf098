//! Whether a node exists, its size and time.
//!
//! The time of a version is its timestamp; of a column its newest version's; of everything else the table's creation.

use std::time::{Duration, SystemTime};

use tablemount_api::Timestamp;

use crate::errno::Failure;
use crate::facts::Facts;
use crate::filesystem::Filesystem;
use crate::node::{Column, Family, Generated, Kind, Node, Row};
use crate::path::timestamp_name;
use crate::place::{CellFact, Place};
use crate::tables::family_id;

/// What the kernel wants to know of a node, besides what is the same for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    pub(crate) modified: Timestamp,
}

impl Stat {
    pub(crate) fn directory(modified: Timestamp) -> Self {
        Self {
            kind: Kind::Directory,
            size: 0,
            modified,
        }
    }

    pub(crate) fn link(target: &str, modified: Timestamp) -> Self {
        Self {
            kind: Kind::Link,
            size: target.len() as u64,
            modified,
        }
    }

    pub(crate) fn cell(cell: &CellFact) -> Self {
        Self {
            kind: Kind::File,
            size: cell.length,
            modified: Timestamp(cell.timestamp),
        }
    }

    pub(crate) fn modified_time(&self) -> SystemTime {
        let distance = Duration::from_micros(self.modified.0.unsigned_abs());
        let time = match self.modified.0 < 0 {
            true => SystemTime::UNIX_EPOCH.checked_sub(distance),
            false => SystemTime::UNIX_EPOCH.checked_add(distance),
        };
        time.unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

impl Facts {
    /// Where the family's cells lie; [`Failure::Absent`] if the table has no such family.
    pub(crate) async fn family_place(&self, family: &Family) -> Result<Place, Failure> {
        let table = &family.row.scope.table;
        let mut id = family_id(&*self.tables.recent(table).await?, &family.family);
        if id.is_none() {
            id = family_id(&*self.tables.get(table).await?, &family.family);
        }
        let id = id.ok_or(Failure::Absent)?;
        Ok(Place::family(family.row.key.clone(), id))
    }

    /// Where the column's cells lie.
    pub(crate) async fn column_place(&self, column: &Column) -> Result<Place, Failure> {
        let family = self.family_place(&column.family).await?;
        Ok(Place {
            qualifier: Some(column.qualifier.clone()),
            ..family
        })
    }

    /// Where the version lies.
    pub(crate) async fn version_place(
        &self,
        column: &Column,
        timestamp: Timestamp,
    ) -> Result<Place, Failure> {
        Ok(Place {
            timestamp: Some(timestamp.0),
            ..self.column_place(column).await?
        })
    }

    async fn row_exists(&self, row: &Row) -> Result<(), Failure> {
        let exists = self
            .exists(&row.scope, &Place::row(row.key.clone()))
            .await?;
        exists.then_some(()).ok_or(Failure::Absent)
    }
}

impl Filesystem {
    /// The node's size and time; [`Failure::Absent`] if it is not there.
    pub(crate) async fn stat(&self, node: &Node) -> Result<Stat, Failure> {
        let facts = &self.facts;
        match node {
            Node::Root => Ok(Stat::directory(self.mounted)),
            Node::Table { scope, .. } => Ok(Stat::directory(
                facts.tables.get(&scope.table).await?.created,
            )),
            Node::Row(row) => {
                let info = facts.tables.recent(&row.scope.table).await?;
                facts.row_exists(row).await?;
                Ok(Stat::directory(info.created))
            }
            Node::Family { family, .. } => {
                let place = facts.family_place(family).await?;
                facts.first_cell(&family.row.scope, &place).await?;
                Ok(Stat::directory(
                    facts.tables.recent(&family.row.scope.table).await?.created,
                ))
            }
            Node::Column { column, .. } => Ok(Stat::directory(Timestamp(
                self.newest(column).await?.timestamp,
            ))),
            Node::Newest(column) => Ok(Stat::cell(&self.newest(column).await?)),
            Node::Latest(column) => {
                let newest = Timestamp(self.newest(column).await?.timestamp);
                Ok(Stat::link(&timestamp_name(newest), newest))
            }
            Node::Cell(column, timestamp) => {
                let place = facts.version_place(column, *timestamp).await?;
                Ok(Stat::cell(
                    &facts.first_cell(&column.family.row.scope, &place).await?,
                ))
            }
            Node::Link(target) => Ok(Stat::link(target, self.mounted)),
            Node::View(base, _) => Ok(Stat {
                kind: Kind::Directory,
                ..Box::pin(self.stat(base)).await?
            }),
            Node::Generated(base, file) => self.stat_generated(base, *file).await,
        }
    }

    /// The column's newest version.
    pub(crate) async fn newest(&self, column: &Column) -> Result<CellFact, Failure> {
        let place = self.facts.column_place(column).await?;
        self.facts
            .first_cell(&column.family.row.scope, &place)
            .await
    }

    async fn stat_generated(&self, base: &Node, file: Generated) -> Result<Stat, Failure> {
        let of = Box::pin(self.stat(base)).await?;
        // Read with direct_io, so a size that is not known until then does no harm.
        let size = match file {
            Generated::RowJson => 0,
            _ => self.generate(base, file).await?.len() as u64,
        };
        Ok(Stat {
            kind: Kind::File,
            size,
            ..of
        })
    }
}

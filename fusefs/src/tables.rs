//! What is known of tables: whether one is there is asked for at most once a second, its families less often.
//!
//! **Invariants**: that a table is there, or not, holds for [`TTL`], its families and time for [`SCHEMA_TTL`]; at most
//! [`MAX_TABLES`] answers are held.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tablemount_api::{FamilyName, TableInfo, TableName};

use crate::clock::Clock;
use crate::errno::Failure;
use crate::remote::Remote;
use crate::window::TTL;

const MAX_TABLES: usize = 1024;
/// How long families and their ids are taken to be as they were; a family that turns up meanwhile is asked for at once.
const SCHEMA_TTL: Duration = Duration::from_secs(10);

/// The tables of the last second.
pub(crate) struct Tables {
    remote: Arc<Remote>,
    clock: Arc<Clock>,
    known: Mutex<HashMap<TableName, (Instant, Option<Arc<TableInfo>>)>>,
}

impl Tables {
    pub(crate) fn new(remote: Arc<Remote>, clock: Arc<Clock>) -> Self {
        Self {
            remote,
            clock,
            known: Mutex::default(),
        }
    }

    /// The table; [`Failure::Absent`] if there is none.
    pub(crate) async fn get(&self, table: &TableName) -> Result<Arc<TableInfo>, Failure> {
        match self.known(table, TTL) {
            Some(info) => info.ok_or(Failure::Absent),
            None => self.ask(table).await,
        }
    }

    /// The table as it was lately, for whoever reads it anyway and so learns whether it is there.
    pub(crate) async fn recent(&self, table: &TableName) -> Result<Arc<TableInfo>, Failure> {
        match self.known(table, SCHEMA_TTL) {
            Some(Some(info)) => Ok(info),
            _ => self.get(table).await,
        }
    }

    /// The table as it is now.
    pub(crate) async fn ask(&self, table: &TableName) -> Result<Arc<TableInfo>, Failure> {
        let now = self.clock.now();
        let info = match self.remote.table(table).await {
            Ok(info) => Some(Arc::new(info)),
            Err(failure) if failure.is_absent() => None,
            Err(failure) => return Err(failure),
        };
        self.note(now, [(table.clone(), info.clone())]);
        info.ok_or(Failure::Absent)
    }

    fn known(&self, table: &TableName, ttl: Duration) -> Option<Option<Arc<TableInfo>>> {
        let now = self.clock.now();
        let known = self.known.lock();
        let (at, info) = known.get(table)?;
        (now.saturating_duration_since(*at) < ttl).then(|| info.clone())
    }

    /// All tables by name.
    pub(crate) async fn list(&self) -> Result<Vec<Arc<TableInfo>>, Failure> {
        let now = self.clock.now();
        let tables: Vec<_> = self
            .remote
            .tables()
            .await?
            .into_iter()
            .map(Arc::new)
            .collect();
        self.note(
            now,
            tables
                .iter()
                .map(|info| (info.name.clone(), Some(info.clone()))),
        );
        Ok(tables)
    }

    fn note(
        &self,
        now: Instant,
        tables: impl IntoIterator<Item = (TableName, Option<Arc<TableInfo>>)>,
    ) {
        let mut known = self.known.lock();
        for (name, info) in tables {
            if known.len() >= MAX_TABLES {
                known.retain(|_, (at, _)| now.saturating_duration_since(*at) < SCHEMA_TTL);
            }
            if known.len() < MAX_TABLES {
                known.insert(name, (now, info));
            }
        }
    }
}

/// The id of `family`, if the table has it.
pub(crate) fn family_id(info: &TableInfo, family: &FamilyName) -> Option<u64> {
    info.families
        .iter()
        .find(|known| known.schema.name == *family)
        .map(|known| known.id)
}

/// The name of the family with `id`, if the table has it.
pub(crate) fn family_name(info: &TableInfo, id: u64) -> Option<&FamilyName> {
    info.families
        .iter()
        .find(|known| known.id == id)
        .map(|known| &known.schema.name)
}

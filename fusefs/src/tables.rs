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
    known: Mutex<HashMap<TableName, Known>>,
}

/// What was told of a table, and when it was last seen to be there.
struct Known {
    told: Instant,
    confirmed: Instant,
    info: Option<Arc<TableInfo>>,
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

    /// A read at `when` has shown that the table is there.
    pub(crate) fn confirm(&self, table: &TableName, when: Instant) {
        if let Some(known) = self.known.lock().get_mut(table)
            && known.info.is_some()
        {
            known.confirmed = known.confirmed.max(when);
        }
    }

    /// What was told within [`SCHEMA_TTL`] and confirmed within `ttl`.
    fn known(&self, table: &TableName, ttl: Duration) -> Option<Option<Arc<TableInfo>>> {
        let now = self.clock.now();
        let known = self.known.lock();
        let Known {
            told,
            confirmed,
            info,
        } = known.get(table)?;
        let age = |since: &Instant| now.saturating_duration_since(*since);
        (age(told) < SCHEMA_TTL && age(confirmed) < ttl).then(|| info.clone())
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
                known.retain(|_, known| now.saturating_duration_since(known.told) < SCHEMA_TTL);
            }
            if known.len() < MAX_TABLES {
                let known_now = Known {
                    told: now,
                    confirmed: now,
                    info,
                };
                known.insert(name, known_now);
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

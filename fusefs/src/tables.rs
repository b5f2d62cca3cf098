//! What is known of tables: asked for at most once a second.
//!
//! **Invariants**: an answer, absence included, holds for [`TTL`]; at most [`MAX_TABLES`] answers are held.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tablemount_api::{FamilyName, TableInfo, TableName};

use crate::clock::Clock;
use crate::errno::Failure;
use crate::remote::Remote;
use crate::window::TTL;

const MAX_TABLES: usize = 1024;

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
        let now = self.clock.now();
        let known = self
            .known
            .lock()
            .get(table)
            .filter(|(at, _)| now.duration_since(*at) < TTL)
            .cloned();
        let info = match known {
            Some((_, info)) => info,
            None => {
                let info = match self.remote.table(table).await {
                    Ok(info) => Some(Arc::new(info)),
                    Err(failure) if failure.is_absent() => None,
                    Err(failure) => return Err(failure),
                };
                self.note(now, [(table.clone(), info.clone())]);
                info
            }
        };
        info.ok_or(Failure::Absent)
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
                known.retain(|_, (at, _)| now.saturating_duration_since(*at) < TTL);
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

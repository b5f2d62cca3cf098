//! The hold: while a store is held, nothing that is stored is forgotten.
//!
//! ```text
//! set_hold: hold/<n + 1> durable → state          publish, remove: state (shared) → done only if it still allows that
//! ```
//! **Invariants**: once a hold was acknowledged no file goes and nothing is collected, by work that began before it either:
//! whoever collects or removes holds the state shared until it is done. It outlives restarts: it is read before anything is
//! flushed or removed. What would have gone waits in the queue of dropped files.

use serde::{Deserialize, Serialize};
use tablemount_api::{Hold, Timestamp};

use super::store::Store;
use crate::Result;

/// The folder of numbered objects.
pub(crate) const HOLD: &str = "hold";

/// `hold/<n>`: the newest says whether the store is held. None: never was.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HoldRecord {
    /// The start of the server that wrote it.
    pub(crate) epoch: u64,
    pub(crate) held: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// When it was held or released; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
}

/// The newest record's number and content.
pub(crate) type HoldState = (u64, HoldRecord);

impl From<&HoldRecord> for Hold {
    fn from(record: &HoldRecord) -> Self {
        Self {
            held: record.held,
            reason: record.reason.clone(),
            since: record.since,
        }
    }
}

impl Store {
    /// Whether the store is held at this moment.
    pub(crate) fn held(&self) -> bool {
        self.hold.read().1.held
    }

    /// Whether the store is held, why and since when.
    pub(crate) fn hold(&self) -> Hold {
        (&self.hold.read().1).into()
    }

    /// Holds or releases the store, durably. What gathered while it was held goes afterwards, by the workers.
    pub(crate) fn set_hold(&self, wanted: &Hold) -> Result<Hold> {
        wanted.validate()?;
        self.log()?;
        let _one = self.admin.lock();
        let (number, before) = self.hold.read().clone();
        let record = HoldRecord {
            epoch: self.epoch,
            held: wanted.held,
            reason: wanted.reason.clone(),
            since: match before.held == wanted.held {
                true => before.since,
                false => Some(self.clock.now()),
            },
        };
        if (before.held, &before.reason) != (record.held, &record.reason) {
            self.fatal_if_unclear(self.objects.create_numbered(HOLD, number + 1, &record))?;
            self.objects.clean_numbered(HOLD, number);
            *self.hold.write() = (number + 1, record);
            tracing::info!(held = wanted.held, reason = wanted.reason, "hold");
            self.wake(|work| work.compact = true);
        }
        Ok(self.hold())
    }
}

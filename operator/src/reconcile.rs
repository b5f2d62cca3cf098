//! Makes a table what its manifest says: observe → validate → plan → apply → read back. The controller and `tablemount up`
//! both call [`table`].
//!
//! **Invariants**: nothing is applied while a change lacks its consent (`without_consent_the_old_schema_serves`); every change
//! is compare-and-set on the schema's version (`lost_races_are_run_again`); Ready only after the schema was read back
//! (`ready_only_after_reading_back`); a table is dropped only if its marker is this very object's (`drops_only_its_own`).

use jiff::Timestamp;
use kube::ResourceExt;
use tablemount_api::stats::TableStats;
use tablemount_api::{DropTable, ErrorCode, Owner, PutTable, TableInfo, TableName};
use tablemount_client::{Client, Error as ClientError};

use crate::condition::{self, Now, READY, Reason};
use crate::crd::{FamilyStatus, PendingChange, Table, TableStatus};
use crate::desired::{
    Desired, bloom_filter_word, compression_type, count_families, describe_gc, scope_word,
};
use crate::plan::{Change, Refusal, plan, unused_permissions, unwanted_families};

/// How often a change is planned anew when the schema changes under it.
const MAX_ATTEMPTS: usize = 4;

/// What became of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableOutcome {
    /// Whether the table is what its manifest says.
    pub ready: bool,
    /// Why it is or is not.
    pub reason: Reason,
    /// The same for a person: what is wrong and what to do.
    pub message: String,
    /// The table as read back; absent: there is none, or it could not be read.
    pub table: Option<TableInfo>,
    /// The changes that were made.
    pub applied: Vec<Change>,
    /// The changes that were not made.
    pub pending: Vec<Change>,
    /// What the table holds, where it was asked for; absent: it stays as it was known.
    pub stats: Option<TableStats>,
}

/// The marker by which a table tells that `table`, an object of the Kubernetes cluster `cluster`, declares it. In `up`,
/// where objects have no UID, the place stands for it.
pub fn owner(cluster: &str, table: &Table) -> Owner {
    let namespace = table.namespace().unwrap_or_else(|| "default".to_owned());
    let name = table.name_any();
    let uid = table.uid().unwrap_or_else(|| format!("{namespace}/{name}"));
    Owner {
        cluster: cluster.to_owned(),
        namespace,
        name,
        uid,
    }
}

/// Makes the table what `table` says, on behalf of `owner`. Every failure is an outcome.
pub async fn table(client: &Client, table: &Table, owner: &Owner) -> TableOutcome {
    let desired = match Desired::new(table) {
        Ok(desired) => desired,
        Err(message) => return TableOutcome::failed(Reason::InvalidSpec, message),
    };
    let mut outcome = attempt(client, &desired, owner).await;
    for _ in 1..MAX_ATTEMPTS {
        if outcome.reason != Reason::ChangedMeanwhile {
            break;
        }
        outcome = attempt(client, &desired, owner).await;
    }
    outcome
}

/// As [`table`], and takes statistics along where they are due and the table is this object's.
pub(crate) async fn table_with_stats(
    client: &Client,
    table: &Table,
    owner: &Owner,
    at: Timestamp,
) -> TableOutcome {
    let mut outcome = self::table(client, table, owner).await;
    let known = table
        .status
        .as_ref()
        .and_then(|status| status.stats.as_ref());
    if let Some(info) = outcome
        .table
        .as_ref()
        .filter(|info| is_owned_by(info, table))
        && crate::stats::are_due(known, at)
    {
        match client.table_stats(&info.name).await {
            Ok(stats) => outcome.stats = Some(stats),
            Err(error) => tracing::debug!(table = %info.name, %error, "read statistics"),
        }
    }
    outcome
}

async fn attempt(client: &Client, desired: &Desired, owner: &Owner) -> TableOutcome {
    match observe_and_apply(client, desired, owner).await {
        Ok(outcome) => outcome,
        Err(Stopped { refusal, observed }) => TableOutcome {
            table: observed,
            ..TableOutcome::failed(refusal.reason, refusal.message)
        },
    }
}

/// A refusal, and the table as it was seen.
struct Stopped {
    refusal: Refusal,
    observed: Option<TableInfo>,
}

impl From<ClientError> for Stopped {
    fn from(error: ClientError) -> Self {
        Self {
            refusal: explain(&error),
            observed: None,
        }
    }
}

async fn observe_and_apply(
    client: &Client,
    desired: &Desired,
    owner: &Owner,
) -> Result<TableOutcome, Stopped> {
    let observed = observe(client, &desired.name).await?;
    let changes = match plan(desired, owner, observed.as_ref()) {
        Ok(changes) => changes,
        Err(refusal) => return Err(Stopped { refusal, observed }),
    };
    if changes.iter().any(|change| !change.allowed) {
        return Ok(TableOutcome::wants_consent(observed, changes));
    }
    if !changes.is_empty() {
        client
            .put_table(&desired.name, &request(desired, owner, observed.as_ref()))
            .await?;
    }
    let read_back = observe(client, &desired.name).await?;
    match plan(desired, owner, read_back.as_ref()) {
        Ok(left) if left.is_empty() => Ok(TableOutcome::applied(desired, read_back, changes)),
        Ok(left) => Ok(TableOutcome::changed_meanwhile(read_back, left)),
        Err(refusal) => Err(Stopped {
            refusal,
            observed: read_back,
        }),
    }
}

async fn observe(client: &Client, name: &TableName) -> Result<Option<TableInfo>, ClientError> {
    match client.table(name).await {
        Ok(info) => Ok(Some(info)),
        Err(error) if error.code() == Some(ErrorCode::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

fn request(desired: &Desired, owner: &Owner, observed: Option<&TableInfo>) -> PutTable {
    let body = PutTable {
        owner: Some(owner.clone()),
        ..desired.put_table()
    };
    match observed {
        None => PutTable {
            if_version: Some(0),
            ..body
        },
        Some(observed) => PutTable {
            splits: Vec::new(),
            drop_families: unwanted_families(desired, observed).cloned().collect(),
            if_version: Some(observed.version),
            ..body
        },
    }
}

/// The client's error as a reason that says what to do.
fn explain(error: &ClientError) -> Refusal {
    let reason = match error {
        ClientError::Timeout { .. }
        | ClientError::Unreachable { .. }
        | ClientError::Protocol { .. } => Reason::EngineUnreachable,
        ClientError::Config(_) => Reason::EngineRefused,
        ClientError::Refused(refused) => match refused.code {
            ErrorCode::Unauthenticated | ErrorCode::PermissionDenied => Reason::AccessDenied,
            ErrorCode::Conflict | ErrorCode::NotFound => Reason::ChangedMeanwhile,
            ErrorCode::Unavailable | ErrorCode::ResourceExhausted | ErrorCode::DeadlineExceeded => {
                Reason::EngineUnreachable
            }
            ErrorCode::InvalidArgument
            | ErrorCode::MethodNotAllowed
            | ErrorCode::FailedPrecondition
            | ErrorCode::TooLarge
            | ErrorCode::RangeNotSatisfiable
            | ErrorCode::Internal
            | ErrorCode::DataLoss => Reason::EngineRefused,
        },
    };
    let message = match reason {
        Reason::EngineUnreachable => {
            format!("the server does not answer: {error}; tried again by itself")
        }
        Reason::AccessDenied => format!("the server does not accept the operator's token: {error}"),
        Reason::ChangedMeanwhile => {
            format!("the schema is being changed by others: {error}; tried again by itself")
        }
        _ => format!("the server refuses: {error}"),
    };
    Refusal { reason, message }
}

impl TableOutcome {
    /// Nothing was done.
    pub(crate) fn failed(reason: Reason, message: String) -> Self {
        Self {
            ready: false,
            reason,
            message,
            table: None,
            applied: Vec::new(),
            pending: Vec::new(),
            stats: None,
        }
    }

    fn wants_consent(table: Option<TableInfo>, pending: Vec<Change>) -> Self {
        let missing: Vec<_> = pending
            .iter()
            .filter(|change| !change.allowed)
            .filter_map(|change| {
                Some(format!(
                    "{} (add {{{}}} to spec.allow)",
                    change.description,
                    change.needs.as_ref()?
                ))
            })
            .collect();
        let message = format!(
            "nothing was changed, for this deletes data: {}",
            missing.join("; ")
        );
        Self {
            table,
            pending,
            ..Self::failed(Reason::ConsentRequired, message)
        }
    }

    fn changed_meanwhile(table: Option<TableInfo>, pending: Vec<Change>) -> Self {
        let message = "the schema read back is not the one applied: others change it at the same time; tried again by itself";
        Self {
            table,
            pending,
            ..Self::failed(Reason::ChangedMeanwhile, message.to_owned())
        }
    }

    fn applied(desired: &Desired, table: Option<TableInfo>, applied: Vec<Change>) -> Self {
        let version = table.as_ref().map_or(0, |table| table.version);
        let mut message = format!(
            "{}, schema version {version}",
            count_families(desired.families.len())
        );
        let unused = unused_permissions(desired, &applied);
        if !unused.is_empty() {
            let unused: Vec<_> = unused
                .iter()
                .map(|permission| format!("{{{permission}}}"))
                .collect();
            message.push_str(&format!(
                "; spec.allow matches nothing pending: {}",
                unused.join(", ")
            ));
        }
        Self {
            ready: true,
            reason: Reason::Applied,
            message,
            table,
            applied,
            pending: Vec::new(),
            stats: None,
        }
    }

    /// The status of `table` after this outcome; what could not be read stays as it was.
    pub fn status(&self, table: &Table, at: Timestamp) -> TableStatus {
        let previous = table.status.clone().unwrap_or_default();
        let generation = table.metadata.generation;
        let now = Now {
            kind: READY,
            holds: self.ready,
            reason: self.reason,
            message: &self.message,
        };
        let mut status = TableStatus {
            conditions: condition::set(&previous.conditions, &now, generation, at),
            observed_generation: generation,
            pending_changes: self.pending.iter().map(pending_change).collect(),
            ..previous
        };
        if let Some(info) = &self.table {
            status.observed_schema_version = i64::try_from(info.version).ok();
            status.table_name = Some(info.name.to_string());
            status.table_uid = is_owned_by(info, table).then(|| info.uid.clone());
            status.families = info.families.iter().map(family_status).collect();
        }
        if let Some(stats) = &self.stats {
            status.stats = Some(crate::stats::status(stats, status.stats.take(), at));
        }
        status
    }
}

/// Whether the table's marker is this very object's.
fn is_owned_by(info: &TableInfo, table: &Table) -> bool {
    info.owner
        .as_ref()
        .is_some_and(|marker| marker.uid == owner("", table).uid)
}

fn pending_change(change: &Change) -> PendingChange {
    PendingChange {
        description: condition::shorten(&change.description),
        class: change.class,
    }
}

fn family_status(info: &tablemount_api::FamilyInfo) -> FamilyStatus {
    let schema = &info.schema;
    FamilyStatus {
        name: schema.name.to_string(),
        id: i64::try_from(info.id).unwrap_or(i64::MAX),
        gc_rule: describe_gc(&schema.gc_rule),
        compression: compression_type(schema.compression),
        compression_scope: scope_word(schema.compression_scope),
        block_size_bytes: schema.block_bytes.into(),
        bloom_filter: bloom_filter_word(schema.bloom_filter),
        block_cache: schema.block_cache,
        in_memory: schema.in_memory,
        max_value_bytes: schema.max_value_bytes.into(),
    }
}

/// What became of a table whose object is being deleted with `deletionPolicy: Delete`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DropOutcome {
    /// It was dropped.
    Dropped,
    /// There is no such table.
    Absent,
    /// It belongs to another object, or to none, and stays.
    NotOurs,
    /// It would be dropped, but for another object that declares it.
    DeclaredByOther,
    /// It is unknown whether it is still there.
    Failed(String),
}

/// Drops the table if its marker is exactly `owner` and it is not `declared_by_other`.
pub(crate) async fn drop_table(
    client: &Client,
    name: &TableName,
    owner: &Owner,
    declared_by_other: bool,
) -> DropOutcome {
    let dropped = async {
        let Some(observed) = observe(client, name).await? else {
            return Ok(DropOutcome::Absent);
        };
        if observed.owner.as_ref() != Some(owner) {
            return Ok(DropOutcome::NotOurs);
        }
        if declared_by_other {
            return Ok(DropOutcome::DeclaredByOther);
        }
        client
            .drop_table(
                name,
                &DropTable {
                    if_uid: Some(observed.uid),
                },
            )
            .await?;
        Ok(DropOutcome::Dropped)
    };
    match dropped.await {
        Ok(outcome) => outcome,
        Err(error) if ClientError::code(&error) == Some(ErrorCode::NotFound) => DropOutcome::Absent,
        Err(error) => DropOutcome::Failed(explain(&error).message),
    }
}

#[cfg(test)]
mod tests;

//! Table → the engine's schema → status; and the drop of a table whose object goes with `deletionPolicy: Delete`.
//!
//! **Invariants**: of several Tables for one table the one that has it counts, else the oldest (`who_has_the_table_wins`,
//! `the_oldest_wins`); no table is dropped that another Table declares (`a_live_sibling_keeps_the_table`); only
//! `deletionPolicy: Delete` puts a finalizer on an object, and a TableCluster that is gone never holds one up.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::events::EventType;
use kube::runtime::reflector::Store;
use kube::{Resource, ResourceExt};
use serde_json::json;
use tablemount_client::Client;

use super::RECONCILE_SECONDS;
use super::context::{Context, now, reading};
use crate::Error;
use crate::condition::{READY, Reason};
use crate::crd::{DeletionPolicy, Table, TableCluster};
use crate::reconcile::{self, DropOutcome, TableOutcome};
use crate::render::{secret_name, token_missing, token_of};

/// Holds an object until its table is dropped.
const FINALIZER: &str = "tablemount.dev/drop-table";

/// What reconciliations of Tables share.
pub(super) struct Tables {
    pub(super) context: Arc<Context>,
    pub(super) store: Store<Table>,
}

/// Makes the table what `table` says, within the time limit.
pub(super) async fn reconcile(table: Arc<Table>, tables: Arc<Tables>) -> Result<Action, Error> {
    let limit = Duration::from_secs(RECONCILE_SECONDS);
    let work = async {
        if table.meta().deletion_timestamp.is_some() {
            return let_go(&table, &tables).await;
        }
        if set_finalizer(
            &table,
            &tables.context,
            table.spec.deletion_policy == DeletionPolicy::Delete,
        )
        .await?
        {
            return Ok(Action::await_change());
        }
        let outcome = outcome(&table, &tables).await?;
        report(&table, &tables.context, &outcome).await
    };
    let seconds = RECONCILE_SECONDS;
    tokio::time::timeout(limit, work)
        .await
        .unwrap_or(Err(Error::Deadline { seconds }))
}

/// Whether both declare the same table of the same TableCluster.
pub(super) fn is_same_table(one: &Table, other: &Table) -> bool {
    one.namespace() == other.namespace()
        && one.spec.cluster_ref == other.spec.cluster_ref
        && one
            .table_name()
            .is_ok_and(|name| other.table_name().is_ok_and(|other| name == other))
}

/// Who comes first, of objects that declare the same table: one whose table it is already (timestamps have whole seconds, and
/// say nothing of two made together), then the older, then the lower by UID.
fn precedence(table: &Table) -> impl Ord + use<> {
    let has_table = table
        .status
        .as_ref()
        .is_some_and(|status| status.table_uid.is_some());
    (!has_table, table.creation_timestamp(), table.uid())
}

fn siblings<'a>(table: &'a Table, all: &'a [Arc<Table>]) -> impl Iterator<Item = &'a Table> {
    all.iter()
        .map(|other| &**other)
        .filter(|other| other.uid() != table.uid() && is_same_table(other, table))
}

/// The first of the objects that declare the same table and come before this one.
fn preceding<'a>(table: &'a Table, all: &'a [Arc<Table>]) -> Option<&'a Table> {
    siblings(table, all)
        .filter(|other| precedence(other) < precedence(table))
        .min_by_key(|other| precedence(other))
}

/// An object that declares the same table and is not being deleted.
fn live_sibling<'a>(table: &'a Table, all: &'a [Arc<Table>]) -> Option<&'a Table> {
    siblings(table, all).find(|other| other.meta().deletion_timestamp.is_none())
}

async fn outcome(table: &Table, tables: &Tables) -> Result<TableOutcome, Error> {
    let name = &table.spec.cluster_ref.name;
    let Some(cluster) = find_cluster(table, &tables.context).await? else {
        let message = format!(
            "TableCluster \"{name}\" not found in namespace \"{}\"; make it, or make this Table anew with another spec.clusterRef",
            table.namespace().unwrap_or_default()
        );
        return Ok(TableOutcome::failed(Reason::ClusterNotFound, message));
    };
    if let Some(first) = preceding(table, &tables.store.state()) {
        let message = format!(
            "table \"{}\" of TableCluster \"{name}\" is declared by Table \"{}\"; delete one of the two",
            table
                .spec
                .table_name
                .clone()
                .unwrap_or_else(|| table.name_any()),
            first.name_any()
        );
        return Ok(TableOutcome::failed(Reason::Conflicted, message));
    }
    match engine(&cluster, &tables.context).await? {
        Ok(client) => {
            let owner = reconcile::owner(&tables.context.kubernetes, table);
            Ok(reconcile::table_with_stats(&client, table, &owner, now()).await)
        }
        Err(message) => Ok(TableOutcome::failed(Reason::ClusterNotReady, message)),
    }
}

async fn find_cluster(table: &Table, context: &Context) -> Result<Option<TableCluster>, Error> {
    let name = &table.spec.cluster_ref.name;
    let clusters = context.namespaced::<TableCluster>(table);
    clusters
        .get_opt(name)
        .await
        .map_err(Error::kubernetes(reading::<TableCluster>(name)))
}

/// A client of the cluster's server, or why there is none yet.
async fn engine(
    cluster: &TableCluster,
    context: &Context,
) -> Result<Result<Client, String>, Error> {
    let name = cluster.name_any();
    let ready = cluster
        .status
        .iter()
        .flat_map(|status| &status.conditions)
        .find(|condition| condition.type_ == READY);
    match ready {
        Some(condition) if condition.status == "True" => {}
        Some(condition) => {
            return Ok(Err(format!(
                "TableCluster \"{name}\" is not Ready: {}",
                condition.message
            )));
        }
        None => {
            return Ok(Err(format!(
                "TableCluster \"{name}\" is not Ready: it is new"
            )));
        }
    }
    let secret = secret_name(&name);
    let secrets = context.namespaced::<Secret>(cluster);
    let found = secrets
        .get_opt(&secret)
        .await
        .map_err(Error::kubernetes(reading::<Secret>(&secret)))?;
    let Some(found) = found else {
        return Ok(Err(format!(
            "Secret \"{secret}\" with the operator's token is not there; it is made again by itself"
        )));
    };
    let Some(token) = token_of(&found).map(str::to_owned) else {
        return Ok(Err(token_missing(&secret)));
    };
    let client = context
        .engines
        .client(&cluster.namespace().unwrap_or_default(), &name, token);
    Ok(client.map_err(|error| format!("TableCluster \"{name}\": {error}")))
}

async fn report(table: &Table, context: &Context, outcome: &TableOutcome) -> Result<Action, Error> {
    let previous = table.status.clone().unwrap_or_default();
    for change in &outcome.applied {
        tracing::info!(table = table.name_any(), class = ?change.class, change = change.description, "applied");
    }
    let status = outcome.status(table, now());
    if previous != status {
        context
            .report(table, &status, &previous.conditions, &status.conditions)
            .await?;
    }
    Ok(context.look_again(table, outcome.reason))
}

/// Puts the finalizer on the object, or takes it off; tells whether that was a change.
async fn set_finalizer(table: &Table, context: &Context, wanted: bool) -> Result<bool, Error> {
    let mut finalizers = table.finalizers().to_vec();
    if finalizers.iter().any(|finalizer| finalizer == FINALIZER) == wanted {
        return Ok(false);
    }
    finalizers.retain(|finalizer| finalizer != FINALIZER);
    if wanted {
        finalizers.push(FINALIZER.to_owned());
    }
    let metadata = json!({ "resourceVersion": table.resource_version(), "finalizers": finalizers });
    let patch = Patch::Merge(json!({ "metadata": metadata }));
    match context
        .namespaced::<Table>(table)
        .patch(&table.name_any(), &PatchParams::default(), &patch)
        .await
    {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(true),
        patched => patched
            .map(|_| true)
            .map_err(Error::kubernetes("set the finalizer")),
    }
}

/// Drops the table of an object that is being deleted, if it says so, and lets the object go.
async fn let_go(table: &Table, tables: &Tables) -> Result<Action, Error> {
    let context = &*tables.context;
    if !table
        .finalizers()
        .iter()
        .any(|finalizer| finalizer == FINALIZER)
    {
        return Ok(Action::await_change());
    }
    let note = match table.spec.deletion_policy {
        DeletionPolicy::Retain => Ok("the table stays: spec.deletionPolicy is Retain".to_owned()),
        DeletionPolicy::Delete => drop_table(table, tables).await?,
    };
    match note {
        Ok(note) => {
            context
                .event(table, EventType::Normal, "Released", &note)
                .await;
            set_finalizer(table, context, false).await?;
            Ok(Action::await_change())
        }
        Err(waiting) => {
            let message = format!(
                "the table is not dropped yet: {waiting}; to let go of it without, set spec.deletionPolicy to Retain"
            );
            report(
                table,
                context,
                &TableOutcome::failed(Reason::DropPending, message),
            )
            .await
        }
    }
}

/// What became of the table, or what its drop waits for.
async fn drop_table(table: &Table, tables: &Tables) -> Result<Result<String, String>, Error> {
    let context = &*tables.context;
    let gone = || {
        Ok(Ok(
            "the TableCluster is gone: there is no table to drop".to_owned()
        ))
    };
    let Some(cluster) = find_cluster(table, context).await? else {
        return gone();
    };
    if cluster.meta().deletion_timestamp.is_some() {
        return gone();
    }
    let Ok(name) = table.table_name() else {
        return Ok(Ok("no table can have this name".to_owned()));
    };
    let all = tables.store.state();
    if let Some(first) = preceding(table, &all) {
        let first = first.name_any();
        return Ok(Ok(format!(
            "table \"{name}\" stays: Table \"{first}\" declares it"
        )));
    }
    let client = match engine(&cluster, context).await? {
        Ok(client) => client,
        Err(waiting) => return Ok(Err(waiting)),
    };
    let owner = reconcile::owner(&context.kubernetes, table);
    let live = live_sibling(table, &all).map(ResourceExt::name_any);
    let dropped = reconcile::drop_table(&client, &name, &owner, live.is_some()).await;
    Ok(match dropped {
        DropOutcome::Dropped => Ok(format!("table \"{name}\" and its data were dropped")),
        DropOutcome::Absent => Ok(format!("table \"{name}\" does not exist")),
        DropOutcome::NotOurs => Ok(format!(
            "table \"{name}\" stays: it does not belong to this object"
        )),
        DropOutcome::DeclaredByOther => Err(format!(
            "Table \"{}\" declares it too; delete that Table for the table to be dropped",
            live.unwrap_or_default()
        )),
        DropOutcome::Failed(message) => Err(message),
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn aged(name: &str, spec: &str, second: i64) -> Arc<Table> {
        let mut table =
            crate::test_objects::table(name, &format!("{{families: [{{name: f}}]{spec}}}"));
        table.metadata.creation_timestamp =
            Some(Time(Timestamp::from_second(second).expect("in range")));
        Arc::new(table)
    }

    #[test]
    fn the_oldest_wins() {
        let all = [
            aged("b", ", tableName: t", 20),
            aged("a", ", tableName: t", 20),
            aged("t", "", 30),
            aged("other", "", 1),
        ];
        let winner = |table: &Table| preceding(table, &all).map(ResourceExt::name_any);
        assert_eq!(
            winner(&all[0]).as_deref(),
            Some("a"),
            "of equal age the lower UID"
        );
        assert_eq!(winner(&all[1]), None);
        assert_eq!(winner(&all[2]).as_deref(), Some("a"));
        assert_eq!(winner(&all[3]), None);
    }

    /// Made in the same second: the one that has the table keeps it, whatever its UID and its age.
    #[test]
    fn who_has_the_table_wins() {
        let mut has = (*aged("z", ", tableName: t", 20)).clone();
        has.status = Some(crate::crd::TableStatus {
            table_uid: Some("made".to_owned()),
            ..crate::crd::TableStatus::default()
        });
        let all = [
            Arc::new(has),
            aged("a", ", tableName: t", 20),
            aged("older", ", tableName: t", 10),
        ];
        let winner = |table: &Table| preceding(table, &all).map(ResourceExt::name_any);
        assert_eq!(winner(&all[0]), None);
        assert_eq!(winner(&all[1]).as_deref(), Some("z"));
        assert_eq!(winner(&all[2]).as_deref(), Some("z"));
    }

    #[test]
    fn a_live_sibling_keeps_the_table() {
        let first = aged("a", ", tableName: t, deletionPolicy: Delete", 10);
        let second = aged("b", ", tableName: t, deletionPolicy: Delete", 20);
        let other = aged("c", "", 1);
        let all = [Arc::clone(&first), Arc::clone(&second), Arc::clone(&other)];
        let live =
            |table: &Table, all: &[Arc<Table>]| live_sibling(table, all).map(ResourceExt::name_any);
        assert_eq!(live(&first, &all).as_deref(), Some("b"), "the drop waits");
        assert_eq!(
            preceding(&second, &all)
                .map(ResourceExt::name_any)
                .as_deref(),
            Some("a"),
            "the younger goes at once"
        );
        assert_eq!(live(&other, &all), None);
        let mut going = (*second).clone();
        going.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        let all = [Arc::clone(&first), Arc::new(going)];
        assert_eq!(live(&first, &all), None, "both go");
    }

    #[test]
    fn tables_of_other_clusters_and_namespaces_are_others() {
        let table = aged("t", "", 20);
        let mut elsewhere = (*aged("u", ", tableName: t", 10)).clone();
        assert!(is_same_table(&table, &elsewhere));
        elsewhere.metadata.namespace = Some("other".to_owned());
        assert!(!is_same_table(&table, &elsewhere));
        elsewhere.metadata.namespace = table.namespace();
        elsewhere.spec.cluster_ref.name = "second".to_owned();
        assert!(!is_same_table(&table, &elsewhere));
    }
}

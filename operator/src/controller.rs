//! The controllers: watch the custom resources and keep what they describe so.
//!
//! **Invariants**: at most [`CONCURRENCY`] reconciliations of a kind run at once, each ends by [`RECONCILE_SECONDS`];
//! failures back off; status is written only when it changed, so that writing it does not go round in a circle. A schema
//! changes by compare-and-set alone, so two operators at once do no harm beyond extra work.

mod backoff;
mod cluster;
mod context;
mod engines;
mod table;

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Service;
use kube::api::Api;
use kube::runtime::controller::{Action, Controller, Error as ControllerError};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{Config, watcher};
use kube::{Resource, ResourceExt};

use crate::Error;
use crate::crd::{Table, TableCluster};
use crate::probe::{self, Probe};
use crate::render::managed_selector;
use context::Context;

/// Reconciliations of a kind at once.
const CONCURRENCY: u16 = 8;
/// The time limit of one.
const RECONCILE_SECONDS: u64 = 60;
/// How often an object that is as it should be is looked at all the same: drift in the engine has no watch.
const RESYNC: Duration = Duration::from_secs(300);

/// How the operator runs.
#[derive(Debug, Clone)]
pub struct OperatorConfig {
    /// The image of servers whose TableCluster names none: the operator's own.
    pub image: String,
    /// Where `/healthz`, `/readyz` and `/metrics` are served.
    pub listen: SocketAddr,
}

/// Runs the controllers until `shutdown`, then lets running reconciliations end. Connects by KUBECONFIG or as a pod.
pub async fn run(
    config: OperatorConfig,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let listener = probe::bind(config.listen).await?;
    let context = Arc::new(Context::connect(config.image).await?);
    let shutdown = shutdown.boxed().shared();

    let clusters = cluster_controller(&context);
    let tables = table_controller(&context);
    let probe = Probe::new(vec![ready(clusters.store()), ready(tables.store())]);
    let table_context = Arc::new(table::Tables {
        context: Arc::clone(&context),
        store: tables.store(),
    });
    let clusters = clusters.graceful_shutdown_on(shutdown.clone()).run(
        cluster::reconcile,
        |object, error, context| context.back_off(&*object, error),
        Arc::clone(&context),
    );
    let tables = tables.graceful_shutdown_on(shutdown.clone()).run(
        table::reconcile,
        |object, error, tables| tables.context.back_off(&*object, error),
        table_context,
    );
    tracing::info!(address = %config.listen, "operator started");
    let controllers =
        futures::future::join(drive("TableCluster", clusters), drive("Table", tables));
    tokio::select! {
        _ = controllers => Ok(()),
        served = probe.serve(listener) => served,
    }
}

fn cluster_controller(context: &Context) -> Controller<TableCluster> {
    let managed = watcher::Config::default().labels(&managed_selector());
    Controller::new(Api::all(context.client.clone()), watcher::Config::default())
        .owns(
            Api::<StatefulSet>::all(context.client.clone()),
            managed.clone(),
        )
        .owns(Api::<Service>::all(context.client.clone()), managed)
        .with_config(Config::default().concurrency(CONCURRENCY))
}

/// Besides its own changes, a Table waits for its TableCluster's and for those of Tables that declare the same table.
fn table_controller(context: &Context) -> Controller<Table> {
    let controller = Controller::new(
        Api::<Table>::all(context.client.clone()),
        watcher::Config::default(),
    )
    .with_config(Config::default().concurrency(CONCURRENCY));
    let (of_cluster, siblings) = (controller.store(), controller.store());
    controller
        .watches(
            Api::<TableCluster>::all(context.client.clone()),
            watcher::Config::default(),
            move |cluster| {
                references(&of_cluster, |table| {
                    table.namespace() == cluster.namespace()
                        && table.spec.cluster_ref.name == cluster.name_any()
                })
            },
        )
        .watches(
            Api::<Table>::all(context.client.clone()),
            watcher::Config::default(),
            move |changed| {
                references(&siblings, |table| {
                    table.uid() != changed.uid() && table::is_same_table(table, &changed)
                })
            },
        )
}

fn references(tables: &Store<Table>, wanted: impl Fn(&Table) -> bool) -> Vec<ObjectRef<Table>> {
    tables
        .state()
        .iter()
        .filter(|table| wanted(table))
        .map(|table| ObjectRef::from_obj(&**table))
        .collect()
}

/// Ends when the first list of the kind was read; a missing CRD or right keeps it waiting.
fn ready<K>(store: Store<K>) -> futures::future::BoxFuture<'static, ()>
where
    K: Resource<DynamicType = ()> + Clone + Send + Sync + 'static,
{
    async move {
        if store.wait_until_ready().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
    .boxed()
}

/// Runs a controller to its end and tells of what goes wrong outside reconciliations, which report for themselves.
async fn drive<K: Resource<DynamicType = ()> + Clone + Debug + 'static>(
    kind: &'static str,
    controller: impl Stream<
        Item = Result<(ObjectRef<K>, Action), ControllerError<Error, watcher::Error>>,
    >,
) {
    controller
        .for_each(|result| async move {
            let outcome = match result {
                Ok(_) => "success",
                Err(ControllerError::ObjectNotFound(_)) => return,
                Err(ControllerError::ReconcilerFailed(..)) => "failure",
                Err(error) => {
                    tracing::warn!(kind, error = %full(&error), "watch");
                    metrics::counter!("tablemount_operator_watch_failures_total", "kind" => kind).increment(1);
                    return;
                }
            };
            metrics::counter!("tablemount_operator_reconciles_total", "kind" => kind, "outcome" => outcome).increment(1);
        })
        .await;
}

/// The error with its causes.
fn full(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    std::iter::once(error.to_string())
        .chain(causes.map(ToString::to_string))
        .collect::<Vec<_>>()
        .join(": ")
}

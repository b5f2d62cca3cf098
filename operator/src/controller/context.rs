//! What all reconciliations share, and the calls of the Kubernetes API that both controllers make.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::events::{Event, EventType, Recorder};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::backoff::Backoff;
use super::engines::Engines;
use crate::Error;
use crate::condition::{READY, Reason, shorten};
use crate::crd::TableCluster;
use crate::render::{MANAGER, is_part_of};

/// The time limit for a connection to the API server.
const CONNECT: Duration = Duration::from_secs(10);

/// How often a Table is looked at that another one stands in the way of: its store may lag behind the other's end.
const CONFLICT: Duration = Duration::from_secs(10);

/// What all reconciliations share.
pub(super) struct Context {
    pub(super) client: Client,
    pub(super) image: String,
    /// The UID of the namespace kube-system: names this Kubernetes cluster in owner markers.
    pub(super) kubernetes: String,
    pub(super) engines: Engines,
    backoff: Backoff,
    recorder: Recorder,
}

impl Context {
    /// Connects to the API server.
    pub(super) async fn connect(image: String) -> Result<Self, Error> {
        let mut config = kube::Config::infer()
            .await
            .map_err(|error| Error::Connect(error.into()))?;
        config.connect_timeout = Some(CONNECT);
        let client = Client::try_from(config).map_err(|error| Error::Connect(error.into()))?;
        let kube_system = Api::<Namespace>::all(client.clone())
            .get("kube-system")
            .await;
        let kube_system = kube_system.map_err(Error::kubernetes("read namespace kube-system"))?;
        Ok(Self::new(
            client,
            image,
            kube_system.uid().unwrap_or_default(),
        ))
    }

    /// With a client that is connected already.
    pub(super) fn new(client: Client, image: String, kubernetes: String) -> Self {
        Self {
            recorder: Recorder::new(client.clone(), MANAGER.into()),
            client,
            image,
            kubernetes,
            engines: Engines::default(),
            backoff: Backoff::default(),
        }
    }

    /// When to look again after a reconciliation that failed.
    pub(super) fn back_off<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        error: &Error,
    ) -> Action {
        let wait = self.backoff.failed(&key(object), "error", Instant::now());
        tracing::warn!(object = key(object), error = %super::full(error), wait = ?wait, "reconcile");
        Action::requeue(wait)
    }

    /// When to look again after an outcome that may pass by itself by its `reason`, or not.
    pub(super) fn look_again<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        reason: Reason,
    ) -> Action {
        if reason.is_transient() {
            return Action::requeue(self.backoff.failed(
                &key(object),
                &format!("{reason:?}"),
                Instant::now(),
            ));
        }
        self.backoff.succeeded(&key(object));
        Action::requeue(match reason {
            Reason::Conflicted => CONFLICT,
            _ => super::RESYNC,
        })
    }

    /// Applies an object that belongs to `cluster`, unless its name is another's.
    pub(super) async fn apply<K>(&self, cluster: &TableCluster, desired: &K) -> Result<(), Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Serialize
            + DeserializeOwned
            + Clone
            + Debug,
    {
        let api = self.namespaced::<K>(cluster);
        let name = desired.name_any();
        let existing = api
            .get_metadata_opt(&name)
            .await
            .map_err(Error::kubernetes(reading::<K>(&name)))?;
        if let Some(existing) = existing {
            ensure_part_of::<K>(cluster, &existing.metadata)?;
        }
        let params = PatchParams::apply(MANAGER).force();
        let applied = api.patch(&name, &params, &Patch::Apply(desired)).await;
        applied.map(|_| ()).map_err(Error::kubernetes(format!(
            "apply {} \"{name}\"",
            K::kind(&())
        )))
    }

    /// Writes `status` if it is not what `object` has already, and an event if the reason of Ready changed.
    pub(super) async fn report<K, S>(
        &self,
        object: &K,
        status: &S,
        before: &[Condition],
        after: &[Condition],
    ) -> Result<(), Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Serialize
            + DeserializeOwned
            + Clone
            + Debug,
        S: Serialize,
    {
        let body =
            json!({ "apiVersion": K::api_version(&()), "kind": K::kind(&()), "status": status });
        let params = PatchParams::apply(MANAGER).force();
        let written = self
            .namespaced::<K>(object)
            .patch_status(&object.name_any(), &params, &Patch::Apply(body))
            .await;
        match written {
            Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(()),
            written => written.map_err(Error::kubernetes("write status"))?,
        };
        let reason =
            |conditions: &[Condition]| ready(conditions).map(|condition| condition.reason.clone());
        if let Some(now) = ready(after).filter(|now| Some(&now.reason) != reason(before).as_ref()) {
            let kind = if now.status == "True" {
                EventType::Normal
            } else {
                EventType::Warning
            };
            self.event(object, kind, &now.reason, &now.message).await;
        }
        Ok(())
    }

    /// Publishes an event about `object`; that it cannot be is only logged.
    pub(super) async fn event<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        type_: EventType,
        reason: &str,
        note: &str,
    ) {
        tracing::info!(object = key(object), reason, note, "event");
        let event = Event {
            type_,
            reason: reason.to_owned(),
            note: Some(shorten(note)),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, &object.object_ref(&())).await {
            tracing::warn!(object = key(object), error = %super::full(&error), "publish event");
        }
    }

    /// The API of a kind in the namespace of `object`.
    pub(super) fn namespaced<K>(&self, object: &impl ResourceExt) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &object.namespace().unwrap_or_default())
    }
}

/// Refuses an object that is not `cluster`'s.
pub(super) fn ensure_part_of<K: Resource<DynamicType = ()>>(
    cluster: &TableCluster,
    metadata: &kube::api::ObjectMeta,
) -> Result<(), Error> {
    if is_part_of(cluster, metadata) {
        return Ok(());
    }
    Err(Error::NameTaken {
        kind: K::kind(&()).into_owned(),
        name: metadata.name.clone().unwrap_or_default(),
    })
}

/// What is being done when an object is read.
pub(super) fn reading<K: Resource<DynamicType = ()>>(name: &str) -> String {
    format!("read {} \"{name}\"", K::kind(&()))
}

/// The time that conditions carry: whole seconds, as Kubernetes keeps them.
pub(super) fn now() -> Timestamp {
    Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default()
}

fn ready(conditions: &[Condition]) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.type_ == READY)
}

fn key<K: Resource<DynamicType = ()>>(object: &K) -> String {
    let meta = object.meta();
    let place = (
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default(),
    );
    format!("{} {}/{}", K::kind(&()), place.0, place.1)
}

//! The Kubernetes objects of a TableCluster, built purely from its spec.
//!
//! ```text
//! TableCluster main ─┬─ ServiceAccount main-engine       (no token)
//!                    ├─ Secret main-operator-token       (made once: by it the server knows the operator)
//!                    ├─ Service main                     (clients: HTTP 8080, gRPC 9090)
//!                    ├─ Service main-headless            (pods by name)
//!                    ├─ PodDisruptionBudget main         (maxUnavailable 1)
//!                    └─ StatefulSet main ── pod main-0 ── claim data-main-0   (the claim outlives everything)
//! ```
//! **Invariants**: names and labels never change, for selectors and claims cannot; the pod satisfies Pod Security
//! "restricted" (`the_pod_is_restricted`); a pod template depends on the spec and the image only, and is kept until the
//! spec changes ([`template`]).

mod budgets;
pub(crate) mod stateful_set;
pub(crate) mod template;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Secret, Service, ServiceAccount, ServicePort, ServiceSpec};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::ObjectMeta;
use kube::{Resource, ResourceExt};

use crate::crd::TableCluster;

/// Who the operator is in server-side apply, in labels and in events.
pub(crate) const MANAGER: &str = "tablemount-operator";
/// The key of the Secret that holds the operator's token.
pub(crate) const TOKEN_KEY: &str = "token";

const HTTP_PORT: i32 = 8080;
const GRPC_PORT: i32 = 9090;

/// The name of the server's ServiceAccount.
pub(crate) fn service_account_name(cluster: &str) -> String {
    format!("{cluster}-engine")
}

/// The name of the Secret with the operator's token.
pub(crate) fn secret_name(cluster: &str) -> String {
    format!("{cluster}-operator-token")
}

/// The name of the Service that gives pods names.
pub(crate) fn headless_name(cluster: &str) -> String {
    format!("{cluster}-headless")
}

/// The name of the only server's pod.
pub(crate) fn pod_name(cluster: &str) -> String {
    format!("{cluster}-0")
}

/// The name of the only server's volume claim.
pub(crate) fn claim_name(cluster: &str) -> String {
    format!("data-{cluster}-0")
}

/// The server's URL inside the Kubernetes cluster.
pub(crate) fn endpoint(namespace: &str, cluster: &str) -> String {
    format!("http://{cluster}.{namespace}.svc:{HTTP_PORT}")
}

/// The labels by which a TableCluster's pods are selected.
pub(crate) fn selector(cluster: &str) -> BTreeMap<String, String> {
    [
        ("name", "tablemount"),
        ("instance", cluster),
        ("component", "engine"),
    ]
    .map(|(key, value)| (format!("app.kubernetes.io/{key}"), value.to_owned()))
    .into()
}

/// The selector as the scale subresource gives it.
pub(crate) fn selector_text(cluster: &str) -> String {
    selector(cluster)
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect::<Vec<_>>()
        .join(",")
}

/// The label selector of everything that the operator makes.
pub(crate) fn managed_selector() -> String {
    format!("app.kubernetes.io/managed-by={MANAGER}")
}

fn labels(cluster: &str) -> BTreeMap<String, String> {
    let mut labels = selector(cluster);
    labels.insert(
        "app.kubernetes.io/managed-by".to_owned(),
        MANAGER.to_owned(),
    );
    labels
}

/// Whether an object with `metadata` is `cluster`'s: it is its controller, or the object was orphaned by an earlier one of
/// that name.
pub(crate) fn is_part_of(cluster: &TableCluster, metadata: &ObjectMeta) -> bool {
    let controller = metadata
        .owner_references
        .iter()
        .flatten()
        .find(|owner| owner.controller == Some(true));
    match controller {
        Some(owner) => cluster.uid().is_some_and(|uid| owner.uid == uid),
        None => metadata.labels.as_ref().is_some_and(|have| {
            labels(&cluster.name_any())
                .iter()
                .all(|(key, value)| have.get(key) == Some(value))
        }),
    }
}

/// Metadata of the object `name` that belongs to `cluster`.
pub(crate) fn metadata(cluster: &TableCluster, name: String) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        namespace: cluster.namespace(),
        labels: Some(labels(&cluster.name_any())),
        owner_references: cluster.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}

/// The server's identity, which may do nothing and gets no token.
pub(crate) fn service_account(cluster: &TableCluster) -> ServiceAccount {
    ServiceAccount {
        metadata: metadata(cluster, service_account_name(&cluster.name_any())),
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    }
}

/// The Secret with `token`, by which the server knows the operator.
pub(crate) fn secret(cluster: &TableCluster, token: String) -> Secret {
    Secret {
        metadata: metadata(cluster, secret_name(&cluster.name_any())),
        string_data: Some([(TOKEN_KEY.to_owned(), token)].into()),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    }
}

/// The operator's token, as the Secret keeps it.
pub(crate) fn token_of(secret: &Secret) -> Option<&str> {
    let token = secret.data.as_ref()?.get(TOKEN_KEY)?;
    std::str::from_utf8(&token.0)
        .ok()
        .filter(|token| !token.is_empty())
}

/// What to do about the Secret `name` without the operator's token.
pub(crate) fn token_missing(name: &str) -> String {
    format!(
        "Secret \"{name}\" has no token under the key \"{TOKEN_KEY}\"; delete the Secret, so that the operator makes it again"
    )
}

/// The Service for clients: only servers that serve.
pub(crate) fn client_service(cluster: &TableCluster) -> Service {
    service(cluster, cluster.name_any(), ServiceSpec::default())
}

/// The Service that gives each pod a name, also before it serves.
pub(crate) fn headless_service(cluster: &TableCluster) -> Service {
    let spec = ServiceSpec {
        cluster_ip: Some("None".to_owned()),
        publish_not_ready_addresses: Some(true),
        ..ServiceSpec::default()
    };
    service(cluster, headless_name(&cluster.name_any()), spec)
}

fn service(cluster: &TableCluster, name: String, spec: ServiceSpec) -> Service {
    let port = |name: &str, port| ServicePort {
        name: Some(name.to_owned()),
        port,
        target_port: Some(IntOrString::String(name.to_owned())),
        protocol: Some("TCP".to_owned()),
        ..ServicePort::default()
    };
    Service {
        metadata: metadata(cluster, name),
        spec: Some(ServiceSpec {
            selector: Some(selector(&cluster.name_any())),
            ports: Some(vec![port("http", HTTP_PORT), port("grpc", GRPC_PORT)]),
            ..spec
        }),
        ..Service::default()
    }
}

/// At most one server is taken away on purpose at a time; with a minimum instead, one server would block every drain.
pub(crate) fn disruption_budget(cluster: &TableCluster) -> PodDisruptionBudget {
    PodDisruptionBudget {
        metadata: metadata(cluster, cluster.name_any()),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(1)),
            selector: Some(LabelSelector {
                match_labels: Some(selector(&cluster.name_any())),
                ..LabelSelector::default()
            }),
            ..PodDisruptionBudgetSpec::default()
        }),
        ..PodDisruptionBudget::default()
    }
}

#[cfg(test)]
mod tests;

//! The server's pod, and when it is rendered anew.
//!
//! **Invariants**: pods restart only when the user changes what they see (`an_operator_upgrade_restarts_nothing`): the
//! template is kept, as rendered, in an annotation of the StatefulSet beside what it was rendered from, which is compared as
//! today's types read it (`a_new_field_restarts_nothing`); the image changes only with spec.image
//! (`the_image_changes_only_with_the_specs`).

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, HTTPGetAction, KeyToPath, LocalObjectReference,
    PodSecurityContext, PodSpec, PodTemplateSpec, Probe, ResourceRequirements, SeccompProfile,
    SecretVolumeSource, SecurityContext, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use kube::api::ObjectMeta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::budgets;
use super::{GRPC_PORT, HTTP_PORT, TOKEN_KEY, labels, secret_name, service_account_name};
use crate::crd::{
    Access, Anonymous, Budgets, ImagePullPolicy, PullSecret, Resources, TableCluster,
};

/// Annotation of the StatefulSet: what the kept template was rendered from, as JSON. Without it, the template is rendered
/// anew.
pub(crate) const POD_SPEC: &str = "tablemount.dev/spec";
/// Annotation of the StatefulSet: the pod template as it was rendered, as JSON.
pub(crate) const POD_TEMPLATE: &str = "tablemount.dev/pod-template";

const USER: i64 = 65532;
const DATA_FOLDER: &str = "/data";
const TOKEN_FOLDER: &str = "/etc/tablemount/token";
/// A look each second, for half an hour. `/healthz` answers as soon as the process listens, before recovery, which
/// `/readyz` waits for: this is for nodes so slow that the process does not come that far.
const STARTUP_FAILURES: i32 = 1800;

/// A template and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template {
    pub(crate) pod: PodTemplateSpec,
    /// What it was rendered from, as JSON.
    pub(crate) seen: String,
    pub(crate) update: Update,
}

/// How the operator would run the server now, where that is not how it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Update {
    /// As it runs.
    None,
    /// With this image.
    Image(String),
    /// With the same image, otherwise set up.
    Template,
}

/// What a pod depends on, as the user sees it. A new field's default must be what was before there was the field.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Seen {
    image: Option<String>,
    image_pull_policy: Option<ImagePullPolicy>,
    image_pull_secrets: Vec<PullSecret>,
    resources: Option<Resources>,
    budgets: Option<Budgets>,
    access: Access,
}

impl Seen {
    fn new(cluster: &TableCluster) -> Self {
        let spec = cluster.spec.clone();
        Self {
            image: spec.image,
            image_pull_policy: spec.image_pull_policy,
            image_pull_secrets: spec.image_pull_secrets,
            resources: spec.resources,
            budgets: spec.budgets,
            access: spec.access,
        }
    }
}

impl Template {
    /// The template for `cluster`: the one that `existing` keeps while the spec is the one it was rendered from, else a new
    /// one. The image is the spec's, else the one that the server has already, else `default_image`.
    pub(crate) fn new(
        cluster: &TableCluster,
        default_image: &str,
        existing: Option<&StatefulSet>,
    ) -> Self {
        let seen = Seen::new(cluster);
        let kept: Option<PodTemplateSpec> =
            existing.and_then(|existing| annotation(existing, POD_TEMPLATE));
        let from: Option<Seen> = existing.and_then(|existing| annotation(existing, POD_SPEC));
        let wanted = seen.image.as_deref().unwrap_or(default_image);
        let before = kept.as_ref().and_then(image_of).or_else(|| {
            let status = cluster.status.as_ref()?;
            status.image.clone()
        });
        let image = seen.image.clone().or(before);
        let image = image.unwrap_or_else(|| default_image.to_owned());
        let pod = kept
            .filter(|_| from.as_ref() == Some(&seen))
            .unwrap_or_else(|| render(cluster, &image));
        Self {
            update: update(&pod, &render(cluster, wanted)),
            pod,
            seen: serde_json::to_string(&seen).unwrap_or_default(),
        }
    }

    /// The image of the server's container.
    pub(crate) fn image(&self) -> Option<String> {
        image_of(&self.pod)
    }
}

fn update(pod: &PodTemplateSpec, wanted: &PodTemplateSpec) -> Update {
    if pod == wanted {
        return Update::None;
    }
    match image_of(wanted) {
        Some(image) if image_of(pod).as_ref() != Some(&image) => Update::Image(image),
        _ => Update::Template,
    }
}

fn image_of(pod: &PodTemplateSpec) -> Option<String> {
    pod.spec.as_ref()?.containers.first()?.image.clone()
}

/// What an annotation of the StatefulSet keeps as JSON.
fn annotation<T: DeserializeOwned>(existing: &StatefulSet, key: &str) -> Option<T> {
    serde_json::from_str(existing.annotations().get(key)?).ok()
}

fn render(cluster: &TableCluster, image: &str) -> PodTemplateSpec {
    let name = cluster.name_any();
    PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels(&name)),
            ..ObjectMeta::default()
        }),
        spec: Some(PodSpec {
            image_pull_secrets: pull_secrets(&cluster.spec.image_pull_secrets),
            service_account_name: Some(service_account_name(&name)),
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            termination_grace_period_seconds: Some(60),
            security_context: Some(pod_security()),
            containers: vec![container(cluster, image)],
            volumes: Some(vec![token_volume(&name)]),
            ..PodSpec::default()
        }),
    }
}

fn pull_secrets(secrets: &[PullSecret]) -> Option<Vec<LocalObjectReference>> {
    let reference = |secret: &PullSecret| LocalObjectReference {
        name: secret.name.clone(),
    };
    (!secrets.is_empty()).then(|| secrets.iter().map(reference).collect())
}

fn container(cluster: &TableCluster, image: &str) -> Container {
    Container {
        name: "engine".to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: cluster
            .spec
            .image_pull_policy
            .map(|policy| format!("{policy:?}")),
        args: Some(arguments(cluster)),
        env: budgets::variables(cluster),
        ports: Some(vec![port("http", HTTP_PORT), port("grpc", GRPC_PORT)]),
        resources: cluster.spec.resources.as_ref().map(resources),
        security_context: Some(container_security()),
        startup_probe: Some(probe("/healthz", 1, STARTUP_FAILURES)),
        liveness_probe: Some(probe("/healthz", 10, 6)),
        readiness_probe: Some(probe("/readyz", 2, 3)),
        volume_mounts: Some(vec![
            mount("data", DATA_FOLDER, false),
            mount("token", TOKEN_FOLDER, true),
        ]),
        ..Container::default()
    }
}

fn arguments(cluster: &TableCluster) -> Vec<String> {
    let anonymous = match cluster.spec.access.anonymous {
        Anonymous::None => "none",
        Anonymous::ReadOnly => "read-only",
        Anonymous::ReadWrite => "read-write",
    };
    [
        "engine",
        "--data",
        DATA_FOLDER,
        "--http",
        &format!("0.0.0.0:{HTTP_PORT}"),
        "--grpc",
        &format!("0.0.0.0:{GRPC_PORT}"),
        "--anonymous",
        anonymous,
        "--token-file",
        &format!("{TOKEN_FOLDER}/{TOKEN_KEY}"),
    ]
    .map(str::to_owned)
    .to_vec()
}

fn port(name: &str, number: i32) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: number,
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    }
}

fn resources(resources: &Resources) -> ResourceRequirements {
    ResourceRequirements {
        requests: resources.requests.as_ref().map(|list| list.quantities()),
        limits: resources.limits.as_ref().map(|list| list.quantities()),
        ..ResourceRequirements::default()
    }
}

fn probe(path: &str, period_seconds: i32, failure_threshold: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String("http".to_owned()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period_seconds),
        failure_threshold: Some(failure_threshold),
        timeout_seconds: Some(5),
        ..Probe::default()
    }
}

fn mount(name: &str, path: &str, read_only: bool) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        read_only: read_only.then_some(true),
        ..VolumeMount::default()
    }
}

fn token_volume(cluster: &str) -> Volume {
    Volume {
        name: "token".to_owned(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(secret_name(cluster)),
            items: Some(vec![KeyToPath {
                key: TOKEN_KEY.to_owned(),
                path: TOKEN_KEY.to_owned(),
                mode: None,
            }]),
            default_mode: Some(0o440),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    }
}

fn pod_security() -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(USER),
        run_as_group: Some(USER),
        fs_group: Some(USER),
        fs_group_change_policy: Some("OnRootMismatch".to_owned()),
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            localhost_profile: None,
        }),
        ..PodSecurityContext::default()
    }
}

fn container_security() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".to_owned()]),
            add: None,
        }),
        read_only_root_filesystem: Some(true),
        run_as_non_root: Some(true),
        ..SecurityContext::default()
    }
}

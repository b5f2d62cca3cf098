//! The server's pod, and when it is rendered anew.
//!
//! **Invariant**: pods restart only when the user changes what they see (`an_operator_upgrade_restarts_nothing`): the
//! template is kept, as rendered, in an annotation of the StatefulSet beside the hash of the spec that it was rendered from.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, HTTPGetAction, KeyToPath, PodSecurityContext, PodSpec,
    PodTemplateSpec, Probe, ResourceRequirements, SeccompProfile, SecretVolumeSource,
    SecurityContext, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use kube::api::ObjectMeta;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{GRPC_PORT, HTTP_PORT, TOKEN_KEY, labels, secret_name, service_account_name};
use crate::crd::{Anonymous, Resources, TableCluster};

/// Annotation of the StatefulSet: the hash of what the kept template was rendered from.
pub(crate) const SPEC_HASH: &str = "tablemount.dev/spec-hash";
/// Annotation of the StatefulSet: the pod template as it was rendered, as JSON.
pub(crate) const POD_TEMPLATE: &str = "tablemount.dev/pod-template";

const USER: i64 = 65532;
const DATA_FOLDER: &str = "/data";
const TOKEN_FOLDER: &str = "/etc/tablemount/token";
/// Recovery replays the commit log before the server answers: half an hour, looked at each second.
const STARTUP_FAILURES: i32 = 1800;

/// A template and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template {
    pub(crate) pod: PodTemplateSpec,
    pub(crate) hash: String,
    /// Whether it would be rendered differently now and is kept all the same.
    pub(crate) outdated: bool,
}

impl Template {
    /// The template for `cluster`: the one that `existing` keeps while the spec is the one it was rendered from, else a new
    /// one, with `default_image` unless the spec names an image.
    pub(crate) fn new(
        cluster: &TableCluster,
        default_image: &str,
        existing: Option<&StatefulSet>,
    ) -> Self {
        let hash = spec_hash(cluster);
        let image = cluster.spec.image.as_deref().unwrap_or(default_image);
        let rendered = render(cluster, image);
        match existing.and_then(|existing| kept(existing, &hash)) {
            Some(pod) => Self {
                outdated: pod != rendered,
                pod,
                hash,
            },
            None => Self {
                pod: rendered,
                hash,
                outdated: false,
            },
        }
    }

    /// The image of the server's container.
    pub(crate) fn image(&self) -> Option<String> {
        self.pod.spec.as_ref()?.containers.first()?.image.clone()
    }
}

fn kept(existing: &StatefulSet, hash: &str) -> Option<PodTemplateSpec> {
    let annotations = existing.annotations();
    if annotations.get(SPEC_HASH)? != hash {
        return None;
    }
    serde_json::from_str(annotations.get(POD_TEMPLATE)?).ok()
}

/// The hash of what a pod depends on, as the user sees it.
fn spec_hash(cluster: &TableCluster) -> String {
    let spec = &cluster.spec;
    let seen = json!({
        "image": spec.image,
        "imagePullPolicy": spec.image_pull_policy,
        "resources": spec.resources,
        "access": spec.access,
    });
    Sha256::digest(seen.to_string())
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn render(cluster: &TableCluster, image: &str) -> PodTemplateSpec {
    let name = cluster.name_any();
    PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels(&name)),
            ..ObjectMeta::default()
        }),
        spec: Some(PodSpec {
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

fn container(cluster: &TableCluster, image: &str) -> Container {
    Container {
        name: "engine".to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: cluster
            .spec
            .image_pull_policy
            .map(|policy| format!("{policy:?}")),
        args: Some(arguments(cluster)),
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

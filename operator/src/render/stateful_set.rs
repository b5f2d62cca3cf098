//! The StatefulSet: a pod template, a volume claim template, a number of replicas.

use k8s_openapi::api::apps::v1::{
    StatefulSet, StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetSpec,
    StatefulSetUpdateStrategy,
};
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use kube::api::ObjectMeta;

use super::template::{POD_SPEC, POD_TEMPLATE, Template};
use super::{headless_name, metadata, selector};
use crate::crd::{Storage, TableCluster};

/// The StatefulSet of `cluster`. Its claim template cannot change and stays what it is in `existing`; the claim grows by
/// itself ([`crate::controller`]).
pub(crate) fn stateful_set(
    cluster: &TableCluster,
    template: &Template,
    existing: Option<&StatefulSet>,
) -> StatefulSet {
    let name = cluster.name_any();
    let storage = existing
        .and_then(storage_of)
        .unwrap_or_else(|| cluster.spec.storage.clone());
    let mut metadata = metadata(cluster, name.clone());
    let kept = serde_json::to_string(&template.pod).unwrap_or_default();
    metadata.annotations = Some(
        [
            (POD_SPEC.to_owned(), template.seen.clone()),
            (POD_TEMPLATE.to_owned(), kept),
        ]
        .into(),
    );
    StatefulSet {
        metadata,
        spec: Some(StatefulSetSpec {
            service_name: Some(headless_name(&name)),
            replicas: Some(cluster.spec.replicas),
            selector: LabelSelector {
                match_labels: Some(selector(&name)),
                ..LabelSelector::default()
            },
            // Servers need no order, and in order a pod that cannot start is never replaced by a corrected one (kubernetes#67250).
            pod_management_policy: Some("Parallel".to_owned()),
            update_strategy: Some(StatefulSetUpdateStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: None,
            }),
            persistent_volume_claim_retention_policy: Some(
                StatefulSetPersistentVolumeClaimRetentionPolicy {
                    when_deleted: Some("Retain".to_owned()),
                    when_scaled: Some("Retain".to_owned()),
                },
            ),
            template: template.pod.clone(),
            volume_claim_templates: Some(vec![claim(cluster, &storage)]),
            ..StatefulSetSpec::default()
        }),
        ..StatefulSet::default()
    }
}

fn claim(cluster: &TableCluster, storage: &Storage) -> PersistentVolumeClaim {
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some("data".to_owned()),
            labels: Some(selector(&cluster.name_any())),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOncePod".to_owned()]),
            storage_class_name: storage.storage_class_name.clone(),
            resources: Some(VolumeResourceRequirements {
                requests: Some([("storage".to_owned(), Quantity(storage.size.clone()))].into()),
                limits: None,
            }),
            ..PersistentVolumeClaimSpec::default()
        }),
        ..PersistentVolumeClaim::default()
    }
}

/// The storage that the StatefulSet's claim template asks for.
fn storage_of(existing: &StatefulSet) -> Option<Storage> {
    let claim = existing
        .spec
        .as_ref()?
        .volume_claim_templates
        .as_ref()?
        .first()?
        .spec
        .as_ref()?;
    let size = claim
        .resources
        .as_ref()?
        .requests
        .as_ref()?
        .get("storage")?
        .0
        .clone();
    Some(Storage {
        size,
        storage_class_name: claim.storage_class_name.clone(),
    })
}

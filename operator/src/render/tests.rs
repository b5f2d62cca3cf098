use serde_json::{Value, json};

use super::stateful_set::stateful_set;
use super::template::{POD_SPEC, POD_TEMPLATE, Template, Update};
use super::*;
use crate::test_objects::cluster;

fn rendered(
    cluster: &TableCluster,
    image: &str,
    existing: Option<&k8s_openapi::api::apps::v1::StatefulSet>,
) -> (Template, Value) {
    let template = Template::new(cluster, image, existing);
    let set = serde_json::to_value(stateful_set(cluster, &template, existing)).expect("JSON");
    (template, set)
}

#[test]
fn the_server_runs_with_the_specs_settings() {
    let cluster = cluster(
        "main",
        "{replicas: 0, access: {anonymous: ReadOnly}, image: 'r/i:2', imagePullPolicy: Never, resources: {limits: {cpu: 2, memory: 1Gi}}, storage: {size: 5Gi, storageClassName: fast}}",
    );
    let (template, set) = rendered(&cluster, "unused:1", None);
    let container = &set["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        container["args"],
        json!([
            "engine",
            "--data",
            "/data",
            "--http",
            "0.0.0.0:8080",
            "--grpc",
            "0.0.0.0:9090",
            "--anonymous",
            "read-only",
            "--token-file",
            "/etc/tablemount/token/token"
        ])
    );
    assert_eq!(
        container["env"][0],
        json!({"name": "TABLEMOUNT_MEMTABLE_BUDGET", "value": (128 << 20).to_string()})
    );
    assert_eq!(template.image().as_deref(), Some("r/i:2"));
    assert_eq!(container["imagePullPolicy"], "Never");
    assert_eq!(
        container["resources"],
        json!({"limits": {"cpu": "2", "memory": "1Gi"}})
    );
    assert_eq!(set["spec"]["replicas"], 0);
    assert_eq!(set["spec"]["podManagementPolicy"], "Parallel");
    let claim = &set["spec"]["volumeClaimTemplates"][0];
    assert_eq!(claim["metadata"]["name"], "data");
    assert_eq!(claim["spec"]["storageClassName"], "fast");
    assert_eq!(claim["spec"]["resources"]["requests"]["storage"], "5Gi");
    assert_eq!(
        set["metadata"]["ownerReferences"],
        json!([{"apiVersion": "tablemount.dev/v1alpha1", "kind": "TableCluster", "name": "main", "uid": "uid-main", "controller": true}])
    );
}

/// The fields that Pod Security's level "restricted" asks for.
#[test]
fn the_pod_is_restricted() {
    let (_, set) = rendered(&cluster("main", "{}"), "i:1", None);
    let pod = &set["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(
        pod["securityContext"]["seccompProfile"]["type"],
        "RuntimeDefault"
    );
    assert_eq!(pod["automountServiceAccountToken"], false);
    let container = &pod["containers"][0]["securityContext"];
    assert_eq!(container["allowPrivilegeEscalation"], false);
    assert_eq!(container["capabilities"], json!({"drop": ["ALL"]}));
    assert_eq!(container["readOnlyRootFilesystem"], true);
}

#[test]
fn an_operator_upgrade_restarts_nothing() {
    let cluster = cluster("main", "{}");
    let first = Template::new(&cluster, "tablemount:1", None);
    assert_eq!(first.update, Update::None);
    let existing = stateful_set(&cluster, &first, None);

    let upgraded = Template::new(&cluster, "tablemount:2", Some(&existing));
    let update = Update::Image("tablemount:2".to_owned());
    assert_eq!((upgraded.pod, upgraded.update), (first.pod.clone(), update));
    let same = Template::new(&cluster, "tablemount:1", Some(&existing));
    assert_eq!((same.pod, same.update), (first.pod, Update::None));
}

#[test]
fn the_image_changes_only_with_the_specs() {
    let before = cluster("main", "{}");
    let first = Template::new(&before, "tablemount:1", None);
    let existing = stateful_set(&before, &first, None);
    let memory = cluster("main", "{resources: {limits: {memory: 1Gi}}}");
    let template = Template::new(&memory, "tablemount:2", Some(&existing));
    assert_ne!(template.pod, first.pod);
    assert_eq!(template.image().as_deref(), Some("tablemount:1"));
    assert_eq!(template.update, Update::Image("tablemount:2".to_owned()));

    // The StatefulSet is gone, or its annotation is not readable: status still knows.
    let mut known = memory.clone();
    known.status = Some(crate::crd::TableClusterStatus {
        image: Some("tablemount:1".to_owned()),
        ..crate::crd::TableClusterStatus::default()
    });
    let mut broken = existing.clone();
    let annotations = broken.metadata.annotations.as_mut().expect("set");
    annotations.insert(POD_TEMPLATE.to_owned(), "{".to_owned());
    for existing in [None, Some(&broken)] {
        let template = Template::new(&known, "tablemount:2", existing);
        assert_eq!(template.image().as_deref(), Some("tablemount:1"));
    }

    // An image that the spec names no longer stays.
    let own = cluster("main", "{image: 'own:3'}");
    let template = Template::new(&own, "tablemount:2", Some(&existing));
    let existing = stateful_set(&own, &template, None);
    let template = Template::new(&before, "tablemount:2", Some(&existing));
    assert_eq!(template.image().as_deref(), Some("own:3"));
}

/// An operator that did not know a field yet wrote the annotation without it.
#[test]
fn a_new_field_restarts_nothing() {
    let cluster = cluster("main", "{image: 'own:3', resources: {limits: {cpu: 1}}}");
    let mut first = Template::new(&cluster, "tablemount:1", None);
    let mut seen: Value = serde_json::from_str(&first.seen).expect("JSON");
    let fields = seen.as_object_mut().expect("an object");
    for field in ["imagePullSecrets", "access"] {
        assert!(fields.remove(field).is_some(), "{field}");
    }
    first.seen = seen.to_string();
    // As that operator rendered it.
    let pod = first.pod.spec.as_mut().expect("a pod");
    pod.termination_grace_period_seconds = Some(30);
    let existing = stateful_set(&cluster, &first, None);
    let kept = Template::new(&cluster, "tablemount:1", Some(&existing));
    assert_eq!((&kept.pod, &kept.update), (&first.pod, &Update::Template));

    // The remedy that status names.
    let mut without = existing.clone();
    let annotations = without.metadata.annotations.as_mut().expect("set");
    assert!(annotations.remove(POD_SPEC).is_some());
    let anew = Template::new(&cluster, "tablemount:1", Some(&without));
    assert_eq!(anew.update, Update::None);
    assert_ne!(anew.pod, first.pod);
}

#[test]
fn pull_secrets_are_the_pods() {
    let cluster = cluster("main", "{imagePullSecrets: [{name: a}, {name: b}]}");
    let (_, set) = rendered(&cluster, "i:1", None);
    assert_eq!(
        set["spec"]["template"]["spec"]["imagePullSecrets"],
        json!([{"name": "a"}, {"name": "b"}])
    );
}

#[test]
fn what_the_user_changes_is_rendered_anew() {
    let before = cluster("main", "{}");
    let existing = stateful_set(&before, &Template::new(&before, "tablemount:1", None), None);
    let check = |spec: &str, image: &str, changed: bool| {
        let template = Template::new(&cluster("main", spec), "tablemount:2", Some(&existing));
        assert_eq!(template.image().as_deref(), Some(image), "{spec}");
        assert_eq!(
            stateful_set(&before, &template, None).spec != existing.spec,
            changed,
            "{spec}"
        );
    };
    check("{}", "tablemount:1", false);
    check(
        "{replicas: 0, storage: {size: 20Gi}}",
        "tablemount:1",
        false,
    );
    check("{image: 'own:3'}", "own:3", true);
    check("{access: {anonymous: ReadWrite}}", "tablemount:1", true);
    check("{imagePullSecrets: [{name: s}]}", "tablemount:1", true);
}

#[test]
fn the_claim_template_never_changes() {
    let before = cluster("main", "storage: {size: 1Gi}");
    let (_, first) = rendered(&before, "i:1", None);
    let existing = serde_json::from_value(first.clone()).expect("a StatefulSet");
    let (_, grown) = rendered(
        &cluster("main", "storage: {size: 2Gi}"),
        "i:1",
        Some(&existing),
    );
    assert_eq!(
        first["spec"]["volumeClaimTemplates"],
        grown["spec"]["volumeClaimTemplates"]
    );
}

#[test]
fn only_its_own_objects_are_touched() {
    let cluster = cluster("main", "{}");
    assert!(is_part_of(&cluster, &metadata(&cluster, "main".to_owned())));
    let earlier = crate::test_objects::cluster("main", "{}");
    let mut by_an_earlier_one = metadata(&earlier, "main".to_owned());
    by_an_earlier_one.owner_references.as_mut().expect("set")[0].uid = "earlier".to_owned();
    assert!(
        !is_part_of(&cluster, &by_an_earlier_one),
        "is being collected"
    );
    by_an_earlier_one.owner_references = None;
    assert!(is_part_of(&cluster, &by_an_earlier_one), "orphaned");
    assert!(!is_part_of(
        &cluster,
        &ObjectMeta {
            name: Some("main".to_owned()),
            ..ObjectMeta::default()
        }
    ));
}

#[test]
fn services_and_budget_select_the_pods() {
    let cluster = cluster("main", "{}");
    let client = serde_json::to_value(client_service(&cluster)).expect("JSON");
    assert_eq!(client["metadata"]["name"], "main");
    assert_eq!(
        client["spec"]["ports"][0],
        json!({"name": "http", "port": 8080, "targetPort": "http", "protocol": "TCP"})
    );
    let headless = serde_json::to_value(headless_service(&cluster)).expect("JSON");
    assert_eq!(
        (
            &headless["metadata"]["name"],
            &headless["spec"]["clusterIP"]
        ),
        (&json!("main-headless"), &json!("None"))
    );
    assert_eq!(headless["spec"]["publishNotReadyAddresses"], true);
    let budget = serde_json::to_value(disruption_budget(&cluster)).expect("JSON");
    assert_eq!(budget["spec"]["maxUnavailable"], 1);
    let (_, set) = rendered(&cluster, "i:1", None);
    let pod_labels = set["spec"]["template"]["metadata"]["labels"]
        .as_object()
        .expect("labels");
    for selector in [
        &client["spec"]["selector"],
        &budget["spec"]["selector"]["matchLabels"],
        &set["spec"]["selector"]["matchLabels"],
    ] {
        for (key, value) in selector.as_object().expect("a selector") {
            assert_eq!(pod_labels.get(key), Some(value));
        }
    }
}

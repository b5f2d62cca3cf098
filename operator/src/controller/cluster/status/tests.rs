use serde_json::json;

use super::*;
use crate::test_objects::cluster;

fn set(replicas: i32, ready: i32, updated: i32, observed: i64) -> StatefulSet {
    serde_json::from_value(json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "main", "generation": 2},
        "spec": {"replicas": replicas, "serviceName": "x", "selector": {}, "template": {}},
        "status": {"replicas": 1, "readyReplicas": ready, "updatedReplicas": updated, "observedGeneration": observed},
    }))
    .expect("a StatefulSet")
}

fn pod(status: serde_json::Value) -> Pod {
    serde_json::from_value(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "main-0"}, "status": status})).expect("a Pod")
}

fn status(spec: &str, set: StatefulSet, pod: Option<Pod>, resize: Resize) -> TableClusterStatus {
    let cluster = cluster("main", spec);
    let template = Template::new(&cluster, "tablemount:1", None);
    Observed::new(template, "tablemount:1", set, pod, resize)
        .status(&cluster, Timestamp::UNIX_EPOCH)
        .0
}

fn condition(status: &TableClusterStatus, kind: &str) -> (String, String, String) {
    let condition = status
        .conditions
        .iter()
        .find(|condition| condition.type_ == kind)
        .expect("there");
    (
        condition.status.clone(),
        condition.reason.clone(),
        condition.message.clone(),
    )
}

fn said(status: &str, reason: &str, message: &str) -> (String, String, String) {
    (status.to_owned(), reason.to_owned(), message.to_owned())
}

#[test]
fn ready_is_the_version_wanted_serving() {
    assert!(is_serving(&set(1, 1, 1, 2)));
    assert!(!is_serving(&set(1, 0, 1, 2)));
    assert!(!is_serving(&set(1, 1, 0, 2)), "an old pod still serves");
    assert!(!is_serving(&set(1, 1, 1, 1)), "the change was not seen yet");
    assert!(!is_serving(&set(0, 0, 0, 2)));
}

#[test]
fn a_serving_cluster_tells_where() {
    let status = status("{}", set(1, 1, 1, 2), None, Resize::AsWanted);
    assert_eq!(
        condition(&status, READY),
        said("True", "Serving", "the server serves")
    );
    assert_eq!(
        status.endpoint.as_deref(),
        Some("http://main.shop.svc:8080")
    );
    assert_eq!(status.image.as_deref(), Some("tablemount:1"));
    assert_eq!((status.replicas, status.ready_replicas), (1, 1));
    assert_eq!(
        status.selector.as_deref(),
        Some(
            "app.kubernetes.io/component=engine,app.kubernetes.io/instance=main,app.kubernetes.io/name=tablemount"
        )
    );
    assert_eq!(condition(&status, STORAGE_RESIZED).0, "True");
    assert_eq!(condition(&status, UPDATE_AVAILABLE).0, "False");
}

#[test]
fn a_stopped_cluster_says_so() {
    let status = status("replicas: 0", set(0, 0, 0, 2), None, Resize::Unknown);
    assert_eq!(
        condition(&status, READY),
        said(
            "False",
            "ScaledToZero",
            "spec.replicas is 0: no server runs, the data is kept"
        )
    );
}

#[test]
fn what_kubernetes_knows_of_a_pod_is_told() {
    let check = |pod_status, expected: &str| {
        let status = status(
            "{}",
            set(1, 0, 1, 2),
            Some(pod(pod_status)),
            Resize::Unknown,
        );
        assert_eq!(
            condition(&status, READY),
            said("False", "Starting", expected)
        );
    };
    let waiting = |state: serde_json::Value| json!({"containerStatuses": [{"name": "engine", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": {"waiting": state}}]});
    check(json!({}), "the server is starting");
    check(
        waiting(json!({"reason": "ContainerCreating"})),
        "the server is starting",
    );
    check(
        waiting(json!({"reason": "ImagePullBackOff", "message": "no such image"})),
        "pod \"main-0\": ImagePullBackOff: no such image",
    );
    check(
        json!({"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}]}),
        "pod \"main-0\" has no node: 0/1 nodes are available",
    );
    check(
        json!({"containerStatuses": [{"name": "engine", "image": "i", "imageID": "", "ready": false, "restartCount": 3,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 1}}}]}),
        "pod \"main-0\": CrashLoopBackOff, last exit code 1",
    );
}

#[test]
fn a_volume_that_cannot_grow_is_told() {
    let refused = Resize::Refused {
        claim: "data-main-0".into(),
        size: "1Gi".into(),
        answer: "class \"x\" is fixed".into(),
    };
    let status = status("{}", set(1, 1, 1, 2), None, refused);
    assert_eq!(
        condition(&status, STORAGE_RESIZED),
        said(
            "False",
            "ExpansionRefused",
            "volume claim \"data-main-0\" stays at 1Gi: class \"x\" is fixed; a volume grows only if its storage class has allowVolumeExpansion, and never shrinks"
        )
    );
    assert_eq!(condition(&status, READY).0, "True");
}

#[test]
fn a_taken_name_is_told() {
    let taken = Error::NameTaken {
        kind: "Service".into(),
        name: "main".into(),
    };
    assert!(is_refusal(&taken));
    let (status, reason) =
        Observed::refused(taken).status(&cluster("main", "{}"), Timestamp::UNIX_EPOCH);
    assert_eq!(reason, Reason::NameTaken);
    assert_eq!(
        condition(&status, READY).2,
        "Service \"main\" exists and does not belong to this TableCluster; delete it, or give the TableCluster another name"
    );
}

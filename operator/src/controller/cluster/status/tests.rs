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
    let template = Template::new(&cluster("main", spec), "tablemount:1", None);
    status_of(spec, running(template, set, pod, resize)).0
}

fn running(template: Template, set: StatefulSet, pod: Option<Pod>, resize: Resize) -> Running {
    Running {
        template,
        set,
        pod,
        has_token: true,
        resize,
    }
}

fn status_of(spec: &str, running: Running) -> (TableClusterStatus, Reason) {
    Observed::running(running).status(&cluster("main", spec), Timestamp::UNIX_EPOCH)
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
    let set_up = "pod \"main-0\" is being set up; see: kubectl describe pod main-0";
    check(json!({}), set_up);
    check(waiting(json!({"reason": "ContainerCreating"})), set_up);
    check(
        waiting(json!({"reason": "ImagePullBackOff", "message": "no such image"})),
        "pod \"main-0\": ImagePullBackOff: no such image",
    );
    check(
        json!({"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}]}),
        "pod \"main-0\" has no node: 0/1 nodes are available",
    );
    let restarted = |state: serde_json::Value| {
        json!({"containerStatuses": [{"name": "engine", "image": "i", "imageID": "", "ready": false, "restartCount": 3,
        "state": state, "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}}]})
    };
    check(
        restarted(json!({"waiting": {"reason": "CrashLoopBackOff"}})),
        "pod \"main-0\": CrashLoopBackOff, last exit code 1; see: kubectl logs --previous main-0",
    );
    check(
        restarted(json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}})),
        "pod \"main-0\": the server ended with exit code 137 (OOMKilled) and is started again; see: kubectl logs --previous main-0",
    );
    check(
        restarted(json!({"running": {}})),
        "pod \"main-0\": the server starts again after exit code 1; see: kubectl logs --previous main-0",
    );
    check(
        json!({"containerStatuses": [{"name": "engine", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": {"running": {}}}]}),
        "pod \"main-0\": the server is starting; see: kubectl logs main-0",
    );
}

#[test]
fn a_pod_that_is_not_there_is_told() {
    let missing = status("{}", set(1, 0, 0, 2), None, Resize::Unknown);
    let expected = "pod \"main-0\" does not exist; see: kubectl describe statefulset main";
    assert_eq!(
        condition(&missing, READY),
        said("False", "Starting", expected)
    );
    let mut goes = pod(json!({}));
    let second = Timestamp::UNIX_EPOCH;
    goes.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(second));
    let goes = status("{}", set(1, 0, 1, 2), Some(goes), Resize::Unknown);
    let expected = "pod \"main-0\" is being deleted; see: kubectl describe pod main-0";
    assert_eq!(condition(&goes, READY), said("False", "Starting", expected));
}

#[test]
fn a_secret_without_a_token_is_told() {
    let check = |set, expected: Reason| {
        let template = Template::new(&cluster("main", "{}"), "tablemount:1", None);
        let mut running = running(template, set, None, Resize::Unknown);
        running.has_token = false;
        let (status, reason) = status_of("{}", running);
        assert_eq!(reason, expected);
        condition(&status, READY).2
    };
    assert_eq!(
        check(set(1, 0, 1, 2), Reason::TokenMissing),
        "Secret \"main-operator-token\" has no token under the key \"token\"; delete the Secret, so that the operator makes it again"
    );
    // A server that has its token serves on.
    check(set(1, 1, 1, 2), Reason::Serving);
}

#[test]
fn a_volume_has_its_size_only_when_it_is_there() {
    let claim = |status: serde_json::Value| {
        serde_json::from_value(json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data-main-0"}, "status": status}))
            .expect("a claim")
    };
    let check = |claim_status, expected: (&str, &str, &str), again: Reason| {
        let template = Template::new(&cluster("main", "{}"), "tablemount:1", None);
        let resize = Resize::requested(&claim(claim_status), "1Gi");
        let (status, reason) = status_of("{}", running(template, set(1, 1, 1, 2), None, resize));
        let (holds, why, message) = expected;
        assert_eq!(
            condition(&status, STORAGE_RESIZED),
            said(holds, why, message)
        );
        assert_eq!(
            (condition(&status, READY).0.as_str(), reason),
            ("True", again)
        );
    };
    let grown = ("True", "AsWanted", "the volume has the size wanted");
    for capacity in ["1Gi", "1024Mi", "2G"] {
        let status = json!({"capacity": {"storage": capacity}});
        check(status, grown, Reason::Serving);
    }
    check(
        json!({"capacity": {"storage": "512Mi"}, "conditions": [{"type": "FileSystemResizePending", "status": "True", "message": "waiting for the node"}]}),
        (
            "False",
            "Resizing",
            "volume claim \"data-main-0\" asks for 1Gi, its volume has 512Mi so far: waiting for the node; see: kubectl describe pvc data-main-0",
        ),
        Reason::Resizing,
    );
    check(
        json!({}),
        (
            "False",
            "Resizing",
            "volume claim \"data-main-0\" asks for 1Gi, it has no volume yet; see: kubectl describe pvc data-main-0",
        ),
        Reason::Resizing,
    );
}

#[test]
fn an_update_is_told_with_what_brings_it() {
    let check = |update: Update, reason: &str, remedy: &str| {
        let mut template = Template::new(&cluster("main", "{}"), "tablemount:1", None);
        template.update = update;
        let running = running(template, set(1, 1, 1, 2), None, Resize::Unknown);
        let (holds, why, message) = condition(&status_of("{}", running).0, UPDATE_AVAILABLE);
        assert_eq!((holds.as_str(), why.as_str()), ("True", reason));
        assert!(message.contains(remedy), "{message}");
    };
    check(
        Update::Image("tablemount:2".to_owned()),
        "ImageDiffers",
        "the operator would run tablemount:2 now: set spec.image to that",
    );
    check(
        Update::Template,
        "TemplateDiffers",
        "kubectl annotate statefulset main tablemount.dev/spec-",
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

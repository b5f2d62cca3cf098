//! Steps with TableClusters, and what the API server refuses of both kinds.

use super::data::assert_cells;
use super::{
    apply, cluster, eventually, field, kubectl, ready, repository_file, table, tablemount,
    try_apply, wait_for, wait_for_reason,
};

pub(crate) fn refused_by_the_api_server() {
    let refused = |manifest: &str, expected: &str| {
        let refused = try_apply(manifest);
        assert!(
            refused.code != 0 && refused.stderr.contains(expected),
            "{expected:?} is not in {refused:?}"
        );
    };
    let replicas = "replicas must be 0 or 1: several servers are not supported yet";
    refused(&cluster("second", "replicas: 2"), replicas);
    let scaled = kubectl(&["scale", "tablecluster/main", "--replicas=2"]);
    assert!(
        scaled.code != 0 && scaled.stderr.contains(replicas),
        "{scaled:?}"
    );
    refused(
        &table("bad", "main", "families: [{name: f, maxVersion: 3}]"),
        "unknown field \"spec.families[0].maxVersion\"",
    );
    refused(
        &table(
            "bad",
            "main",
            "families: [{name: f, compression: {type: snappy}}]",
        ),
        "supported values: \"None\", \"Lz4\", \"Snappy\", \"Zstd\"",
    );
    refused(
        &table("bad", "main", "families: [{name: f, maxVersions: 0}]"),
        "should be greater than or equal to 1",
    );
    refused(
        &table("bad", "main", "families: [{name: 'a:b'}]"),
        "a column family's name must be letters, digits, '-', '_' and '.'",
    );
    refused(
        &table("bad", "main", "families: []"),
        "should have at least 1 items",
    );
    refused(
        &table("bad", "main", "families: [{name: f}], tableName: 'a/b'"),
        "tableName must be letters, digits",
    );
    refused(
        &table("blogtable", "other", "families: [{name: info}]"),
        "clusterRef cannot change",
    );
    refused(
        &cluster("main.x", ""),
        "metadata.name must be at most 40 lower-case letters",
    );
    refused(
        &cluster(
            "main",
            "storage: {size: 1Gi}, access: {anonymous: ReadWrite}",
        ),
        "size cannot shrink: volumes only grow",
    );
}

pub(crate) fn taken_name() {
    kubectl(&["create", "service", "clusterip", "taken", "--tcp=80:80"]).ok();
    apply(&cluster("taken", ""));
    assert_eq!(
        wait_for_reason("tablecluster/taken", "NameTaken"),
        "Service \"taken\" exists and does not belong to this TableCluster; delete it, or give the TableCluster another name"
    );
    assert_eq!(
        field("service/taken", ".spec.ports[0].port"),
        "80",
        "left as it was"
    );
    assert_eq!(field("statefulset/taken", ".metadata.name"), "");
    kubectl(&["delete", "tablecluster", "taken", "--timeout=60s"]).ok();
    kubectl(&["delete", "service", "taken", "--ignore-not-found"]).ok();
}

/// Anonymous access is None unless the TableCluster says otherwise; the operator gets in all the same.
pub(crate) fn closed_cluster() {
    apply(&cluster("closed", "storage: {size: 1Gi}"));
    apply(&table(
        "secret",
        "closed",
        "families: [{name: f}], deletionPolicy: Delete",
    ));
    wait_for("table/secret", "condition=Ready");
    let refused = tablemount("closed", &["tables"]);
    assert!(
        refused.code != 0 && refused.stderr.to_lowercase().contains("token"),
        "{refused:?}"
    );
    let refused = tablemount("closed", &["put", "secret", "r", "f:=x"]);
    assert!(
        refused.code != 0 && refused.stderr.to_lowercase().contains("token"),
        "{refused:?}"
    );
}

/// Kubernetes by itself would wait forever for the pod with the bad image (kubernetes#67250).
pub(crate) fn bad_image() {
    apply(&cluster(
        "closed",
        "storage: {size: 1Gi}, image: 'localhost/absent:1', imagePullPolicy: Never",
    ));
    eventually("the bad image's message", || {
        let (reason, message) = ready("tablecluster/closed");
        if reason == "Starting" && message.contains("ErrImageNeverPull") {
            Ok(())
        } else {
            Err(message)
        }
    });
    let good = field("tablecluster/main", ".status.image");
    apply(&cluster(
        "closed",
        &format!("storage: {{size: 1Gi}}, image: '{good}', imagePullPolicy: Never"),
    ));
    wait_for_reason("tablecluster/closed", "Serving");
    wait_for_reason("table/secret", "Applied");
}

pub(crate) fn cluster_goes() {
    kubectl(&["scale", "tablecluster/closed", "--replicas=0"]).ok();
    wait_for_reason("tablecluster/closed", "ScaledToZero");
    kubectl(&["delete", "table", "secret", "--wait=false"]).ok();
    let message = wait_for_reason("table/secret", "DropPending");
    assert!(
        message.contains("TableCluster \"closed\" is not Ready")
            && message.contains("set spec.deletionPolicy to Retain"),
        "{message}"
    );
    kubectl(&["delete", "tablecluster", "closed", "--timeout=60s"]).ok();
    kubectl(&["wait", "table/secret", "--for=delete", "--timeout=90s"]).ok();

    kubectl(&["delete", "tablecluster", "main", "--timeout=60s"]).ok();
    kubectl(&["wait", "pod/main-0", "--for=delete", "--timeout=120s"]).ok();
    wait_for_reason("table/blogtable", "ClusterNotFound");
    kubectl(&["apply", "-f", &repository_file("crds/examples/blog.yaml")]).ok();
    wait_for_reason("tablecluster/main", "Serving");
    wait_for_reason("table/blogtable", "Applied");
    assert_cells();
}

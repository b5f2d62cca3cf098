//! Steps with Tables: what their conditions say, and what becomes of the data.

use super::data::assert_cells;
use super::{
    TABLES, apply, eventually, field, kubectl, repository_file, table, tablemount, wait_for,
    wait_for_reason,
};

pub(crate) fn missing_cluster() {
    apply(&table("lonely", "absent", "families: [{name: f}]"));
    assert_eq!(
        wait_for_reason("table/lonely", "ClusterNotFound"),
        format!(
            "TableCluster \"absent\" not found in namespace \"{TABLES}\"; make it, or make this Table anew with another spec.clusterRef"
        )
    );
    // The next is held by nothing, though its policy is Delete: there is no table to drop.
    apply(&table(
        "lonely",
        "absent",
        "families: [{name: f}], deletionPolicy: Delete",
    ));
    eventually("the finalizer", || {
        match field("table/lonely", ".metadata.finalizers[0]") {
            finalizer if finalizer == "tablemount.dev/drop-table" => Ok(()),
            other => Err(other),
        }
    });
    kubectl(&["delete", "table", "lonely", "--timeout=60s"]).ok();
}

pub(crate) fn two_manifests() {
    apply(&table(
        "blogcopy",
        "main",
        "tableName: blogtable, families: [{name: other}], deletionPolicy: Delete",
    ));
    assert_eq!(
        wait_for_reason("table/blogcopy", "Conflicted"),
        "table \"blogtable\" of TableCluster \"main\" is declared by Table \"blogtable\"; delete one of the two"
    );
    kubectl(&["delete", "table", "blogcopy", "--timeout=60s"]).ok();
    assert_cells();

    // The one that has the table drops nothing that another declares.
    let shared = "tableName: shared, families: [{name: f}], deletionPolicy: Delete";
    apply(&table("shared-first", "main", shared));
    wait_for("table/shared-first", "condition=Ready");
    assert_ne!(field("table/shared-first", ".status.tableUid"), "");
    apply(&table("shared-second", "main", shared));
    wait_for_reason("table/shared-second", "Conflicted");
    kubectl(&["delete", "table", "shared-first", "--wait=false"]).ok();
    let message = wait_for_reason("table/shared-first", "DropPending");
    assert!(
        message.contains("Table \"shared-second\" declares it too"),
        "{message}"
    );
    tablemount("main", &["put", "shared", "r", "f:=still there"]).ok();
    kubectl(&["delete", "table", "shared-second", "--timeout=60s"]).ok();
    kubectl(&[
        "wait",
        "table/shared-first",
        "--for=delete",
        "--timeout=90s",
    ])
    .ok();
    let dropped = tablemount("main", &["scan", "shared"]);
    assert_ne!(dropped.code, 0, "{dropped:?}");
}

pub(crate) fn consents() {
    apply(&table(
        "loss",
        "main",
        "families: [{name: a, maxVersions: 3}, {name: b}]",
    ));
    wait_for("table/loss", "condition=Ready");
    tablemount("main", &["put", "loss", "r", "a:=kept", "b:=to be dropped"]).ok();

    apply(&table(
        "loss",
        "main",
        "families: [{name: a, maxVersions: 1}, {name: c}]",
    ));
    let message = wait_for_reason("table/loss", "ConsentRequired");
    assert!(
        message
            .contains("drop column family \"b\" and its data (add {dropFamily: b} to spec.allow)"),
        "{message}"
    );
    assert!(
        message.contains("(add {tightenGC: a} to spec.allow)"),
        "{message}"
    );
    assert_eq!(
        field("table/loss", ".status.pendingChanges[*].class"),
        "Destructive Online Destructive"
    );
    assert_eq!(
        tablemount("main", &["get", "loss", "r", "b:", "--raw"]).ok(),
        "to be dropped",
        "the old schema serves"
    );

    apply(&table(
        "loss",
        "main",
        "families: [{name: a, maxVersions: 1}, {name: c}], allow: [{tightenGC: a}, {dropFamily: b}]",
    ));
    wait_for_reason("table/loss", "Applied");
    assert_eq!(field("table/loss", ".status.families[*].name"), "a c");
    assert_eq!(field("table/loss", ".status.pendingChanges"), "");
    assert_eq!(
        tablemount("main", &["get", "loss", "r", "a:", "--raw"]).ok(),
        "kept"
    );
}

pub(crate) fn splits() {
    apply(&table(
        "parted",
        "main",
        "families: [{name: f}], splits: [k, 'p%00']",
    ));
    wait_for("table/parted", "condition=Ready");
    apply(&table(
        "parted",
        "main",
        "families: [{name: f}], splits: [k, 'p%00', t]",
    ));
    let message = wait_for_reason("table/parted", "SplitsImmutable");
    assert_eq!(
        message,
        "table \"parted\" exists and is not split at t: splits cannot be added to a table that exists; take them out of spec.splits"
    );
    apply(&table(
        "parted",
        "main",
        "families: [{name: f}], splits: [k]",
    ));
    wait_for_reason("table/parted", "Applied");
}

pub(crate) fn adoption() {
    tablemount("main", &["tables", "create", "byhand", "--family", "f"]).ok();
    tablemount("main", &["put", "byhand", "r", "f:=x"]).ok();
    apply(&table(
        "byhand",
        "main",
        "families: [{name: f, inMemory: true}]",
    ));
    let message = wait_for_reason("table/byhand", "NotAdopted");
    assert!(
        message.contains("take it over with spec.adoptExisting: true"),
        "{message}"
    );
    apply(&table(
        "byhand",
        "main",
        "families: [{name: f, inMemory: true}], adoptExisting: true",
    ));
    wait_for_reason("table/byhand", "Applied");
    assert_eq!(
        field("table/byhand", ".status.families[0].inMemory"),
        "true"
    );
    assert_eq!(
        tablemount("main", &["get", "byhand", "r", "f:", "--raw"]).ok(),
        "x"
    );
}

pub(crate) fn deletion_policies() {
    let names = || {
        tablemount("main", &["tables", "--output", "json"])
            .ok()
            .to_owned()
    };
    kubectl(&["delete", "table", "blogtable", "--timeout=60s"]).ok();
    assert!(names().contains("\"blogtable\""), "Retain is the default");
    assert_cells();
    kubectl(&["apply", "-f", &repository_file("crds/examples/blog.yaml")]).ok();
    wait_for("table/blogtable", "condition=Ready");
    assert_cells();

    apply(&table(
        "byhand",
        "main",
        "families: [{name: f, inMemory: true}], adoptExisting: true, deletionPolicy: Delete",
    ));
    eventually("the finalizer", || {
        match field("table/byhand", ".metadata.finalizers[0]") {
            finalizer if finalizer == "tablemount.dev/drop-table" => Ok(()),
            other => Err(other),
        }
    });
    kubectl(&["delete", "table", "byhand", "--timeout=60s"]).ok();
    assert!(!names().contains("\"byhand\""), "dropped");
}

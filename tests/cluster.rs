//! The whole path on a real cluster, through kubectl and helm as a user types them: install the chart, apply manifests, write
//! through the Service, mount in a pod, lose a pod, refuse what is wrong, uninstall. `make test-cluster` runs it.
//!
//! One cluster, one story: each step builds on those before it.

mod cluster_support;
mod support;

use std::process::Stdio;
use std::time::{Duration, Instant};

use cluster_support::{
    Images, MOUNTS, SYSTEM, TABLES, apply, cluster, eventually, field, in_reader, kubectl,
    kubectl_in, repository_file, run, table, tablemount, try_apply, wait_for, wait_for_reason,
};

const POST: &str = "TT20240131120000";
const RELEASE: &str = "tablemount";

#[test]
fn whole_path() {
    let Some(images) = Images::from_environment() else {
        return;
    };
    let steps: [(&str, &dyn Fn()); 20] = [
        ("install the chart", &|| install(&images)),
        ("explain", &explain),
        ("apply the blog", &apply_blog),
        ("start a pod that mounts", &|| start_mount(&images)),
        ("write and read through the Service", &write_and_read),
        ("ls and cat in a pod", &look_in_pod),
        ("ls and cat on the host", &look_on_host),
        ("delete the engine's pod", &lose_pod),
        ("what the API server refuses", &refused_by_the_api_server),
        ("a missing cluster", &missing_cluster),
        ("two manifests for one table", &two_manifests),
        ("changes that delete data", &consents),
        ("splits cannot be added", &splits),
        ("a table that was there already", &adoption),
        ("deletion policies", &deletion_policies),
        ("a name that is taken", &taken_name),
        ("a closed cluster", &closed_cluster),
        ("a bad image, corrected", &bad_image),
        ("a cluster goes, its data stays", &cluster_goes),
        ("uninstall", &uninstall),
    ];
    clean_up();
    for (number, (name, step)) in steps.iter().enumerate() {
        let start = Instant::now();
        eprintln!("--- step {} of {}: {name}", number + 1, steps.len());
        step();
        eprintln!("    {:.1} s", start.elapsed().as_secs_f64());
    }
    clean_up();
}

/// Removes what this test, perhaps an earlier run, made.
fn clean_up() {
    for namespace in [MOUNTS, TABLES, SYSTEM] {
        run(
            "kubectl",
            &[
                "delete",
                "namespace",
                namespace,
                "--ignore-not-found",
                "--timeout=120s",
            ],
            "",
        )
        .ok();
    }
    for kind in ["clusterrole", "clusterrolebinding"] {
        run(
            "kubectl",
            &[
                "delete",
                kind,
                "--selector",
                &format!("app.kubernetes.io/instance={RELEASE}"),
            ],
            "",
        )
        .ok();
    }
}

fn make_namespace(name: &str, level: &str) {
    run("kubectl", &["create", "namespace", name], "").ok();
    let label = format!("pod-security.kubernetes.io/enforce={level}");
    run("kubectl", &["label", "namespace", name, &label], "").ok();
}

fn install(images: &Images) {
    make_namespace(SYSTEM, "restricted");
    make_namespace(TABLES, "restricted");
    make_namespace(MOUNTS, "privileged");
    let (repository, tag) = images.repository_and_tag();
    let (repository, tag) = (
        format!("image.repository={repository}"),
        format!("image.tag={tag}"),
    );
    let chart = repository_file("charts/tablemount");
    let args = [
        "install",
        RELEASE,
        &chart,
        "--namespace",
        SYSTEM,
        "--set",
        &repository,
        "--set-string",
        &tag,
    ];
    let notes = run(
        "helm",
        &[&args[..], &["--wait", "--timeout", "3m"]].concat(),
        "",
    );
    let notes = notes.ok();
    assert!(notes.contains("kubectl --namespace tablemount-system wait --for=condition=Ready tables.tablemount.dev/hello"), "{notes}");
    let tested = run(
        "helm",
        &["test", RELEASE, "--namespace", SYSTEM, "--timeout", "2m"],
        "",
    );
    assert!(
        tested.ok().contains("Phase:          Succeeded"),
        "{tested:?}"
    );
}

fn explain() {
    // Discovery learns of new kinds a moment after they are there.
    let explained = eventually("kubectl explain", || {
        let explained = run("kubectl", &["explain", "table.spec.families"], "");
        if explained.code == 0 {
            Ok(explained.text().to_owned())
        } else {
            Err(explained.stderr)
        }
    });
    let expected = "maxVersions\t<integer>\n    Keep at most this many versions of a column, the newest. Default: all.\n";
    assert!(
        explained.contains("columns stored together, and their settings"),
        "{explained}"
    );
    assert!(explained.contains(expected), "{explained}");
    let compression = run(
        "kubectl",
        &["explain", "table.spec.families.compression.type"],
        "",
    );
    let compression = compression.ok();
    assert!(
        ["None", "Lz4", "Snappy", "Zstd"]
            .iter()
            .all(|choice| compression.contains(choice)),
        "{compression}"
    );
}

fn apply_blog() {
    let blog = repository_file("crds/examples/blog.yaml");
    kubectl(&["apply", "-f", &blog]).ok();
    wait_for("table/blogtable", "condition=Ready");
    wait_for("table/usertable", "condition=Ready");
    let tables = kubectl(&["get", "tables.tablemount.dev"]);
    let rows: Vec<Vec<&str>> = tables
        .ok()
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows[0],
        ["NAME", "READY", "REASON", "CLUSTER", "VERSION", "AGE"]
    );
    assert_eq!(rows[1][..5], ["blogtable", "True", "Applied", "main", "1"]);
    assert_eq!(rows[2][..5], ["usertable", "True", "Applied", "main", "1"]);
    let clusters = kubectl(&["get", "tmc"]);
    let rows: Vec<Vec<&str>> = clusters
        .ok()
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0], ["NAME", "READY", "REASON", "REPLICAS", "AGE"]);
    assert_eq!(rows[1][..4], ["main", "True", "Serving", "1"]);
    let all = kubectl(&["get", "tablemount", "--output", "name"])
        .ok()
        .to_owned();
    let expected = "tablecluster.tablemount.dev/main\ntable.tablemount.dev/blogtable\ntable.tablemount.dev/usertable\n";
    assert!(all == expected || sorted(&all) == sorted(expected), "{all}");
    assert_eq!(
        field("table/blogtable", ".status.families[*].name"),
        "info text comment_title comment_author comment_text"
    );
    assert_eq!(
        field("table/blogtable", ".status.observedGeneration"),
        field("table/blogtable", ".metadata.generation")
    );
    // Applied again it changes nothing.
    assert!(
        kubectl(&["apply", "-f", &blog])
            .ok()
            .lines()
            .all(|line| line.ends_with("unchanged"))
    );
}

fn sorted(lines: &str) -> Vec<&str> {
    let mut lines: Vec<_> = lines.lines().collect();
    lines.sort_unstable();
    lines
}

fn start_mount(images: &Images) {
    let manifest = format!(
        "
apiVersion: v1
kind: Pod
metadata: {{name: mount}}
spec:
  automountServiceAccountToken: false
  initContainers:
  - name: folder
    image: {busybox}
    command: [sh, -c, 'umount -l /shared/mnt 2>/dev/null; mkdir -p /shared/mnt']
    securityContext: {{privileged: true, runAsUser: 0}}
    volumeMounts: [{{name: shared, mountPath: /shared, mountPropagation: Bidirectional}}]
  containers:
  - name: mount
    image: {image}
    args: [mount, --allow-other, /shared/mnt]
    env: [{{name: TABLEMOUNT_SERVER, value: 'http://main.{TABLES}.svc:8080'}}]
    securityContext: {{privileged: true, runAsUser: 0}}
    volumeMounts: [{{name: shared, mountPath: /shared, mountPropagation: Bidirectional}}]
  volumes: [{{name: shared, hostPath: {{path: /run/tablemount-e2e, type: DirectoryOrCreate}}}}]
---
apiVersion: v1
kind: Pod
metadata: {{name: reader}}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  containers:
  - name: reader
    image: {busybox}
    command: [sleep, '36000']
    volumeMounts: [{{name: shared, mountPath: /shared, mountPropagation: HostToContainer}}]
  volumes: [{{name: shared, hostPath: {{path: /run/tablemount-e2e, type: DirectoryOrCreate}}}}]
",
        busybox = images.busybox,
        image = images.tablemount,
    );
    kubectl_in(MOUNTS, &["apply", "-f", "-"], &manifest).ok();
    kubectl_in(
        MOUNTS,
        &[
            "wait",
            "pod/mount",
            "pod/reader",
            "--for=condition=Ready",
            "--timeout=120s",
        ],
        "",
    )
    .ok();
    eventually("the mount", || {
        let listed = in_reader(&["ls", "/shared/mnt"]);
        if listed.stdout == b"@help\nblogtable\nusertable\n" {
            Ok(())
        } else {
            Err(format!("{listed:?}"))
        }
    });
}

fn write_and_read() {
    for (timestamp, text) in [
        ("1000", "First draft"),
        ("2000", "Second draft"),
        ("3000", "The post, as printed"),
    ] {
        let cell = format!("text:={text}");
        tablemount(
            "main",
            &["put", "blogtable", POST, &cell, "--timestamp", timestamp],
        )
        .ok();
    }
    tablemount(
        "main",
        &[
            "put",
            "blogtable",
            POST,
            "info:author=alice",
            "info:title=On tables",
            "comment_text:20240201=Nice",
        ],
    )
    .ok();
    assert_cells();
    let unknown = tablemount("main", &["put", "blogtable", POST, "Meta:x=y"]);
    assert!(
        unknown.code != 0
            && unknown
                .stderr
                .contains("column family \"Meta\" not found in table \"blogtable\""),
        "{unknown:?}"
    );
}

/// Every acknowledged cell is there.
#[track_caller]
fn assert_cells() {
    let get = |args: &[&str]| {
        tablemount("main", &[&["get", "blogtable", POST], args].concat())
            .ok()
            .to_owned()
    };
    assert_eq!(get(&["text:", "--raw"]), "The post, as printed");
    assert_eq!(get(&["text:", "--at", "2500", "--raw"]), "Second draft");
    assert_eq!(get(&["text:", "--at", "1000", "--raw"]), "First draft");
    assert_eq!(get(&["info:author", "--raw"]), "alice");
    assert_eq!(get(&["comment_text:20240201", "--raw"]), "Nice");
}

fn look_in_pod() {
    let row = format!("/shared/mnt/blogtable/{POST}");
    let list = |path: &str| in_reader(&["ls", path]).ok().to_owned();
    assert_eq!(sorted(&list("/shared/mnt/blogtable")), [POST]);
    assert_eq!(sorted(&list(&row)), ["comment_text", "info", "text"]);
    assert_eq!(
        sorted(&list(&format!("{row}/text/%empty"))),
        ["1000", "2000", "3000", "latest"]
    );
    let read = |path: &str| in_reader(&["cat", &format!("{row}/{path}")]).stdout;
    assert_eq!(read("text/%empty/latest"), b"The post, as printed");
    assert_eq!(read("text/%empty/1000"), b"First draft");
    assert_eq!(read("info/title/latest"), b"On tables");
    let written = in_reader(&["touch", &format!("{row}/text/x")]);
    assert!(
        written.code != 0 && written.stderr.contains("Read-only file system"),
        "{written:?}"
    );
}

/// A mount of the machine that runs this test, where Services of the cluster can be reached from it.
fn look_on_host() {
    let address = format!("{}:8080", field("service/main", ".spec.clusterIP"));
    let reachable = address.parse().is_ok_and(|address| {
        std::net::TcpStream::connect_timeout(&address, Duration::from_secs(2)).is_ok()
    });
    if !reachable || !std::path::Path::new("/dev/fuse").exists() {
        return eprintln!("    passed over: {address} or /dev/fuse cannot be reached from here");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let server = format!("http://{address}");
    let mut command = support::tablemount(["mount", "--server", &server]);
    command.arg(folder.path()).stdin(Stdio::null());
    let mut mount = support::Process::start(&mut command);
    let file = folder
        .path()
        .join("blogtable")
        .join(POST)
        .join("text/%empty/latest");
    let read = eventually("the mount on the host", || {
        std::fs::read(&file).map_err(|error| error.to_string())
    });
    assert_eq!(read, b"The post, as printed");
    assert!(mount.terminate().success());
}

fn lose_pod() {
    let uid = || field("pod/main-0", ".metadata.uid");
    let (old, claim) = (
        uid(),
        field("persistentvolumeclaim/data-main-0", ".metadata.uid"),
    );
    kubectl(&["delete", "pod", "main-0"]).ok();
    eventually("another pod", || match uid() {
        new if new.is_empty() || new == old => Err(new),
        new => Ok(new),
    });
    wait_for("pod/main-0", "condition=Ready");
    assert_eq!(
        field("persistentvolumeclaim/data-main-0", ".metadata.uid"),
        claim
    );
    wait_for("tablecluster/main", "condition=Ready");
    eventually("the Service", || {
        let answered = tablemount("main", &["tables"]);
        if answered.code == 0 {
            Ok(())
        } else {
            Err(answered.stderr)
        }
    });
    assert_cells();
    look_in_pod();
}

fn refused_by_the_api_server() {
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

fn missing_cluster() {
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

fn two_manifests() {
    apply(&table(
        "blogcopy",
        "main",
        "tableName: blogtable, families: [{name: other}], deletionPolicy: Delete",
    ));
    assert_eq!(
        wait_for_reason("table/blogcopy", "Conflicted"),
        "table \"blogtable\" of TableCluster \"main\" is declared by the older Table \"blogtable\"; delete one of the two"
    );
    kubectl(&["delete", "table", "blogcopy", "--timeout=60s"]).ok();
    assert_cells();
}

fn consents() {
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

fn splits() {
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

fn adoption() {
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

fn deletion_policies() {
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

fn taken_name() {
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
fn closed_cluster() {
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
fn bad_image() {
    apply(&cluster(
        "closed",
        "storage: {size: 1Gi}, image: 'localhost/absent:1', imagePullPolicy: Never",
    ));
    eventually("the bad image's message", || {
        let (reason, message) = cluster_support::ready("tablecluster/closed");
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

fn cluster_goes() {
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

fn uninstall() {
    let pod = field("pod/main-0", ".metadata.uid");
    let kept = run(
        "helm",
        &[
            "uninstall",
            RELEASE,
            "--namespace",
            SYSTEM,
            "--wait",
            "--timeout",
            "2m",
        ],
        "",
    );
    kept.ok();
    assert_eq!(field("pod/main-0", ".metadata.uid"), pod);
    wait_for("table/blogtable", "condition=Ready");
    assert_cells();
    // Nothing holds the objects, though nobody is there to let them go.
    kubectl(&["delete", "table", "--all", "--timeout=60s"]).ok();
    kubectl(&["delete", "tablecluster", "--all", "--timeout=60s"]).ok();
    assert_eq!(
        field("persistentvolumeclaim/data-main-0", ".metadata.name"),
        "data-main-0"
    );
    kubectl_in(MOUNTS, &["delete", "pod", "mount", "--timeout=60s"], "").ok();
}

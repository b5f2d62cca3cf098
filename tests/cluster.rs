//! The whole path on a real cluster, through kubectl and helm as a user types them: install the chart, apply manifests, write
//! through the Service, mount in a pod, lose a pod, refuse what is wrong, uninstall. `make test-cluster` runs it.
//!
//! One cluster, one story: each step builds on those before it.

mod cluster_support;
mod support;

use std::time::Instant;

use cluster_support::{
    Images, MOUNTS, SYSTEM, TABLES, clusters, data, eventually, field, kubectl, kubectl_in,
    repository_file, run, sorted, tables, wait_for,
};

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
        ("start a pod that mounts", &|| data::start_mount(&images)),
        ("write and read through the Service", &data::write_and_read),
        ("ls and cat in a pod", &data::look_in_pod),
        ("ls and cat on the host", &data::look_on_host),
        ("delete the engine's pod", &data::lose_pod),
        (
            "what the API server refuses",
            &clusters::refused_by_the_api_server,
        ),
        ("a missing cluster", &tables::missing_cluster),
        ("two manifests for one table", &tables::two_manifests),
        ("changes that delete data", &tables::consents),
        ("splits cannot be added", &tables::splits),
        ("a table that was there already", &tables::adoption),
        ("deletion policies", &tables::deletion_policies),
        ("a name that is taken", &clusters::taken_name),
        ("a closed cluster", &clusters::closed_cluster),
        ("a bad image, corrected", &clusters::bad_image),
        ("a cluster goes, its data stays", &clusters::cluster_goes),
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
        // The test of the release waits for it.
        "--set=defaultCluster.enabled=true,defaultCluster.spec.storage.size=1Gi",
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
    let ready = ["wait", "--for=condition=Ready", "tablecluster/main"];
    kubectl_in(SYSTEM, &[&ready[..], &["--timeout=60s"]].concat(), "").ok();
    // One server is enough for what follows.
    kubectl_in(SYSTEM, &["scale", "tablecluster/main", "--replicas=0"], "").ok();
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
    data::assert_cells();
    // Nothing holds the objects, though nobody is there to let them go.
    kubectl(&["delete", "table", "--all", "--timeout=60s"]).ok();
    kubectl(&["delete", "tablecluster", "--all", "--timeout=60s"]).ok();
    assert_eq!(
        field("persistentvolumeclaim/data-main-0", ".metadata.name"),
        "data-main-0"
    );
    kubectl_in(MOUNTS, &["delete", "pod", "mount", "--timeout=60s"], "").ok();
}

//! kubectl and helm as a user calls them, against the cluster of KUBECONFIG.

pub(crate) mod clusters;
pub(crate) mod data;
pub(crate) mod tables;

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{self, Outcome};

/// Nothing in the cluster takes this long, images being there.
const DEADLINE: Duration = Duration::from_secs(180);
/// Between two looks at something that another program does.
const PAUSE: Duration = Duration::from_millis(200);

/// The operator's namespace.
pub(crate) const SYSTEM: &str = "tablemount-system";
/// The tables' namespace; like the operator's, it enforces Pod Security "restricted".
pub(crate) const TABLES: &str = "tablemount-e2e";
/// The namespace of pods that mount, which must be privileged.
pub(crate) const MOUNTS: &str = "tablemount-e2e-mounts";

/// The images to run.
pub(crate) struct Images {
    pub(crate) tablemount: String,
    pub(crate) busybox: String,
}

impl Images {
    /// Those that the environment names; absent where there is no cluster to test on.
    pub(crate) fn from_environment() -> Option<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        if variable("KUBECONFIG").is_none() {
            let required =
                variable("TABLEMOUNT_TEST_CLUSTER").is_some_and(|value| value == "required");
            assert!(
                !required,
                "TABLEMOUNT_TEST_CLUSTER is required, but KUBECONFIG is not set: run `make test-cluster`"
            );
            eprintln!("skipped, for KUBECONFIG is not set: run `make test-cluster`");
            return None;
        }
        let tablemount = variable("TABLEMOUNT_IMAGE")
            .expect("TABLEMOUNT_IMAGE must name an image that the cluster has");
        let busybox =
            variable("TABLEMOUNT_BUSYBOX_IMAGE").unwrap_or_else(|| "busybox:1.37".to_owned());
        Some(Self {
            tablemount,
            busybox,
        })
    }

    /// Repository and tag, as the chart takes them.
    pub(crate) fn repository_and_tag(&self) -> (&str, &str) {
        match self.tablemount.rsplit_once(':') {
            Some((repository, tag)) if !tag.contains('/') => (repository, tag),
            _ => (&self.tablemount, "latest"),
        }
    }
}

/// Runs a program with `input` on stdin.
pub(crate) fn run(program: &str, args: &[&str], input: &str) -> Outcome {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    // It may not read all.
    let _ = child
        .stdin
        .take()
        .expect("stdin")
        .write_all(input.as_bytes());
    child
        .wait_with_output()
        .unwrap_or_else(|error| panic!("{program}: {error}"))
        .into()
}

/// `kubectl` in the tables' namespace.
pub(crate) fn kubectl(args: &[&str]) -> Outcome {
    kubectl_in(TABLES, args, "")
}

/// `kubectl` in a namespace, with `input` on stdin.
pub(crate) fn kubectl_in(namespace: &str, args: &[&str], input: &str) -> Outcome {
    run(
        "kubectl",
        &[&["--namespace", namespace], args].concat(),
        input,
    )
}

/// `kubectl apply -f -` in the tables' namespace.
#[track_caller]
pub(crate) fn apply(manifest: &str) -> String {
    try_apply(manifest).ok().to_owned()
}

/// The same, where a refusal is expected.
pub(crate) fn try_apply(manifest: &str) -> Outcome {
    kubectl_in(TABLES, &["apply", "-f", "-"], manifest)
}

/// A Table of TableCluster `cluster` with `spec`, in YAML's flow style.
pub(crate) fn table(name: &str, cluster: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: tablemount.dev/v1alpha1, kind: Table, metadata: {{name: {name}}}, spec: {{clusterRef: {{name: {cluster}}}, {spec}}}}}\n"
    )
}

/// A TableCluster with `spec`.
pub(crate) fn cluster(name: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: tablemount.dev/v1alpha1, kind: TableCluster, metadata: {{name: {name}}}, spec: {{{spec}}}}}\n"
    )
}

/// `kubectl wait` for a condition of an object.
#[track_caller]
pub(crate) fn wait_for(object: &str, condition: &str) {
    let args = [
        "wait",
        object,
        &format!("--for={condition}"),
        "--timeout=180s",
    ];
    let waited = kubectl(&args);
    assert!(
        waited.code == 0,
        "{}\n{}",
        waited.stderr,
        kubectl(&["describe", object]).text()
    );
}

/// What a JSONPath gives of an object; empty where there is nothing.
pub(crate) fn field(object: &str, path: &str) -> String {
    let output = format!("jsonpath={{{path}}}");
    kubectl(&["get", object, "--ignore-not-found", "--output", &output])
        .text()
        .to_owned()
}

/// Reason and message of an object's Ready condition.
pub(crate) fn ready(object: &str) -> (String, String) {
    let condition = |part: &str| {
        field(
            object,
            &format!(".status.conditions[?(@.type==\"Ready\")].{part}"),
        )
    };
    (condition("reason"), condition("message"))
}

/// Waits for the reason of an object's Ready condition, and gives its message.
#[track_caller]
pub(crate) fn wait_for_reason(object: &str, reason: &str) -> String {
    let mut seen = (String::new(), String::new());
    let end = Instant::now() + DEADLINE;
    while Instant::now() < end {
        seen = ready(object);
        if seen.0 == reason {
            return seen.1;
        }
        std::thread::sleep(PAUSE);
    }
    panic!(
        "{object}: Ready has reason {} ({}), not {reason}",
        seen.0, seen.1
    );
}

/// Waits until `look` gives something.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) => assert!(
                Instant::now() < end,
                "{what}: not within {DEADLINE:?}; last: {seen}"
            ),
        }
        std::thread::sleep(PAUSE);
    }
}

/// Runs the `tablemount` command in the pod that mounts: through the Service that `TABLEMOUNT_SERVER` of the pod names, or
/// through the one of `cluster`.
pub(crate) fn tablemount(cluster: &str, args: &[&str]) -> Outcome {
    let server = format!("http://{cluster}.{TABLES}.svc:8080");
    kubectl_in(
        MOUNTS,
        &[
            &["exec", "mount", "--", "/bin/tablemount"],
            args,
            &["--server", &server],
        ]
        .concat(),
        "",
    )
}

/// Runs a command in the pod that sees the mount.
pub(crate) fn in_reader(args: &[&str]) -> Outcome {
    kubectl_in(MOUNTS, &[&["exec", "reader", "--"], args].concat(), "")
}

/// The file `path` below the repository's root.
pub(crate) fn repository_file(path: &str) -> String {
    support::root()
        .join(path)
        .to_str()
        .expect("a path in UTF-8")
        .to_owned()
}

/// The lines of a listing, in order.
pub(crate) fn sorted(lines: &str) -> Vec<&str> {
    let mut lines: Vec<_> = lines.lines().collect();
    lines.sort_unstable();
    lines
}

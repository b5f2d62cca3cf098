//! Steps with cells: written and read through the Service, seen through mounts, kept over the loss of a pod.

use std::process::Stdio;
use std::time::Duration;

use super::{
    Images, MOUNTS, TABLES, eventually, field, in_reader, kubectl, kubectl_in, sorted, tablemount,
    wait_for,
};
use crate::support;

const POST: &str = "TT20240131120000";

pub(crate) fn start_mount(images: &Images) {
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

pub(crate) fn write_and_read() {
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
pub(crate) fn assert_cells() {
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

pub(crate) fn look_in_pod() {
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
pub(crate) fn look_on_host() {
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

pub(crate) fn lose_pod() {
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

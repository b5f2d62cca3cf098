#!/usr/bin/env python3
"""Writes an OCI image archive without docker, for `ctr images import` and `docker load`.

mkimage.py [OPTIONS] OUT.tar REF ITEM...

ITEM is SOURCE:/PATH[:MODE], a file (mode 755 unless given),
     /PATH->TARGET, a symbolic link, or
     /PATH/:MODE, an empty folder.
Folders on the way to an item are made. The same items give the same bytes: no times, no owners.
"""
import argparse
import hashlib
import io
import json
import platform
import tarfile

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def add(tar, path, kind=tarfile.REGTYPE, mode=0o755, body=b"", target=""):
    entry = tarfile.TarInfo(path.strip("/"))
    entry.type, entry.mode, entry.size, entry.linkname = kind, mode, len(body), target
    tar.addfile(entry, io.BytesIO(body))


def layer(items):
    """The bytes of a tar with the items, parents before children."""
    buffer, folders = io.BytesIO(), set()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:

        def parents(path):
            parts = path.strip("/").split("/")[:-1]
            for n in range(1, len(parts) + 1):
                folder = "/".join(parts[:n])
                if folder not in folders:
                    folders.add(folder)
                    add(tar, folder, tarfile.DIRTYPE)

        for item in items:
            if "->" in item:
                path, target = item.split("->")
                parents(path)
                add(tar, path, tarfile.SYMTYPE, 0o777, target=target)
            elif item.startswith("/") and "/:" in item:
                path, mode = item.rsplit("/:", 1)
                parents(path)
                folders.add(path.strip("/"))
                add(tar, path, tarfile.DIRTYPE, int(mode, 8))
            else:
                source, path, *mode = item.split(":")
                parents(path)
                with open(source, "rb") as file:
                    add(tar, path, mode=int(mode[0], 8) if mode else 0o755, body=file.read())
    return buffer.getvalue()


def image(ref, config, items):
    """The archive's files, by name: an OCI image layout."""
    files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}

    def blob(body, media_type):
        digest = hashlib.sha256(body).hexdigest()
        files[f"blobs/sha256/{digest}"] = body
        return {"mediaType": f"application/vnd.oci.image.{media_type}", "digest": f"sha256:{digest}", "size": len(body)}

    content = blob(layer(items), "layer.v1.tar")
    settings = {
        "architecture": ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": {"Env": ["PATH=/bin"], **config},
        "rootfs": {"type": "layers", "diff_ids": [content["digest"]]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(json.dumps(settings).encode(), "config.v1+json"),
        "layers": [content],
    }
    entry = blob(json.dumps(manifest).encode(), "manifest.v1+json")
    entry["annotations"] = {"io.containerd.image.name": ref, "org.opencontainers.image.ref.name": ref.rsplit(":", 1)[1]}
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode()
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entrypoint", type=json.loads, metavar="JSON")
    parser.add_argument("--cmd", type=json.loads, metavar="JSON")
    parser.add_argument("--user")
    parser.add_argument("out")
    parser.add_argument("ref")
    parser.add_argument("items", nargs="+")
    args = parser.parse_args()
    config = {"Entrypoint": args.entrypoint, "Cmd": args.cmd, "User": args.user}
    files = image(args.ref, {key: value for key, value in config.items() if value}, args.items)
    with tarfile.open(args.out, "w") as tar:
        for name, body in files.items():
            add(tar, name, mode=0o644, body=body)


main()

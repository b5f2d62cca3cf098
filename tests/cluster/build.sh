#!/bin/sh
# build.sh: builds the cluster's programs into $BIN; nothing to do when they are there. The folder appears only whole.
set -eu
here=$(cd "$(dirname "$0")" && pwd); . "$here/env.sh"
[ ! -d "$BIN" ] || exit 0
echo "building the test cluster's programs: about 10 minutes on two cores, once" >&2
cd "$here"
mkdir -p "$CACHE/cluster"
new=$(mktemp -d "$BIN.XXXXXX"); trap 'rm -rf "$new"' EXIT; trap 'exit 1' HUP INT TERM
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${version#v1.}; minor=${minor%%.*}
package=k8s.io/component-base/version         # without these it calls itself v0.0.0-master, which helm takes for the version
flags="-s -w -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=$minor"
CGO_ENABLED=0 go build -trimpath -ldflags "$flags" -o "$new/" ./kube helm.sh/helm/v3/cmd/helm
for name in etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy coredns kubectl; do ln -s kube "$new/$name"; done
chmod 755 "$new"
mv -T "$new" "$BIN" 2>/dev/null || [ -d "$BIN" ]   # another build may have been first
find "$CACHE/cluster" -mindepth 1 -maxdepth 1 -mtime +30 -exec rm -rf {} +

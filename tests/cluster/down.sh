#!/bin/sh
# down.sh: ends the cluster, whatever state it is in, and removes all that it left. Nothing to do when there is none.
set -eu
here=$(cd "$(dirname "$0")" && pwd); . "$here/env.sh"
[ -d "$STATE" ] || exit 0
if p=$(supervisor); then kill -KILL "$p"; fi    # the node's first process goes with it, and with that one all the others
for i in $(seq 200); do                         # a cgroup can only go once its last process is gone
	left=
	for c in $(cgroups) "/sys/fs/cgroup/unified/$NAME"; do  # kubelet adds the last one
		[ ! -d "$c" ] || find "$c" -depth -type d -exec rmdir {} + 2>/dev/null || left=$c
	done
	[ "$left" ] || break
	sleep 0.05
done
[ -z "$left" ] || { echo "down.sh: processes are left in $left" >&2; exit 1; }
ip link del "$NAME" 2>/dev/null || true         # normally gone with the node
rm -rf --one-file-system "$STATE"
rmdir /tmp/hostpath_pv 2>/dev/null || true

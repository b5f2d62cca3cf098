#!/bin/sh
# up.sh: starts the one-node test cluster; returns when its node is Ready. Kubeconfig: $STATE/admin.conf
set -eu
here=$(cd "$(dirname "$0")" && pwd); . "$here/env.sh"
fail() { echo "up.sh: $1; the ends of the logs in $STATE/log:" >&2; tail -n 20 "$STATE"/log/* >&2; exit 1; }

[ "$(id -u)" = 0 ] || { echo "up.sh: the test cluster needs root" >&2; exit 1; }
for program in containerd runc iptables conntrack busybox ip openssl python3 pgrep nsenter unshare; do
	command -v "$program" >/dev/null || { echo "up.sh: $program is missing; run $here/packages.sh" >&2; exit 1; }
done
"$here/build.sh"
if [ -e "$STATE/ready" ] && pid >/dev/null; then echo "up.sh: already up" >&2; exit 0; fi
"$here/down.sh"

mkdir -p "$STATE/pki" "$STATE/log" "$STATE/cni" "$STATE/var-lib/kubelet" "$STATE/var-log" "$STATE/pv"
sh "$here/certs.sh"
# The sandbox of every pod runs the image's own command.
python3 "$here/mkimage.py" --cmd '["/bin/sleep", "infinity"]' "$STATE/busybox.tar" "$BUSYBOX" \
	/bin/busybox:/bin/busybox /tmp/:1777 $(busybox --list | grep -vx busybox | sed 's#.*#/bin/&->busybox#')
for c in $(cgroups); do
	mkdir -p "$c/system"
	case $c in
		*/cpuset/*) for f in cpuset.cpus cpuset.mems; do cat "${c%/*}/$f" > "$c/$f"; cat "$c/$f" > "$c/system/$f"; done;;
		"/sys/fs/cgroup/$NAME") for f in "${c%/*}" "$c"; do  # version 2
			sed 's/[^ ]*/+&/g' "$f/cgroup.controllers" > "$f/cgroup.subtree_control"
		done;;
	esac
done

# The supervisor's pid is on file before it starts anything, so that down.sh finds it at any moment.
setsid sh -c 'echo $$ > "$1/pid" && exec unshare --mount --net --uts --pid --fork --propagation private --mount-proc --kill-child sh "$2" "$1"' \
	- "$STATE" "$here/node.sh" </dev/null >"$STATE/log/node" 2>&1 &
child=
for i in $(seq 200); do
	if child=$(pid); then break; fi
	sleep 0.05
done
[ "$child" ] || fail "the node did not start"
# The host's end of the node's network: it goes when the node goes.
ip link add "$NAME" type veth peer name node0 netns "$child"
ip addr add "$NET.2/24" dev "$NAME"
ip link set "$NAME" up
ip route add "$PODS.0.0/16" via "$NET.1"
ip route add "$SERVICES.0.0/16" via "$NET.1"

for i in $(seq 1200); do
	[ ! -e "$STATE/ready" ] || exit 0
	kill -0 "$child" 2>/dev/null || fail "the node ended"
	sleep 0.1
done
fail "not Ready in 120 s"

# env.sh: what the cluster's scripts share; sourced with $here set to this folder.
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/tablemount
KEY=$(cd "$here" && cat go.mod go.sum kube/main.go build.sh | sha256sum | cut -c 1-16)
BIN=$CACHE/cluster/$KEY                        # what build.sh makes
STATE=/var/tmp/tablemount-test                 # all of the cluster's data, on a disk; one cluster at a time on a machine
NAME=tablemount-test                           # of its cgroup and of the host's network interface
NODE=node-1
NET=${TABLEMOUNT_TEST_NET:-192.168.77}         # the node is $NET.1, the host $NET.2
PODS=10.244 SERVICES=10.96                     # both /16
BUSYBOX=localhost/busybox:1                    # an image that up.sh gives the node: a shell and its programs
PATH=$BIN:$PATH
# The cluster is reached directly, also where a proxy leads out.
NO_PROXY=${NO_PROXY:-},127.0.0.1,localhost,$NET.0/24,$PODS.0.0/16,$SERVICES.0.0/16,.svc,.cluster.local
no_proxy=$NO_PROXY
export CACHE BIN STATE NAME NODE NET PODS SERVICES BUSYBOX PATH NO_PROXY no_proxy

supervisor() { # prints the pid of the process that ends the node when it ends, if it runs
	p=$(cat "$STATE/pid" 2>/dev/null) && tr '\0' '\n' 2>/dev/null < "/proc/$p/cmdline" | grep -qxF "$STATE" && echo "$p"
}
pid() { # prints the host's pid of the node's first process, if it runs
	s=$(supervisor) && pgrep -P "$s"
}
cgroups() { # prints the cluster's cgroup in each hierarchy of the machine
	if [ -e /sys/fs/cgroup/cgroup.controllers ]; then echo "/sys/fs/cgroup/$NAME"; return; fi
	for c in /sys/fs/cgroup/*/; do
		[ "$c" = /sys/fs/cgroup/unified/ ] || [ -h "${c%/}" ] || echo "$c$NAME"
	done
}

#!/bin/sh
# enter.sh COMMAND...: runs it in the node's namespaces (its mounts, processes and network).
set -eu
here=$(cd "$(dirname "$0")" && pwd); . "$here/env.sh"
node=$(pid) || { echo "enter.sh: the test cluster is not up" >&2; exit 1; }
exec nsenter --target "$node" --mount --net --uts --pid -- "$@"

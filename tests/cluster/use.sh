#!/bin/sh
# use.sh: prints the line that points a shell at the running test cluster.
here=$(cd "$(dirname "$0")" && pwd); . "$here/env.sh"
echo "export KUBECONFIG=$STATE/admin.conf PATH=$BIN:\$PATH NO_PROXY=$NO_PROXY"

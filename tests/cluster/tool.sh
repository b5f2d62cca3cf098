#!/bin/sh
# tool.sh PROGRAM ARGUMENT...: runs one of the cluster's programs, kubectl or helm, built first if need be. Needs no cluster.
set -eu
here=$(cd "$(dirname "$0")" && pwd); . "$here/env.sh"
"$here/build.sh"
exec "$@"

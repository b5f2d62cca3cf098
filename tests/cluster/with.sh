#!/bin/sh
# with.sh IMAGE.tar... -- COMMAND...: runs the command with a cluster that has the images, and tells it in its environment:
#   KUBECONFIG                 the cluster's
#   TABLEMOUNT_IMAGE           Tablemount's image
#   TABLEMOUNT_BUSYBOX_IMAGE   an image with a shell, ls, cat and the like
# The cluster is the test cluster, started before and ended after; or, where KUBECONFIG is set, the caller's own: then the
# archives stay unused, and TABLEMOUNT_IMAGE must name an image that it can pull.
set -eu
here=$(cd "$(dirname "$0")" && pwd); . "$here/env.sh"
archives=
while [ "$1" != -- ]; do archives="$archives $1"; shift; done
shift

if [ "${KUBECONFIG:-}" ]; then
	[ "${TABLEMOUNT_IMAGE:-}" ] || {
		echo "with.sh: KUBECONFIG is set, so the tests would run on that cluster: set TABLEMOUNT_IMAGE to an image that it can pull, or unset KUBECONFIG for the test cluster" >&2
		exit 2
	}
	export TABLEMOUNT_BUSYBOX_IMAGE="${TABLEMOUNT_BUSYBOX_IMAGE:-busybox:1.37}"
	exec "$@"
fi

trap '"$here/down.sh"' EXIT
trap 'exit 130' HUP INT TERM
"$here/packages.sh"
"$here/down.sh"
"$here/up.sh"
"$here/load-image.sh" $archives
export KUBECONFIG="$STATE/admin.conf" TABLEMOUNT_IMAGE=localhost/tablemount:dev TABLEMOUNT_BUSYBOX_IMAGE="$BUSYBOX"
status=0
"$@" || status=$?
[ $status = 0 ] || "$here/report.sh" >&2
exit $status

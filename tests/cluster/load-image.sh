#!/bin/sh
# load-image.sh FILE.tar...: gives the node the images of OCI (or docker save) archives.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
for f; do "$here/enter.sh" ctr -n k8s.io images import - < "$f" >/dev/null; done

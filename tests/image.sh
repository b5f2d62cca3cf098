#!/bin/sh
# image.sh BINARY OUT.tar REF: writes the image that the Dockerfile makes, as an OCI archive and without docker.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
binary=$1 out=$2 ref=$3
if ldd "$binary" 2>/dev/null | grep -q '=>'; then echo "image.sh: $binary is not static" >&2; exit 1; fi
mkdir -p "$(dirname "$out")"
passwd=$(mktemp) new=$(mktemp "$out.XXXXXX")
trap 'rm -f "$passwd" "$new"' EXIT
printf '%s\n' root:x:0:0::/:/bin/false nonroot:x:65532:65532::/:/bin/false > "$passwd"
python3 "$here/cluster/mkimage.py" --entrypoint '["/bin/tablemount"]' --user 65532:65532 "$new" "$ref" \
	"$binary:/bin/tablemount" '/bin/mount.tablemount->tablemount' '/bin/kubectl-tablemount->tablemount' \
	/etc/ssl/certs/ca-certificates.crt:/etc/ssl/certs/ca-certificates.crt:644 "$passwd:/etc/passwd:644" /tmp/:1777
mv "$new" "$out"

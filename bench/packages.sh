#!/bin/sh
# packages.sh: installs the Debian packages that the benchmarks need beside those of the tests, where one is missing.
set -eu
packages="build-essential librocksdb-dev libclang-14-dev"
missing=
for package in $packages; do
	dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing="$missing $package"
done
[ "$missing" ] || exit 0
install="apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" != 0 ]; then
	echo "packages.sh: these Debian packages are missing; as root: apt-get update && $install" >&2
	exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
$install

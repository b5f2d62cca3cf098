#!/bin/sh
# packages.sh: installs the Debian packages that the tests need, where one is missing. None of them starts a service.
set -eu
packages="build-essential ca-certificates curl procps python3 python3-venv
	busybox-static conntrack containerd containernetworking-plugins iproute2 iptables openssl runc"
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

#!/bin/sh
# demo.sh: the embedded default with the example data, in a temporary folder. TABLEMOUNT names the binary (`make demo` builds it).
# Without a terminal it shows the whole and ends; with one it stays up until Ctrl-C. It leaves nothing behind.
set -eu
cd "$(dirname "$0")/.."
# The settings of whoever calls this do not count here.
unset TABLEMOUNT_DATA TABLEMOUNT_LOG TABLEMOUNT_LOG_FORMAT TABLEMOUNT_SERVER TABLEMOUNT_TOKEN_FILE
tablemount=${TABLEMOUNT:?names the tablemount binary; run: make demo}

fail() { echo "demo: $*" >&2; exit 1; }
if [ ! -e /dev/fuse ]; then fail "there is no /dev/fuse; load the kernel module (modprobe fuse) or give the container the device"; fi
if [ "$(id -u)" != 0 ] && ! command -v fusermount3 > /dev/null; then
	fail "mounting takes root or fusermount3 (Debian: apt install fuse3)"
fi

folder=$(mktemp -d)
mount=$folder/tables
mkdir "$mount"
up=
end() {
	if [ -n "$up" ]; then kill "$up" 2> /dev/null || true; wait "$up" 2> /dev/null || true; fi
	# Left only if it was killed.
	umount --lazy "$mount" 2> /dev/null || true
	rm -rf --one-file-system "$folder"
}
trap end EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM

# Any free ports: the log says which. Out of the terminal's reach, so that Ctrl-C comes to this script alone, which ends it.
setsid "$tablemount" up -f crds/examples --data "$folder/data" --mount "$mount" --http 127.0.0.1:0 --grpc 127.0.0.1:0 \
	--log-format json > "$folder/out" 2> "$folder/log" &
up=$!
url=
tries=0
until [ -n "$url" ] && [ -d "$mount/stocks" ]; do
	kill -0 "$up" 2> /dev/null || { up=; tail -n 3 "$folder/log" >&2; fail "tablemount up did not start"; }
	tries=$((tries + 1))
	[ "$tries" -lt 600 ] || fail "tablemount up was not ready within a minute"
	sleep 0.1
	url=$(sed -n 's/.*"message":"serving HTTP".*"address":"\([^"]*\)".*/http:\/\/\1/p' "$folder/log")
done
export TABLEMOUNT_SERVER="$url"

say() { printf '\n$ %s\n' "$*"; }
# Shows a command as typed in the mount, and what it prints.
show() { say "$1"; (cd "$mount" && sh -c "$1"); }

cat "$folder/out"
data=crds/examples/data
say "tablemount import blogtable $data/blog.ndjson"
"$tablemount" import blogtable "$data/blog.ndjson"
say "tablemount import stocks $data/stocks.csv --row symbol --column price=price:close --timestamp date --timestamp-format '%b %d %Y'"
"$tablemount" import stocks "$data/stocks.csv" --row symbol --column price=price:close --timestamp date \
	--timestamp-format '%b %d %Y'
"$tablemount" import usertable "$data/users.ndjson" > /dev/null
"$tablemount" import map "$data/map.ndjson" > /dev/null

row=blogtable/TT20080702120000
say "cd $mount"
show "ls"
show "ls -R $row"
show "cat $row/text/%empty/latest"
show "tail -n +1 $row/text/%empty/[0-9]*"
show "cat stocks/@at/2008-07-02/AAPL/price/close/latest; echo"
show "ls -lt --time-style=+%F stocks/AAPL/price/close | head -n 5"

if [ -t 0 ] && [ -t 1 ]; then
	cat <<-TEXT

	It stays up; in another terminal:
	  cd $mount; cat @help
	  export TABLEMOUNT_SERVER=$url
	  $tablemount get blogtable TT20080702120000
	  $tablemount put blogtable TT20080702120000 'text:=A new version.'
	Ctrl-C ends it and removes $folder.
	TEXT
	wait "$up"
fi

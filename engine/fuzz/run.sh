#!/bin/sh
# Runs each fuzz target for so many seconds, and says in a line what came of it. `make fuzz` calls it.
# What the targets found worth keeping stays in the cache for the next time; a crash's input is named.
# usage: run.sh CARGO-FUZZ CACHE SECONDS
set -eu
fuzz=$1 cache=$2 seconds=$3
cd "$(dirname "$0")"
export CARGO_TARGET_DIR="$cache/target" RUSTUP_TOOLCHAIN="${FUZZ_TOOLCHAIN:-nightly}"
"$fuzz" build --fuzz-dir .
failed=0
for target in $("$fuzz" list --fuzz-dir .); do
	mkdir -p "$cache/$target/found" "$cache/$target/crashes"
	log=$cache/$target/log crashes=0
	# A unit may take 20 s, machine and sanitizer being slow: what takes longer has no bound.
	"$fuzz" run --fuzz-dir . "$target" "$cache/$target/found" "corpus/$target" -- -max_total_time="$seconds" -timeout=20 \
		-print_final_stats=1 -artifact_prefix="$cache/$target/crashes/" >"$log" 2>&1 || crashes=1
	executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1)
	echo "$target: ${executions:-0} executions, $crashes crashes"
	if [ "$crashes" -gt 0 ]; then
		failed=1
		echo "$target: see $log; the input is in $cache/$target/crashes" >&2
	fi
done
exit $failed

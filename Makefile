# Everything cached stays in one folder: cargo's target, tools, the image, the test cluster's programs.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/tablemount
export CARGO_TARGET_DIR ?= $(CACHE)/target
ifdef CI
export CARGO_INCREMENTAL := 0
locked := --locked
endif

host = $(shell rustc -vV | sed -n 's/^host: //p')
binary = $(CARGO_TARGET_DIR)/$(host)/debug/tablemount
image := $(CACHE)/image/tablemount.tar
deny_version := 0.20.2
deny := $(CACHE)/tools/cargo-deny-$(deny_version)/bin/cargo-deny
fuzz_version := 0.13.2
fuzz := $(CACHE)/tools/cargo-fuzz-$(fuzz_version)/bin/cargo-fuzz
FUZZ_SECONDS ?= 600

# Integration tests by file, so that a new one is run without a word here. The cluster's need a cluster.
e2e := $(filter-out cluster,$(basename $(notdir $(wildcard tests/*.rs engine/tests/*.rs engine/*/tests/*.rs operator/tests/*.rs fusefs/tests/*.rs))))
scripts := .ci/run bench/packages.sh engine/fuzz/run.sh $(wildcard tests/*.sh tests/*/*.sh)

# One cargo at a time, and always the whole workspace, so that all commands agree on features and compile nothing twice.
.NOTPARALLEL:
.PHONY: help demo build test test-lint test-unit test-e2e test-model test-crash-loop test-clients test-cluster test-cluster-check cluster cluster-down image tools fuzz crds bench bench-shapes bench-plot bench-test clean

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.* ## \(.*\)/\1 \2/p' $(MAKEFILE_LIST) | while read -r name text; do printf '  make %-20s %s\n' "$$name" "$$text"; done

demo: build ## the embedded default with the example data, in a temporary folder
	TABLEMOUNT=$(binary) tests/demo.sh

# --examples, of which there are none, makes cargo choose features as it does for tests.
build: ## the tablemount command, static, with the tests' profile
	cargo build $(locked) --workspace --bins --examples

test: test-lint test-unit test-e2e test-clients test-chart test-cluster ## everything but benchmarks and soak tests

test-lint: $(deny) ## formats, clippy, licences of dependencies, scripts
	cargo fmt --all --check
	for script in $(scripts); do sh -n "$$script" || exit; done
	cargo clippy $(locked) --workspace --all-targets -- -D warnings
	$(deny) --log-level error check licenses bans sources

test-unit: ## tests beside the code, and those in its documentation
	cargo test $(locked) --workspace --lib --bins
	cargo test $(locked) --workspace --doc

test-e2e: ## the command, the server and the mount, from outside
	$(if $(e2e),cargo test $(locked) --workspace $(addprefix --test ,$(e2e)))

test-clients: build ## the official Bigtable clients' own suites; CLIENTS_ARGS='--suite go --write-docs' and the like
	python3 tests/clients/run.py $(binary) $(CLIENTS_ARGS)

test-model: ## 10,000 random schedules of the storage engine against its model, on a disk that crashes
	TABLEMOUNT_MODEL_SCHEDULES=10000 cargo test $(locked) --workspace --lib -- --nocapture visible_is_what_the_model_shows

test-crash-loop: ## 200 SIGKILLs of a server under load
	TABLEMOUNT_CRASHES=200 cargo test $(locked) --workspace --test crash -- --nocapture

test-chart: ## the Helm chart, without a cluster
	tests/cluster/tool.sh helm lint --strict charts/tablemount

test-cluster: image ## on Kubernetes: the test cluster, or yours (KUBECONFIG and TABLEMOUNT_IMAGE)
	tests/cluster/with.sh $(image) -- cargo test $(locked) --workspace --test cluster

test-cluster-check: ## that the test cluster itself is a cluster
	tests/cluster/with.sh -- tests/cluster/check.sh

cluster: image ## starts the test cluster with the image, to try things in
	tests/cluster/packages.sh
	tests/cluster/up.sh
	tests/cluster/load-image.sh $(image)
	@tests/cluster/use.sh

cluster-down: ## ends it
	tests/cluster/down.sh

image: build ## the container image, as an OCI archive, without docker
	tests/image.sh $(binary) $(image) localhost/tablemount:dev

tools: $(deny) ## what the lint needs besides the Rust toolchain

$(deny):
	env -u CARGO_TARGET_DIR cargo install --locked --root $(CACHE)/tools/cargo-deny-$(deny_version) cargo-deny --version $(deny_version)

# A workspace of its own (engine/fuzz), with the nightly toolchain.
fuzz: $(fuzz) ## hostile bytes for all that reads files, each target for FUZZ_SECONDS
	engine/fuzz/run.sh $(fuzz) $(CACHE)/fuzz $(FUZZ_SECONDS)

$(fuzz):
	env -u CARGO_TARGET_DIR cargo install --locked --root $(CACHE)/tools/cargo-fuzz-$(fuzz_version) cargo-fuzz --version $(fuzz_version)

crds: build ## crds/ and the chart's copy, from the code
	$(binary) crds > crds/tablemount.dev.yaml
	cp crds/tablemount.dev.yaml charts/tablemount/crds/

# A workspace of its own (bench/Cargo.toml), against Debian's RocksDB, a shared library. BENCH_ARGS are further arguments.
bench := cd bench && RUSTFLAGS='-C target-feature=-crt-static' ROCKSDB_LIB_DIR=/usr/lib/$$(gcc -print-multiarch) ROCKSDB_INCLUDE_DIR=/usr/include \
	LIBCLANG_PATH=/usr/lib/llvm-14/lib cargo
bench bench-shapes bench-plot bench-test: export CARGO_TARGET_DIR := $(CACHE)/bench
bench_out := $(CACHE)/bench-results

bench: ## speed beside RocksDB and fjall: docs/performance.md
	bench/packages.sh
	$(bench) run --locked --release -- compare --out $(bench_out) $(BENCH_ARGS)

bench-shapes: ## speed of wide rows, versions, listings, opening
	bench/packages.sh
	$(bench) run --locked --release -- shapes --out $(bench_out) $(BENCH_ARGS)

bench-plot: ## cost of a get over the number of rows
	bench/packages.sh
	$(bench) run --locked --release -- plot --out $(bench_out) $(BENCH_ARGS)

bench-test: ## formats, clippy and tests of the benchmarks themselves
	bench/packages.sh
	cd bench && cargo fmt --check
	$(bench) clippy --locked --all-targets -- -D warnings
	$(bench) test --locked

clean: ## removes what make built here, but neither tools nor the test cluster's programs
	cargo clean
	rm -rf $(CACHE)/image

//! Refuses to link statically: Debian's RocksDB is a shared library, and a static program that names one crashes as it starts.
//! The workspace above asks for static programs; cargo joins its flags with any that stand here, so only `RUSTFLAGS` undoes that.

fn main() {
    let features = std::env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    assert!(
        !features.split(',').any(|feature| feature == "crt-static"),
        "the benchmarks link dynamically: build them by `make bench`, which sets RUSTFLAGS"
    );
}

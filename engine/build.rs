//! Generates the Bigtable API's types and services from `proto/`, without `protoc`, and the descriptors for reflection.

use std::path::PathBuf;
use std::{env, fs};

use prost::Message as _;

const FILES: [&str; 6] = [
    "google/bigtable/v2/bigtable.proto",
    "google/bigtable/v2/feature_flags.proto",
    "google/bigtable/admin/v2/bigtable_table_admin.proto",
    "google/bigtable/admin/v2/bigtable_instance_admin.proto",
    "google/longrunning/operations.proto",
    "google/rpc/error_details.proto",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        .build_client(false)
        // What is not served is named by the layer in front of all services.
        .generate_default_stubs(true)
        // Written by hand, straight into bytes.
        .extern_path(
            ".google.bigtable.v2.ReadRowsResponse",
            "crate::bigtable::chunks::ReadRowsMessage",
        )
        .bytes(".google.bigtable")
        .compile_fds(descriptors)?;
    Ok(())
}

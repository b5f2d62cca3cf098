//! The tablet server: tables on one store, and the edges that serve them.
//!
//! ```text
//! http, bigtable over grpc (edges) → engine → write, delete_rows, row_update │ read → storage
//! ```
//! **Architecture invariants**: only [`storage`] touches bytes on disk; nothing here knows Kubernetes or FUSE; time comes from
//! [`clock`] alone.

pub mod access;
mod bigtable;
mod clock;
mod delete_rows;
pub mod dump;
mod engine;
mod error;
mod grpc;
pub mod http;
#[cfg(test)]
mod memory_engine;
mod open_files;
mod read;
mod row_update;
mod storage;
pub mod verify;
mod write;

pub use engine::{Config, Engine};
pub use error::{Error, Result};
pub use grpc::GrpcServer;
pub use read::{CellRef, CellValue, ReadStream};
#[cfg(any(test, fuzzing))]
pub use storage::fuzzing;

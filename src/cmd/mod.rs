//! The subcommands, one file each: its arguments with their help, and `run`.

pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod crds;
pub(crate) mod delete;
pub(crate) mod engine;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod healthcheck;
pub(crate) mod hold;
pub(crate) mod import;
pub(crate) mod key;
pub(crate) mod log;
pub(crate) mod mount;
pub(crate) mod operator;
pub(crate) mod path;
pub(crate) mod put;
pub(crate) mod scan;
pub(crate) mod sst;
pub(crate) mod stats;
pub(crate) mod tables;
pub(crate) mod up;
pub(crate) mod verify;

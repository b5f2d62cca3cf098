//! Tablemount's filesystem: tables as folders, `MOUNT/TABLE/ROW/FAMILY/QUALIFIER/TIMESTAMP`, read-only.
//!
//! ```text
//! kernel ─ fuse (adapter) ─ filesystem ─┬─ inodes: number → node
//!                                       ├─ path: node and name → node          (pure)
//!                                       ├─ listing: a directory, page by page
//!                                       └─ facts: what exists ─ windows (1 s) ─ lookahead (pure) ─ remote ─ client ─ engine
//! ```
//!
//! **Architecture invariants**: depends on the engine's API and client, never on the engine. Nothing is written. The
//! filesystem works without FUSE ([`fuse`] only translates), and is tested that way, over an in-memory [`source::Source`].
//! Every operation ends by its deadline, since the kernel cannot interrupt one. Nothing is shown as empty or absent because
//! it could not be read: a listing that is cut or fails ends in an error.

mod bounds;
mod clock;
mod config;
mod deadline;
mod errno;
mod evict;
mod facts;
mod fetch;
mod filesystem;
mod fuse;
mod generated;
mod handles;
mod inodes;
mod listing;
mod long_names;
mod lookahead;
mod mount;
mod mountpoint;
mod node;
mod open_file;
mod pages;
mod path;
mod place;
mod remote;
mod resolve;
mod row_json;
mod source;
mod stat;
mod tables;
#[cfg(test)]
mod test_source;
mod window;
mod xattr;

pub use config::MountConfig;
pub use mount::{Error, Mount, mount};
pub use mountpoint::detach;

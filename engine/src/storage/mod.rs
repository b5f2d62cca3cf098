//! Tablet storage: everything that touches bytes on disk.
//!
//! ```text
//! store ─ open · admin · maintain · workers
//!   ├─ table ─ tablet ─ memtable, sst                      reads:  visible ← merge ← memtable, sst
//!   ├─ log                                                 writes: log → memtable → (flush) → sst
//!   └─ objects (catalog records), disk (files, folders)
//! ```
//! **Architecture invariant**: no other part of the engine opens a file; nothing here knows HTTP or Kubernetes.

mod admin;
pub(crate) mod cache;
pub(crate) mod catalog;
mod cleanup;
mod compaction;
pub(crate) mod compactor;
pub(crate) mod counters;
pub(crate) mod debt;
mod deletes;
pub(crate) mod disk;
pub(crate) mod entry;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod hold;
pub(crate) mod ids;
mod jobs;
pub(crate) mod judge;
pub(crate) mod keys;
pub(crate) mod log;
mod maintain;
mod memtable;
pub(crate) mod merge;
pub(crate) mod objects;
pub(crate) mod open;
mod pace;
pub(crate) mod pressure;
#[cfg(test)]
pub(crate) mod random;
mod ranges;
mod rate;
pub(crate) mod resources;
mod rewrite;
mod room;
#[cfg(test)]
mod sim;
pub(crate) mod sources;
pub(crate) mod sst;
pub(crate) mod stats;
pub(crate) mod store;
pub(crate) mod table;
pub(crate) mod tablet;
#[cfg(test)]
mod tests;
pub(crate) mod verify;
pub(crate) mod visible;
pub(crate) mod wide;
pub(crate) mod workers;

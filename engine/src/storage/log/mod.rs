//! The commit log on a volume: one per server, all tablets, in preallocated segments `logs/<log id>/<n>`.
//!
//! Owns what [`frame`] (bytes of segments), [`record`] (bytes of records), [`writer`] (group commit, budget) and [`recovery`]
//! (what is read back, torn tail or corruption) do. Knows tablets only by number.

pub(crate) mod frame;
pub(crate) mod record;
pub(crate) mod recovery;
pub(crate) mod writer;

use uuid::Uuid;

pub(crate) use record::{Entry, Op, Record};
pub(crate) use writer::{Appended, CommitLog};

/// The folder of a log's segments.
pub(crate) fn folder(log: Uuid) -> String {
    format!("logs/{log}")
}

/// A segment's path.
pub(crate) fn segment_path(log: Uuid, number: u64) -> String {
    format!("logs/{log}/{number:012}")
}

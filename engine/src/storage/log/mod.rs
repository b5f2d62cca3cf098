//! The commit log on a volume: one per server, all tablets, in preallocated segments `logs/<log id>/<n>`.
//!
//! ```text
//! writer ─ group (what is open) · committer (when it is written) · durable (who waits for it)
//!   ├─ space (room, spare segment, full disk) ─ segment (files)
//!   └─ pins (which segments are needed, budget)
//! recovery, dump: read back ─ search     frame, record: bytes
//! ```
//! Knows tablets only by number.

mod committer;
pub(crate) mod dump;
mod durable;
pub(crate) mod frame;
mod group;
mod pins;
pub(crate) mod record;
pub(crate) mod recovery;
pub(crate) mod search;
pub(crate) mod segment;
mod space;
pub(crate) mod writer;

use uuid::Uuid;

pub(crate) use record::{Entry, Op, Record};
pub(crate) use writer::{Appended, CommitLog, Start};

/// The folder of a log's segments.
pub(crate) fn folder(log: Uuid) -> String {
    format!("logs/{log}")
}

/// A segment's path.
pub(crate) fn segment_path(log: Uuid, number: u64) -> String {
    format!("logs/{log}/{number:012}")
}

/// Space taken for a segment at once: an eighth of the log's budget, within reason.
pub(crate) fn segment_bytes(budget: u64) -> u64 {
    (budget / 8).next_multiple_of(4096).clamp(1 << 20, 32 << 20)
}

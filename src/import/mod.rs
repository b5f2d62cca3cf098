//! Loading files into a table: sources turn lines into row mutations, lanes send them, a report counts and shows them.
//!
//! ```text
//! file ─ source (a thread): line → row mutation, or a bad line ─ by hash of the row key ─ 4 lanes ─ batches, one request at a time each
//! ```
//!
//! **Invariants**: every cell is sent with a timestamp, so a request that is sent twice, or a file that is loaded twice,
//! writes the same cells; lines of one row go through one lane in their order, so the later line wins; no line is lost
//! silently: each is written, or reported as bad, or the import fails; memory is bounded by the lanes' batches and the
//! longest record ([`MAX_RECORD_BYTES`]).

mod csv;
mod families;
mod lanes;
mod ndjson;
mod report;
mod send;
mod times;

pub(crate) use csv::{CsvOptions, CsvSource};
pub(crate) use families::Families;
pub(crate) use lanes::load;
pub(crate) use ndjson::NdjsonSource;
pub(crate) use report::Report;
pub(crate) use times::TimeFormat;

use tablemount_api::RowMutation;

/// The header of CSV with one cell a line, as `export --format csv` writes it.
pub(crate) const LONG_HEADER: [&str; 5] = ["row", "family", "qualifier", "timestamp", "value"];

/// The longest record: the longest value with each byte doubled (quotes in CSV, escapes in JSON), and what stands around it.
pub(crate) const MAX_RECORD_BYTES: usize = 210 << 20;

/// A line that was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// What to write.
    Row {
        /// The line's number in the file, from 1.
        number: u64,
        /// The row's mutations, each with a timestamp.
        row: RowMutation,
    },
    /// Nothing can be written; the reason names the value and what it must be.
    Bad {
        /// The line's number in the file, from 1.
        number: u64,
        /// Why.
        reason: String,
    },
}

/// Reads lines one after the other.
pub(crate) trait Source: Send {
    /// The next line; `None` at the end. An error ends the import: the file cannot be read on.
    fn next(&mut self) -> anyhow::Result<Option<Line>>;
}

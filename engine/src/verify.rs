//! Checking a store: every checksum, reference, order and bound of what its folder holds, without changing anything.
//!
//! Takes no lock: a server may serve the store meanwhile. What its flushes, compactions and drops explain is no finding.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::Result;
use crate::storage::disk::LocalDisk;
use crate::storage::verify;

/// Something wrong, or, as a note, something to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The file or folder, in the data folder.
    pub path: String,
    /// Where in the file; absent: all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// What is wrong there.
    pub what: String,
    /// Nothing is damaged: this is for information.
    pub note: bool,
}

/// One line.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let note = if self.note { "note: " } else { "" };
        match self.offset {
            Some(offset) => write!(f, "{note}{} at offset {offset}: {}", self.path, self.what),
            None => write!(f, "{note}{}: {}", self.path, self.what),
        }
    }
}

/// How much was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Tables of the catalog.
    pub tables: u64,
    /// Their tablets.
    pub tablets: u64,
    /// SSTs that manifests name.
    pub files: u64,
    /// Blocks of these: data, chunks of values, indexes, filters, properties.
    pub blocks: u64,
    /// Cells, tombstones and wider deletes in these.
    pub entries: u64,
    /// Groups of the commit log.
    pub log_groups: u64,
    /// Row mutations in these.
    pub log_records: u64,
    /// What is damaged.
    pub findings: u64,
    /// What is not, but was reported too.
    pub notes: u64,
}

/// Checks the store in a data folder; `report` gets each finding as it is met. Errors are of a folder that holds no store, or
/// that cannot be listed.
pub fn verify(data: &Path, report: &mut dyn FnMut(Finding)) -> Result<Summary> {
    verify::verify(Arc::new(LocalDisk::open(data, true)?), report)
}

//! Looking into a store's files: what stands where, as text, for people.
//!
//! Damage is told where it is, and the rest goes on; a damaged file ends in an error after all of it was shown.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use crate::storage::disk::LocalDisk;
use crate::storage::{log, sst};
use crate::{Error, Result};

/// An SST: footer, properties, indexes, each entry, wider deletes, ranges of rows; `values`: also the values, in the encoding
/// of names.
pub fn sst(path: &Path, values: bool, out: &mut dyn Write) -> Result<()> {
    let (folder, name) = place(path)?;
    sst::dump::dump(Arc::new(LocalDisk::open(folder, true)?), name, values, out)
}

/// A segment of a commit log: header, each group with its records and their entries. Changes nothing, also while a server writes
/// to it.
pub fn log(path: &Path, out: &mut dyn Write) -> Result<()> {
    let (folder, name) = place(path)?;
    log::dump::dump(folder, name, out)
}

/// A file's folder and its name there.
fn place(path: &Path) -> Result<(&Path, &str)> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| Error::Invalid(format!("{} is no file", path.display())))?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    Ok((folder.unwrap_or(Path::new(".")), name))
}

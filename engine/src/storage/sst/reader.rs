//! Reads a file's bytes: footer, properties, blocks, chunks of values, range deletes.
//!
//! **Invariants**: what is returned was checked; no length is trusted beyond the file's own.

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use super::block::BlockCursor;
use super::{FOOTER, Handle, MAGIC, Properties, stored};
use crate::Error;
use crate::storage::cache::{Block, Shared};
use crate::storage::entry::CHUNK_BYTES;
use crate::storage::keys;
use crate::storage::objects::FORMAT;
use crate::storage::ranges::RangeDelete;

pub(crate) const NOT_THE_MANIFESTS: &str = "properties are not those of the manifest";
pub(crate) const RANGES_OVERLAP: &str = "range deletes are no disjoint pieces in order";
pub(crate) const SECTION_MISSING: &str = "a section is missing";

/// What is wrong in a file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// `None`: it is the whole file.
    pub(crate) offset: Option<u64>,
    pub(crate) what: String,
    pub(crate) cause: Cause,
}

/// What kind of fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Damaged,
    /// Written by another version.
    Format,
    /// There is no such file.
    Missing,
    Io,
}

impl Fault {
    pub(crate) fn at(offset: u64, what: impl Into<String>) -> Self {
        Self {
            offset: Some(offset),
            what: what.into(),
            cause: Cause::Damaged,
        }
    }

    fn io(offset: Option<u64>, error: &io::Error) -> Self {
        Self {
            offset,
            what: error.to_string(),
            cause: match error.kind() {
                io::ErrorKind::NotFound => Cause::Missing,
                _ => Cause::Io,
            },
        }
    }

    /// The error of whoever needs the file at `path`.
    pub(crate) fn error(&self, path: &str) -> Error {
        let what = &self.what;
        match (self.cause, self.offset) {
            (Cause::Damaged, Some(offset)) => {
                Error::Corrupt(format!("sst {path} at offset {offset}: {what}"))
            }
            (Cause::Damaged, None) => Error::Corrupt(format!("sst {path} {what}")),
            (Cause::Format, _) => Error::Precondition(format!("sst {path} {what}")),
            (Cause::Missing | Cause::Io, Some(offset)) => {
                Error::Io(format!("read sst {path} at offset {offset}: {what}"))
            }
            (Cause::Missing | Cause::Io, None) => Error::Io(format!("open sst {path}: {what}")),
        }
    }
}

/// Reads one file.
pub(crate) struct Reader<'a> {
    pub(super) shared: &'a Arc<Shared>,
    /// Its number in this process.
    pub(super) file: u64,
    pub(super) path: &'a str,
    /// Its length.
    pub(super) bytes: u64,
}

type Result<T> = std::result::Result<T, Fault>;

impl<'a> Reader<'a> {
    /// A file that is to have `bytes`.
    pub(crate) fn new(shared: &'a Arc<Shared>, path: &'a str, bytes: u64) -> Self {
        Self {
            shared,
            file: shared.next_file(),
            path,
            bytes,
        }
    }

    /// The file's length.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Closes the file.
    pub(crate) fn close(&self) {
        self.shared.forget(self.file);
    }

    fn read(&self, offset: u64, length: usize) -> Result<Bytes> {
        let read = || {
            self.shared
                .file(self.file, self.path)?
                .read_at(offset, length)
        };
        read().map_err(|error| Fault::io(Some(offset), &error))
    }

    /// A block's bytes, checked and decompressed.
    pub(crate) fn block(&self, handle: Handle) -> Result<Bytes> {
        let length = u64::from(handle.length);
        if handle.offset.saturating_add(length) > self.bytes {
            return Err(Fault::at(handle.offset, "a block lies outside the file"));
        }
        let bytes = self.read(handle.offset, handle.length as usize)?;
        stored::open(&bytes).map_err(|damage| Fault::at(handle.offset, damage.as_str()))
    }

    /// A chunk of a large value of which `rest` bytes are left.
    pub(crate) fn chunk(&self, (offset, length): (u64, u32), rest: u64) -> Result<Bytes> {
        let chunk = self.block(Handle { offset, length })?;
        match chunk.len() as u64 == rest.min(CHUNK_BYTES as u64) {
            true => Ok(chunk),
            false => Err(Fault::at(offset, "a chunk of a value has another length")),
        }
    }

    /// Where top indexes of cells and wider deletes, ranges and properties are.
    pub(crate) fn footer(&self) -> Result<[Handle; 4]> {
        let file = self.shared.file(self.file, self.path);
        let file = file.map_err(|error| Fault::io(None, &error))?;
        if file.length() != self.bytes {
            return Err(Fault {
                offset: None,
                what: format!(
                    "is {} bytes; its manifest says {}",
                    file.length(),
                    self.bytes
                ),
                cause: Cause::Damaged,
            });
        }
        let at = self
            .bytes
            .checked_sub(FOOTER as u64)
            .ok_or_else(|| Fault::at(0, "too short for a footer"))?;
        let footer = self.read(at, FOOTER)?;
        decode_footer(&footer).map_err(|bad| match bad {
            BadFooter::Damaged => Fault::at(at, "the footer's checksum does not match"),
            BadFooter::Format(format) => Fault {
                offset: Some(at),
                what: format!("has format {format}; this version reads format {FORMAT}"),
                cause: Cause::Format,
            },
        })
    }

    /// What the file says of itself.
    pub(crate) fn properties(&self, handle: Handle) -> Result<Properties> {
        let json = self.block(handle)?;
        let properties: Properties = serde_json::from_slice(&json)
            .map_err(|error| Fault::at(handle.offset, format!("properties: {error}")))?;
        match properties.are_sane() {
            true => Ok(properties),
            false => Err(Fault::at(
                handle.offset,
                "properties count more than any file holds",
            )),
        }
    }

    /// The range deletes as they are stored; no length: none.
    pub(crate) fn range_deletes(&self, handle: Handle) -> Result<Vec<RangeDelete>> {
        let mut ranges = Vec::new();
        if handle.length == 0 {
            return Ok(ranges);
        }
        let damaged = || Fault::at(handle.offset, "the block of range deletes is damaged");
        let block = Block::new(self.block(handle)?);
        let mut cursor = BlockCursor::new(block).ok_or_else(damaged)?;
        loop {
            cursor.advance().ok_or_else(damaged)?;
            let (Some(key), Some(stored)) = (cursor.key(), cursor.stored()) else {
                return Ok(ranges);
            };
            let sequence = keys::sequence_of(key).ok_or_else(damaged)?;
            ranges.push(RangeDelete {
                from: key[..key.len() - 8].to_vec(),
                to: (!stored.bytes.is_empty()).then(|| stored.bytes.to_vec()),
                sequence,
            });
        }
    }
}

/// Why a footer is none of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadFooter {
    Damaged,
    Format(u32),
}

/// The handles in a footer: top indexes of cells and wider deletes, ranges, properties.
pub(crate) fn decode_footer(bytes: &[u8]) -> std::result::Result<[Handle; 4], BadFooter> {
    let footer: &[u8; FOOTER] = bytes.first_chunk().ok_or(BadFooter::Damaged)?;
    let word = |at: usize| {
        footer[at..]
            .first_chunk()
            .map_or(0, |chunk| u32::from_le_bytes(*chunk))
    };
    if &footer[60..] != MAGIC || crc32c::crc32c(&footer[..56]) != word(56) {
        return Err(BadFooter::Damaged);
    }
    if word(52) != FORMAT {
        return Err(BadFooter::Format(word(52)));
    }
    let handle = |i: usize| Handle::decode(&footer[i * Handle::BYTES..]).ok_or(BadFooter::Damaged);
    Ok([handle(0)?, handle(1)?, handle(2)?, handle(3)?])
}

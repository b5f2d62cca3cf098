//! An SST as text, in the order of its sections.
//!
//! ```text
//! file NAME: 4711 bytes, format 1
//! footer at 4647: cells 4000+100, wide deletes none, range deletes none, properties 4100+547
//! properties: one a line
//! cells: top index at 4000, 100 bytes
//!   partition at 3900, 100 bytes, below FENCE, filter at 3800, 73 bytes
//!     block at 0, 900 bytes, below FENCE
//!       ROW QUALIFIER TIMESTAMP SEQUENCE put LENGTH [VALUE]
//! ```
//! Keys, fences and values are in the encoding of names, whole. Damage is a line of its own: `damaged at offset N: what`.

use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use tablemount_api::Timestamp;
use tablemount_api::name::encode_whole;

use super::reader::{Cause, Fault, Reader};
use super::walk::{Event, walk};
use super::{FOOTER, Handle};
use crate::storage::cache::Shared;
use crate::storage::disk::Disk;
use crate::storage::entry::{Kind, Large, Packed, Stored};
use crate::storage::keys;
use crate::storage::objects::FORMAT;
use crate::storage::wide::{self, WideDelete};
use crate::{Error, Result};

/// Writes what the file at `path` holds; an error at the end if some of it is damaged.
pub(crate) fn dump(
    disk: Arc<dyn Disk>,
    path: &str,
    values: bool,
    out: &mut dyn Write,
) -> Result<()> {
    let opened = disk.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            Error::NotFound(format!("{}/{path} does not exist", disk.describe()))
        }
        _ => Error::Io(format!("open sst {path}: {error}")),
    });
    let bytes = opened?.length();
    let shared = Shared::new(disk, 0);
    let reader = Reader::new(&shared, path, bytes);
    let mut dump = Dump {
        reader: &reader,
        values,
        out,
        damaged: 0,
    };
    let shown = dump.file(path, bytes);
    shown.map_err(|error| Error::Io(format!("write what is in sst {path}: {error}")))?;
    match dump.damaged {
        0 => Ok(()),
        damaged => Err(Error::Corrupt(format!(
            "sst {path} is damaged in {damaged} places"
        ))),
    }
}

struct Dump<'a> {
    reader: &'a Reader<'a>,
    values: bool,
    out: &'a mut dyn Write,
    damaged: u64,
}

impl Dump<'_> {
    fn file(&mut self, path: &str, bytes: u64) -> io::Result<()> {
        writeln!(self.out, "file {path}: {bytes} bytes, format {FORMAT}")?;
        let handles = match self.reader.footer() {
            Ok(handles) => handles,
            Err(fault) => return self.damage(&fault),
        };
        let [cells, wide, ranges, properties] = handles;
        let place = |handle: Handle| match handle.length {
            0 => "none".to_owned(),
            length => format!("{}+{length}", handle.offset),
        };
        writeln!(
            self.out,
            "footer at {}: cells {}, wide deletes {}, range deletes {}, properties {}",
            bytes - FOOTER as u64,
            place(cells),
            place(wide),
            place(ranges),
            place(properties)
        )?;
        self.properties(properties)?;
        self.section("cells", cells, Self::cell)?;
        self.section("wide deletes", wide, Self::wide_delete)?;
        self.ranges(ranges)
    }

    fn properties(&mut self, handle: Handle) -> io::Result<()> {
        let properties = match self.reader.properties(handle) {
            Ok(properties) => properties,
            Err(fault) => return self.damage(&fault),
        };
        writeln!(self.out, "properties:")?;
        let keys = [
            ("minKey", &properties.min_key),
            ("maxKey", &properties.max_key),
            ("minWideKey", &properties.min_wide_key),
            ("maxWideKey", &properties.max_wide_key),
        ];
        let json = serde_json::to_value(&properties).map_err(io::Error::other)?;
        for (name, value) in json.as_object().into_iter().flatten() {
            match keys.iter().find(|(key, _)| key == name) {
                Some((_, key)) => writeln!(self.out, "  {name} {}", encode_whole(&key.0))?,
                None => writeln!(self.out, "  {name} {value}")?,
            }
        }
        Ok(())
    }

    fn section(
        &mut self,
        name: &str,
        top: Handle,
        entry: fn(&mut Self, &[u8], Stored<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        if top.length == 0 {
            return Ok(());
        }
        let Handle { offset, length } = top;
        writeln!(self.out, "{name}: top index at {offset}, {length} bytes")?;
        let reader = self.reader;
        walk(reader, top, &mut |event| match event {
            Event::Entry { key, stored } => entry(self, key, stored),
            Event::Damage(fault) => self.damage(&fault),
            Event::Partition {
                fence,
                handle,
                filter,
            } => self.partition(fence, handle, filter),
            Event::Block { fence, handle } => {
                let (Handle { offset, length }, fence) = (handle, encode_whole(fence));
                writeln!(
                    self.out,
                    "    block at {offset}, {length} bytes, below {fence}"
                )
            }
        })
    }

    fn partition(&mut self, fence: &[u8], handle: Handle, filter: Handle) -> io::Result<()> {
        let (Handle { offset, length }, fence) = (handle, encode_whole(fence));
        write!(
            self.out,
            "  partition at {offset}, {length} bytes, below {fence}"
        )?;
        if filter.length == 0 {
            return writeln!(self.out);
        }
        let Handle { offset, length } = filter;
        writeln!(self.out, ", filter at {offset}, {length} bytes")?;
        match self.reader.block(filter) {
            Ok(_) => Ok(()),
            Err(fault) => self.damage(&fault),
        }
    }

    fn cell(&mut self, key: &[u8], stored: Stored<'_>) -> io::Result<()> {
        let names = keys::parse(key).and_then(|parts| {
            let qualifier = keys::decode(&parts.column[parts.row.len()..])?;
            Some((keys::decode(parts.row)?, qualifier, parts))
        });
        let Some((row, qualifier, parts)) = names else {
            return self.told(&format!("no key: {}", encode_whole(key)));
        };
        let (row, qualifier) = (encode_whole(&row), encode_whole(&qualifier));
        let (timestamp, sequence) = (parts.timestamp.0, parts.sequence);
        write!(self.out, "      {row} {qualifier} {timestamp} {sequence} ")?;
        match (stored.kind, stored.value_length()) {
            (Kind::Tombstone, _) => writeln!(self.out, "delete"),
            (_, None) => {
                writeln!(self.out, "put")?;
                self.told("the value is damaged")
            }
            (_, Some(length)) => {
                write!(self.out, "put {length}")?;
                self.value(stored)
            }
        }
    }

    /// Ends the line, perhaps with the value.
    fn value(&mut self, stored: Stored<'_>) -> io::Result<()> {
        if !self.values {
            return writeln!(self.out);
        }
        let bytes = match stored.kind {
            Kind::Plain | Kind::Tombstone => Ok(Bytes::copy_from_slice(stored.bytes)),
            Kind::Packed => {
                let value = Packed::decode(stored.bytes).and_then(|packed| packed.open());
                value.ok_or(None)
            }
            Kind::Large => self.large(stored).map_err(Some),
        };
        match bytes {
            Ok(bytes) => writeln!(self.out, " {}", encode_whole(&bytes)),
            Err(fault) => {
                writeln!(self.out)?;
                match fault {
                    Some(fault) => self.damage(&fault),
                    None => self.told("the value does not decompress"),
                }
            }
        }
    }

    fn large(&self, stored: Stored<'_>) -> std::result::Result<Bytes, Fault> {
        let mut out = Vec::new();
        if let Some(large) = Large::decode(stored.bytes) {
            for place in large.chunks() {
                let chunk = self.reader.chunk(place, large.length - out.len() as u64)?;
                out.extend_from_slice(&chunk);
            }
        }
        Ok(out.into())
    }

    fn wide_delete(&mut self, key: &[u8], stored: Stored<'_>) -> io::Result<()> {
        let delete = WideDelete::decode(key, stored).and_then(|delete| {
            let (row, qualifier) = wide::parse(key)?;
            let qualifier = match qualifier {
                Some(qualifier) => Some(keys::decode(qualifier)?),
                None => None,
            };
            Some((keys::decode(row)?, qualifier, delete))
        });
        let Some((row, qualifier, delete)) = delete else {
            return self.told(&format!("no wider delete: {}", encode_whole(key)));
        };
        let what = match qualifier {
            Some(qualifier) => format!("column {}", encode_whole(&qualifier)),
            None => "family".to_owned(),
        };
        let (min, max) = (bound(delete.min), bound(delete.max));
        let (row, sequence) = (encode_whole(&row), delete.sequence);
        writeln!(
            self.out,
            "      {row} {what} {min}..{max} {sequence} delete"
        )
    }

    fn ranges(&mut self, place: Handle) -> io::Result<()> {
        if place.length == 0 {
            return Ok(());
        }
        let Handle { offset, length } = place;
        writeln!(self.out, "range deletes at {offset}, {length} bytes")?;
        let deletes = match self.reader.range_deletes(place) {
            Ok(deletes) => deletes,
            Err(fault) => return self.damage(&fault),
        };
        for delete in deletes {
            let row = |encoded: &[u8]| match keys::decode(encoded) {
                Some(row) => encode_whole(&row),
                None => format!("not a row: {}", encode_whole(encoded)),
            };
            let from = row(&delete.from);
            let to = delete
                .to
                .as_ref()
                .map_or("the end".to_owned(), |to| row(to));
            let sequence = delete.sequence;
            writeln!(self.out, "      rows from {from} to {to} {sequence} delete")?;
        }
        Ok(())
    }

    fn damage(&mut self, fault: &Fault) -> io::Result<()> {
        let what = match fault.cause {
            Cause::Damaged | Cause::Format => fault.what.clone(),
            Cause::Missing | Cause::Io => format!("read: {}", fault.what),
        };
        match fault.offset {
            Some(offset) => self.told(&format!("at offset {offset}: {what}")),
            None => self.told(&what),
        }
    }

    fn told(&mut self, what: &str) -> io::Result<()> {
        self.damaged += 1;
        writeln!(self.out, "damaged {what}")
    }
}

/// A bound of a time range; the widest stand for none.
fn bound(time: Timestamp) -> String {
    match time {
        Timestamp::MIN | Timestamp::MAX => String::new(),
        Timestamp(micros) => micros.to_string(),
    }
}

//! Writes an SST as a stream: parts go to the object store as they fill, so that memory does not grow with the file.

use bytes::{BufMut, Bytes};
use object_store::MultipartUpload;
use tablemount_api::{Base64, BloomFilter, Compression, CompressionScope, FamilySchema};

use super::block::{BlockBuilder, INDEX_RESTARTS};
use super::section::SectionWriter;
use super::{FOOTER, FileMeta, Handle, MAGIC, Properties, bloom, compress, stored};
use crate::storage::entry::{CHUNK_BYTES, Kind, Large, Packed};
use crate::storage::keys;
use crate::storage::objects::{FORMAT, Objects};
use crate::storage::ranges::RangeSet;
use crate::storage::wide::WideDelete;
use crate::{Error, Result};

/// A part of an upload (S3 wants at least 5 MiB).
const PART_BYTES: usize = 8 << 20;
/// Values shorter than this are not compressed on their own.
const MIN_PACKED_BYTES: usize = 64;

/// The bytes of a file on their way to the object store.
pub(super) struct Out {
    objects: Objects,
    path: String,
    upload: Box<dyn MultipartUpload>,
    buffer: Vec<u8>,
    raw: Vec<u8>,
    written: u64,
}

impl Out {
    /// Writes a block; its builder is empty again.
    pub(super) fn store(
        &mut self,
        compression: Compression,
        block: &mut BlockBuilder,
    ) -> Result<Handle> {
        let mut raw = std::mem::take(&mut self.raw);
        raw.clear();
        block.finish(&mut raw);
        let handle = self.store_bytes(compression, &raw);
        self.raw = raw;
        handle
    }

    pub(super) fn store_bytes(&mut self, compression: Compression, raw: &[u8]) -> Result<Handle> {
        let offset = self.written + self.buffer.len() as u64;
        let length = stored::seal(&mut self.buffer, compression, raw);
        if self.buffer.len() >= PART_BYTES {
            self.send_part()?;
        }
        Ok(Handle { offset, length })
    }

    fn send_part(&mut self) -> Result<()> {
        let part = std::mem::take(&mut self.buffer);
        self.written += part.len() as u64;
        self.objects
            .upload_part(&self.path, &mut self.upload, part.into())
    }
}

/// Writes one SST; without [`SstWriter::finish`] nothing of it is to be seen.
pub(crate) struct SstWriter {
    out: Out,
    compression: Compression,
    scope: CompressionScope,
    /// Longer values stand apart.
    block_bytes: usize,
    cells: SectionWriter,
    wide: SectionWriter,
    ranges: RangeSet,
    properties: Properties,
    row: Vec<u8>,
    column: Vec<u8>,
    hashes: [u64; 2],
    last_key: Vec<u8>,
    packed: Vec<u8>,
    last_wide: Option<(Vec<u8>, WideDelete)>,
}

impl SstWriter {
    pub(crate) fn create(objects: Objects, path: String, schema: &FamilySchema) -> Result<Self> {
        let upload = objects.start_upload(&path)?;
        let out = Out {
            objects,
            path,
            upload,
            buffer: Vec::with_capacity(PART_BYTES),
            raw: Vec::new(),
            written: 0,
        };
        let block_bytes = schema.block_bytes as usize;
        let block_compression = match schema.compression_scope {
            CompressionScope::Block => schema.compression,
            CompressionScope::Record => Compression::None,
        };
        Ok(Self {
            out,
            compression: schema.compression,
            scope: schema.compression_scope,
            block_bytes,
            cells: SectionWriter::new(block_compression, block_bytes),
            wide: SectionWriter::new(
                Compression::None,
                FamilySchema::DEFAULT_BLOCK_BYTES as usize,
            ),
            ranges: RangeSet::default(),
            properties: Properties::empty(schema.bloom_filter),
            row: Vec::new(),
            column: Vec::new(),
            hashes: [0; 2],
            last_key: Vec::new(),
            packed: Vec::new(),
            last_wide: None,
        })
    }

    /// Appends a tombstone; keys rise.
    pub(crate) fn push_tombstone(&mut self, key: &[u8]) -> Result<()> {
        self.properties.tombstones += 1;
        self.push(key, Kind::Tombstone, &[], 0)
    }

    /// Appends a value; keys rise.
    pub(crate) fn push_value(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if value.len() > self.block_bytes {
            let mut chunks = value
                .chunks(CHUNK_BYTES)
                .map(|chunk| Ok(Bytes::copy_from_slice(chunk)));
            return self.push_large(key, value.len() as u64, &mut chunks);
        }
        let pack = self.scope == CompressionScope::Record && value.len() >= MIN_PACKED_BYTES;
        let packed = pack
            .then(|| compress::compress(self.compression, value))
            .flatten();
        match packed {
            Some((codec, bytes)) => {
                let mut packed = std::mem::take(&mut self.packed);
                packed.clear();
                let length = value.len() as u64;
                Packed {
                    codec,
                    length,
                    bytes: &bytes,
                }
                .encode(&mut packed);
                let pushed = self.push(key, Kind::Packed, &packed, value.len() as u64);
                self.packed = packed;
                pushed
            }
            None => self.push(key, Kind::Plain, value, value.len() as u64),
        }
    }

    /// Appends a value of `length` bytes that comes in chunks of [`CHUNK_BYTES`]; keys rise.
    pub(crate) fn push_large(
        &mut self,
        key: &[u8],
        length: u64,
        chunks: &mut dyn Iterator<Item = Result<Bytes>>,
    ) -> Result<()> {
        let mut lengths = Vec::new();
        let mut first = Handle::default();
        for chunk in chunks {
            let handle = self.out.store_bytes(self.compression, &chunk?)?;
            if lengths.is_empty() {
                first = handle;
            }
            lengths.push(handle.length);
        }
        let place = Large::encode(length, first.offset, &lengths);
        self.push(key, Kind::Large, &place, length)
    }

    fn push(&mut self, key: &[u8], kind: Kind, value: &[u8], raw_value: u64) -> Result<()> {
        let damaged = |what| Error::Corrupt(format!("write sst {}: {what}", self.out.path));
        let (timestamp, sequence) = keys::tail(key).ok_or_else(|| damaged("bad key"))?;
        if key <= self.last_key.as_slice() {
            return Err(damaged("keys do not rise: one that is read is damaged"));
        }
        if !key.starts_with(&self.column) || self.column.is_empty() {
            let parts = keys::parse(key).ok_or_else(|| damaged("bad key"))?;
            if parts.row != self.row {
                self.row.clear();
                self.row.extend_from_slice(parts.row);
                self.properties.rows += 1;
                if self.properties.bloom_filter != BloomFilter::None {
                    self.hashes[0] = bloom::hash(parts.row);
                }
            }
            self.column.clear();
            self.column.extend_from_slice(parts.column);
            self.properties.columns += 1;
            if self.properties.bloom_filter == BloomFilter::RowColumn {
                self.hashes[1] = bloom::hash(parts.column);
            }
        }
        let properties = &mut self.properties;
        if properties.entries == 0 {
            properties.min_key = Base64(Bytes::copy_from_slice(key));
        }
        properties.entries += 1;
        properties.raw_bytes += key.len() as u64 + raw_value;
        properties.min_timestamp = properties.min_timestamp.min(timestamp);
        properties.max_timestamp = properties.max_timestamp.max(timestamp);
        properties.saw_sequence(sequence);
        properties.max_cell_sequence = properties.max_cell_sequence.max(sequence);
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.cells
            .push(&mut self.out, key, kind, value, self.hashes)
    }

    /// Appends a wider delete; keys rise. Those that a later one of the same column or family includes are left out.
    pub(crate) fn push_wide(&mut self, key: &[u8], delete: &WideDelete) -> Result<()> {
        let target = |key: &[u8]| key.len().saturating_sub(8);
        if let Some((last, later)) = &self.last_wide {
            if last[..target(last)] == key[..target(key)] && later.includes(delete) {
                return Ok(());
            }
            if key <= last.as_slice() {
                let path = &self.out.path;
                return Err(Error::Corrupt(format!(
                    "write sst {path}: deletes do not rise: one that is read is damaged"
                )));
            }
        }
        let properties = &mut self.properties;
        if properties.wide_deletes == 0 {
            properties.min_wide_key = Base64(Bytes::copy_from_slice(key));
        }
        properties.wide_deletes += 1;
        properties.saw_sequence(delete.sequence);
        self.wide
            .push(&mut self.out, key, Kind::Plain, &delete.encode(), [0; 2])?;
        self.last_wide = Some((key.to_vec(), *delete));
        Ok(())
    }

    /// The range deletes.
    pub(crate) fn set_ranges(&mut self, ranges: RangeSet) {
        self.properties.range_deletes = ranges.pieces().len() as u64;
        for piece in ranges.pieces() {
            self.properties.saw_sequence(piece.sequence);
        }
        self.ranges = ranges;
    }

    /// Whether nothing was appended.
    pub(crate) fn is_empty(&self) -> bool {
        self.properties.entries == 0
            && self.properties.wide_deletes == 0
            && self.properties.range_deletes == 0
    }

    /// Completes the file; it is durable when this returns.
    pub(crate) fn finish(mut self) -> Result<FileMeta> {
        let out = &mut self.out;
        let cells = self.cells.finish(out)?;
        let wide = self.wide.finish(out)?;
        let ranges = store_ranges(out, &self.ranges)?;
        self.properties.max_key = Base64(self.last_key.into());
        if let Some((last, _)) = self.last_wide {
            self.properties.max_wide_key = Base64(last.into());
        }
        let json = serde_json::to_vec(&self.properties)
            .map_err(|error| Error::Io(format!("encode: {error}")))?;
        let properties = out.store_bytes(Compression::None, &json)?;
        let footer = footer([cells, wide, ranges, properties]);
        out.buffer.extend_from_slice(&footer);
        out.send_part()?;
        out.objects.finish_upload(&out.path, &mut out.upload)?;
        Ok(FileMeta {
            path: self.out.path,
            bytes: self.out.written,
            properties: self.properties,
        })
    }

    /// Gives the file up.
    pub(crate) fn abandon(mut self) -> Result<()> {
        let out = &mut self.out;
        out.objects.abort_upload(&out.path, &mut out.upload)
    }
}

fn store_ranges(out: &mut Out, ranges: &RangeSet) -> Result<Handle> {
    if ranges.is_empty() {
        return Ok(Handle::default());
    }
    let mut block = BlockBuilder::new(INDEX_RESTARTS);
    for piece in ranges.pieces() {
        let mut key = piece.from.clone();
        key.put_u64(!piece.sequence);
        let to = piece.to.as_deref().unwrap_or_default();
        block.push(&key, Kind::Plain, to);
    }
    out.store(Compression::None, &mut block)
}

fn footer(handles: [Handle; 4]) -> [u8; FOOTER] {
    let mut out = [0; FOOTER];
    for (i, handle) in handles.into_iter().enumerate() {
        let at = i * Handle::BYTES;
        out[at..at + Handle::BYTES].copy_from_slice(&handle.encode());
    }
    out[52..56].copy_from_slice(&FORMAT.to_le_bytes());
    let checksum = crc32c::crc32c(&out[..56]);
    out[56..60].copy_from_slice(&checksum.to_le_bytes());
    out[60..].copy_from_slice(MAGIC);
    out
}

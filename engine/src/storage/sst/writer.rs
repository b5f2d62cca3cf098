//! Writes an SST as a stream: parts go to the object store as they fill, so that memory does not grow with the file.

use bytes::Bytes;
use object_store::MultipartUpload;
use tablemount_api::{Base64, Compression, FamilySchema};

use super::block::BlockBuilder;
use super::{FOOTER, FileMeta, Handle, MAGIC, Properties, compress};
use crate::storage::merge::Stored;
use crate::storage::objects::{FORMAT, Objects};
use crate::storage::wide::WideDelete;
use crate::storage::{keys, wide};
use crate::{Error, Result};

/// A part of an upload (S3 wants at least 5 MiB).
const PART_BYTES: usize = 8 << 20;

/// Writes one SST; without [`SstWriter::finish`] nothing of it is to be seen.
pub(crate) struct SstWriter {
    objects: Objects,
    path: String,
    upload: Box<dyn MultipartUpload>,
    compression: Compression,
    block_bytes: usize,
    buffer: Vec<u8>,
    written: u64,
    block: BlockBuilder,
    index: BlockBuilder,
    wide: BlockBuilder,
    properties: Properties,
}

impl SstWriter {
    pub(crate) fn create(objects: Objects, path: String, schema: &FamilySchema) -> Result<Self> {
        let upload = objects.start_upload(&path)?;
        Ok(Self {
            objects,
            path,
            upload,
            compression: schema.compression,
            block_bytes: schema.block_bytes as usize,
            buffer: Vec::new(),
            written: 0,
            block: BlockBuilder::default(),
            index: BlockBuilder::default(),
            wide: BlockBuilder::default(),
            properties: Properties::empty(),
        })
    }

    /// Appends an entry; keys rise.
    pub(crate) fn push(&mut self, key: &[u8], stored: &Stored) -> Result<()> {
        let parts = keys::parse(key)
            .ok_or_else(|| Error::Corrupt(format!("write sst {}: bad key", self.path)))?;
        let properties = &mut self.properties;
        if properties.entries == 0 {
            properties.min_key = Base64(Bytes::copy_from_slice(key));
        }
        properties.entries += 1;
        properties.raw_bytes += (key.len() + stored.len()) as u64;
        properties.min_timestamp = properties.min_timestamp.min(parts.timestamp);
        properties.max_timestamp = properties.max_timestamp.max(parts.timestamp);
        properties.min_sequence = properties.min_sequence.min(parts.sequence);
        properties.max_sequence = properties.max_sequence.max(parts.sequence);
        self.block.push(key, stored);
        if self.block.bytes() >= self.block_bytes {
            self.end_block()
        } else {
            Ok(())
        }
    }

    /// Appends a wider delete; keys rise.
    pub(crate) fn push_wide(&mut self, key: &[u8], delete: &WideDelete) {
        let properties = &mut self.properties;
        properties.wide_deletes += 1;
        if let Some(sequence) = wide::sequence_of(key) {
            properties.min_sequence = properties.min_sequence.min(sequence);
            properties.max_sequence = properties.max_sequence.max(sequence);
        }
        let bounds = [delete.min.0.to_le_bytes(), delete.max.0.to_le_bytes()].concat();
        self.wide.push(key, &Stored::Put(bounds.into()));
    }

    /// Whether nothing was appended.
    pub(crate) fn is_empty(&self) -> bool {
        self.properties.entries == 0 && self.properties.wide_deletes == 0
    }

    /// Completes the file; it is durable when this returns.
    pub(crate) fn finish(mut self) -> Result<FileMeta> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        self.properties.max_key = Base64(Bytes::copy_from_slice(self.index.last_key()));
        let index = self.index.finish();
        let index = self.store_block(Compression::None, index)?;
        let wide = self.wide.finish();
        let wide = self.store_block(Compression::None, wide)?;
        let json = serde_json::to_vec(&self.properties)
            .map_err(|error| Error::Io(format!("encode: {error}")))?;
        let properties = self.store_block(Compression::None, json)?;
        let footer = footer([index, wide, properties]);
        self.buffer.extend_from_slice(&footer);
        self.send_part()?;
        self.objects.finish_upload(&self.path, &mut self.upload)?;
        Ok(FileMeta {
            path: self.path,
            bytes: self.written,
            properties: self.properties,
        })
    }

    /// Gives the file up.
    pub(crate) fn abandon(mut self) -> Result<()> {
        self.objects.abort_upload(&self.path, &mut self.upload)
    }

    fn end_block(&mut self) -> Result<()> {
        let last_key = self.block.last_key().to_vec();
        let raw = self.block.finish();
        let handle = self.store_block(self.compression, raw)?;
        self.index.push(
            &last_key,
            &Stored::Put(Bytes::copy_from_slice(&handle.encode())),
        );
        Ok(())
    }

    fn store_block(&mut self, compression: Compression, raw: Vec<u8>) -> Result<Handle> {
        let raw_length = raw.len() as u32;
        let (codec, mut stored) = compress::compress(compression, raw);
        stored.push(codec);
        stored.extend_from_slice(&raw_length.to_le_bytes());
        let checksum = crc32c::crc32c(&stored);
        stored.extend_from_slice(&checksum.to_le_bytes());
        let handle = Handle {
            offset: self.written + self.buffer.len() as u64,
            length: stored.len() as u32,
        };
        self.buffer.extend_from_slice(&stored);
        if self.buffer.len() >= PART_BYTES {
            self.send_part()?;
        }
        Ok(handle)
    }

    fn send_part(&mut self) -> Result<()> {
        let part = std::mem::take(&mut self.buffer);
        self.written += part.len() as u64;
        self.objects
            .upload_part(&self.path, &mut self.upload, part.into())
    }
}

fn footer(handles: [Handle; 3]) -> [u8; FOOTER] {
    let mut out = [0; FOOTER];
    for (i, handle) in handles.into_iter().enumerate() {
        out[12 * i..12 * (i + 1)].copy_from_slice(&handle.encode());
    }
    out[44..48].copy_from_slice(&FORMAT.to_le_bytes());
    let checksum = crc32c::crc32c(&out[..48]);
    out[48..52].copy_from_slice(&checksum.to_le_bytes());
    out[52..].copy_from_slice(MAGIC);
    out
}

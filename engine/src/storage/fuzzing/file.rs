//! A whole SST from bytes, read in every way there is: by itself, by `dump`, and in a store whose manifest names it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use tablemount_api::{FamilyInfo, FamilyName, FamilySchema, TableName, Timestamp};
use uuid::Uuid;

use super::Sink;
use super::memory::Memory;
use super::records::{Names, put_store, read_all};
use crate::storage::cache::{Block, Shared};
use crate::storage::disk::Disk;
use crate::storage::entry::Large;
use crate::storage::sst::block::BlockCursor;
use crate::storage::sst::reader::{Reader, decode_footer};
use crate::storage::sst::{
    DroppedFiles, FOOTER, FileMeta, Handle, Section, Sst, SstCursor, TRAILER, dump, stored,
};

const PATH: &str = "tablets/00000001/sst/1/1-00000001";
/// Blocks whose checksums are made right.
const MAX_MENDED: usize = 512;
/// Entries that a cursor goes over.
const MAX_ENTRIES: usize = 2000;
/// Bytes of values that a cursor reads.
const MAX_VALUES: u64 = 1 << 20;
/// What the file's large blocks may become: longer ones are left damaged, to save time.
const MAX_RAW: u32 = 1 << 20;

/// A file as it is, and with all checksums made right.
pub fn footer(bytes: &[u8]) {
    let _ = decode_footer(bytes);
    read(&Bytes::copy_from_slice(bytes));
    read(&mend(bytes).into());
}

fn read(bytes: &Bytes) {
    let mut memory = Memory::default();
    let length = bytes.len() as u64;
    memory.put(PATH, bytes.clone());
    let disk: Arc<dyn Disk> = Arc::new(memory);
    let _ = dump::dump(disk.clone(), PATH, true, &mut Sink::new());
    let shared = Shared::new(disk.clone(), 1 << 20);
    let reader = Reader::new(&shared, PATH, length);
    let Ok([.., place]) = reader.footer() else {
        return;
    };
    let Ok(properties) = reader.properties(place) else {
        return;
    };
    let meta = FileMeta {
        path: PATH.to_owned(),
        bytes: length,
        properties,
    };
    let Ok(sst) = Sst::open(&shared, meta.clone(), DroppedFiles::default()) else {
        return;
    };
    let account = Arc::new(AtomicU64::new(0));
    for _ in 0..2 {
        cursors(&sst);
        let _ = sst.pin(&account, 1 << 20);
    }
    sst.unpin();
    in_a_store(bytes, meta);
}

/// Walks and searches both sections; keys that were met are looked for again.
fn cursors(sst: &Arc<Sst>) {
    for section in [Section::Cells, Section::Wide] {
        let Ok(Some(mut cursor)) = SstCursor::new(sst, section, None, true) else {
            continue;
        };
        let (mut met, mut room) = (Vec::new(), MAX_VALUES);
        let _ = cursor.seek(&[]);
        for _ in 0..MAX_ENTRIES {
            let Some(key) = cursor.key() else { break };
            if met.len() < 32 {
                met.push(key.to_vec());
            }
            let length = cursor.stored().and_then(|stored| stored.value_length());
            if let Some(length) = length.filter(|length| *length <= room) {
                room -= length;
                let _ = cursor.value(None);
                let _ = cursor.value(Some(length / 3..length - length / 3));
            }
            if cursor.next().is_err() {
                break;
            }
        }
        let mut last = Vec::new();
        for key in &met {
            let _ = cursor.last_below(key, &mut last);
            let _ = cursor.seek(key);
            let length = key.len() / 2;
            let _ = cursor.skip_prefix(length, &[&key[..length], &[0xff]].concat());
            let hash = crate::storage::sst::hash(&key[..length]);
            if let Ok(Some(mut probed)) = SstCursor::new(sst, section, Some(hash), false) {
                let _ = probed.seek(key);
            }
        }
    }
}

/// Opens, reads and verifies a store of one table that has the file and no other.
fn in_a_store(bytes: &Bytes, meta: FileMeta) {
    let mut memory = Memory::default();
    memory.put(PATH, bytes.clone());
    let names = Names {
        table: TableName::new("t").expect("valid"),
        uid: Uuid::from_u128(1),
    };
    let families = vec![FamilyInfo {
        id: 1,
        schema: FamilySchema::new(FamilyName::new("f").expect("valid")),
    }];
    put_store(&mut memory, &names, families, vec![meta]);
    read_all(Arc::new(memory), Timestamp(0));
}

/// The same file with right checksums: in the footer, and in all blocks that are reached from there.
fn mend(bytes: &[u8]) -> Vec<u8> {
    let mut mend = Mend {
        bytes: bytes.to_vec(),
        left: MAX_MENDED,
    };
    mend.file();
    mend.bytes
}

struct Mend {
    bytes: Vec<u8>,
    left: usize,
}

impl Mend {
    fn file(&mut self) -> Option<()> {
        let at = self.bytes.len().checked_sub(FOOTER)?;
        let footer = &mut self.bytes[at..];
        footer[52..56].copy_from_slice(&crate::storage::objects::FORMAT.to_le_bytes());
        let checksum = crc32c::crc32c(&footer[..56]);
        footer[56..60].copy_from_slice(&checksum.to_le_bytes());
        footer[60..].copy_from_slice(b"TMSS");
        let [cells, wide, ranges, properties] = decode_footer(footer).ok()?;
        self.block(properties);
        self.block(ranges);
        for top in [cells, wide] {
            for (partition, filter) in self.handles(top) {
                self.block(filter);
                for (block, _) in self.handles(partition) {
                    self.values(block);
                }
            }
        }
        Some(())
    }

    /// Makes a block's checksum right; its bytes.
    fn block(&mut self, handle: Handle) -> Option<Arc<Block>> {
        self.left = self.left.checked_sub(1)?;
        let start = usize::try_from(handle.offset).ok()?;
        let end = start.checked_add(handle.length as usize)?;
        let stored = self.bytes.get_mut(start..end)?;
        let body = stored.len().checked_sub(TRAILER)?;
        let raw = u32::from_le_bytes(*stored[body + 1..].first_chunk()?);
        (raw <= MAX_RAW).then_some(())?;
        let checksum = crc32c::crc32c(&stored[..body + 5]);
        stored[body + 5..].copy_from_slice(&checksum.to_le_bytes());
        let opened = stored::open(&stored.to_vec().into()).ok()?;
        Some(Block::new(opened))
    }

    /// Mends an index block; what it names.
    fn handles(&mut self, index: Handle) -> Vec<(Handle, Handle)> {
        let mut handles = Vec::new();
        let Some(mut cursor) = self.block(index).and_then(BlockCursor::new) else {
            return handles;
        };
        while cursor.advance().is_some() && handles.len() < MAX_MENDED {
            let Some(stored) = cursor.stored() else { break };
            let second = stored.bytes.get(Handle::BYTES..).and_then(Handle::decode);
            if let Some(first) = Handle::decode(stored.bytes) {
                handles.push((first, second.unwrap_or_default()));
            }
        }
        handles
    }

    /// Mends a data block and the values that stand apart.
    fn values(&mut self, block: Handle) {
        let Some(mut cursor) = self.block(block).and_then(BlockCursor::new) else {
            return;
        };
        while cursor.advance().is_some() && self.left > 0 {
            let Some(stored) = cursor.stored() else { break };
            let large = Large::decode(stored.bytes);
            let chunks: Vec<_> = large
                .iter()
                .flat_map(Large::chunks)
                .take(self.left)
                .collect();
            for (offset, length) in chunks {
                self.block(Handle { offset, length });
            }
        }
    }
}

//! Blocks from bytes: walks and searches of what may be damaged, compared with plain lists where it is not.

use std::sync::Arc;

use bytes::Bytes;

use crate::storage::cache::Block;
use crate::storage::entry::{Large, Packed, Stored};
use crate::storage::keys;
use crate::storage::sst::audit::Entries;
use crate::storage::sst::block::{BlockCursor, DATA_RESTARTS, INDEX_RESTARTS, Skipped};
use crate::storage::sst::{Handle, MAX_RAW, bloom, stored};
use crate::storage::wide::{self, WideDelete};

/// Keys of a block that are looked for.
const MAX_PROBES: usize = 64;
/// Longer blocks and values are taken apart, but not gone through.
const MAX_BYTES: usize = 1 << 20;
/// Bytes of keys that are compared with what searches find; prefixes make of few bytes many.
const MAX_TOTAL: usize = 16 << 20;

/// A data block: as a stored block, as one with a checksum made right, and as a block's bytes after decompression.
pub fn block(bytes: &[u8]) {
    let raw = Bytes::copy_from_slice(bytes);
    let mut sealed = bytes.to_vec();
    sealed.extend_from_slice(&crc32c::crc32c(bytes).to_le_bytes());
    let opened = [stored::open(&raw), stored::open(&sealed.into()), Ok(raw)];
    for opened in opened.into_iter().flatten() {
        assert!(opened.len() <= MAX_RAW);
        data_block(opened);
    }
}

/// An index block, and a filter.
pub fn index(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    for key in bytes.chunks(16).take(MAX_PROBES) {
        bloom::may_hold(&bytes, bloom::hash(key));
    }
    let block = Block::new(bytes);
    let keys = audited(&block, INDEX_RESTARTS);
    let Some(mut cursor) = BlockCursor::new(block) else {
        return;
    };
    while cursor.advance().is_some() && cursor.key().is_some() {
        if let Some(stored) = cursor.stored() {
            let _ = Handle::decode(stored.bytes);
            let _ = stored.bytes.get(Handle::BYTES..).and_then(Handle::decode);
        }
    }
    for probe in probes(&keys) {
        let found = cursor.seek_above(&probe).is_some();
        let above = keys.list.iter().find(|key| **key > probe);
        keys.agree(found, cursor.key(), above);
        let before = above.map_or(keys.list.len(), |above| keys.place(above));
        let found = match above {
            Some(_) => cursor.step_back().is_some(),
            None => cursor.seek_last().is_some(),
        };
        let below = before.checked_sub(1).map(|i| &keys.list[i]);
        keys.agree(found, cursor.key(), below);
    }
}

/// A block's keys, as far as they are sound.
struct Keys {
    list: Vec<Vec<u8>>,
    /// Whether these are all, and nothing is damaged.
    sound: bool,
}

impl Keys {
    fn place(&self, key: &[u8]) -> usize {
        self.list.partition_point(|other| other.as_slice() < key)
    }

    /// Where the block is sound, a search finds what stands there.
    fn agree(&self, searched: bool, found: Option<&[u8]>, expected: Option<&Vec<u8>>) {
        if self.sound {
            assert!(searched, "a sound block is searched");
            assert_eq!(found, expected.map(Vec::as_slice));
        }
    }
}

fn audited(block: &Arc<Block>, interval: usize) -> Keys {
    let mut keys = Keys {
        list: Vec::new(),
        sound: false,
    };
    let Ok(mut entries) = Entries::new(block.clone(), interval) else {
        return keys;
    };
    let mut bytes = 0;
    while bytes < MAX_TOTAL {
        match entries.next() {
            Ok(true) => keys.list.push(entries.key().to_vec()),
            Ok(false) => {
                keys.sound = true;
                return keys;
            }
            Err(_) => return keys,
        }
        bytes += entries.key().len();
    }
    keys
}

/// Some of the keys, and what is just beside them.
fn probes(keys: &Keys) -> Vec<Vec<u8>> {
    let step = keys.list.len().div_ceil(MAX_PROBES).max(1);
    let some = keys.list.iter().step_by(step);
    let beside = |key: &Vec<u8>| {
        let longer = [key.as_slice(), &[0]].concat();
        let shorter = key[..key.len().saturating_sub(1)].to_vec();
        [key.clone(), longer, shorter]
    };
    some.flat_map(beside)
        .chain([Vec::new(), vec![0xff; 4]])
        .collect()
}

fn data_block(bytes: Bytes) {
    if bytes.len() > MAX_BYTES {
        return;
    }
    let block = Block::new(bytes);
    let keys = audited(&block, DATA_RESTARTS);
    let Some(mut cursor) = BlockCursor::new(block) else {
        return;
    };
    while cursor.advance().is_some() {
        let (Some(key), Some(stored)) = (cursor.key(), cursor.stored()) else {
            break;
        };
        entry(key, stored);
    }
    for probe in probes(&keys) {
        let at = keys.place(&probe);
        let found = cursor.seek(&probe).is_some();
        keys.agree(found, cursor.key(), keys.list.get(at));
        if let Some(key) = cursor.key().map(<[u8]>::to_vec) {
            let length = key.len() / 2;
            let skipped = cursor.skip_prefix(length);
            let after = keys.list[at.min(keys.list.len())..]
                .iter()
                .find(|other| !other.starts_with(&key[..length]));
            match skipped {
                Some(Skipped::Prefix) => keys.agree(true, cursor.key(), after),
                Some(Skipped::Block) => keys.agree(true, None, after),
                Some(Skipped::TooFar) => {}
                None => keys.agree(false, None, None),
            }
        }
        let below = cursor
            .last_below(&probe)
            .map(|last| last.map(<[u8]>::to_vec));
        let expected = at.checked_sub(1).map(|i| &keys.list[i]);
        keys.agree(below.is_some(), below.flatten().as_deref(), expected);
    }
}

/// Takes an entry apart in every way there is.
fn entry(key: &[u8], stored: Stored<'_>) {
    if let Some(parts) = keys::parse(key) {
        let qualifier = &parts.column[parts.row.len()..];
        let names = (keys::decode(parts.row), keys::decode(qualifier));
        if let (Some(row), Some(qualifier)) = names
            && keys::first(&parts.column[parts.row.len()..]).map(<[u8]>::len)
                == Some(parts.column.len() - parts.row.len())
        {
            let column = keys::column(&keys::row(&row), &qualifier);
            let again = keys::key(&column, parts.timestamp, parts.sequence);
            assert_eq!(again, key, "a key has one form");
        }
    }
    let _ = (wide::parse(key), WideDelete::decode(key, stored));
    let length = stored.value_length();
    if let Some(packed) = Packed::decode(stored.bytes)
        && packed.length <= MAX_BYTES as u64
        && let Some(value) = packed.open()
    {
        assert_eq!(value.len() as u64, packed.length);
    }
    if let Some(large) = Large::decode(stored.bytes) {
        assert!(large.length <= MAX_RAW as u64);
        assert!(large.chunks().count() <= stored.bytes.len());
    }
    assert!(length.is_none_or(|length| length <= 1 << 35));
}

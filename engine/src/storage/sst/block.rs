//! Blocks: sorted entries with prefix-compressed keys and restart points.
//!
//! ```text
//! block = entry … │ restart offset u32 … │ restarts u32                     (before compression)
//! entry = shared varint │ unshared varint │ kind u8 │ value length varint │ key's rest │ value
//! kind  = 0 put │ 1 tombstone
//! ```
//! Every 16th entry is a restart: its key stands whole (`shared` = 0).
//!
//! **Invariants**: keys rise strictly; bytes from disk are checked at each step, a bad length ends in `None`, never in a panic.

use bytes::Bytes;

use crate::storage::merge::Stored;

const RESTART_INTERVAL: usize = 16;

/// Builds a block.
#[derive(Default)]
pub(crate) struct BlockBuilder {
    out: Vec<u8>,
    restarts: Vec<u32>,
    since_restart: usize,
    last_key: Vec<u8>,
}

impl BlockBuilder {
    /// Appends an entry; keys rise.
    pub(crate) fn push(&mut self, key: &[u8], stored: &Stored) {
        debug_assert!(self.last_key.is_empty() || self.last_key.as_slice() < key);
        let shared = if self.restarts.is_empty() || self.since_restart == RESTART_INTERVAL {
            self.restarts.push(self.out.len() as u32);
            self.since_restart = 0;
            0
        } else {
            self.last_key
                .iter()
                .zip(key)
                .take_while(|(a, b)| a == b)
                .count()
        };
        self.since_restart += 1;
        let (kind, value): (u8, &[u8]) = match stored {
            Stored::Put(value) => (0, value),
            Stored::Tombstone => (1, &[]),
        };
        push_varint(&mut self.out, shared);
        push_varint(&mut self.out, key.len() - shared);
        self.out.push(kind);
        push_varint(&mut self.out, value.len());
        self.out.extend_from_slice(&key[shared..]);
        self.out.extend_from_slice(value);
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.restarts.is_empty()
    }

    /// Bytes so far.
    pub(crate) fn bytes(&self) -> usize {
        self.out.len() + 4 * self.restarts.len() + 4
    }

    /// The highest key.
    pub(crate) fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// The block; the builder is empty again.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let Self {
            mut out, restarts, ..
        } = std::mem::take(self);
        for restart in &restarts {
            out.extend_from_slice(&restart.to_le_bytes());
        }
        out.extend_from_slice(&(restarts.len() as u32).to_le_bytes());
        out
    }
}

/// A place in a block.
pub(crate) struct BlockCursor {
    block: Bytes,
    /// End of the entries.
    end: usize,
    restarts: usize,
    /// Offset of the next entry.
    next: usize,
    key: Vec<u8>,
    stored: Option<Stored>,
}

impl BlockCursor {
    /// Before the first entry; `None` if the block's frame is damaged.
    pub(crate) fn new(block: Bytes) -> Option<Self> {
        let count_at = block.len().checked_sub(4)?;
        let restarts = u32::from_le_bytes(*block[count_at..].first_chunk()?) as usize;
        let end = count_at.checked_sub(restarts.checked_mul(4)?)?;
        Some(Self {
            block,
            end,
            restarts,
            next: 0,
            key: Vec::new(),
            stored: None,
        })
    }

    /// The key at this place; `None` before the first and after the last entry.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.stored.as_ref().map(|_| self.key.as_slice())
    }

    /// What is stored at this place.
    pub(crate) fn stored(&self) -> Option<&Stored> {
        self.stored.as_ref()
    }

    /// Goes to the next entry. `None`: damaged.
    pub(crate) fn advance(&mut self) -> Option<()> {
        if self.next >= self.end {
            self.stored = None;
            return Some(());
        }
        let mut at = self.next;
        let shared = self.varint(&mut at)?;
        let unshared = self.varint(&mut at)?;
        let kind = *self.block.get(at)?;
        at += 1;
        let length = self.varint(&mut at)?;
        let value_at = at.checked_add(unshared)?;
        let next = value_at.checked_add(length)?;
        if shared > self.key.len() || next > self.end {
            return None;
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(&self.block[at..value_at]);
        self.stored = Some(match kind {
            0 => Stored::Put(self.block.slice(value_at..next)),
            1 => Stored::Tombstone,
            _ => return None,
        });
        self.next = next;
        Some(())
    }

    /// Goes to the first entry at or after `key`. `None`: damaged.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Option<()> {
        if self.restarts == 0 {
            self.stored = None;
            return Some(());
        }
        self.go_to_run_of(key)?;
        while self.stored.is_some() && self.key.as_slice() < key {
            self.advance()?;
        }
        Some(())
    }

    /// The last key below `key`; moves. Outer `None`: damaged.
    pub(crate) fn last_below(&mut self, key: &[u8]) -> Option<Option<Bytes>> {
        if self.restarts == 0 {
            return Some(None);
        }
        self.go_to_run_of(key)?;
        let (mut last, mut found) = (Vec::new(), false);
        while self.stored.is_some() && self.key.as_slice() < key {
            last.clone_from(&self.key);
            found = true;
            self.advance()?;
        }
        Some(found.then(|| last.into()))
    }

    /// Goes to the last restart whose key is below `key`, or the first: the first entry at or after `key` is in its run or the
    /// first of the next.
    fn go_to_run_of(&mut self, key: &[u8]) -> Option<()> {
        let (mut low, mut high) = (0, self.restarts);
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            self.go_to_restart(middle)?;
            if self.key.as_slice() < key {
                low = middle;
            } else {
                high = middle;
            }
        }
        self.go_to_restart(low)
    }

    fn go_to_restart(&mut self, restart: usize) -> Option<()> {
        let at = self.end + 4 * restart;
        self.next = u32::from_le_bytes(*self.block.get(at..)?.first_chunk()?) as usize;
        self.key.clear();
        (self.next < self.end).then_some(())?;
        self.advance()
    }

    fn varint(&self, at: &mut usize) -> Option<usize> {
        let mut value = 0_u64;
        for shift in (0..35).step_by(7) {
            let byte = *self.block.get(*at)?;
            *at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return usize::try_from(value).ok();
            }
        }
        None
    }
}

fn push_varint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn entries() -> impl Strategy<Value = BTreeMap<Vec<u8>, Stored>> {
        let stored = prop_oneof![
            Just(Stored::Tombstone),
            proptest::collection::vec(any::<u8>(), 0..200).prop_map(|v| Stored::Put(v.into()))
        ];
        proptest::collection::btree_map(proptest::collection::vec(0_u8..4, 1..8), stored, 1..80)
    }

    fn build(entries: &BTreeMap<Vec<u8>, Stored>) -> Bytes {
        let mut builder = BlockBuilder::default();
        entries
            .iter()
            .for_each(|(key, stored)| builder.push(key, stored));
        builder.finish().into()
    }

    proptest! {
        #[test]
        fn a_block_is_a_sorted_map(entries in entries(), probe in proptest::collection::vec(0_u8..4, 0..8)) {
            let mut cursor = BlockCursor::new(build(&entries)).expect("frame");
            cursor.seek(&probe).expect("sound");
            for (key, stored) in entries.range(probe.clone()..) {
                prop_assert_eq!(cursor.key(), Some(&key[..]));
                prop_assert_eq!(cursor.stored(), Some(stored));
                cursor.advance().expect("sound");
            }
            prop_assert_eq!(cursor.key(), None);
            let below = entries.range(..probe.clone()).next_back().map(|(key, _)| Bytes::from(key.clone()));
            prop_assert_eq!(cursor.last_below(&probe), Some(below));
        }

        #[test]
        fn damaged_blocks_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), n in 0_u32..4) {
            bytes.extend_from_slice(&n.to_le_bytes());
            if let Some(mut cursor) = BlockCursor::new(bytes.into()) {
                let _ = cursor.seek(b"abc");
                let _ = cursor.last_below(b"abc");
                for _ in 0..300 { if cursor.advance().is_none() { break; } }
            }
        }
    }
}

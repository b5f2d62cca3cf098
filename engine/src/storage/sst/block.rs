//! Blocks: sorted entries with prefix-compressed keys and restart points.
//!
//! ```text
//! block = entry … │ restart offset u32 … │ restarts u32                     (before compression)
//! entry = shared varint │ unshared varint │ kind u8 │ value length varint │ key's rest │ value
//! ```
//! Kinds are [`Kind`]'s. At a restart the key stands whole (`shared` = 0): every 16th entry of a data block, every one of an
//! index block.
//!
//! **Invariants**: keys rise strictly; bytes from disk are checked at each step, a bad length ends in `None`, never in a panic.
//! A cursor lends keys and values; it copies nothing of a value.

use std::sync::Arc;

use bytes::Bytes;

use crate::storage::cache::Block;
use crate::storage::entry::{Kind, Stored};

/// Entries between restarts of a data block.
pub(crate) const DATA_RESTARTS: usize = 16;
/// Every key of an index block stands whole: a search compares without decoding.
pub(crate) const INDEX_RESTARTS: usize = 1;

/// Builds a block.
pub(crate) struct BlockBuilder {
    out: Vec<u8>,
    restarts: Vec<u32>,
    interval: usize,
    since_restart: usize,
    last_key: Vec<u8>,
}

impl BlockBuilder {
    pub(crate) fn new(interval: usize) -> Self {
        Self {
            out: Vec::new(),
            restarts: Vec::new(),
            interval,
            since_restart: 0,
            last_key: Vec::new(),
        }
    }

    /// Appends an entry; keys rise.
    pub(crate) fn push(&mut self, key: &[u8], kind: Kind, value: &[u8]) {
        debug_assert!(self.is_empty() || self.last_key.as_slice() < key);
        let shared = if self.restarts.is_empty() || self.since_restart == self.interval {
            self.restarts.push(self.out.len() as u32);
            self.since_restart = 0;
            0
        } else {
            common(&self.last_key, key)
        };
        self.since_restart += 1;
        push_varint(&mut self.out, shared as u64);
        push_varint(&mut self.out, (key.len() - shared) as u64);
        self.out.push(kind.code());
        push_varint(&mut self.out, value.len() as u64);
        self.out.extend_from_slice(&key[shared..]);
        self.out.extend_from_slice(value);
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
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

    /// Puts the block into `out`; the builder is empty again.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.out);
        for restart in &self.restarts {
            out.extend_from_slice(&restart.to_le_bytes());
        }
        out.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        self.out.clear();
        self.restarts.clear();
        self.since_restart = 0;
        self.last_key.clear();
    }
}

/// Length of the longest prefix of both.
pub(crate) fn common(a: &[u8], b: &[u8]) -> usize {
    let most = a.len().min(b.len());
    let mut at = 0;
    while at + 8 <= most && a[at..at + 8] == b[at..at + 8] {
        at += 8;
    }
    while at < most && a[at] == b[at] {
        at += 1;
    }
    at
}

/// A place in a block.
pub(crate) struct BlockCursor {
    block: Arc<Block>,
    /// End of the entries.
    end: usize,
    restarts: usize,
    /// Offset of the next entry.
    next: usize,
    key: Vec<u8>,
    kind: Kind,
    value: (usize, usize),
    valid: bool,
    window: Window,
}

/// The keys of one run between restarts, decoded: what a walk downwards searches.
#[derive(Default)]
struct Window {
    /// Restart of the run; `usize::MAX`: none is decoded.
    restart: usize,
    keys: Vec<u8>,
    /// Of each entry: end of its key in `keys`, its offset in the block, the offset after it, its value's offset, its kind.
    entries: Vec<(usize, usize, usize, usize, Kind)>,
}

impl Window {
    const NONE: usize = usize::MAX;

    fn key(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.entries[i - 1].0 };
        &self.keys[start..self.entries[i].0]
    }

    /// How many of its keys are below `key`.
    fn below(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.entries.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.key(middle) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// An entry's frame.
struct Head {
    shared: usize,
    key_at: usize,
    value_at: usize,
    next: usize,
    kind: Kind,
}

impl BlockCursor {
    /// Before the first entry; `None` if the block's frame is damaged.
    pub(crate) fn new(block: Arc<Block>) -> Option<Self> {
        let (end, restarts) = frame(&block.bytes)?;
        Some(Self {
            block,
            end,
            restarts,
            next: 0,
            key: Vec::new(),
            kind: Kind::Tombstone,
            value: (0, 0),
            valid: false,
            window: Window {
                restart: Window::NONE,
                ..Window::default()
            },
        })
    }

    /// Goes over to another block, before its first entry; keeps its buffers.
    pub(crate) fn reset(&mut self, block: Arc<Block>) -> Option<()> {
        (self.end, self.restarts) = frame(&block.bytes)?;
        self.block = block;
        self.next = 0;
        self.key.clear();
        self.valid = false;
        self.window.restart = Window::NONE;
        Some(())
    }

    /// The key at this place; `None` before the first and after the last entry.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.valid.then_some(self.key.as_slice())
    }

    /// What is stored at this place.
    pub(crate) fn stored(&self) -> Option<Stored<'_>> {
        self.valid
            .then(|| Stored::new(self.kind, &self.block.bytes[self.value.0..self.value.1]))
    }

    /// The stored value's bytes, sharing the block's memory.
    pub(crate) fn value_bytes(&self) -> Bytes {
        match self.valid {
            true => self.block.bytes.slice(self.value.0..self.value.1),
            false => Bytes::new(),
        }
    }

    /// Goes to the next entry. `None`: damaged.
    #[inline]
    pub(crate) fn advance(&mut self) -> Option<()> {
        if self.next >= self.end {
            self.valid = false;
            return Some(());
        }
        let head = self.head(self.next)?;
        if head.shared > self.key.len() {
            return None;
        }
        self.key.truncate(head.shared);
        self.key
            .extend_from_slice(&self.block.bytes[head.key_at..head.value_at]);
        self.take(&head);
        Some(())
    }

    fn take(&mut self, head: &Head) {
        self.kind = head.kind;
        self.value = (head.value_at, head.next);
        self.next = head.next;
        self.valid = true;
    }

    /// Goes to the first entry at or after `key`. `None`: damaged.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Option<()> {
        if self.restarts == 0 {
            self.valid = false;
            return Some(());
        }
        if self.seek_in_window(key) {
            return Some(());
        }
        let restart = self.restart_below(key)?;
        self.go_to_restart(restart)?;
        while self.valid && self.key.as_slice() < key {
            self.advance()?;
        }
        Some(())
    }

    /// Goes to the first entry with a key above `key`, in a block with whole keys only. `None`: damaged.
    pub(crate) fn seek_above(&mut self, key: &[u8]) -> Option<()> {
        let (mut low, mut high) = (0, self.restarts);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.restart_key(middle)? <= key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.go_to(low)
    }

    /// Goes to the last entry, in a block with whole keys only. `None`: damaged.
    pub(crate) fn seek_last(&mut self) -> Option<()> {
        self.go_to(self.restarts.checked_sub(1).unwrap_or(self.restarts))
    }

    /// Goes to the entry before this one, in a block with whole keys only; from the first, to none. `None`: damaged.
    pub(crate) fn step_back(&mut self) -> Option<()> {
        let here = self.valid.then(|| self.key.clone())?;
        let (mut low, mut high) = (0, self.restarts);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.restart_key(middle)? < here.as_slice() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        match low.checked_sub(1) {
            Some(before) => self.go_to(before),
            None => {
                self.valid = false;
                Some(())
            }
        }
    }

    fn go_to(&mut self, restart: usize) -> Option<()> {
        if restart < self.restarts {
            return self.go_to_restart(restart);
        }
        self.next = self.end;
        self.valid = false;
        Some(())
    }

    /// Goes on to the first entry that does not start with the first `length` bytes of this one's key, for a few steps and
    /// without building keys. Returns whether it got there. `None`: damaged.
    pub(crate) fn skip_prefix(&mut self, length: usize) -> Option<bool> {
        if !self.valid || length > self.key.len() {
            return Some(false);
        }
        // Keys are not built on the way: what ends it shares only bytes of the prefix with those before.
        let mut at = self.next;
        for _ in 0..2 * DATA_RESTARTS {
            if at >= self.end {
                return Some(false);
            }
            let head = self.head(at)?;
            let kept = head.shared >= length || {
                let rest = &self.block.bytes[head.key_at..head.value_at];
                rest.get(..length - head.shared) == Some(&self.key[head.shared..length])
            };
            if !kept {
                self.next = at;
                return self.advance().map(|()| true);
            }
            at = head.next;
        }
        Some(false)
    }

    /// The last key below `key`. Outer `None`: damaged. The place is undefined afterwards.
    pub(crate) fn last_below(&mut self, key: &[u8]) -> Option<Option<&[u8]>> {
        if self.restarts == 0 {
            return Some(None);
        }
        let inside = self.window.restart != Window::NONE && self.window.below(key) > 0 && {
            let last = self.window.entries.len() - 1;
            self.window.key(last) >= key || self.window.restart + 1 >= self.restarts
        };
        if !inside {
            let restart = self.restart_below(key)?;
            self.decode_window(restart)?;
        }
        let below = self.window.below(key);
        Some(below.checked_sub(1).map(|i| self.window.key(i)))
    }

    /// Decodes the run that starts at a restart.
    fn decode_window(&mut self, restart: usize) -> Option<()> {
        self.window.restart = Window::NONE;
        self.window.keys.clear();
        self.window.entries.clear();
        let stop = match restart + 1 < self.restarts {
            true => self.restart_offset(restart + 1)?,
            false => self.end,
        };
        let mut at = self.restart_offset(restart)?;
        let mut start = 0;
        while at < stop {
            // Else each entry could share all of a long key: the window would grow with the square of the block.
            (self.window.entries.len() < DATA_RESTARTS).then_some(())?;
            let head = self.head(at)?;
            let window = &mut self.window;
            let before = window.keys.len();
            if head.shared > before - start {
                return None;
            }
            window.keys.extend_from_within(start..start + head.shared);
            window
                .keys
                .extend_from_slice(&self.block.bytes[head.key_at..head.value_at]);
            start = before;
            window
                .entries
                .push((window.keys.len(), at, head.next, head.value_at, head.kind));
            at = head.next;
        }
        (!self.window.entries.is_empty()).then_some(())?;
        self.window.restart = restart;
        Some(())
    }

    /// Which of the decoded run is the first entry at or after `key`, if the run shows that.
    fn found_in_window(&self, key: &[u8]) -> Option<usize> {
        (self.window.restart != Window::NONE).then_some(())?;
        let below = self.window.below(key);
        let first = below == 0 && self.window.restart > 0 && self.window.key(0) != key;
        (!first && below < self.window.entries.len()).then_some(below)
    }

    /// Whether the first entry at or after `key` is in this block for certain.
    pub(crate) fn window_holds(&self, key: &[u8]) -> bool {
        self.found_in_window(key).is_some_and(|below| below > 0)
    }

    /// Goes to the first entry at or after `key` if the decoded run shows which that is.
    fn seek_in_window(&mut self, key: &[u8]) -> bool {
        let Some(below) = self.found_in_window(key) else {
            return false;
        };
        let (_, _, next, value_at, kind) = self.window.entries[below];
        self.key.clear();
        self.key.extend_from_slice(self.window.key(below));
        (self.kind, self.value, self.next) = (kind, (value_at, next), next);
        self.valid = true;
        true
    }

    /// The last restart whose key is below `key`, or the first: the first entry at or after `key` is in its run or the first
    /// of the next.
    fn restart_below(&self, key: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.restarts);
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            if self.restart_key(middle)? < key {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(low)
    }

    fn restart_offset(&self, restart: usize) -> Option<usize> {
        let at = self.end + 4 * restart;
        let offset = u32::from_le_bytes(*self.block.bytes.get(at..)?.first_chunk()?) as usize;
        (offset < self.end).then_some(offset)
    }

    /// The offset of the entry that comes next, or the end of the entries.
    pub(super) fn next_offset(&self) -> usize {
        self.next
    }

    pub(super) fn restarts(&self) -> usize {
        self.restarts
    }

    /// Where a restart is, and its key. `None`: there is none, or it is damaged.
    pub(super) fn restart(&self, restart: usize) -> Option<(usize, &[u8])> {
        (restart < self.restarts).then_some(())?;
        Some((self.restart_offset(restart)?, self.restart_key(restart)?))
    }

    fn restart_key(&self, restart: usize) -> Option<&[u8]> {
        let head = self.head(self.restart_offset(restart)?)?;
        (head.shared == 0).then(|| &self.block.bytes[head.key_at..head.value_at])
    }

    fn go_to_restart(&mut self, restart: usize) -> Option<()> {
        self.next = self.restart_offset(restart)?;
        self.key.clear();
        self.advance()
    }

    #[inline]
    fn head(&self, at: usize) -> Option<Head> {
        let bytes = &self.block.bytes[..self.end];
        let mut at = at;
        let shared = varint(bytes, &mut at)? as usize;
        let unshared = varint(bytes, &mut at)? as usize;
        let kind = Kind::of(*bytes.get(at)?)?;
        at += 1;
        let length = varint(bytes, &mut at)? as usize;
        let value_at = at.checked_add(unshared)?;
        let next = value_at.checked_add(length)?;
        (next <= self.end).then_some(Head {
            shared,
            key_at: at,
            value_at,
            next,
            kind,
        })
    }
}

/// End of the entries and number of restarts.
fn frame(block: &Bytes) -> Option<(usize, usize)> {
    let count_at = block.len().checked_sub(4)?;
    let restarts = u32::from_le_bytes(*block[count_at..].first_chunk()?) as usize;
    let end = count_at.checked_sub(restarts.checked_mul(4)?)?;
    Some((end, restarts))
}

/// Reads a LEB128 number of at most 5 bytes (35 bits).
#[inline]
pub(crate) fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let first = *bytes.get(*at)?;
    *at += 1;
    if first < 0x80 {
        return Some(u64::from(first));
    }
    let mut value = u64::from(first & 0x7f);
    for shift in (7..35).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Appends a LEB128 number.
pub(crate) fn push_varint(out: &mut Vec<u8>, mut value: u64) {
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

    type Entries = BTreeMap<Vec<u8>, (Kind, Vec<u8>)>;

    fn entries() -> impl Strategy<Value = Entries> {
        let stored = prop_oneof![
            Just((Kind::Tombstone, Vec::new())),
            proptest::collection::vec(any::<u8>(), 0..200).prop_map(|v| (Kind::Plain, v))
        ];
        proptest::collection::btree_map(proptest::collection::vec(0_u8..4, 1..8), stored, 1..80)
    }

    fn build(entries: &Entries, interval: usize) -> BlockCursor {
        let mut builder = BlockBuilder::new(interval);
        entries
            .iter()
            .for_each(|(key, (kind, value))| builder.push(key, *kind, value));
        let mut out = Vec::new();
        builder.finish(&mut out);
        BlockCursor::new(Block::new(out.into())).expect("frame")
    }

    #[test]
    fn a_run_without_entries_is_damaged_also_for_searches_after_it() {
        // One entry, "a", and two restarts at it.
        let mut bytes = vec![0, 1, 0, 0, b'a'];
        bytes.extend([0_u32, 0, 2].iter().flat_map(|word| word.to_le_bytes()));
        let mut cursor = BlockCursor::new(Block::new(bytes.into())).expect("a frame");
        assert_eq!(cursor.last_below(b"a"), None);
        assert!(!cursor.window_holds(b"a"));
        cursor.seek(b"a").expect("the entry can be read");
        assert_eq!(cursor.key(), Some(b"a".as_slice()));
    }

    #[test]
    fn a_run_longer_than_any_is_damaged() {
        let mut builder = BlockBuilder::new(DATA_RESTARTS + 1);
        for i in 0..=DATA_RESTARTS as u8 {
            builder.push(&[i], Kind::Plain, b"");
        }
        let mut out = Vec::new();
        builder.finish(&mut out);
        let mut cursor = BlockCursor::new(Block::new(out.into())).expect("a frame");
        assert_eq!(cursor.last_below(&[9]), None);
    }

    proptest! {
        #[test]
        fn a_block_is_a_sorted_map(entries in entries(), probes in proptest::collection::vec(proptest::collection::vec(0_u8..4, 0..8), 1..6)) {
            let mut cursor = build(&entries, DATA_RESTARTS);
            for probe in probes {
                cursor.seek(&probe).expect("sound");
                for (key, (kind, value)) in entries.range(probe.clone()..) {
                    prop_assert_eq!(cursor.key(), Some(&key[..]));
                    prop_assert_eq!(cursor.stored(), Some(Stored::new(*kind, value)));
                    prop_assert_eq!(&cursor.value_bytes()[..], &value[..]);
                    cursor.advance().expect("sound");
                }
                prop_assert_eq!(cursor.key(), None);
                let below = entries.range(..probe.clone()).next_back().map(|(key, _)| key.clone());
                prop_assert_eq!(cursor.last_below(&probe).expect("sound").map(<[u8]>::to_vec), below.clone());
                if let Some(below) = below {
                    // As a walk downwards does: to the start of what was found.
                    cursor.seek(&below[..1]).expect("sound");
                    let first = entries.range(below[..1].to_vec()..).next().map(|(key, _)| key.clone());
                    prop_assert_eq!(cursor.key().map(<[u8]>::to_vec), first);
                }
            }
        }

        #[test]
        fn an_index_block_is_searched_by_what_is_above(entries in entries(), probe in proptest::collection::vec(0_u8..4, 0..8)) {
            let mut cursor = build(&entries, INDEX_RESTARTS);
            cursor.seek_above(&probe).expect("sound");
            let above = entries.keys().find(|key| **key > probe);
            prop_assert_eq!(cursor.key(), above.map(Vec::as_slice));
            let mut backwards = entries.keys().rev();
            cursor.seek_last().expect("sound");
            while cursor.key().is_some() {
                prop_assert_eq!(cursor.key(), backwards.next().map(Vec::as_slice));
                cursor.step_back().expect("sound");
            }
            prop_assert_eq!(backwards.next(), None);
        }

        #[test]
        fn skipping_a_prefix_ends_behind_it(entries in entries(), length in 1_usize..4) {
            let mut cursor = build(&entries, DATA_RESTARTS);
            cursor.advance().expect("sound");
            let first = entries.keys().next().expect("one").clone();
            if let Some(prefix) = first.get(..length) {
                let after = entries.keys().find(|key| !key.starts_with(prefix));
                if cursor.skip_prefix(length).expect("sound") {
                    prop_assert_eq!(cursor.key(), after.map(Vec::as_slice));
                } else {
                    prop_assert!(cursor.key().is_some_and(|key| key.starts_with(prefix)));
                }
            }
        }

        #[test]
        fn damaged_blocks_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), n in 0_u32..4) {
            bytes.extend_from_slice(&n.to_le_bytes());
            if let Some(mut cursor) = BlockCursor::new(Block::new(bytes.into())) {
                let _ = cursor.seek(b"abc");
                let _ = cursor.last_below(b"abc");
                let _ = cursor.seek_above(b"abc");
                let _ = cursor.seek_last();
                let _ = cursor.step_back();
                let _ = cursor.skip_prefix(2);
                for _ in 0..300 { if cursor.advance().is_none() { break; } }
            }
        }
    }
}

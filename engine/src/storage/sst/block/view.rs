//! A block's bytes, taken apart as far as a look needs; owns nothing.
//!
//! **Invariants**: nothing returned lies outside the block; what does not add up ends in `None`.

use super::varint;
use crate::storage::entry::Kind;

/// A block's entries and restarts.
#[derive(Clone, Copy)]
pub(in crate::storage::sst) struct View<'a> {
    entries: &'a [u8],
    restarts: &'a [[u8; 4]],
}

/// An entry's frame.
pub(super) struct Head {
    pub(super) shared: usize,
    pub(super) key_at: usize,
    pub(super) value_at: usize,
    pub(super) next: usize,
    pub(super) kind: Kind,
}

impl<'a> View<'a> {
    /// `None`: the block's frame is damaged.
    pub(in crate::storage::sst) fn new(block: &'a [u8]) -> Option<Self> {
        let (body, count) = block.split_last_chunk()?;
        let restarts = (u32::from_le_bytes(*count) as usize).checked_mul(4)?;
        let (entries, restarts) = body.split_at_checked(body.len().checked_sub(restarts)?)?;
        Some(Self {
            entries,
            restarts: restarts.as_chunks().0,
        })
    }

    pub(super) fn entries(&self) -> &'a [u8] {
        self.entries
    }

    pub(super) fn restarts(&self) -> usize {
        self.restarts.len()
    }

    pub(super) fn restart_offset(&self, restart: usize) -> Option<usize> {
        let offset = u32::from_le_bytes(*self.restarts.get(restart)?) as usize;
        (offset < self.entries.len()).then_some(offset)
    }

    pub(super) fn restart_key(&self, restart: usize) -> Option<&'a [u8]> {
        let head = head(self.entries, self.restart_offset(restart)?)?;
        (head.shared == 0).then(|| &self.entries[head.key_at..head.value_at])
    }

    /// The value of the entry that a restart is.
    pub(in crate::storage::sst) fn restart_value(&self, restart: usize) -> Option<&'a [u8]> {
        let head = head(self.entries, self.restart_offset(restart)?)?;
        Some(&self.entries[head.value_at..head.next])
    }

    /// The first restart with a key above `key`, or their number: `Some(None)`. Outer `None`: damaged.
    pub(in crate::storage::sst) fn restart_above(&self, key: &[u8]) -> Option<Option<usize>> {
        let (mut low, mut high) = (0, self.restarts.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.restart_key(middle)? <= key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some((low < self.restarts.len()).then_some(low))
    }

    /// The last restart whose key is below `key`, or the first: the first entry at or after `key` is in its run or the first
    /// of the next.
    pub(super) fn restart_below(&self, key: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.restarts.len());
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
}

/// The frame of the entry that starts at `at`. `None`: damaged.
#[inline]
pub(super) fn head(entries: &[u8], at: usize) -> Option<Head> {
    // Nearly all frames are four bytes.
    let short = entries.get(at..)?.first_chunk::<4>();
    let (shared, unshared, kind, length, key_at) = match short {
        Some(&[shared, unshared, kind, length]) if (shared | unshared | length) < 0x80 => (
            usize::from(shared),
            usize::from(unshared),
            kind,
            usize::from(length),
            at + 4,
        ),
        _ => long_head(entries, at)?,
    };
    let value_at = key_at.checked_add(unshared)?;
    let next = value_at.checked_add(length)?;
    (next <= entries.len()).then_some(Head {
        shared,
        key_at,
        value_at,
        next,
        kind: Kind::of(kind)?,
    })
}

/// Shared, unshared, kind and length of a frame with numbers of any size, and where it ends.
fn long_head(entries: &[u8], mut at: usize) -> Option<(usize, usize, u8, usize, usize)> {
    let shared = varint(entries, &mut at)? as usize;
    let unshared = varint(entries, &mut at)? as usize;
    let kind = *entries.get(at)?;
    at += 1;
    let length = varint(entries, &mut at)? as usize;
    Some((shared, unshared, kind, length, at))
}

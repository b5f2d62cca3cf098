//! Going through a block and checking all of its frame: what a reader takes on trust once the checksum is right.
//!
//! **Invariants**: what [`Entries::next`] gave was sound up to there: keys rise strictly, restarts stand where they must.

use std::sync::Arc;

use super::block::BlockCursor;
use crate::storage::cache::Block;
use crate::storage::entry::Stored;

/// A block's entries, from the first.
pub(crate) struct Entries {
    cursor: BlockCursor,
    /// Entries between restarts.
    interval: usize,
    count: usize,
    last: Vec<u8>,
}

impl Entries {
    pub(crate) fn new(block: Arc<Block>, interval: usize) -> Result<Self, &'static str> {
        let cursor = BlockCursor::new(block).ok_or("a block's frame is damaged")?;
        Ok(Self {
            cursor,
            interval,
            count: 0,
            last: Vec::new(),
        })
    }

    /// Goes to the next entry; false: there is none. The error is final.
    pub(crate) fn next(&mut self) -> Result<bool, &'static str> {
        let at = self.cursor.next_offset();
        self.cursor
            .advance()
            .ok_or("a block's entries are damaged")?;
        let Some(key) = self.cursor.key() else {
            return match self.count {
                0 => Err("a block is empty"),
                count if self.cursor.restarts() != count.div_ceil(self.interval) => {
                    Err("a block has another number of restarts")
                }
                _ => Ok(false),
            };
        };
        if self.count > 0 && key <= self.last.as_slice() {
            return Err("keys in a block do not rise");
        }
        if self.count.is_multiple_of(self.interval)
            && self.cursor.restart(self.count / self.interval) != Some((at, key))
        {
            return Err("a restart of a block is not where it must be");
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        self.count += 1;
        Ok(true)
    }

    /// The entry's key.
    pub(crate) fn key(&self) -> &[u8] {
        &self.last
    }

    /// What stands there.
    pub(crate) fn stored(&self) -> Stored<'_> {
        self.cursor.stored().unwrap_or(Stored::TOMBSTONE)
    }
}

#[cfg(test)]
mod tests {
    use super::super::block::{BlockBuilder, DATA_RESTARTS};
    use super::*;
    use crate::storage::entry::Kind;

    fn block() -> Vec<u8> {
        let mut builder = BlockBuilder::new(DATA_RESTARTS);
        for i in 0..40_u8 {
            builder.push(&[b'k', i], Kind::Plain, b"value");
        }
        let mut out = Vec::new();
        builder.finish(&mut out);
        out
    }

    /// How many entries come, and what is wrong after them.
    fn check(bytes: Vec<u8>) -> (usize, Option<&'static str>) {
        let mut entries = match Entries::new(Block::new(bytes.into()), DATA_RESTARTS) {
            Ok(entries) => entries,
            Err(what) => return (0, Some(what)),
        };
        let mut count = 0;
        loop {
            match entries.next() {
                Ok(true) => count += 1,
                Ok(false) => return (count, None),
                Err(what) => return (count, Some(what)),
            }
        }
    }

    #[test]
    fn a_sound_block_is_gone_through() {
        assert_eq!(check(block()), (40, None));
    }

    #[test]
    fn what_is_not_as_it_must_be_is_told() {
        let good = block();
        // The second of three restarts.
        let mut restart = good.clone();
        let at = good.len() - 12;
        restart[at] ^= 1;
        let wrong = "a restart of a block is not where it must be";
        assert_eq!(check(restart), (16, Some(wrong)));

        // The second key, made the first again.
        let mut key = good.clone();
        let first = 4 + 2 + 5;
        assert_eq!(key[first + 4], 1);
        key[first + 4] = 0;
        assert_eq!(check(key), (1, Some("keys in a block do not rise")));

        let mut kind = good.clone();
        kind[2] = 9;
        assert_eq!(check(kind), (0, Some("a block's entries are damaged")));
        let mut count = good;
        let last = count.len() - 1;
        count[last] = 0xff;
        assert_eq!(check(count), (0, Some("a block's frame is damaged")));
        assert_eq!(check(vec![0; 4]), (0, Some("a block is empty")));
    }
}

//! A place in a block.
//!
//! **Invariants**: a cursor lends keys and values; it copies nothing of a value. What it returns `None` for is damaged.

use std::sync::Arc;

use bytes::Bytes;

use super::DATA_RESTARTS;
use super::view::{Head, View, head};
use super::window::Window;
use crate::storage::cache::Block;
use crate::storage::entry::{Kind, Stored};

/// Versions of a column whose frames are looked at ahead.
const TOUCHED: usize = 8;

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

/// What was stepped over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Skipped {
    /// All that starts with the prefix.
    Prefix,
    /// All of the block; no place is left in it.
    Block,
    /// Nothing: it would take too many steps.
    TooFar,
}

impl BlockCursor {
    /// Before the first entry; `None` if the block's frame is damaged.
    pub(crate) fn new(block: Arc<Block>) -> Option<Self> {
        let view = View::new(&block.bytes)?;
        let (end, restarts) = (view.entries().len(), view.restarts());
        Some(Self {
            block,
            end,
            restarts,
            next: 0,
            key: Vec::new(),
            kind: Kind::Tombstone,
            value: (0, 0),
            valid: false,
            window: Window::default(),
        })
    }

    /// Goes over to another block, before its first entry; keeps its buffers.
    pub(crate) fn reset(&mut self, block: Arc<Block>) -> Option<()> {
        let view = View::new(&block.bytes)?;
        (self.end, self.restarts) = (view.entries().len(), view.restarts());
        self.block = block;
        self.next = 0;
        self.key.clear();
        self.valid = false;
        self.window.clear();
        Some(())
    }

    /// The key at this place; `None` before the first and after the last entry.
    #[inline]
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.valid.then_some(self.key.as_slice())
    }

    /// The key at this place, and what kind of entry it is.
    #[inline]
    pub(crate) fn key_and_kind(&self) -> Option<(&[u8], Kind)> {
        self.valid.then_some((self.key.as_slice(), self.kind))
    }

    /// What is stored at this place.
    #[inline]
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
        self.kind = head.kind;
        self.value = (head.value_at, head.next);
        self.next = head.next;
        self.valid = true;
        Some(())
    }

    /// Goes to the first entry at or after `key`. `None`: damaged.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Option<()> {
        if self.restarts == 0 {
            self.valid = false;
            return Some(());
        }
        if self.window.restart().is_some() {
            let below = self.window.below(key);
            if self.seek_in_window(key, below)? {
                return Some(());
            }
        }
        let restart = self.view()?.restart_below(key)?;
        self.go_to_restart(restart)?;
        while self.valid && self.key.as_slice() < key {
            self.advance()?;
        }
        Some(())
    }

    /// Goes to the first entry at or after `key`, where `key` is below all that comes after the block, if this place or the
    /// decoded run shows that it is none of a block before. Returns whether it did. `None`: damaged.
    pub(crate) fn seek_here(&mut self, key: &[u8]) -> Option<bool> {
        if self.valid && self.key.as_slice() <= key {
            return self.seek(key).map(|()| true);
        }
        let Some(restart) = self.window.restart() else {
            return Some(false);
        };
        let mut below = self.window.below(key);
        if below == 0 {
            // A walk downwards comes to the run before next.
            let Some(before) = restart.checked_sub(1) else {
                return Some(false);
            };
            self.decode(before)?;
            below = self.window.below(key);
        }
        self.seek_in_window(key, below)
    }

    /// Goes to the first entry at or after `key` if the decoded run, of which so many keys are below it, shows which that is.
    /// Returns whether it did.
    fn seek_in_window(&mut self, key: &[u8], below: usize) -> Option<bool> {
        if below == 0 {
            return Some(false);
        }
        if below < self.window.len() {
            let entry = self.window.entry(below);
            self.key.clear();
            self.key.extend_from_slice(self.window.key(below));
            (self.kind, self.next) = (entry.kind, entry.next);
            self.value = (entry.value_at, entry.next);
            self.valid = true;
            return Some(true);
        }
        let next = self.window.restart()? + 1;
        if next < self.restarts && self.view()?.restart_key(next)? >= key {
            return self.go_to_restart(next).map(|()| true);
        }
        Some(false)
    }

    /// Goes to the first entry with a key above `key`, in a block with whole keys only. `None`: damaged.
    pub(crate) fn seek_above(&mut self, key: &[u8]) -> Option<()> {
        let above = self.view()?.restart_above(key)?;
        self.go_to(above)
    }

    /// Goes to the last entry, in a block with whole keys only. `None`: damaged.
    pub(crate) fn seek_last(&mut self) -> Option<()> {
        self.go_to(self.restarts.checked_sub(1))
    }

    /// Goes to the entry before this one, in a block with whole keys only; from the first, to none. `None`: damaged.
    pub(crate) fn step_back(&mut self) -> Option<()> {
        let here = self.valid.then_some(self.key.as_slice())?;
        let view = self.view()?;
        // The first restart at or after `here` is here.
        let below = view.restart_below(here)?;
        let before = (view.restart_key(below)? < here).then_some(below);
        self.go_to(before)
    }

    /// Goes to the entry that a restart is; without one to none. `None`: damaged.
    pub(crate) fn go_to(&mut self, restart: Option<usize>) -> Option<()> {
        match restart {
            Some(restart) => self.go_to_restart(restart),
            None => {
                self.next = self.end;
                self.valid = false;
                Some(())
            }
        }
    }

    /// Goes on to the first entry that does not start with the first `length` bytes of this one's key, without building keys
    /// on the way. `None`: damaged.
    pub(crate) fn skip_prefix(&mut self, length: usize) -> Option<Skipped> {
        if !self.valid || length > self.key.len() {
            return Some(Skipped::TooFar);
        }
        let entries = &self.block.bytes[..self.end];
        // What ends it shares only bytes of the prefix with those before.
        let mut at = self.next;
        for step in 0..2 * DATA_RESTARTS {
            if at >= self.end {
                self.next = self.end;
                self.valid = false;
                return Some(Skipped::Block);
            }
            let head = head(entries, at)?;
            let kept = head.shared >= length || {
                let rest = &entries[head.key_at..head.value_at];
                rest.get(..length - head.shared) == Some(&self.key[head.shared..length])
            };
            if !kept {
                self.next = at;
                return self.advance().map(|()| Skipped::Prefix);
            }
            if step == 0 {
                touch(entries, head.next, head.next - at);
            }
            at = head.next;
        }
        Some(Skipped::TooFar)
    }

    /// The last key below `key`. Outer `None`: damaged. The place is undefined afterwards.
    pub(crate) fn last_below(&mut self, key: &[u8]) -> Option<Option<&[u8]>> {
        if self.restarts == 0 {
            return Some(None);
        }
        let mut below = self.below_in_window(key)?;
        if below == 0 {
            let restart = self.view()?.restart_below(key)?;
            self.decode(restart)?;
            below = self.window.below(key);
        }
        Some(below.checked_sub(1).map(|i| self.window.key(i)))
    }

    /// How many of the decoded run's keys are below `key`, if the last of them is the block's last below it; else 0.
    fn below_in_window(&mut self, key: &[u8]) -> Option<usize> {
        let Some(restart) = self.window.restart() else {
            return Some(0);
        };
        let (below, next) = (self.window.below(key), restart + 1);
        let last = below < self.window.len()
            || next >= self.restarts
            || self.view()?.restart_key(next)? >= key;
        Some(if last { below } else { 0 })
    }

    fn decode(&mut self, restart: usize) -> Option<()> {
        let view = View::new(&self.block.bytes)?;
        self.window.decode(&view, restart)
    }

    /// The key before this one, in a block with whole keys only. Outer `None`: damaged, or there is no key here.
    pub(crate) fn key_before(&self) -> Option<Option<&[u8]>> {
        let here = self.key()?;
        let view = self.view()?;
        let before = view.restart_key(view.restart_below(here)?)?;
        Some((before < here).then_some(before))
    }

    /// The offset of the entry that comes next, or the end of the entries.
    pub(in crate::storage::sst) fn next_offset(&self) -> usize {
        self.next
    }

    pub(in crate::storage::sst) fn restarts(&self) -> usize {
        self.restarts
    }

    /// Where a restart is, and its key. `None`: there is none, or it is damaged.
    pub(in crate::storage::sst) fn restart(&self, restart: usize) -> Option<(usize, &[u8])> {
        let view = self.view()?;
        Some((view.restart_offset(restart)?, view.restart_key(restart)?))
    }

    fn go_to_restart(&mut self, restart: usize) -> Option<()> {
        self.next = self.view()?.restart_offset(restart)?;
        self.key.clear();
        self.advance()
    }

    fn view(&self) -> Option<View<'_>> {
        View::new(&self.block.bytes)
    }

    #[inline]
    fn head(&self, at: usize) -> Option<Head> {
        head(&self.block.bytes[..self.end], at)
    }
}

/// Versions of one column are about as long as each other. Their frames lie in cache lines of their own, and each tells where the
/// next is: they are asked for all at once, at the places where they are if all are as long as `length`, so that memory is waited
/// for once and not once a version.
#[inline]
fn touch(entries: &[u8], from: usize, length: usize) {
    let frames = (0..TOUCHED).map_while(|i| entries.get(from + i * length));
    std::hint::black_box(frames.fold(0, |all, byte| all ^ byte));
}

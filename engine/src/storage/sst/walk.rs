//! Walks all of a section, in order, checks how it is built, and goes on after damage: for those who look into files.
//!
//! **Invariants**: every block that the indexes name is loaded once; of a damaged one, what comes before the damage is shown. Data
//! blocks follow each other in the file, and so do partitions: a walk takes time with the file's length, whatever its bytes.

use super::Handle;
use super::audit::Entries;
use super::block::{DATA_RESTARTS, INDEX_RESTARTS};
use super::reader::{Fault, Reader};
use crate::storage::cache::Block;
use crate::storage::entry::Stored;

/// What a walk meets.
pub(crate) enum Event<'a> {
    /// An index partition, before its blocks.
    Partition {
        fence: &'a [u8],
        handle: Handle,
        filter: Handle,
    },
    /// A data block, before its entries.
    Block {
        fence: &'a [u8],
        handle: Handle,
    },
    /// An entry of the block met last.
    Entry {
        key: &'a [u8],
        stored: Stored<'a>,
    },
    Damage(Fault),
}

/// Walks the section with this top index until `visit` fails.
pub(crate) fn walk<E>(
    reader: &Reader<'_>,
    top: Handle,
    visit: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut walk = Walk {
        reader,
        visit,
        floor: Vec::new(),
        partitions_end: 0,
        blocks_end: 0,
    };
    walk.section(top)
}

struct Walk<'a, E> {
    reader: &'a Reader<'a>,
    visit: &'a mut dyn FnMut(Event<'_>) -> Result<(), E>,
    /// The fence of the block before: at or below all that follows.
    floor: Vec<u8>,
    /// Where the partition and the block before end.
    partitions_end: u64,
    blocks_end: u64,
}

/// Whether a block is at `end` or after it; `end` is then the block's.
fn follows(end: &mut u64, handle: Handle, reader: &Reader<'_>) -> bool {
    let follows = *end <= handle.offset;
    // What is not in the file is told when it is read.
    if follows && handle.end() <= reader.bytes() {
        *end = handle.end();
    }
    follows
}

const BEHIND: &str = "names a block that does not follow the one before";

impl<E> Walk<'_, E> {
    fn section(&mut self, top: Handle) -> Result<(), E> {
        let Some(mut partitions) = self.open(top, INDEX_RESTARTS)? else {
            return Ok(());
        };
        while self.step(&mut partitions, top)? == Some(true) {
            self.partition(partitions.key(), partitions.stored().bytes, top)?;
        }
        Ok(())
    }

    fn partition(&mut self, fence: &[u8], value: &[u8], top: Handle) -> Result<(), E> {
        let filter = value.get(Handle::BYTES..).and_then(Handle::decode);
        let (Some(handle), Some(filter)) = (Handle::decode(value), filter) else {
            return self.damage(top, "an entry of the top index is too short");
        };
        (self.visit)(Event::Partition {
            fence,
            handle,
            filter,
        })?;
        if !follows(&mut self.partitions_end, handle, self.reader) {
            self.damage(top, BEHIND)?;
        } else if let Some(mut blocks) = self.open(handle, INDEX_RESTARTS)? {
            let whole = loop {
                match self.step(&mut blocks, handle)? {
                    Some(true) => self.block(blocks.key(), blocks.stored().bytes, handle)?,
                    Some(false) => break true,
                    None => break false,
                }
            };
            if whole && blocks.key() != fence {
                self.damage(handle, "a partition does not end at its fence")?;
            }
        }
        self.rise(fence);
        Ok(())
    }

    fn block(&mut self, fence: &[u8], value: &[u8], partition: Handle) -> Result<(), E> {
        let Some(handle) = Handle::decode(value) else {
            return self.damage(partition, "an entry of a partition is too short");
        };
        (self.visit)(Event::Block { fence, handle })?;
        if !follows(&mut self.blocks_end, handle, self.reader) {
            self.damage(partition, BEHIND)?;
        } else if let Some(mut entries) = self.open(handle, DATA_RESTARTS)? {
            let mut inside = true;
            while self.step(&mut entries, handle)? == Some(true) {
                let (key, stored) = (entries.key(), entries.stored());
                let fits = self.floor.as_slice() <= key && key < fence;
                if inside && !fits {
                    self.damage(handle, "a key lies outside the fences of its block")?;
                }
                inside &= fits;
                (self.visit)(Event::Entry { key, stored })?;
            }
        }
        self.rise(fence);
        Ok(())
    }

    fn rise(&mut self, fence: &[u8]) {
        self.floor.clear();
        self.floor.extend_from_slice(fence);
    }

    fn open(&mut self, handle: Handle, interval: usize) -> Result<Option<Entries>, E> {
        let block = match self.reader.block(handle) {
            Ok(bytes) => Block::new(bytes),
            Err(fault) => {
                (self.visit)(Event::Damage(fault))?;
                return Ok(None);
            }
        };
        match Entries::new(block, interval) {
            Ok(entries) => Ok(Some(entries)),
            Err(what) => self.damage(handle, what).map(|()| None),
        }
    }

    /// Whether there is a next entry; `None`: the block is damaged here.
    fn step(&mut self, entries: &mut Entries, handle: Handle) -> Result<Option<bool>, E> {
        match entries.next() {
            Ok(more) => Ok(Some(more)),
            Err(what) => self.damage(handle, what).map(|()| None),
        }
    }

    fn damage(&mut self, handle: Handle, what: &str) -> Result<(), E> {
        (self.visit)(Event::Damage(Fault::at(handle.offset, what)))
    }
}

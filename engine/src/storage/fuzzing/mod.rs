//! What the fuzz targets of `engine/fuzz` drive: each function takes any bytes and must come to its end, soon, without a panic.
//!
//! ```text
//! block, index ─ [`blocks`]        footer ─ [`file`]        log ─ [`segments`]        manifest ─ [`records`]
//! ```
//! Where a checksum stands before what is tried, bytes are tried twice: as they are, and with the checksums made right.
//!
//! Compiled for cargo-fuzz, and for the tests, which run the corpora of `engine/fuzz/corpus` and of former crashes.
//!
//! **Invariants**: nothing is read or written but memory; where bytes are sound by one reader, the others must agree with it.

mod blocks;
mod file;
pub(super) mod memory;
mod records;
mod segments;
#[cfg(test)]
mod tests;

pub use blocks::{block, index};
pub use file::footer;
pub use records::manifest;
pub use segments::log;

use std::io;

/// Where text goes that nobody reads; full after a while, so that what writes it comes to its end.
struct Sink {
    room: usize,
}

impl Sink {
    fn new() -> Self {
        Self { room: 512 << 10 }
    }
}

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.room = self
            .room
            .checked_sub(bytes.len())
            .ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

//! Stored blocks: bytes, perhaps compressed, with a trailer that says how and checks them.
//!
//! **Invariants**: `open` gives exactly the bytes that `seal` got, or `None`.

use bytes::Bytes;
use tablemount_api::Compression;

use super::{TRAILER, compress};

/// Appends `raw` to `out` as a stored block, compressed where that is smaller; returns its length.
pub(crate) fn seal(out: &mut Vec<u8>, compression: Compression, raw: &[u8]) -> u32 {
    let start = out.len();
    match compress::compress(compression, raw) {
        Some((codec, packed)) => {
            out.extend_from_slice(&packed);
            out.push(codec);
        }
        None => {
            out.extend_from_slice(raw);
            out.push(0);
        }
    }
    out.extend_from_slice(&(raw.len() as u32).to_le_bytes());
    let checksum = crc32c::crc32c(&out[start..]);
    out.extend_from_slice(&checksum.to_le_bytes());
    (out.len() - start) as u32
}

/// What is wrong with a stored block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    TooShort,
    Checksum,
    Compression,
}

impl Damage {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::TooShort => "a block is shorter than its trailer",
            Self::Checksum => "a block's checksum does not match",
            Self::Compression => "a block does not decompress",
        }
    }
}

/// The block's bytes, checked and decompressed.
pub(crate) fn open(stored: &Bytes) -> Result<Bytes, Damage> {
    let body = stored.len().checked_sub(TRAILER).ok_or(Damage::TooShort)?;
    let word = |at: usize| {
        stored[at..]
            .first_chunk()
            .map_or(0, |chunk| u32::from_le_bytes(*chunk))
    };
    if crc32c::crc32c(&stored[..body + 5]) != word(body + 5) {
        return Err(Damage::Checksum);
    }
    let length = word(body + 1) as usize;
    match stored[body] {
        0 if length == body => Ok(stored.slice(..body)),
        0 => Err(Damage::Compression),
        codec => compress::decompress(codec, &stored[..body], length).ok_or(Damage::Compression),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_and_flipped_bits_are_noticed() {
        let text = b"row key ".repeat(40);
        for compression in [Compression::None, Compression::Lz4] {
            let mut out = Vec::new();
            assert_eq!(seal(&mut out, compression, &text) as usize, out.len());
            assert_eq!(
                open(&out.clone().into()).as_deref(),
                Ok(&text[..]),
                "{compression:?}"
            );
            for bit in 0..out.len() * 8 {
                let mut bad = out.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(open(&bad.into()), Err(Damage::Checksum), "bit {bit}");
            }
        }
        assert_eq!(
            open(&Bytes::from_static(b"12345678")),
            Err(Damage::TooShort)
        );
    }
}

//! Compression of blocks. The codec's number is in each block's trailer, so a file may hold blocks of several.

use bytes::Bytes;
use tablemount_api::Compression;

const ZSTD_LEVEL: i32 = 3;

/// The codec's number on disk.
fn code(compression: Compression) -> u8 {
    match compression {
        Compression::None => 0,
        Compression::Lz4 => 1,
        Compression::Snappy => 2,
        Compression::Zstd => 3,
    }
}

/// The block compressed and its codec, or as it is (codec 0) where that is not larger.
pub(crate) fn compress(compression: Compression, raw: Vec<u8>) -> (u8, Vec<u8>) {
    let packed = match compression {
        Compression::None => None,
        Compression::Lz4 => Some(lz4_flex::block::compress(&raw)),
        Compression::Snappy => snap::raw::Encoder::new().compress_vec(&raw).ok(),
        Compression::Zstd => zstd::bulk::compress(&raw, ZSTD_LEVEL).ok(),
    };
    match packed {
        Some(packed) if packed.len() < raw.len() => (code(compression), packed),
        _ => (0, raw),
    }
}

/// The block as it was; `None` if the bytes do not decompress to exactly `length` bytes.
pub(crate) fn decompress(code: u8, packed: &Bytes, length: usize) -> Option<Bytes> {
    let raw: Bytes = match code {
        0 => packed.clone(),
        1 => lz4_flex::block::decompress(packed, length).ok()?.into(),
        2 => {
            (snap::raw::decompress_len(packed).ok()? == length).then_some(())?;
            snap::raw::Decoder::new()
                .decompress_vec(packed)
                .ok()?
                .into()
        }
        3 => zstd::bulk::decompress(packed, length).ok()?.into(),
        _ => return None,
    };
    (raw.len() == length).then_some(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back() {
        let text = b"tablemount ".repeat(500);
        let noise: Vec<u8> = (0..2000_u32)
            .flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes())
            .collect();
        for compression in [
            Compression::None,
            Compression::Lz4,
            Compression::Snappy,
            Compression::Zstd,
        ] {
            for raw in [text.clone(), noise.clone(), Vec::new()] {
                let (code, packed) = compress(compression, raw.clone());
                let packed = Bytes::from(packed);
                assert_eq!(
                    decompress(code, &packed, raw.len()).as_deref(),
                    Some(&raw[..]),
                    "{compression:?}"
                );
                assert_eq!(decompress(code, &packed, raw.len() + 1), None);
                assert_eq!(decompress(9, &packed, raw.len()), None);
            }
        }
        assert!(compress(Compression::Zstd, text.clone()).1.len() < text.len() / 10);
    }
}

//! Compression of blocks and values. The codec's number stands with each, so a file may hold several.

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

/// The bytes compressed and their codec; `None`: they are to stay as they are (codec 0), which is not larger.
pub(crate) fn compress(compression: Compression, raw: &[u8]) -> Option<(u8, Vec<u8>)> {
    let packed = match compression {
        Compression::None => return None,
        Compression::Lz4 => lz4_flex::block::compress(raw),
        Compression::Snappy => snap::raw::Encoder::new().compress_vec(raw).ok()?,
        Compression::Zstd => zstd::bulk::compress(raw, ZSTD_LEVEL).ok()?,
    };
    (packed.len() < raw.len()).then_some((code(compression), packed))
}

/// The longest that decompresses: a value's most, and room. A length from disk is not trusted beyond it.
pub(crate) const MAX_RAW: usize = 128 << 20;

/// The bytes as they were; `None` if they do not decompress to exactly `length` bytes, or are not compressed.
pub(crate) fn decompress(code: u8, packed: &[u8], length: usize) -> Option<Bytes> {
    (length <= MAX_RAW).then_some(())?;
    let raw: Bytes = match code {
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
                let Some((code, packed)) = compress(compression, &raw) else {
                    continue;
                };
                assert!(packed.len() < raw.len());
                assert_eq!(
                    decompress(code, &packed, raw.len()).as_deref(),
                    Some(&raw[..]),
                    "{compression:?}"
                );
                assert_eq!(decompress(code, &packed, raw.len() + 1), None);
                assert_eq!(decompress(9, &packed, raw.len()), None);
            }
        }
        assert_eq!(compress(Compression::Lz4, &noise), None);
        let (_, packed) = compress(Compression::Zstd, &text).expect("smaller");
        assert!(packed.len() < text.len() / 10);
    }
}

//! Bloom filters: whether a row or column may be in the part of a file that one index partition covers.
//!
//! ```text
//! filter = line of 64 B …       10 bits a key, whole lines
//! key    = xxh3-64 of the encoded row, or of the encoded column
//! line   = (hash >> 32) × lines >> 32          bits in the line: 6 of 9 bits each, from hash × 9E3779B97F4A7C15, lowest first
//! ```
//! All bits of a key are in one line, so that a probe touches one cache line: about 1.2 % of absent keys seem present.
//!
//! **Invariants**: a key that was added is found; the empty filter finds everything.

use xxhash_rust::xxh3::xxh3_64;

/// Bytes of a line.
pub(crate) const LINE: usize = 64;
const BITS_PER_KEY: usize = 10;
const PROBES: u32 = 6;
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A key's hash.
pub(crate) fn hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// The filter of the keys with these hashes.
pub(crate) fn build(hashes: &[u64]) -> Vec<u8> {
    let lines = (hashes.len() * BITS_PER_KEY).div_ceil(LINE * 8);
    let mut out = vec![0; lines * LINE];
    for hash in hashes {
        let start = line(*hash, lines);
        for bit in bits(*hash) {
            out[start + bit / 8] |= 1 << (bit % 8);
        }
    }
    out
}

/// Whether a key with this hash may have been added.
pub(crate) fn may_hold(filter: &[u8], hash: u64) -> bool {
    let lines = filter.len() / LINE;
    if lines == 0 {
        return true;
    }
    let start = line(hash, lines);
    let line = &filter[start..start + LINE];
    bits(hash).all(|bit| line[bit / 8] & (1 << (bit % 8)) != 0)
}

fn line(hash: u64, lines: usize) -> usize {
    (((hash >> 32) * lines as u64) >> 32) as usize * LINE
}

fn bits(hash: u64) -> impl Iterator<Item = usize> {
    let spread = hash.wrapping_mul(SPREAD);
    (0..PROBES).map(move |probe| ((spread >> (9 * probe)) & 511) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_found_and_little_else() {
        let key = |i: u32| hash(&i.to_le_bytes());
        let hashes: Vec<u64> = (0..10_000).map(key).collect();
        let filter = build(&hashes);
        assert!(hashes.iter().all(|hash| may_hold(&filter, *hash)));
        let wrong = (10_000..110_000)
            .filter(|i| may_hold(&filter, key(*i)))
            .count();
        assert!(wrong < 2_000, "{wrong} of 100000");
        assert!(may_hold(&[], 7));
        assert!(may_hold(&build(&[7]), 7));
    }
}

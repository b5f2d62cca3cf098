//! Stored keys: row key, qualifier, timestamp and sequence number as one byte string whose bytewise order is the stored order.
//!
//! ```text
//! key     = column ‖ !timestamp (8 B, sign flipped, big-endian) ‖ !sequence (8 B, big-endian)
//! column  = row ‖ escape(qualifier) ‖ 00 01
//! row     = escape(row key) ‖ 00 01                  escape: each byte 00 becomes 00 FF
//! ```
//!
//! **Invariants** (tests below): keys order by row key, then qualifier, then timestamp descending, then sequence number
//! descending; no column is a prefix of another; `above(x)` is the lowest key after all that start with row or column `x`.

use bytes::{BufMut, Bytes};

use memchr::memchr;
use tablemount_api::Timestamp;

const END: [u8; 2] = [0, 1];
/// Bytes after the column: timestamp and sequence number.
const TAIL: usize = 16;
/// Bytes of a key besides row and qualifier, encoded.
pub(crate) const OVERHEAD: usize = END.len() + TAIL;

/// A key taken apart; slices of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    /// The row, encoded with its end mark.
    pub(crate) row: &'a [u8],
    /// Row and qualifier, encoded with their end marks.
    pub(crate) column: &'a [u8],
    pub(crate) timestamp: Timestamp,
    pub(crate) sequence: u64,
}

/// Appends a row key, encoded, to `out`.
pub(crate) fn push_row(out: &mut impl BufMut, row: &[u8]) {
    escape(out, row);
    out.put_slice(&END);
}

/// Appends the key of an entry; `row` is encoded.
pub(crate) fn write(
    out: &mut impl BufMut,
    row: &[u8],
    qualifier: &[u8],
    timestamp: Timestamp,
    sequence: u64,
) {
    out.put_slice(row);
    push_row(out, qualifier);
    out.put_u64(!flip(timestamp));
    out.put_u64(!sequence);
}

/// The sequence number that a key ends with.
pub(crate) fn sequence_of(key: &[u8]) -> Option<u64> {
    key.last_chunk().map(|tail| !u64::from_be_bytes(*tail))
}

/// The same of a key that is known to be one.
pub(crate) fn sequence(key: &[u8]) -> u64 {
    sequence_of(key).unwrap_or(u64::MAX)
}

/// The encoded row or qualifier that `bytes` start with; `None` if there is no end mark.
pub(crate) fn first(bytes: &[u8]) -> Option<&[u8]> {
    Some(&bytes[..end_of(bytes)?])
}

/// A row key, encoded.
pub(crate) fn row(row: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(row.len() + 2);
    push_row(&mut out, row);
    out
}

/// `row` (encoded) and a qualifier, encoded.
pub(crate) fn column(row: &[u8], qualifier: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(row.len() + qualifier.len() + 2 + TAIL);
    out.extend_from_slice(row);
    push_row(&mut out, qualifier);
    out
}

/// A row key and a qualifier, encoded.
pub(crate) fn column_of(row: &[u8], qualifier: &[u8]) -> Vec<u8> {
    let ends = 2 * END.len();
    let mut out = Vec::with_capacity(row.len() + qualifier.len() + ends);
    push_row(&mut out, row);
    push_row(&mut out, qualifier);
    out
}

/// The key of one entry of `column` (encoded).
pub(crate) fn key(column: &[u8], timestamp: Timestamp, sequence: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(column.len() + TAIL);
    out.extend_from_slice(column);
    out.put_u64(!flip(timestamp));
    out.put_u64(!sequence);
    out
}

/// Timestamp and sequence number of a key.
pub(crate) fn tail(key: &[u8]) -> Option<(Timestamp, u64)> {
    let tail: &[u8; TAIL] = key.last_chunk()?;
    let (timestamp, sequence) = tail.split_at(8);
    Some((
        Timestamp(((!u64::from_be_bytes(timestamp.try_into().ok()?)) ^ (1 << 63)) as i64),
        !u64::from_be_bytes(sequence.try_into().ok()?),
    ))
}

/// The lowest key above all that start with `encoded`, an encoded row or column.
pub(crate) fn above(encoded: &[u8]) -> Vec<u8> {
    let mut out = encoded.to_vec();
    raise(&mut out);
    out
}

/// Makes an encoded row or column the lowest key above all that start with it.
pub(crate) fn raise(encoded: &mut [u8]) {
    if let Some(last) = encoded.last_mut() {
        *last = END[1] + 1;
    }
}

/// Takes a key apart; `None` if it is none (damaged bytes).
pub(crate) fn parse(key: &[u8]) -> Option<Parts<'_>> {
    let (column, tail) = key.split_at_checked(key.len().checked_sub(TAIL)?)?;
    let (timestamp, sequence) = self::tail(tail)?;
    let row = &column[..end_of(column)?];
    column[row.len()..].ends_with(&END).then_some(())?;
    Some(Parts {
        row,
        column,
        timestamp,
        sequence,
    })
}

/// The first part of an encoded byte string, without its escapes and end mark. `None` if there is no end mark.
pub(crate) fn decode(encoded: &[u8]) -> Option<Bytes> {
    let mut out = Vec::with_capacity(encoded.len());
    unescape(encoded, &mut out)?;
    Some(out.into())
}

/// Appends the same to `out`.
pub(crate) fn unescape(encoded: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let zero = memchr(0, encoded)?;
    if encoded.get(zero + 1) == Some(&END[1]) {
        out.extend_from_slice(&encoded[..zero]);
        return Some(());
    }
    let mut rest = &encoded[..end_of(encoded)? - END.len()];
    while let Some(zero) = memchr(0, rest) {
        out.extend_from_slice(&rest[..=zero]);
        rest = rest.get(zero + 2..)?;
    }
    out.extend_from_slice(rest);
    Some(())
}

/// A whole encoded byte string that has no escapes, without its end mark.
pub(crate) fn plain(encoded: &[u8]) -> Option<&[u8]> {
    let body = encoded.strip_suffix(&END)?;
    (body.is_empty() || memchr(0, body).is_none()).then_some(body)
}

fn flip(timestamp: Timestamp) -> u64 {
    (timestamp.0 as u64) ^ (1 << 63)
}

fn escape(out: &mut impl BufMut, bytes: &[u8]) {
    let mut rest = bytes;
    while let Some(zero) = memchr(0, rest) {
        out.put_slice(&rest[..zero]);
        out.put_slice(&[0, 0xff]);
        rest = &rest[zero + 1..];
    }
    out.put_slice(rest);
}

/// Length up to and with the first end mark.
fn end_of(encoded: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let zero = from + memchr(0, encoded.get(from..)?)?;
        match encoded.get(zero + 1)? {
            1 => return Some(zero + 2),
            0xff => from = zero + 2,
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use proptest::prelude::*;

    use super::*;

    fn full(row_key: &[u8], qualifier: &[u8], timestamp: i64, sequence: u64) -> Vec<u8> {
        key(
            &column(&row(row_key), qualifier),
            Timestamp(timestamp),
            sequence,
        )
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(
            prop_oneof![Just(0), Just(1), Just(2), Just(255), any::<u8>()],
            0..6,
        )
    }

    proptest! {
        #[test]
        fn order_is_row_qualifier_newest_first(
            a in (bytes(), bytes(), any::<i64>(), any::<u64>()),
            b in (bytes(), bytes(), any::<i64>(), any::<u64>()),
        ) {
            let order = |x: &(Vec<u8>, Vec<u8>, i64, u64)| (x.0.clone(), x.1.clone(), Reverse(x.2), Reverse(x.3));
            let key = |x: &(Vec<u8>, Vec<u8>, i64, u64)| full(&x.0, &x.1, x.2, x.3);
            prop_assert_eq!(key(&a).cmp(&key(&b)), order(&a).cmp(&order(&b)));
        }

        #[test]
        fn parts_come_back(r in bytes(), q in bytes(), t in any::<i64>(), s in any::<u64>()) {
            let key = full(&r, &q, t, s);
            let parts = parse(&key).expect("a key");
            prop_assert_eq!(decode(parts.row), Some(r.into()));
            prop_assert_eq!(decode(&parts.column[parts.row.len()..]), Some(q.into()));
            prop_assert_eq!((parts.timestamp, parts.sequence), (Timestamp(t), s));
        }

        #[test]
        fn above_is_after_all_of_it_and_before_the_next(a in bytes(), b in bytes(), q in bytes()) {
            let bound = above(&row(&a));
            prop_assert!(full(&a, &q, i64::MIN, 0) < bound);
            if b > a { prop_assert!(full(&b, b"", i64::MAX, u64::MAX) >= bound); }
        }

        #[test]
        fn damaged_keys_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Some(parts) = parse(&bytes) {
                let _ = (decode(parts.row), decode(&parts.column[parts.row.len()..]));
            }
        }
    }
}

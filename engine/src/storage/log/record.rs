//! Log records: the entries of one row mutation in one tablet. Results only, never operations.
//!
//! ```text
//! record = tablet u64 │ first sequence u64 │ server timestamp i64 │ row length u32 │ row │ entries u32 │ entry …
//! entry  = family u64 │ op u8 │ qualifier length u32 │ qualifier │ a i64 │ b i64 │ value length u32 │ value
//! op     = 0 put at a │ 1 delete the version at a │ 2 delete the column's versions a..=b │ 3 delete the family's cells
//!        │ 4 delete the family's cells in rows from the record's on, up to the value (exclusive; empty: to the end)
//! ```
//!
//! **Invariants**: entry i has sequence number first + i; the server timestamp is the highest that the tablet had given out
//! (`i64::MIN`: none), so that it never falls, also not over a crash; sequence numbers stay below 2^63.

use bytes::{Buf, Bytes};
use tablemount_api::Timestamp;

use crate::storage::objects::MAX_NUMBER;

/// A change of one column or family, as it is logged and put into memtables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) family: u64,
    pub(crate) op: Op,
}

/// What an [`Entry`] does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Op {
    Put {
        qualifier: Bytes,
        timestamp: Timestamp,
        value: Bytes,
    },
    DeleteCell {
        qualifier: Bytes,
        timestamp: Timestamp,
    },
    DeleteColumn {
        qualifier: Bytes,
        min: Timestamp,
        max: Timestamp,
    },
    DeleteFamily,
    /// In rows from the record's on, before `stop`; `None`: to the end.
    DeleteRows {
        stop: Option<Bytes>,
    },
}

impl Entry {
    /// Bytes in the log.
    pub(crate) fn bytes(&self) -> usize {
        33 + match &self.op {
            Op::Put {
                qualifier, value, ..
            } => qualifier.len() + value.len(),
            Op::DeleteCell { qualifier, .. } | Op::DeleteColumn { qualifier, .. } => {
                qualifier.len()
            }
            Op::DeleteFamily => 0,
            Op::DeleteRows { stop } => stop.as_ref().map_or(0, Bytes::len),
        }
    }
}

/// One row mutation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) tablet: u64,
    pub(crate) first_sequence: u64,
    pub(crate) server_timestamp: Timestamp,
    pub(crate) row: Bytes,
    pub(crate) entries: Vec<Entry>,
}

impl Record {
    /// Bytes in the log.
    pub(crate) fn bytes(&self) -> usize {
        let entries = self.entries.iter().map(Entry::bytes);
        32 + self.row.len() + entries.sum::<usize>()
    }

    /// Appends the record to a group's payload.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.tablet.to_le_bytes());
        out.extend_from_slice(&self.first_sequence.to_le_bytes());
        out.extend_from_slice(&self.server_timestamp.0.to_le_bytes());
        push(out, &self.row);
        out.extend_from_slice(&(self.entries.len() as u32).to_le_bytes());
        for Entry { family, op } in &self.entries {
            out.extend_from_slice(&family.to_le_bytes());
            let none = (&Bytes::new(), Timestamp(0), Timestamp(0), &Bytes::new());
            let (code, (qualifier, a, b, value)) = match op {
                Op::Put {
                    qualifier,
                    timestamp,
                    value,
                } => (0, (qualifier, *timestamp, none.2, value)),
                Op::DeleteCell {
                    qualifier,
                    timestamp,
                } => (1, (qualifier, *timestamp, none.2, none.3)),
                Op::DeleteColumn {
                    qualifier,
                    min,
                    max,
                } => (2, (qualifier, *min, *max, none.3)),
                Op::DeleteFamily => (3, none),
                Op::DeleteRows { stop } => {
                    let stop = stop.as_ref().unwrap_or(none.3);
                    (4, (none.0, none.1, none.2, stop))
                }
            };
            out.push(code);
            push(out, qualifier);
            out.extend_from_slice(&a.0.to_le_bytes());
            out.extend_from_slice(&b.0.to_le_bytes());
            push(out, value);
        }
    }

    /// The last entry's sequence number; of a record without entries, the one before its first.
    pub(crate) fn last_sequence(&self) -> u64 {
        (self.first_sequence + self.entries.len() as u64).saturating_sub(1)
    }

    /// Takes the next record off a group's payload; `None` if the bytes are no record.
    pub(crate) fn decode(payload: &mut Bytes) -> Option<Self> {
        let tablet = payload.try_get_u64_le().ok()?;
        let first_sequence = payload.try_get_u64_le().ok()?;
        let server_timestamp = Timestamp(payload.try_get_i64_le().ok()?);
        let row = pull(payload)?;
        let count = payload.try_get_u32_le().ok()?;
        let entries = (0..count)
            .map(|_| decode_entry(payload))
            .collect::<Option<_>>()?;
        (first_sequence.checked_add(count.into())? <= MAX_NUMBER).then_some(())?;
        Some(Self {
            tablet,
            first_sequence,
            server_timestamp,
            row,
            entries,
        })
    }
}

fn decode_entry(payload: &mut Bytes) -> Option<Entry> {
    let family = payload.try_get_u64_le().ok()?;
    let code = payload.try_get_u8().ok()?;
    let qualifier = pull(payload)?;
    let a = Timestamp(payload.try_get_i64_le().ok()?);
    let b = Timestamp(payload.try_get_i64_le().ok()?);
    let value = pull(payload)?;
    let op = match code {
        0 => Op::Put {
            qualifier,
            timestamp: a,
            value,
        },
        1 => Op::DeleteCell {
            qualifier,
            timestamp: a,
        },
        2 => Op::DeleteColumn {
            qualifier,
            min: a,
            max: b,
        },
        3 => Op::DeleteFamily,
        4 => Op::DeleteRows {
            stop: (!value.is_empty()).then_some(value),
        },
        _ => return None,
    };
    Some(Entry { family, op })
}

fn push(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn pull(payload: &mut Bytes) -> Option<Bytes> {
    let length = payload.try_get_u32_le().ok()? as usize;
    (length <= payload.len()).then(|| payload.split_to(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Record {
        let qualifier = Bytes::from_static(b"q");
        let op = |op| Entry { family: 7, op };
        Record {
            tablet: 3,
            first_sequence: 41,
            server_timestamp: Timestamp(99),
            row: Bytes::from_static(b"row\0"),
            entries: vec![
                op(Op::Put {
                    qualifier: qualifier.clone(),
                    timestamp: Timestamp(-5),
                    value: Bytes::from_static(b"v"),
                }),
                op(Op::DeleteCell {
                    qualifier: Bytes::new(),
                    timestamp: Timestamp(5),
                }),
                op(Op::DeleteColumn {
                    qualifier,
                    min: Timestamp::MIN,
                    max: Timestamp(9),
                }),
                op(Op::DeleteFamily),
                op(Op::DeleteRows {
                    stop: Some(Bytes::from_static(b"stop")),
                }),
                op(Op::DeleteRows { stop: None }),
            ],
        }
    }

    #[test]
    fn records_come_back() {
        let mut out = Vec::new();
        sample().encode(&mut out);
        assert_eq!(out.len(), sample().bytes());
        let mut payload = Bytes::from(out);
        assert_eq!(Record::decode(&mut payload), Some(sample()));
        assert!(payload.is_empty());
    }

    #[test]
    fn a_record_beyond_the_highest_sequence_number_is_none() {
        let check = |first_sequence: u64, known: bool| {
            let record = Record {
                first_sequence,
                ..sample()
            };
            let mut out = Vec::new();
            record.encode(&mut out);
            let decoded = Record::decode(&mut out.into());
            assert_eq!(decoded.is_some(), known, "{first_sequence}");
        };
        let entries = sample().entries.len() as u64;
        check(MAX_NUMBER - entries, true);
        check(MAX_NUMBER - entries + 1, false);
        check(u64::MAX - entries, false);
        check(u64::MAX, false);
    }

    #[test]
    fn cut_records_are_none() {
        let mut out = Vec::new();
        sample().encode(&mut out);
        for length in 0..out.len() {
            assert_eq!(
                Record::decode(&mut Bytes::copy_from_slice(&out[..length])),
                None,
                "{length}"
            );
        }
    }
}

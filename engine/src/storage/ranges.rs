//! Range deletes: of all of a family's cells in rows `from..to`. They hide cells with a lower sequence number.
//!
//! There are few (a row range, a prefix, a whole table at a time), and each stands for as many rows as it likes, so they are
//! held in memory: as written in memtables, as disjoint pieces ([`RangeSet`]) of an SST.
//!
//! **Invariants**: a set's pieces are sorted and disjoint, each with the highest sequence number of the deletes over it.

/// Deletes the family's cells in rows `from..to`, encoded; `None`: to the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RangeDelete {
    pub(crate) from: Vec<u8>,
    pub(crate) to: Option<Vec<u8>>,
    pub(crate) sequence: u64,
}

impl RangeDelete {
    /// Whether it covers the row, encoded.
    pub(crate) fn covers(&self, row: &[u8]) -> bool {
        self.from.as_slice() <= row && self.to.as_ref().is_none_or(|to| row < to.as_slice())
    }

    /// Whether it covers a row of `from..to`.
    pub(crate) fn touches(&self, from: &[u8], to: Option<&[u8]>) -> bool {
        self.to.as_ref().is_none_or(|end| from < end.as_slice())
            && to.is_none_or(|to| self.from.as_slice() < to)
    }

    /// Bytes in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        self.from.len() + self.to.as_ref().map_or(0, Vec::len) + 64
    }
}

/// Range deletes as disjoint pieces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RangeSet(Vec<RangeDelete>);

impl RangeSet {
    /// The pieces of these deletes.
    pub(crate) fn new(deletes: &[RangeDelete]) -> Self {
        let mut bounds: Vec<&Vec<u8>> = deletes
            .iter()
            .flat_map(|delete| [Some(&delete.from), delete.to.as_ref()])
            .flatten()
            .collect();
        bounds.sort();
        bounds.dedup();
        let mut pieces: Vec<RangeDelete> = Vec::new();
        for (i, from) in bounds.iter().enumerate() {
            let over = deletes.iter().filter(|delete| delete.covers(from));
            let Some(sequence) = over.map(|delete| delete.sequence).max() else {
                continue;
            };
            let to = bounds.get(i + 1).map(|to| (*to).clone());
            match pieces.last_mut() {
                Some(last) if last.sequence == sequence && last.to.as_ref() == Some(*from) => {
                    last.to = to;
                }
                _ => pieces.push(RangeDelete {
                    from: (*from).clone(),
                    to,
                    sequence,
                }),
            }
        }
        Self(pieces)
    }

    /// The set of pieces that are disjoint and in order; `None`: they are not.
    pub(crate) fn of_pieces(pieces: Vec<RangeDelete>) -> Option<Self> {
        let whole = pieces
            .iter()
            .all(|piece| piece.to.as_ref().is_none_or(|to| piece.from < *to));
        let apart = pieces
            .windows(2)
            .all(|pair| pair[0].to.as_ref().is_some_and(|to| *to <= pair[1].from));
        (whole && apart).then_some(Self(pieces))
    }

    /// The piece over a row, encoded.
    pub(crate) fn over(&self, row: &[u8]) -> Option<&RangeDelete> {
        let after = self.0.partition_point(|piece| piece.from.as_slice() <= row);
        self.0[..after].last().filter(|piece| piece.covers(row))
    }

    pub(crate) fn pieces(&self) -> &[RangeDelete] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn delete() -> impl Strategy<Value = RangeDelete> {
        (0_u8..20, 0_u8..25, 1_u64..9).prop_map(|(from, to, sequence)| RangeDelete {
            from: vec![from],
            to: (to < 20).then(|| vec![to]),
            sequence,
        })
    }

    proptest! {
        #[test]
        fn a_set_says_what_its_deletes_say(deletes in proptest::collection::vec(delete(), 0..8)) {
            let set = RangeSet::new(&deletes);
            for row in 0_u8..25 {
                let highest = deletes.iter().filter(|delete| delete.covers(&[row])).map(|delete| delete.sequence).max();
                prop_assert_eq!(set.over(&[row]).map(|piece| piece.sequence), highest);
            }
            let again = RangeSet::new(set.pieces());
            prop_assert_eq!(&again, &set);
            prop_assert_eq!(RangeSet::of_pieces(set.pieces().to_vec()), Some(set));
        }

        #[test]
        fn pieces_are_a_set_only_if_disjoint_and_in_order(deletes in proptest::collection::vec(delete(), 0..4)) {
            let Some(set) = RangeSet::of_pieces(deletes.clone()) else {
                let set = RangeSet::new(&deletes);
                prop_assert_ne!(set.pieces(), deletes);
                return Ok(());
            };
            for row in 0_u8..25 {
                let over: Vec<_> = deletes.iter().filter(|delete| delete.covers(&[row])).collect();
                prop_assert!(over.len() <= 1);
                prop_assert_eq!(set.over(&[row]), over.first().copied());
            }
        }
    }
}

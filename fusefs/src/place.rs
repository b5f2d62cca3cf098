//! Places in a table's order: row, family by creation, qualifier, newest version first.
//!
//! A [`Place`] names a row, or a family, column or version in it: all cells that it is a prefix of. An [`Edge`] lies just
//! before or just after a place. One comparison ([`Edge::cmp`]) orders edges among each other and to cells.

use std::cmp::Ordering;

use bytes::Bytes;

/// A row, or something in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) row: Bytes,
    /// The family's id.
    pub(crate) family: Option<u64>,
    pub(crate) qualifier: Option<Bytes>,
    pub(crate) timestamp: Option<i64>,
}

impl Place {
    pub(crate) fn row(row: Bytes) -> Self {
        Self {
            row,
            family: None,
            qualifier: None,
            timestamp: None,
        }
    }

    pub(crate) fn family(row: Bytes, family: u64) -> Self {
        Self {
            family: Some(family),
            ..Self::row(row)
        }
    }

    pub(crate) fn before(&self) -> Edge {
        Edge {
            place: self.clone(),
            after: false,
        }
    }

    pub(crate) fn after(&self) -> Edge {
        Edge {
            place: self.clone(),
            after: true,
        }
    }

    /// Compares the edge before or after the place with `edge`.
    pub(crate) fn cmp_side(&self, after: bool, edge: &Edge) -> Ordering {
        self.key(after).cmp(&edge.key())
    }

    /// Whether the edge before or after the place lies before `cell`.
    pub(crate) fn side_is_before(&self, after: bool, cell: &CellFact) -> bool {
        self.key(after).cmp(&cell.key()) != Ordering::Greater
    }

    fn key(&self, after: bool) -> Key<'_> {
        Key {
            row: &self.row,
            family: self.family,
            qualifier: self.qualifier.as_deref(),
            timestamp: self.timestamp,
            after,
        }
    }
}

/// Just before or just after a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) place: Place,
    pub(crate) after: bool,
}

impl Edge {
    fn key(&self) -> Key<'_> {
        self.place.key(self.after)
    }
}

/// What is known of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CellFact {
    pub(crate) row: Bytes,
    /// The family's id.
    pub(crate) family: u64,
    pub(crate) qualifier: Bytes,
    pub(crate) timestamp: i64,
    pub(crate) length: u64,
    pub(crate) value: Option<Bytes>,
}

impl CellFact {
    /// Whether the cell lies in `place`.
    pub(crate) fn is_in(&self, place: &Place) -> bool {
        self.row == place.row
            && place.family.is_none_or(|family| family == self.family)
            && place
                .qualifier
                .as_ref()
                .is_none_or(|qualifier| *qualifier == self.qualifier)
            && place
                .timestamp
                .is_none_or(|timestamp| timestamp == self.timestamp)
    }

    /// Memory that it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.qualifier.len() + self.value.as_ref().map_or(0, Bytes::len)
    }

    fn key(&self) -> Key<'_> {
        Key {
            row: &self.row,
            family: Some(self.family),
            qualifier: Some(&self.qualifier),
            timestamp: Some(self.timestamp),
            after: false,
        }
    }
}

struct Key<'a> {
    row: &'a [u8],
    family: Option<u64>,
    qualifier: Option<&'a [u8]>,
    timestamp: Option<i64>,
    after: bool,
}

impl Key<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.row
            .cmp(other.row)
            .then_with(|| self.level(other, self.family, other.family, Ord::cmp))
            .then_with(|| self.level(other, self.qualifier, other.qualifier, Ord::cmp))
            .then_with(|| self.level(other, self.timestamp, other.timestamp, |a, b| b.cmp(a)))
            .then_with(|| self.after.cmp(&other.after))
    }

    /// Compares one component. Where only one side has it, the other side's edge lies before or after everything inside.
    fn level<T>(
        &self,
        other: &Self,
        a: Option<T>,
        b: Option<T>,
        cmp: impl Fn(&T, &T) -> Ordering,
    ) -> Ordering {
        let side = |after: bool| {
            if after {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        };
        match (a, b) {
            (None, None) => Ordering::Equal,
            (Some(a), Some(b)) => cmp(&a, &b),
            (None, Some(_)) => side(self.after),
            (Some(_), None) => side(other.after).reverse(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(row: &'static str, family: u64) -> Place {
        Place::family(row.into(), family)
    }

    fn column(row: &'static str, id: u64, qualifier: &'static str) -> Place {
        Place {
            qualifier: Some(qualifier.into()),
            ..family(row, id)
        }
    }

    fn version(row: &'static str, id: u64, qualifier: &'static str, timestamp: i64) -> Place {
        Place {
            timestamp: Some(timestamp),
            ..column(row, id, qualifier)
        }
    }

    #[test]
    fn edges_in_order() {
        let ordered = [
            Place::row("a".into()).before(),
            family("a", 1).before(),
            column("a", 1, "").before(),
            version("a", 1, "", 9).before(),
            version("a", 1, "", 9).after(),
            version("a", 1, "", -3).before(),
            column("a", 1, "").after(),
            column("a", 1, "q").before(),
            family("a", 1).after(),
            family("a", 2).before(),
            Place::row("a".into()).after(),
            Place::row("a\0".into()).before(),
            Place::row("b".into()).before(),
        ];
        for (i, a) in ordered.iter().enumerate() {
            for (j, b) in ordered.iter().enumerate() {
                assert_eq!(a.place.cmp_side(a.after, b), i.cmp(&j), "{a:?} and {b:?}");
            }
        }
    }

    #[test]
    fn edges_and_cells() {
        let cell = CellFact {
            row: "a".into(),
            family: 1,
            qualifier: "q".into(),
            timestamp: 5,
            length: 0,
            value: None,
        };
        for place in [
            Place::row("a".into()),
            family("a", 1),
            column("a", 1, "q"),
            version("a", 1, "q", 5),
        ] {
            assert!(cell.is_in(&place));
            assert!(
                place.side_is_before(false, &cell) && !place.side_is_before(true, &cell),
                "{place:?}"
            );
        }
        assert!(!cell.is_in(&Place::row("b".into())));
        assert!(version("a", 1, "q", 6).side_is_before(true, &cell));
    }
}

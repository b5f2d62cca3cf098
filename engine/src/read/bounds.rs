//! The bounds of a read, encoded once: which rows, which columns, which versions.

use bytes::Bytes;
use tablemount_api::{CellPosition, FamilyInfo, Position, ReadRequest, Timestamp};

use crate::storage::keys;
use crate::storage::table::Schema;
use crate::{Error, Result};

/// Rows `from..to`, encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowBounds {
    pub(crate) from: Vec<u8>,
    pub(crate) to: Option<Vec<u8>>,
}

impl RowBounds {
    /// The rows that all bounds of the request allow, `after` included.
    pub(crate) fn of(request: &ReadRequest) -> Self {
        let mut bounds = Self {
            from: Vec::new(),
            to: None,
        };
        if let Some(row) = &request.row {
            let row = keys::row(row.bytes());
            bounds.narrow(Some(row.clone()), Some(keys::above(&row)));
        }
        bounds.narrow(
            request.start.as_ref().map(|key| keys::row(key.bytes())),
            None,
        );
        bounds.narrow(
            None,
            request.stop.as_ref().map(|key| keys::row(key.bytes())),
        );
        if let Some(prefix) = &request.prefix {
            let (from, to) = prefix_bounds(&prefix.0);
            bounds.narrow(Some(from), to);
        }
        if let Some(Position { row, cell }) = &request.after {
            let row = keys::row(row.bytes());
            match (request.reverse, cell.is_some()) {
                (false, false) => bounds.narrow(Some(keys::above(&row)), None),
                (false, true) => bounds.narrow(Some(row), None),
                (true, false) => bounds.narrow(None, Some(row)),
                (true, true) => bounds.narrow(None, Some(keys::above(&row))),
            }
        }
        bounds
    }

    /// Intersects with `from..to`.
    pub(crate) fn narrow(&mut self, from: Option<Vec<u8>>, to: Option<Vec<u8>>) {
        if let Some(from) = from {
            self.from = std::mem::take(&mut self.from).max(from);
        }
        if let Some(to) = to {
            self.to = Some(match self.to.take() {
                Some(present) => present.min(to),
                None => to,
            });
        }
    }

    /// Whether they are one row's.
    pub(crate) fn one_row(&self) -> bool {
        self.to
            .as_ref()
            .is_some_and(|to| self.from.ends_with(&[0, 1]) && keys::above(&self.from) == *to)
    }

    /// Whether no row can lie in them.
    pub(crate) fn is_empty(&self) -> bool {
        self.to.as_ref().is_some_and(|to| *to <= self.from)
    }
}

/// Encoded bounds of what starts with `prefix`.
fn prefix_bounds(prefix: &[u8]) -> (Vec<u8>, Option<Vec<u8>>) {
    let mut from = keys::row(prefix);
    from.truncate(from.len() - 2);
    let mut next = prefix.to_vec();
    while next.pop_if(|last| *last == u8::MAX).is_some() {}
    let to = next
        .last_mut()
        .map(|last| *last += 1)
        .map(|()| keys::row(&next));
    (from, to)
}

/// Which cells of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CellBounds {
    /// Encoded qualifiers, `from..to`.
    pub(crate) qualifier_from: Vec<u8>,
    pub(crate) qualifier_to: Option<Vec<u8>>,
    pub(crate) at: Timestamp,
    pub(crate) since: Timestamp,
    pub(crate) versions: Option<u32>,
    pub(crate) columns: Option<u32>,
}

impl CellBounds {
    pub(crate) fn of(request: &ReadRequest) -> Self {
        // Qualifiers are encoded as rows are, so the same intersections hold.
        let mut bounds = RowBounds {
            from: Vec::new(),
            to: None,
        };
        if let Some(qualifier) = &request.qualifier {
            let column = keys::row(qualifier.bytes());
            bounds.narrow(Some(column.clone()), Some(keys::above(&column)));
        }
        bounds.narrow(
            request
                .qualifier_start
                .as_ref()
                .map(|q| keys::row(q.bytes())),
            None,
        );
        bounds.narrow(
            None,
            request
                .qualifier_stop
                .as_ref()
                .map(|q| keys::row(q.bytes())),
        );
        if let Some(prefix) = &request.qualifier_prefix {
            let (from, to) = prefix_bounds(&prefix.0);
            bounds.narrow(Some(from), to);
        }
        Self {
            qualifier_from: bounds.from,
            qualifier_to: bounds.to,
            at: request.at.unwrap_or(Timestamp::MAX),
            since: request.since.unwrap_or(Timestamp::MIN),
            versions: request.versions,
            columns: request.columns_per_family,
        }
    }
}

/// Where the page before ended inside a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resume {
    /// The row, encoded.
    pub(crate) row: Vec<u8>,
    /// The family's place in the order of output.
    pub(crate) family: u64,
    /// The qualifier, encoded.
    pub(crate) qualifier: Vec<u8>,
    /// The last version seen; `None`: the column is done.
    pub(crate) timestamp: Option<Timestamp>,
}

impl Resume {
    pub(crate) fn of(request: &ReadRequest, schema: &Schema) -> Result<Option<Self>> {
        let Some(Position {
            row,
            cell:
                Some(CellPosition {
                    family,
                    qualifier,
                    timestamp,
                }),
        }) = &request.after
        else {
            return Ok(None);
        };
        Ok(Some(Self {
            row: keys::row(row.bytes()),
            family: schema.family(family)?.id,
            qualifier: keys::row(qualifier.bytes()),
            timestamp: *timestamp,
        }))
    }
}

/// The families asked for, in the order of their creation.
pub(crate) fn families(request: &ReadRequest, schema: &Schema) -> Result<Vec<FamilyInfo>> {
    request
        .families
        .iter()
        .try_for_each(|name| schema.family(name).map(drop))?;
    let wanted = |family: &&FamilyInfo| {
        request.families.is_empty() || request.families.contains(&family.schema.name)
    };
    Ok(schema
        .record
        .families
        .iter()
        .filter(wanted)
        .cloned()
        .collect())
}

/// Decodes an encoded row or qualifier that was stored.
pub(crate) fn decoded(encoded: &[u8]) -> Result<Bytes> {
    keys::decode(encoded).ok_or_else(|| Error::Corrupt("a stored key is damaged".to_owned()))
}

#[cfg(test)]
mod tests {
    use tablemount_api::{Base64, RowKey};

    use super::*;

    #[test]
    fn bounds_intersect() {
        let key = |key: &'static [u8]| RowKey::new(Bytes::from_static(key)).expect("valid");
        let check = |request: ReadRequest, inside: &[&[u8]], outside: &[&[u8]]| {
            let bounds = RowBounds::of(&request);
            let holds = |row: &[u8]| {
                let row = keys::row(row);
                bounds.from <= row && bounds.to.as_ref().is_none_or(|to| row < *to)
            };
            inside
                .iter()
                .for_each(|row| assert!(holds(row), "{row:?} in {request:?}"));
            outside
                .iter()
                .for_each(|row| assert!(!holds(row), "{row:?} not in {request:?}"));
        };
        check(ReadRequest::default(), &[b"\0", b"\xff\xff"], &[]);
        check(
            ReadRequest {
                row: Some(key(b"a")),
                ..Default::default()
            },
            &[b"a"],
            &[b"a\0", b"`", b"b"],
        );
        check(
            ReadRequest {
                start: Some(key(b"b")),
                stop: Some(key(b"d")),
                ..Default::default()
            },
            &[b"b", b"c\xff"],
            &[b"a\xff", b"d"],
        );
        let prefix = |bytes: &'static [u8]| Some(Base64(Bytes::from_static(bytes)));
        check(
            ReadRequest {
                prefix: prefix(b"a\xff"),
                ..Default::default()
            },
            &[b"a\xff", b"a\xff\0"],
            &[b"a", b"b"],
        );
        check(
            ReadRequest {
                prefix: prefix(b"\xff"),
                ..Default::default()
            },
            &[b"\xff\xff"],
            &[b"\xfe"],
        );
        check(
            ReadRequest {
                prefix: prefix(b"a\0"),
                ..Default::default()
            },
            &[b"a\0", b"a\0\0"],
            &[b"a", b"a\x01"],
        );
        let after = |row: &'static [u8]| {
            Some(Position {
                row: key(row),
                cell: None,
            })
        };
        check(
            ReadRequest {
                after: after(b"b"),
                ..Default::default()
            },
            &[b"b\0"],
            &[b"b", b"a"],
        );
        check(
            ReadRequest {
                after: after(b"b"),
                reverse: true,
                ..Default::default()
            },
            &[b"a"],
            &[b"b"],
        );
    }
}

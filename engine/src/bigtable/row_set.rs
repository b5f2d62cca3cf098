//! Row sets: keys and ranges, as disjoint ranges in order.

use std::collections::VecDeque;

use bytes::Bytes;
use tablemount_api::{ReadRequest, RowKey};

use super::proto::v2::{RowRange, RowSet, row_range};
use crate::{Error, Result};

/// The longest row key of this API.
pub(crate) const MAX_ROW_KEY: usize = 4096;

/// Rows `from..to`; no `to`: to the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) from: Bytes,
    pub(crate) to: Option<Bytes>,
}

impl Rows {
    /// The one row it is, if it is one.
    fn one_row(&self) -> Option<&Bytes> {
        let to = self.to.as_ref()?;
        let next = to.strip_suffix(&[0])?;
        (next == self.from && !self.from.is_empty()).then_some(&self.from)
    }

    /// Whether it is one row.
    pub(crate) fn is_one_row(&self) -> bool {
        self.one_row().is_some()
    }

    /// Puts the bounds into a request.
    pub(crate) fn apply(&self, request: &mut ReadRequest) -> Result<()> {
        if let Some(row) = self.one_row() {
            request.row = Some(RowKey::new(row.clone())?);
            return Ok(());
        }
        if !self.from.is_empty() {
            request.start = Some(RowKey::new(self.from.clone())?);
        }
        if let Some(to) = &self.to {
            request.stop = Some(RowKey::new(to.clone())?);
        }
        Ok(())
    }
}

/// Checks a row key of a request.
pub(crate) fn row_key(key: &Bytes) -> Result<RowKey> {
    if key.is_empty() {
        return Err(Error::Invalid(format!(
            "row key is empty; a row key has 1 to {MAX_ROW_KEY} bytes"
        )));
    }
    check_length(key)?;
    Ok(RowKey::new(key.clone())?)
}

fn check_length(key: &Bytes) -> Result<()> {
    match key.len() {
        bytes if bytes > MAX_ROW_KEY => Err(Error::Invalid(format!(
            "row key is {bytes} bytes; limit is {MAX_ROW_KEY}"
        ))),
        _ => Ok(()),
    }
}

/// The set's rows: sorted, merged. No set, or an empty one: all rows.
pub(crate) fn rows(set: Option<&RowSet>) -> Result<VecDeque<Rows>> {
    let all = Rows {
        from: Bytes::new(),
        to: None,
    };
    let Some(set) = set.filter(|set| !set.row_keys.is_empty() || !set.row_ranges.is_empty()) else {
        return Ok([all].into());
    };
    let mut ranges = Vec::with_capacity(set.row_keys.len() + set.row_ranges.len());
    for key in &set.row_keys {
        row_key(key)?;
        ranges.push(Rows {
            from: key.clone(),
            to: Some(after(key)),
        });
    }
    for range in &set.row_ranges {
        ranges.push(self::range(range)?);
    }
    ranges.retain(|rows| rows.to.as_ref().is_none_or(|to| rows.from < *to));
    ranges.sort_by(|a, b| a.from.cmp(&b.from));
    let mut merged: VecDeque<Rows> = VecDeque::with_capacity(ranges.len());
    for rows in ranges {
        let Some(last) = merged.back_mut() else {
            merged.push_back(rows);
            continue;
        };
        let touches = last.to.as_ref().is_none_or(|to| rows.from < *to);
        match (touches, &last.to, &rows.to) {
            (false, ..) => merged.push_back(rows),
            (true, None, _) => {}
            (true, Some(_), None) => last.to = None,
            (true, Some(to), Some(other)) => {
                if other > to {
                    last.to = rows.to;
                }
            }
        }
    }
    Ok(merged)
}

fn range(range: &RowRange) -> Result<Rows> {
    use row_range::{EndKey, StartKey};
    let (from, start) = match &range.start_key {
        None => (Bytes::new(), &Bytes::new()),
        Some(StartKey::StartKeyClosed(key)) => (key.clone(), key),
        Some(StartKey::StartKeyOpen(key)) if key.is_empty() => (Bytes::new(), key),
        Some(StartKey::StartKeyOpen(key)) => (after(key), key),
    };
    let (to, end) = match &range.end_key {
        None => (None, None),
        Some(EndKey::EndKeyClosed(key) | EndKey::EndKeyOpen(key)) if key.is_empty() => (None, None),
        Some(EndKey::EndKeyClosed(key)) => (Some(after(key)), Some(key)),
        Some(EndKey::EndKeyOpen(key)) => (Some(key.clone()), Some(key)),
    };
    check_length(start)?;
    if let Some(end) = end {
        check_length(end)?;
        if end < start {
            let shown = |key: &Bytes| tablemount_api::name::encode(key);
            return Err(Error::Invalid(format!(
                "row range ends at \"{}\", before its start \"{}\"",
                shown(end),
                shown(start)
            )));
        }
    }
    Ok(Rows { from, to })
}

/// The first key after this one.
fn after(key: &Bytes) -> Bytes {
    [key, &[0][..]].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(keys: &[&'static str], ranges: Vec<RowRange>) -> RowSet {
        RowSet {
            row_keys: keys
                .iter()
                .map(|key| Bytes::from_static(key.as_bytes()))
                .collect(),
            row_ranges: ranges,
        }
    }

    fn closed_open(from: &'static str, to: &'static str) -> RowRange {
        RowRange {
            start_key: Some(row_range::StartKey::StartKeyClosed(from.into())),
            end_key: Some(row_range::EndKey::EndKeyOpen(to.into())),
        }
    }

    fn open_closed(from: &'static str, to: &'static str) -> RowRange {
        RowRange {
            start_key: Some(row_range::StartKey::StartKeyOpen(from.into())),
            end_key: Some(row_range::EndKey::EndKeyClosed(to.into())),
        }
    }

    #[test]
    fn sets_are_sorted_and_merged() {
        let check = |set: RowSet, expected: &[(&str, Option<&str>)]| {
            let found = rows(Some(&set)).expect("valid");
            let shown: Vec<_> = found
                .iter()
                .map(|rows| {
                    let text = |key: &Bytes| String::from_utf8(key.to_vec()).expect("text");
                    (text(&rows.from), rows.to.as_ref().map(text))
                })
                .collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|(from, to)| ((*from).to_owned(), to.map(str::to_owned)))
                .collect();
            assert_eq!(shown, expected, "{set:?}");
        };
        check(set(&[], vec![]), &[("", None)]);
        check(
            set(&["b", "a", "b"], vec![]),
            &[("a", Some("a\0")), ("b", Some("b\0"))],
        );
        check(
            set(&["c"], vec![closed_open("b", "d")]),
            &[("b", Some("d"))],
        );
        check(
            set(&["d"], vec![open_closed("a", "b"), closed_open("b", "c")]),
            &[("a\0", Some("c")), ("d", Some("d\0"))],
        );
        check(set(&["x"], vec![closed_open("", "")]), &[("", None)]);
        check(
            set(&["a"], vec![open_closed("b", "")]),
            &[("a", Some("a\0")), ("b\0", None)],
        );
        check(
            set(&["a"], vec![closed_open("b", "b")]),
            &[("a", Some("a\0"))],
        );
    }

    #[test]
    fn bad_sets_are_refused() {
        let check = |set: RowSet, expected: &str| {
            assert_eq!(rows(Some(&set)).expect_err("refused").to_string(), expected);
        };
        check(
            set(&[""], vec![]),
            "row key is empty; a row key has 1 to 4096 bytes",
        );
        check(
            set(&[], vec![closed_open("b", "a")]),
            "row range ends at \"a\", before its start \"b\"",
        );
        let long = RowSet {
            row_keys: vec![vec![b'x'; 4097].into()],
            row_ranges: vec![],
        };
        check(long, "row key is 4097 bytes; limit is 4096");
    }
}

//! Every filter beside a naive evaluator that works on whole rows, straight from the request's form.

use std::sync::Arc;

use bytes::Bytes;
use tablemount_api::{FamilyInfo, FamilyName, FamilySchema, ReadRequest};

use super::re2::Pattern;
use super::*;
use crate::bigtable::proto::v2::row_filter::{Chain, Condition, Filter, Interleave};
use crate::bigtable::proto::v2::{
    ColumnRange, RowFilter, TimestampRange, ValueBitmask, ValueRange, column_range, value_range,
};
use crate::storage::random::Random;

const FAMILIES: [&str; 3] = ["f", "g", "h1"];

#[derive(Debug, Clone, PartialEq)]
struct Owned {
    family: usize,
    qualifier: Vec<u8>,
    timestamp: i64,
    value: Vec<u8>,
    label: Option<String>,
}

#[derive(Default)]
struct Collected(Vec<Owned>);

impl Emit for Collected {
    fn emit(&mut self, cell: Cell<'_>) {
        self.0.push(Owned {
            family: cell.family,
            qualifier: cell.qualifier.to_vec(),
            timestamp: cell.timestamp,
            value: cell.value.to_vec(),
            label: cell.label.map(|label| label.to_string()),
        });
    }
}

fn families() -> Vec<FamilyInfo> {
    let info = |(id, name): (u64, &&str)| FamilyInfo {
        id,
        schema: FamilySchema::new(FamilyName::new(name).expect("valid")),
    };
    (1..).zip(&FAMILIES).map(info).collect()
}

fn filter(filter: Filter) -> RowFilter {
    RowFilter {
        filter: Some(filter),
    }
}

/// What comes out of the filter, whole rows at a time; what is for a sink goes to `sink`.
fn naive(filter: &RowFilter, row: &[u8], cells: Vec<Owned>, sink: &mut Vec<Owned>) -> Vec<Owned> {
    let Some(filter) = &filter.filter else {
        return cells;
    };
    let keep =
        |keep: &dyn Fn(&Owned) -> bool| cells.iter().filter(|cell| keep(cell)).cloned().collect();
    let all = |pattern: &[u8], text: &[u8]| Pattern::new(pattern).expect("valid").matches(text);
    match filter {
        Filter::Chain(Chain { filters }) => filters
            .iter()
            .fold(cells, |cells, filter| naive(filter, row, cells, sink)),
        Filter::Interleave(Interleave { filters }) => {
            let mut out = Vec::new();
            for filter in filters {
                out.extend(naive(filter, row, cells.clone(), sink));
            }
            out.sort_by_key(order);
            out
        }
        Filter::Condition(condition) => {
            let predicate = condition.predicate_filter.as_ref().expect("valid");
            let found = !naive(predicate, row, cells.clone(), &mut Vec::new()).is_empty();
            let branch = match found {
                true => &condition.true_filter,
                false => &condition.false_filter,
            };
            branch
                .as_ref()
                .map_or(Vec::new(), |branch| naive(branch, row, cells, sink))
        }
        Filter::Sink(_) => {
            sink.extend(cells);
            Vec::new()
        }
        Filter::PassAllFilter(_) => cells,
        Filter::BlockAllFilter(_) => Vec::new(),
        Filter::RowKeyRegexFilter(regex) => match all(regex, row) {
            true => cells,
            false => Vec::new(),
        },
        Filter::FamilyNameRegexFilter(regex) => {
            keep(&|cell| all(regex.as_bytes(), FAMILIES[cell.family].as_bytes()))
        }
        Filter::ColumnQualifierRegexFilter(regex) => keep(&|cell| all(regex, &cell.qualifier)),
        Filter::ValueRegexFilter(regex) => keep(&|cell| all(regex, &cell.value)),
        Filter::ColumnRangeFilter(range) => {
            use column_range::{EndQualifier, StartQualifier};
            keep(&|cell| {
                FAMILIES[cell.family] == range.family_name
                    && match &range.start_qualifier {
                        None => true,
                        Some(StartQualifier::StartQualifierClosed(start)) => {
                            *cell.qualifier >= **start
                        }
                        Some(StartQualifier::StartQualifierOpen(start)) => {
                            *cell.qualifier > **start
                        }
                    }
                    && match &range.end_qualifier {
                        None => true,
                        Some(EndQualifier::EndQualifierClosed(end)) => *cell.qualifier <= **end,
                        Some(EndQualifier::EndQualifierOpen(end)) => *cell.qualifier < **end,
                    }
            })
        }
        Filter::ValueRangeFilter(range) => {
            use value_range::{EndValue, StartValue};
            keep(&|cell| {
                (match &range.start_value {
                    None => true,
                    Some(StartValue::StartValueClosed(start)) => *cell.value >= **start,
                    Some(StartValue::StartValueOpen(start)) => *cell.value > **start,
                }) && match &range.end_value {
                    None => true,
                    Some(EndValue::EndValueClosed(end)) => *cell.value <= **end,
                    Some(EndValue::EndValueOpen(end)) => *cell.value < **end,
                }
            })
        }
        Filter::TimestampRangeFilter(range) => keep(&|cell| {
            let end = range.end_timestamp_micros;
            cell.timestamp >= range.start_timestamp_micros && (end == 0 || cell.timestamp < end)
        }),
        Filter::CellsPerRowOffsetFilter(count) => cells.into_iter().skip(*count as usize).collect(),
        Filter::CellsPerRowLimitFilter(count) => cells.into_iter().take(*count as usize).collect(),
        Filter::CellsPerColumnLimitFilter(count) => {
            let mut out: Vec<Owned> = Vec::new();
            for (i, cell) in cells.iter().enumerate() {
                let same = |other: &&Owned| {
                    (other.family, &other.qualifier) == (cell.family, &cell.qualifier)
                };
                if cells[..i].iter().filter(same).count() < *count as usize {
                    out.push(cell.clone());
                }
            }
            out
        }
        Filter::StripValueTransformer(_) => {
            let strip = |cell| Owned {
                value: Vec::new(),
                ..cell
            };
            cells.into_iter().map(strip).collect()
        }
        Filter::ApplyLabelTransformer(label) => {
            let apply = |cell| Owned {
                label: Some(label.clone()),
                ..cell
            };
            cells.into_iter().map(apply).collect()
        }
        Filter::ValueBitmaskFilter(ValueBitmask { mask }) => keep(&|cell| {
            cell.value.len() == mask.len()
                && cell
                    .value
                    .iter()
                    .zip(mask)
                    .all(|(value, mask)| value & mask == *mask)
        }),
        Filter::RowSampleFilter(_) => unreachable!("is not generated"),
    }
}

/// A cell's place; copies of a cell stand in any order.
fn order(cell: &Owned) -> (usize, Vec<u8>, i64) {
    (cell.family, cell.qualifier.clone(), -cell.timestamp)
}

fn row(random: &mut Random) -> Vec<Owned> {
    let mut cells: Vec<Owned> = (0..random.below(12))
        .map(|_| Owned {
            family: random.below(3) as usize,
            qualifier: random.word(&["", "a", "ab", "b", "b\n", "\u{e9}"]).into(),
            timestamp: 1000 * random.below(5) as i64,
            value: random.word(&["", "v", "w", "vw", "\u{1}"]).into(),
            label: None,
        })
        .collect();
    cells.sort_by_key(order);
    cells.dedup_by_key(|cell| order(cell));
    cells
}

fn bound(random: &mut Random) -> Bytes {
    Bytes::from_static(random.word(&["", "a", "b", "v", "vw"]).as_bytes())
}

fn simple(random: &mut Random, in_condition: bool) -> Filter {
    let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
    match random.below(16) {
        0 => Filter::PassAllFilter(true),
        1 => Filter::BlockAllFilter(true),
        2 => Filter::RowKeyRegexFilter(bytes(random.word(&["row", "r.*", "x", "r\\C*"]))),
        3 => Filter::FamilyNameRegexFilter(random.word(&["f", "f|g", "h.*", "[^f]"]).to_owned()),
        4 => Filter::ColumnQualifierRegexFilter(bytes(
            random.word(&["a", "a.*", "a\\C*", "|b.*", "b\\C"]),
        )),
        5 => Filter::ValueRegexFilter(bytes(random.word(&["v", "v.*", "", "[vw]*"]))),
        6 => Filter::ColumnRangeFilter(ColumnRange {
            family_name: random.word(&FAMILIES).to_owned(),
            start_qualifier: match random.below(3) {
                0 => None,
                1 => Some(column_range::StartQualifier::StartQualifierClosed(bound(
                    random,
                ))),
                _ => Some(column_range::StartQualifier::StartQualifierOpen(bound(
                    random,
                ))),
            },
            end_qualifier: match random.below(3) {
                0 => None,
                1 => Some(column_range::EndQualifier::EndQualifierClosed(bound(
                    random,
                ))),
                _ => Some(column_range::EndQualifier::EndQualifierOpen(bound(random))),
            },
        }),
        7 => Filter::ValueRangeFilter(ValueRange {
            start_value: match random.below(3) {
                0 => None,
                1 => Some(value_range::StartValue::StartValueClosed(bound(random))),
                _ => Some(value_range::StartValue::StartValueOpen(bound(random))),
            },
            end_value: match random.below(3) {
                0 => None,
                1 => Some(value_range::EndValue::EndValueClosed(bound(random))),
                _ => Some(value_range::EndValue::EndValueOpen(bound(random))),
            },
        }),
        8 => {
            let start = 1000 * random.below(4) as i64;
            Filter::TimestampRangeFilter(TimestampRange {
                start_timestamp_micros: start,
                end_timestamp_micros: match random.below(2) {
                    0 => 0,
                    _ => start + 1000 * random.below(4) as i64,
                },
            })
        }
        9 => Filter::CellsPerRowOffsetFilter(random.below(3) as i32),
        10 => Filter::CellsPerRowLimitFilter(1 + random.below(4) as i32),
        11 => Filter::CellsPerColumnLimitFilter(1 + random.below(2) as i32),
        12 => Filter::StripValueTransformer(true),
        13 => Filter::ValueBitmaskFilter(ValueBitmask {
            mask: bytes(random.word(&["", "v", "\u{1}"])),
        }),
        14 if !in_condition => Filter::Sink(true),
        _ => Filter::CellsPerColumnLimitFilter(1),
    }
}

fn any(random: &mut Random, depth: u64, in_condition: bool) -> RowFilter {
    let some = |random: &mut Random, in_condition: bool| {
        (0..2 + random.below(2))
            .map(|_| any(random, depth + 1, in_condition))
            .collect()
    };
    filter(match random.below(if depth < 3 { 10 } else { 1 }) {
        1..=3 => Filter::Chain(Chain {
            filters: some(random, in_condition),
        }),
        4 | 5 => Filter::Interleave(Interleave {
            filters: some(random, in_condition),
        }),
        6 => {
            let maybe = |random: &mut Random| {
                let present = random.chance(80);
                present.then(|| Box::new(any(random, depth + 1, true)))
            };
            Filter::Condition(Box::new(Condition {
                true_filter: maybe(random),
                false_filter: maybe(random),
                predicate_filter: Some(Box::new(any(random, depth + 1, true))),
            }))
        }
        _ => simple(random, in_condition),
    })
}

/// The filters that a filter directly consists of.
fn inside(filter: &mut RowFilter) -> Vec<&mut RowFilter> {
    match &mut filter.filter {
        Some(Filter::Chain(Chain { filters }) | Filter::Interleave(Interleave { filters })) => {
            filters.iter_mut().collect()
        }
        Some(Filter::Condition(condition)) => {
            let Condition {
                predicate_filter,
                true_filter,
                false_filter,
            } = &mut **condition;
            let all = [predicate_filter, true_filter, false_filter];
            all.into_iter()
                .flatten()
                .map(|filter| &mut **filter)
                .collect()
        }
        _ => Vec::new(),
    }
}

fn interleaves(filter: &RowFilter) -> bool {
    let mut all = filter.clone();
    matches!(filter.filter, Some(Filter::Interleave(_)))
        || inside(&mut all)
            .into_iter()
            .any(|filter| interleaves(filter))
}

fn keep_values(filter: &mut RowFilter) {
    if let Some(Filter::StripValueTransformer(_)) = filter.filter {
        filter.filter = Some(Filter::PassAllFilter(true));
    }
    inside(filter).into_iter().for_each(keep_values);
}

/// What the machine makes of a row of which storage left out what the pushdown says.
fn machine(filter: &RowFilter, cells: &[Owned]) -> Vec<Owned> {
    let families = families();
    let root = compile(Some(filter), &families).expect("compiles");
    let pushdown = Pushdown::of(&root, families.len());
    let mut request = ReadRequest::default();
    pushdown.apply(&mut request, &families);
    let mut machine = Machine::new(root);
    let mut out = Collected::default();
    if pushdown.is_nothing() || !machine.begin_row(b"row") {
        return out.0;
    }
    let (mut skipped, mut column, mut versions) = (None, None, 0);
    for cell in cells {
        let place = (cell.family, cell.qualifier.clone());
        if column.as_ref() != Some(&place) {
            (column, versions) = (Some(place.clone()), 0);
        }
        if skipped == Some(None) || skipped == Some(Some(place)) || !within(&request, cell) {
            continue;
        }
        versions += 1;
        if request.versions.is_some_and(|limit| versions > limit) {
            continue;
        }
        let value: &[u8] = if pushdown.values { &cell.value } else { &[] };
        let cell = Cell {
            family: cell.family,
            qualifier: &cell.qualifier,
            timestamp: cell.timestamp,
            value,
            label: None::<&Arc<str>>,
        };
        skipped = match machine.cell(cell, &mut out).expect("small") {
            Skip::Nothing => None,
            Skip::Column => Some(column.clone()),
            Skip::Row => Some(None),
        };
    }
    machine.end_row(&mut out);
    out.0
}

/// Whether the request's bounds let the cell through.
fn within(request: &ReadRequest, cell: &Owned) -> bool {
    let family = FAMILIES[cell.family];
    let families = &request.families;
    let starts = |prefix: &tablemount_api::Base64| cell.qualifier.starts_with(&prefix.0);
    (families.is_empty() || families.iter().any(|name| name.as_str() == family))
        && request
            .qualifier_start
            .as_ref()
            .is_none_or(|from| **from.bytes() <= *cell.qualifier)
        && request
            .qualifier_stop
            .as_ref()
            .is_none_or(|to| *cell.qualifier < **to.bytes())
        && request.qualifier_prefix.as_ref().is_none_or(starts)
        && request.since.is_none_or(|since| since.0 <= cell.timestamp)
        && request.at.is_none_or(|at| cell.timestamp <= at.0)
}

fn sorted(mut cells: Vec<Owned>) -> Vec<Owned> {
    cells.sort_by_key(|cell| (order(cell), cell.label.clone(), cell.value.clone()));
    cells
}

#[test]
fn filters_do_what_a_naive_evaluator_does() {
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        let mut filter = any(&mut random, 0, false);
        if interleaves(&filter) {
            // Copies of a cell come in any order, so they must all be alike.
            keep_values(&mut filter);
        }
        let cells = row(&mut random);
        let mut sink = Vec::new();
        let mut expected = naive(&filter, b"row", cells.clone(), &mut sink);
        expected.extend(sink);
        let found = machine(&filter, &cells);
        let places: Vec<_> = found.iter().map(order).collect();
        assert!(places.is_sorted(), "seed {seed}: {filter:?}");
        assert_eq!(
            sorted(found),
            sorted(expected),
            "seed {seed}: {filter:?} on {cells:?}"
        );
    }
}

#[test]
fn a_label_marks_the_copies_of_its_branch() {
    let label = |name: &str| filter(Filter::ApplyLabelTransformer(name.to_owned()));
    let both = filter(Filter::Interleave(Interleave {
        filters: vec![label("x"), label("y-1")],
    }));
    let cell = Owned {
        family: 0,
        qualifier: Vec::new(),
        timestamp: 0,
        value: Vec::new(),
        label: None,
    };
    let found = machine(&both, std::slice::from_ref(&cell));
    let labels: Vec<_> = found.iter().map(|cell| cell.label.as_deref()).collect();
    assert_eq!(labels, [Some("x"), Some("y-1")]);
}

#[test]
fn a_sample_takes_its_part_of_the_rows() {
    let half = filter(Filter::RowSampleFilter(0.5));
    let mut machine = Machine::new(compile(Some(&half), &families()).expect("compiles"));
    let taken = (0..10_000_u32)
        .filter(|row| machine.begin_row(&row.to_be_bytes()))
        .count();
    assert!((4_500..5_500).contains(&taken), "{taken}");
}

#[test]
fn bad_filters_are_refused() {
    let check = |bad: Filter, expected: &str| {
        let error = compile(Some(&filter(bad)), &families()).expect_err("refused");
        let error = error.to_string();
        assert!(error.contains(expected), "{error}");
    };
    let one = || filter(Filter::PassAllFilter(true));
    let chain = |filters| Filter::Chain(Chain { filters });
    check(chain(vec![one()]), "chain of 1 filters; it takes 2 or more");
    let interleave = Filter::Interleave(Interleave { filters: vec![] });
    check(interleave, "interleave of 0 filters; it takes 2 or more");
    check(
        Filter::PassAllFilter(false),
        "pass_all_filter is false; it must be true or absent",
    );
    check(
        Filter::RowSampleFilter(1.0),
        "row_sample_filter is 1; it must be above 0 and below 1",
    );
    check(
        Filter::RowSampleFilter(f64::NAN),
        "row_sample_filter is NaN",
    );
    check(
        Filter::FamilyNameRegexFilter("a:b".to_owned()),
        "has a colon",
    );
    check(
        Filter::FamilyNameRegexFilter("nope".to_owned()),
        "column family \"nope\" not found",
    );
    let bad = Bytes::from_static(b"[");
    check(
        Filter::ValueRegexFilter(bad),
        "value_regex_filter \"[\": missing closing ]",
    );
    check(
        Filter::CellsPerRowLimitFilter(0),
        "cells_per_row_limit_filter is 0; it must be 1 or more",
    );
    check(
        Filter::CellsPerRowOffsetFilter(-1),
        "is -1; it must be 0 or more",
    );
    check(
        Filter::CellsPerColumnLimitFilter(0),
        "is 0; it must be 1 or more",
    );
    check(
        Filter::ApplyLabelTransformer("A".to_owned()),
        "it must be 1 to 15 of a-z, 0-9 and -",
    );
    let time = |start_timestamp_micros, end_timestamp_micros| {
        Filter::TimestampRangeFilter(TimestampRange {
            start_timestamp_micros,
            end_timestamp_micros,
        })
    };
    check(time(1, 0), "multiples of 1000");
    check(time(2000, 1000), "ends at 1000, before its start 2000");
    let sink = || Some(Box::new(filter(Filter::Sink(true))));
    let condition = |predicate_filter, true_filter| {
        Filter::Condition(Box::new(Condition {
            predicate_filter,
            true_filter,
            false_filter: None,
        }))
    };
    check(condition(None, None), "a condition has no predicate_filter");
    check(
        condition(Some(Box::new(one())), sink()),
        "sink inside a condition",
    );
    let labels = vec![
        filter(Filter::ApplyLabelTransformer("a".to_owned())),
        filter(Filter::ApplyLabelTransformer("b".to_owned())),
    ];
    check(
        chain(labels),
        "2 filters of a chain apply labels; limit is 1",
    );
    let large = Filter::ValueRegexFilter(vec![b'a'; 21_000].into());
    check(large, "limit is 20480");
    let mut deep = one();
    for _ in 0..21 {
        deep = filter(chain(vec![deep, one()]));
    }
    let Some(deep) = deep.filter else {
        return;
    };
    check(deep, "filters nested deeper than 20");
}

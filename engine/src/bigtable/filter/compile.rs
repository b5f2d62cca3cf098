//! From the request's filter to its nodes: everything that can be refused is refused here.

use std::ops::Bound;

use prost::Message as _;
use tablemount_api::FamilyInfo;

use super::node::{ColumnLimit, Condition, Node, RowKeys, RowTest, Test};
use super::re2::Pattern;
use crate::bigtable::proto::v2::{
    ColumnRange, RowFilter, TimestampRange, ValueRange, column_range, row_filter, value_range,
};
use crate::{Error, Result};

/// The largest filter, encoded.
const MAX_BYTES: usize = 20_480;
/// Filters inside each other.
const MAX_DEPTH: usize = 20;
const MAX_LABEL: usize = 15;

/// Compiles a filter against a table's families; absent: all passes.
pub(crate) fn compile(filter: Option<&RowFilter>, families: &[FamilyInfo]) -> Result<Node> {
    let Some(filter) = filter else {
        return Ok(Node::Pass);
    };
    let bytes = filter.encoded_len();
    if bytes > MAX_BYTES {
        return Err(invalid(format!(
            "it has {bytes} bytes; limit is {MAX_BYTES}"
        )));
    }
    let compiler = Compiler {
        families,
        seed: uuid::Uuid::new_v4().as_u64_pair().0,
    };
    compiler.node(filter, Place::default())
}

fn invalid(what: impl std::fmt::Display) -> Error {
    Error::Invalid(format!("filter: {what}"))
}

/// Where a filter stands.
#[derive(Clone, Copy, Default)]
struct Place {
    depth: usize,
    in_condition: bool,
}

struct Compiler<'a> {
    families: &'a [FamilyInfo],
    seed: u64,
}

impl Compiler<'_> {
    fn node(&self, filter: &RowFilter, place: Place) -> Result<Node> {
        use row_filter::Filter;
        let Some(filter) = &filter.filter else {
            return Ok(Node::Pass);
        };
        let test = |test| Ok(Node::Test(test));
        match filter {
            Filter::Chain(chain) => {
                let nodes = self.nodes("chain", &chain.filters, place)?;
                let labels = |node: &&Node| node.has(&|node| matches!(node, Node::Label(_)));
                match nodes.iter().filter(labels).count() {
                    0 | 1 => Ok(Node::Chain(nodes)),
                    count => Err(invalid(format!(
                        "{count} filters of a chain apply labels; limit is 1"
                    ))),
                }
            }
            Filter::Interleave(interleave) => Ok(Node::Interleave(self.nodes(
                "interleave",
                &interleave.filters,
                place,
            )?)),
            Filter::Condition(condition) => {
                let inside = self.deeper(place)?;
                let inside = Place {
                    in_condition: true,
                    ..inside
                };
                let Some(predicate) = &condition.predicate_filter else {
                    return Err(invalid("a condition has no predicate_filter"));
                };
                let branch = |filter: &Option<Box<RowFilter>>| match filter {
                    Some(filter) => self.node(filter, inside),
                    None => test(Test::Block),
                };
                Ok(Node::Condition(Box::new(Condition::new(
                    self.node(predicate, inside)?,
                    branch(&condition.true_filter)?,
                    branch(&condition.false_filter)?,
                ))))
            }
            Filter::Sink(set) => {
                if place.in_condition {
                    return Err(invalid("sink inside a condition"));
                }
                only_true("sink", *set).map(|()| Node::Sink)
            }
            Filter::PassAllFilter(set) => only_true("pass_all_filter", *set).map(|()| Node::Pass),
            Filter::BlockAllFilter(set) => {
                only_true("block_all_filter", *set)?;
                test(Test::Block)
            }
            Filter::RowKeyRegexFilter(regex) => Ok(Node::Row(RowTest {
                by: RowKeys::Matching(pattern("row_key_regex_filter", regex)?),
                passes: false,
            })),
            Filter::RowSampleFilter(part) => match *part > 0.0 && *part < 1.0 {
                true => Ok(Node::Row(RowTest {
                    by: RowKeys::Sample {
                        part: *part,
                        seed: self.seed,
                    },
                    passes: false,
                })),
                false => Err(invalid(format!(
                    "row_sample_filter is {part}; it must be above 0 and below 1"
                ))),
            },
            Filter::FamilyNameRegexFilter(regex) => test(self.families_matching(regex)?),
            Filter::ColumnQualifierRegexFilter(regex) => test(Test::Qualifier(pattern(
                "column_qualifier_regex_filter",
                regex,
            )?)),
            Filter::ColumnRangeFilter(range) => test(self.columns(range)?),
            Filter::TimestampRangeFilter(range) => test(time_range(range)?),
            Filter::ValueRegexFilter(regex) => {
                test(Test::Value(pattern("value_regex_filter", regex)?))
            }
            Filter::ValueRangeFilter(range) => test(Test::Values(values(range))),
            Filter::CellsPerRowOffsetFilter(count) => Ok(Node::Offset {
                count: number("cells_per_row_offset_filter", *count, 0)?,
                seen: 0,
            }),
            Filter::CellsPerRowLimitFilter(count) => Ok(Node::Limit {
                count: number("cells_per_row_limit_filter", *count, 1)?,
                seen: 0,
            }),
            Filter::CellsPerColumnLimitFilter(count) => Ok(Node::ColumnLimit(ColumnLimit::new(
                number("cells_per_column_limit_filter", *count, 1)?,
            ))),
            Filter::StripValueTransformer(set) => {
                only_true("strip_value_transformer", *set).map(|()| Node::Strip)
            }
            Filter::ApplyLabelTransformer(label) => {
                let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
                match !label.is_empty() && label.len() <= MAX_LABEL && label.bytes().all(plain) {
                    true => Ok(Node::Label(label.as_str().into())),
                    false => Err(invalid(format!(
                        "apply_label_transformer is \"{label}\"; it must be 1 to {MAX_LABEL} of a-z, 0-9 and -"
                    ))),
                }
            }
            Filter::ValueBitmaskFilter(mask) => test(Test::ValueMask(mask.mask.to_vec())),
        }
    }

    fn nodes(&self, kind: &str, filters: &[RowFilter], place: Place) -> Result<Vec<Node>> {
        let inside = self.deeper(place)?;
        let count = filters.len();
        if count < 2 {
            return Err(invalid(format!(
                "{kind} of {count} filters; it takes 2 or more"
            )));
        }
        filters
            .iter()
            .map(|filter| self.node(filter, inside))
            .collect()
    }

    fn deeper(&self, place: Place) -> Result<Place> {
        let depth = place.depth + 1;
        match depth > MAX_DEPTH {
            true => Err(invalid(format!("filters nested deeper than {MAX_DEPTH}"))),
            false => Ok(Place { depth, ..place }),
        }
    }

    fn families_matching(&self, regex: &str) -> Result<Test> {
        if regex.contains(':') {
            return Err(invalid(format!(
                "family_name_regex_filter \"{regex}\" has a colon, which no column family has"
            )));
        }
        let pattern = pattern("family_name_regex_filter", regex.as_bytes())?;
        if pattern.literal().is_some() {
            self.family(regex)?;
        }
        let matches = |family: &FamilyInfo| pattern.matches(family.schema.name.as_str().as_bytes());
        Ok(Test::Families(self.families.iter().map(matches).collect()))
    }

    fn family(&self, name: &str) -> Result<usize> {
        let found = self
            .families
            .iter()
            .position(|family| family.schema.name.as_str() == name);
        found.ok_or_else(|| Error::NotFound(format!("filter: column family \"{name}\" not found")))
    }

    fn columns(&self, range: &ColumnRange) -> Result<Test> {
        use column_range::{EndQualifier, StartQualifier};
        if range.family_name.is_empty() {
            return Err(invalid("column_range_filter has no family_name"));
        }
        let from = match &range.start_qualifier {
            Some(StartQualifier::StartQualifierClosed(from)) => Bound::Included(from.to_vec()),
            Some(StartQualifier::StartQualifierOpen(from)) => Bound::Excluded(from.to_vec()),
            None => Bound::Unbounded,
        };
        let to = match &range.end_qualifier {
            Some(EndQualifier::EndQualifierClosed(to)) => Bound::Included(to.to_vec()),
            Some(EndQualifier::EndQualifierOpen(to)) => Bound::Excluded(to.to_vec()),
            None => Bound::Unbounded,
        };
        Ok(Test::Columns {
            family: self.family(&range.family_name)?,
            range: (from, to),
        })
    }
}

fn pattern(filter: &str, regex: &[u8]) -> Result<Pattern> {
    Pattern::new(regex).map_err(|error| {
        let shown = String::from_utf8_lossy(regex);
        invalid(format!("{filter} \"{shown}\": {error}"))
    })
}

fn only_true(filter: &str, set: bool) -> Result<()> {
    match set {
        true => Ok(()),
        false => Err(invalid(format!(
            "{filter} is false; it must be true or absent"
        ))),
    }
}

fn number(filter: &str, count: i32, least: u64) -> Result<u64> {
    let number = u64::try_from(count).ok().filter(|count| *count >= least);
    number.ok_or_else(|| invalid(format!("{filter} is {count}; it must be {least} or more")))
}

/// The end 0 is none.
fn time_range(range: &TimestampRange) -> Result<Test> {
    let (from, before) = (range.start_timestamp_micros, range.end_timestamp_micros);
    for bound in [from, before] {
        if bound % 1000 != 0 {
            return Err(invalid(format!(
                "timestamp_range_filter has {bound}; timestamps are whole milliseconds, multiples of 1000"
            )));
        }
    }
    if before != 0 && before < from {
        return Err(invalid(format!(
            "timestamp_range_filter ends at {before}, before its start {from}"
        )));
    }
    Ok(Test::Time(
        from,
        if before == 0 { i64::MAX } else { before },
    ))
}

fn values(range: &ValueRange) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    use value_range::{EndValue, StartValue};
    let from = match &range.start_value {
        Some(StartValue::StartValueClosed(from)) => Bound::Included(from.to_vec()),
        Some(StartValue::StartValueOpen(from)) => Bound::Excluded(from.to_vec()),
        None => Bound::Unbounded,
    };
    let to = match &range.end_value {
        Some(EndValue::EndValueClosed(to)) => Bound::Included(to.to_vec()),
        Some(EndValue::EndValueOpen(to)) => Bound::Excluded(to.to_vec()),
        None => Bound::Unbounded,
    };
    (from, to)
}

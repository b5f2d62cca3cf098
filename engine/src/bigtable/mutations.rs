//! Mutations and rules of the API as the engine's.

use bytes::Bytes;
use tablemount_api::{Base64, FamilyName, Mutation, Qualifier, RowMutation, Timestamp};

use super::proto::v2;
use crate::{Error, Result};

/// The longest qualifier of this API.
const MAX_QUALIFIER: usize = 16 << 10;

/// The mutations of one row.
pub(crate) fn mutations(all: Vec<v2::Mutation>) -> Result<Vec<Mutation>> {
    let count = all.len();
    if count > RowMutation::MAX_MUTATIONS {
        return Err(Error::Invalid(format!(
            "{count} mutations; limit is {}",
            RowMutation::MAX_MUTATIONS
        )));
    }
    let numbered = all.into_iter().enumerate();
    numbered
        .map(|(i, one)| mutation(one).map_err(|error| error.context(format!("mutation {i}"))))
        .collect()
}

fn mutation(mutation: v2::Mutation) -> Result<Mutation> {
    use v2::mutation::Mutation as Kind;
    match mutation.mutation {
        None => Err(Error::Invalid("it says nothing to do".to_owned())),
        Some(Kind::SetCell(set)) => Ok(Mutation::Put {
            family: family(set.family_name)?,
            qualifier: qualifier(set.column_qualifier)?,
            timestamp: match set.timestamp_micros {
                -1 => None,
                micros => Some(timestamp(micros)?),
            },
            value: Base64(set.value),
        }),
        Some(Kind::DeleteFromColumn(delete)) => {
            let range = delete.time_range.unwrap_or_default();
            let bound = |micros: i64| match micros {
                0 => Ok(None),
                micros => timestamp(micros).map(Some),
            };
            let (from, before) = (
                bound(range.start_timestamp_micros)?,
                bound(range.end_timestamp_micros)?,
            );
            if let (Some(from), Some(before)) = (from, before)
                && before <= from
            {
                return Err(Error::Invalid(format!(
                    "time range ends at {}, not after its start {}",
                    before.0, from.0
                )));
            }
            Ok(Mutation::DeleteColumn {
                family: family(delete.family_name)?,
                qualifier: qualifier(delete.column_qualifier)?,
                min_timestamp: from,
                max_timestamp: before.map(|before| Timestamp(before.0 - 1)),
            })
        }
        Some(Kind::DeleteFromFamily(delete)) => Ok(Mutation::DeleteFamily {
            family: family(delete.family_name)?,
        }),
        Some(Kind::DeleteFromRow(_)) => Ok(Mutation::DeleteRow {}),
        Some(Kind::AddToCell(add)) => merge(
            add.family_name,
            add.column_qualifier,
            add.timestamp,
            add.input,
        ),
        Some(Kind::MergeToCell(merging)) => merge(
            merging.family_name,
            merging.column_qualifier,
            merging.timestamp,
            merging.input,
        ),
    }
}

/// The rules of a ReadModifyWriteRow.
pub(crate) fn rules(all: Vec<v2::ReadModifyWriteRule>) -> Result<Vec<Mutation>> {
    if all.is_empty() || all.len() > RowMutation::MAX_MUTATIONS {
        return Err(Error::Invalid(format!(
            "{} rules; a request has 1 to {}",
            all.len(),
            RowMutation::MAX_MUTATIONS
        )));
    }
    let numbered = all.into_iter().enumerate();
    numbered
        .map(|(i, one)| rule(one).map_err(|error| error.context(format!("rule {i}"))))
        .collect()
}

fn rule(rule: v2::ReadModifyWriteRule) -> Result<Mutation> {
    use v2::read_modify_write_rule::Rule;
    let family = family(rule.family_name)?;
    let qualifier = qualifier(rule.column_qualifier)?;
    match rule.rule {
        None => Err(Error::Invalid("it says nothing to do".to_owned())),
        Some(Rule::AppendValue(value)) => Ok(Mutation::Append {
            family,
            qualifier,
            value: Base64(value),
        }),
        Some(Rule::IncrementAmount(by)) => Ok(Mutation::Increment {
            family,
            qualifier,
            by,
        }),
    }
}

/// AddToCell and MergeToCell: the state of an aggregate of integers is an integer as its inputs are.
fn merge(
    family_name: String,
    column: Option<v2::Value>,
    time: Option<v2::Value>,
    input: Option<v2::Value>,
) -> Result<Mutation> {
    use v2::value::Kind;
    let kind = |value: Option<v2::Value>| value.and_then(|value| value.kind);
    let column = match kind(column) {
        None => Bytes::new(),
        Some(Kind::RawValue(bytes)) => bytes,
        Some(_) => {
            return Err(Error::Invalid(
                "column_qualifier is no raw_value".to_owned(),
            ));
        }
    };
    let time = match kind(time) {
        None => None,
        Some(Kind::RawTimestampMicros(-1)) => None,
        Some(Kind::RawTimestampMicros(micros)) => Some(timestamp(micros)?),
        Some(_) => {
            return Err(Error::Invalid(
                "timestamp is no raw_timestamp_micros".to_owned(),
            ));
        }
    };
    let value = match kind(input) {
        Some(Kind::IntValue(number)) => Bytes::copy_from_slice(&number.to_be_bytes()),
        Some(Kind::RawValue(bytes)) => bytes,
        _ => {
            return Err(Error::Invalid(
                "input is neither int_value nor raw_value".to_owned(),
            ));
        }
    };
    Ok(Mutation::Merge {
        family: family(family_name)?,
        qualifier: qualifier(column)?,
        timestamp: time,
        value: Base64(value),
    })
}

fn family(name: String) -> Result<FamilyName> {
    Ok(FamilyName::new(name)?)
}

fn qualifier(bytes: Bytes) -> Result<Qualifier> {
    match bytes.len() {
        long if long > MAX_QUALIFIER => Err(Error::Invalid(format!(
            "qualifier is {long} bytes; limit is {MAX_QUALIFIER}"
        ))),
        _ => Ok(Qualifier::new(bytes)?),
    }
}

fn timestamp(micros: i64) -> Result<Timestamp> {
    if micros < 0 {
        return Err(Error::Invalid(format!(
            "timestamp is {micros}; it must be 0 or more, or -1 for the server's time"
        )));
    }
    match micros % 1000 {
        0 => Ok(Timestamp(micros)),
        _ => Err(Error::Invalid(format!(
            "timestamp is {micros}; it must be whole milliseconds, a multiple of 1000"
        ))),
    }
}

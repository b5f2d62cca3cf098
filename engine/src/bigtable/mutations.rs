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
        Some(Kind::AddToCell(add)) => Err(no_aggregate(&add.family_name)),
        Some(Kind::MergeToCell(merge)) => Err(no_aggregate(&merge.family_name)),
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

fn no_aggregate(family: &str) -> Error {
    Error::Invalid(format!(
        "column family \"{family}\" is not an aggregate family"
    ))
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

//! Value types of families: aggregates of 64-bit integers. What else there is are bytes to the engine.

use tablemount_api::Aggregate;

use super::proto::admin::Type;
use super::proto::admin::r#type::aggregate::{Aggregator, Max, Min, Sum};
use super::proto::admin::r#type::int64::Encoding;
use super::proto::admin::r#type::int64::encoding::{self, BigEndianBytes};
use super::proto::admin::r#type::{self, Kind};
use crate::{Error, Result};

/// How a family of this type is merged; `None`: it is plain.
pub(crate) fn aggregate(value_type: Option<&Type>) -> Result<Option<Aggregate>> {
    let refused = |what: &str| Err(Error::Invalid(format!("value_type: {what}")));
    let aggregate = match value_type.and_then(|value_type| value_type.kind.as_ref()) {
        Some(Kind::AggregateType(aggregate)) => aggregate,
        // Says how clients read the bytes that are stored.
        None | Some(_) => return Ok(None),
    };
    let input = aggregate.input_type.as_ref();
    match input.and_then(|input| input.kind.as_ref()) {
        None | Some(Kind::Int64Type(_)) => {}
        Some(_) => return refused("inputs of an aggregate are int64 only"),
    }
    match aggregate.aggregator {
        Some(Aggregator::Sum(_)) => Ok(Some(Aggregate::Sum)),
        Some(Aggregator::Min(_)) => Ok(Some(Aggregate::Min)),
        Some(Aggregator::Max(_)) => Ok(Some(Aggregate::Max)),
        Some(Aggregator::HllppUniqueCount(_)) => refused("hllpp_unique_count is not served"),
        None => refused("an aggregate without its aggregator"),
    }
}

/// The type of a family that is merged so.
pub(crate) fn of(aggregate: Aggregate) -> Type {
    let int64 = || {
        Box::new(Type {
            kind: Some(Kind::Int64Type(r#type::Int64 {
                encoding: Some(Encoding {
                    encoding: Some(encoding::Encoding::BigEndianBytes(BigEndianBytes::default())),
                }),
            })),
        })
    };
    let aggregator = match aggregate {
        Aggregate::Sum => Aggregator::Sum(Sum {}),
        Aggregate::Min => Aggregator::Min(Min {}),
        Aggregate::Max => Aggregator::Max(Max {}),
    };
    Type {
        kind: Some(Kind::AggregateType(Box::new(r#type::Aggregate {
            input_type: Some(int64()),
            state_type: Some(int64()),
            aggregator: Some(aggregator),
        }))),
    }
}

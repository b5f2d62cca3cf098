//! Timestamps over HTTP are not negative, although the model holds any i64.

use tablemount_api::{MutateRequest, Mutation, ReadRequest, Timestamp, ValueRequest};

use super::refusal::Refusal;

/// A request that may hold timestamps.
pub(crate) trait Timestamps {
    /// Calls `check` with each timestamp and its field's name.
    fn each(
        &self,
        check: &mut dyn FnMut(&'static str, Timestamp) -> Result<(), Refusal>,
    ) -> Result<(), Refusal>;

    /// Refuses negative timestamps.
    fn check_timestamps(&self) -> Result<(), Refusal> {
        self.each(&mut |field, timestamp| {
            if timestamp.0 >= 0 {
                return Ok(());
            }
            Err(Refusal::invalid(format!(
                "{field} is {timestamp}; it must be 0 or more (microseconds since 1970)"
            )))
        })
    }
}

impl Timestamps for ReadRequest {
    fn each(
        &self,
        check: &mut dyn FnMut(&'static str, Timestamp) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        self.at.map_or(Ok(()), |at| check("at", at))?;
        self.since.map_or(Ok(()), |since| check("since", since))
    }
}

impl Timestamps for ValueRequest {
    fn each(
        &self,
        check: &mut dyn FnMut(&'static str, Timestamp) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        self.at.map_or(Ok(()), |at| check("at", at))?;
        self.timestamp
            .map_or(Ok(()), |timestamp| check("timestamp", timestamp))
    }
}

impl Timestamps for MutateRequest {
    fn each(
        &self,
        check: &mut dyn FnMut(&'static str, Timestamp) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        self.rows
            .iter()
            .flat_map(|row| &row.mutations)
            .try_for_each(|mutation| match mutation {
                Mutation::Put { timestamp, .. } | Mutation::Merge { timestamp, .. } => {
                    timestamp.map_or(Ok(()), |timestamp| check("timestamp", timestamp))
                }
                Mutation::DeleteCell { timestamp, .. } => check("timestamp", *timestamp),
                Mutation::DeleteColumn {
                    min_timestamp,
                    max_timestamp,
                    ..
                } => {
                    min_timestamp.map_or(Ok(()), |timestamp| check("minTimestamp", timestamp))?;
                    max_timestamp.map_or(Ok(()), |timestamp| check("maxTimestamp", timestamp))
                }
                Mutation::DeleteFamily { .. }
                | Mutation::DeleteRow {}
                | Mutation::Increment { .. }
                | Mutation::Append { .. } => Ok(()),
            })
    }
}

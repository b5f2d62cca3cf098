//! Which rows and versions a subcommand reads: the flags that `scan` and `export` share, and those of `get`.

use std::str::FromStr;

use anyhow::bail;
use bytes::Bytes;
use tablemount_api::name::decode_bytes;
use tablemount_api::time::{InvalidTime, parse_at};
use tablemount_api::{Base64, ReadRequest, RowKey, Timestamp};

use crate::column::{Column, row_key};

/// Which rows.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Rows (keys in the path encoding: %XX stands for a byte)")]
pub(crate) struct RangeArgs {
    /// From this row key on, inclusive.
    #[arg(long, value_name = "KEY", value_parser = row_key)]
    start: Option<RowKey>,
    /// Up to this row key, exclusive.
    #[arg(long, value_name = "KEY", value_parser = row_key)]
    stop: Option<RowKey>,
    /// Row keys that start with this.
    #[arg(long, value_name = "KEY", value_parser = prefix)]
    prefix: Option<Bytes>,
    /// At most this many rows.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// From the highest row key down.
    #[arg(long)]
    reverse: bool,
}

/// Which columns and versions.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Cells")]
pub(crate) struct VersionArgs {
    /// The versions as of a time: microseconds, a date (its end, UTC) or RFC 3339.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = at)]
    pub(crate) at: Option<Timestamp>,
    /// The newest N versions of each column, or `all`.
    #[arg(long, value_name = "N")]
    pub(crate) versions: Option<Versions>,
}

/// A number of versions, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Versions {
    Newest(u32),
    All,
}

impl FromStr for Versions {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text.parse() {
            Ok(n) if n > 0 => Ok(Self::Newest(n)),
            _ if text == "all" => Ok(Self::All),
            _ => bail!("{text:?} is neither a number from 1 on nor \"all\""),
        }
    }
}

impl RangeArgs {
    /// A read of these rows.
    pub(crate) fn request(&self) -> ReadRequest {
        ReadRequest {
            start: self.start.clone(),
            stop: self.stop.clone(),
            prefix: self.prefix.clone().map(Base64),
            reverse: self.reverse,
            row_limit: self.limit,
            ..ReadRequest::default()
        }
    }
}

impl VersionArgs {
    /// Narrows a read to these versions; `default` holds where the command line says nothing.
    pub(crate) fn narrow(&self, request: &mut ReadRequest, default: Versions) {
        request.at = self.at;
        request.versions = match self.versions.unwrap_or(default) {
            Versions::Newest(n) => Some(n),
            Versions::All => None,
        };
    }
}

/// Narrows a read to a column, if there is one.
pub(crate) fn narrow(request: &mut ReadRequest, column: Option<&Column>) {
    if let Some(column) = column {
        column.narrow(request);
    }
}

/// A timestamp of a cell: microseconds, 0 or more.
pub(crate) fn micros(text: &str) -> anyhow::Result<Timestamp> {
    match text.parse() {
        Ok(micros) if micros >= 0 => Ok(Timestamp(micros)),
        _ => bail!(
            "{text:?} is not a timestamp; it is a number of microseconds from 0 to {}",
            i64::MAX
        ),
    }
}

fn at(text: &str) -> Result<Timestamp, InvalidTime> {
    parse_at(text)
}

/// The start of row keys, in the path encoding.
pub(crate) fn prefix(text: &str) -> anyhow::Result<Bytes> {
    Ok(decode_bytes(text)?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_timestamps() {
        assert_eq!(
            "3".parse::<Versions>().expect("number"),
            Versions::Newest(3)
        );
        assert_eq!("all".parse::<Versions>().expect("all"), Versions::All);
        assert_eq!(
            "0".parse::<Versions>().expect_err("none").to_string(),
            "\"0\" is neither a number from 1 on nor \"all\""
        );
        assert_eq!(micros("15").expect("micros"), Timestamp(15));
        assert_eq!(
            micros("-1").expect_err("negative").to_string(),
            "\"-1\" is not a timestamp; it is a number of microseconds from 0 to 9223372036854775807"
        );
    }
}

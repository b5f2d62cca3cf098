//! `tablemount delete`: a row, a family of it, a column, or one version; rows by range.

use std::io::IsTerminal as _;

use anyhow::bail;
use bytes::Bytes;
use tablemount_api::{
    Base64, DeleteRows, MutateRequest, Mutation, RowKey, RowMutation, TableName, Timestamp,
};
use tablemount_client::Client;

use crate::column::{Column, row_key};
use crate::connect::ClientArgs;
use crate::exit::Failure;
use crate::range::{micros, prefix};

/// Delete a row, a family of it, a column, or one version; or all rows of a range
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tablemount delete blogtable TT20080702120000                              the row
  tablemount delete blogtable TT20080702120000 comment_text                 its cells in a family
  tablemount delete blogtable TT20080702120000 info:author                  all versions of a column
  tablemount delete map aaaaa A:foo --timestamp 15                          one version
  tablemount delete blogtable --prefix TT2008                               rows whose key starts so
  tablemount delete blogtable --start TT2008 --stop TT2010                  rows from the first on, before the second
  tablemount delete blogtable --all --yes                                   all rows; the table stays

Deleting what is not there is no error. A range is deleted at once, however many rows are in it.")]
pub(crate) struct Args {
    /// The table.
    table: TableName,
    /// The row key, in the path encoding: %XX stands for a byte.
    #[arg(value_parser = row_key, required_unless_present = "rows")]
    row: Option<RowKey>,
    /// A family or a column; absent: the whole row.
    #[arg(value_name = "FAMILY[:QUALIFIER]")]
    column: Option<Column>,
    /// Only the version with this timestamp, in microseconds.
    #[arg(long, value_name = "MICROS", allow_negative_numbers = true, value_parser = micros)]
    timestamp: Option<Timestamp>,
    #[command(flatten)]
    rows: Rows,
    #[command(flatten)]
    client: ClientArgs,
}

/// Which rows, instead of one.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Rows instead of one (keys in the path encoding)")]
#[group(id = "rows", multiple = true, conflicts_with_all = ["row", "column", "timestamp"])]
struct Rows {
    /// From this row key on, inclusive.
    #[arg(long, value_name = "KEY", value_parser = row_key, conflicts_with_all = ["prefix", "all"])]
    start: Option<RowKey>,
    /// Before this row key, exclusive.
    #[arg(long, value_name = "KEY", value_parser = row_key, conflicts_with_all = ["prefix", "all"])]
    stop: Option<RowKey>,
    /// Row keys that start with this.
    #[arg(long, value_name = "KEY", value_parser = prefix, conflicts_with = "all")]
    prefix: Option<Bytes>,
    /// All rows of the table. Asks first.
    #[arg(long)]
    all: bool,
    /// Do not ask.
    #[arg(long, requires = "all")]
    yes: bool,
}

impl Rows {
    fn request(self) -> DeleteRows {
        DeleteRows {
            start: self.start,
            stop: self.stop,
            prefix: self.prefix.map(Base64),
            all: self.all,
        }
    }
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let client = args.client.client()?;
    let Some(row) = args.row else {
        let (yes, rows) = (args.rows.yes, args.rows.request());
        rows.validate()
            .map_err(|error| Failure::usage(error.to_string()))?;
        if rows.all && !yes {
            confirm(&client, &args.table)?;
        }
        return Ok(client.delete_rows(&args.table, &rows).await?);
    };
    let mutation = mutation(args.column, args.timestamp)?;
    let row = RowMutation {
        row,
        check: None,
        mutations: vec![mutation],
    };
    client
        .mutate(&args.table, &MutateRequest { rows: vec![row] })
        .await?;
    Ok(())
}

fn confirm(client: &Client, table: &TableName) -> anyhow::Result<()> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage(
            "deleting all rows needs --yes where there is no terminal to ask on",
        ));
    }
    eprint!(
        "Delete all rows of table \"{table}\" of {}? Type its name: ",
        client.url()
    );
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    if answer.trim() != table.as_str() {
        bail!("nothing was deleted");
    }
    Ok(())
}

fn mutation(column: Option<Column>, timestamp: Option<Timestamp>) -> anyhow::Result<Mutation> {
    Ok(match (column, timestamp) {
        (
            Some(Column {
                family,
                qualifier: Some(qualifier),
            }),
            Some(timestamp),
        ) => Mutation::DeleteCell {
            family,
            qualifier,
            timestamp,
        },
        (_, Some(_)) => {
            return Err(Failure::usage(
                "--timestamp deletes one version of a column; name FAMILY:QUALIFIER",
            ));
        }
        (
            Some(Column {
                family,
                qualifier: Some(qualifier),
            }),
            None,
        ) => Mutation::DeleteColumn {
            family,
            qualifier,
            min_timestamp: None,
            max_timestamp: None,
        },
        (
            Some(Column {
                family,
                qualifier: None,
            }),
            None,
        ) => Mutation::DeleteFamily { family },
        (None, None) => Mutation::DeleteRow {},
    })
}

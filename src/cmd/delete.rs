//! `tablemount delete`: a row, a family of it, a column, or one version.

use tablemount_api::{MutateRequest, Mutation, RowKey, RowMutation, TableName, Timestamp};

use crate::column::{Column, row_key};
use crate::connect::ClientArgs;
use crate::exit::Failure;
use crate::range::micros;

/// Delete a row, a family of it, a column, or one version
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tablemount delete blogtable TT20080702120000                              the row
  tablemount delete blogtable TT20080702120000 comment_text                 its cells in a family
  tablemount delete blogtable TT20080702120000 info:author                  all versions of a column
  tablemount delete map aaaaa A:foo --timestamp 15                          one version

Deleting what is not there is no error.")]
pub(crate) struct Args {
    /// The table.
    table: TableName,
    /// The row key, in the path encoding: %XX stands for a byte.
    #[arg(value_parser = row_key)]
    row: RowKey,
    /// A family or a column; absent: the whole row.
    #[arg(value_name = "FAMILY[:QUALIFIER]")]
    column: Option<Column>,
    /// Only the version with this timestamp, in microseconds.
    #[arg(long, value_name = "MICROS", allow_negative_numbers = true, value_parser = micros)]
    timestamp: Option<Timestamp>,
    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let mutation = mutation(args.column, args.timestamp)?;
    let row = RowMutation {
        row: args.row,
        check: None,
        mutations: vec![mutation],
    };
    args.client
        .client()?
        .mutate(&args.table, &MutateRequest { rows: vec![row] })
        .await?;
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

//! `tablemount get`: one row, or a part of it.

use std::io::Write as _;

use anyhow::bail;
use futures::StreamExt as _;
use tablemount_api::name::encode_whole;
use tablemount_api::{
    CellContent, ErrorCode, FamilyName, Qualifier, ReadRequest, RowKey, TableName, ValueRequest,
};
use tablemount_client::Client;

use crate::column::{Column, row_key};
use crate::connect::ClientArgs;
use crate::exit::Failure;
use crate::output::{self, Output};
use crate::range::{VersionArgs, Versions, narrow};

use super::scan::RowPrinter;

/// Print a row, or a column of it: the newest version, unless told otherwise
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tablemount get blogtable TT20080702120000
  tablemount get blogtable TT20080702120000 info
  tablemount get blogtable TT20080702120000 text: --versions 3
  tablemount get map aaaaa A:foo --at 10
  tablemount get stocks AAPL price:close --at 2008-07-02
  tablemount get images cat.png data:jpeg --raw > cat.jpeg

Ends with code 3 if there is no such row or cell.")]
pub(crate) struct Args {
    /// The table.
    table: TableName,
    /// The row key, in the path encoding: %XX stands for a byte.
    #[arg(value_parser = row_key)]
    row: RowKey,
    /// FAMILY for all its columns, FAMILY:QUALIFIER for one; `FAMILY:` is the empty qualifier.
    #[arg(value_name = "FAMILY[:QUALIFIER]")]
    column: Option<Column>,
    #[command(flatten)]
    versions: VersionArgs,
    /// The newest value's bytes and nothing else.
    #[arg(long, conflicts_with_all = ["versions", "output"])]
    raw: bool,
    /// The form of the output.
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let client = args.client.client()?;
    match args.raw {
        true => raw(&client, &args).await,
        false => rows(&client, &args).await,
    }
}

fn request(args: &Args) -> ReadRequest {
    let mut request = ReadRequest {
        row: Some(args.row.clone()),
        ..ReadRequest::default()
    };
    narrow(&mut request, args.column.as_ref());
    args.versions.narrow(&mut request, Versions::Newest(1));
    request
}

async fn rows(client: &Client, args: &Args) -> anyhow::Result<()> {
    let mut printer = RowPrinter::new(args.output);
    let mut chunks = client.read_all(&args.table, request(args));
    let mut found = false;
    while let Some(chunk) = chunks.next().await {
        printer.print(&chunk?)?;
        found = true;
    }
    printer.finish()?;
    if found { Ok(()) } else { Err(absent(args)) }
}

async fn raw(client: &Client, args: &Args) -> anyhow::Result<()> {
    let (family, qualifier) = match &args.column {
        Some(Column {
            family,
            qualifier: Some(qualifier),
        }) => (family.clone(), qualifier.clone()),
        _ => only_column(client, args).await?,
    };
    let request = ValueRequest {
        row: args.row.clone(),
        family,
        qualifier,
        at: args.versions.at,
        timestamp: None,
    };
    let value = match client.value(&args.table, &request, None).await {
        Ok(value) => value,
        // A read tells an unknown table or family from an absent cell.
        Err(error) if error.code() == Some(ErrorCode::NotFound) => {
            only_column(client, args).await?;
            return Err(absent(args));
        }
        Err(error) => return Err(error.into()),
    };
    let mut out = output::stdout();
    out.write_all(&value.bytes)?;
    Ok(out.flush()?)
}

/// The one column that the row has, within the family if one was given.
async fn only_column(client: &Client, args: &Args) -> anyhow::Result<(FamilyName, Qualifier)> {
    let request = ReadRequest {
        cells: CellContent::Lengths,
        cell_limit: Some(2),
        ..request(args)
    };
    let page = client.read_page(&args.table, &request).await?;
    let mut cells: Vec<_> = page.rows.into_iter().flat_map(|row| row.cells).collect();
    match (cells.pop(), cells.pop()) {
        (None, _) => Err(absent(args)),
        (Some(cell), None) => Ok((cell.family, cell.qualifier)),
        (Some(second), Some(first)) => bail!(
            "--raw prints one value, but there is more than one column ({}, {}, …); name one",
            output::column(&first),
            output::column(&second)
        ),
    }
}

fn absent(args: &Args) -> anyhow::Error {
    let (row, table) = (encode_whole(args.row.bytes()), &args.table);
    let at = args
        .versions
        .at
        .map(|at| format!(" at or before {at}"))
        .unwrap_or_default();
    match &args.column {
        None if at.is_empty() => {
            Failure::not_found(format!("row \"{row}\" not found in table \"{table}\""))
        }
        None => Failure::not_found(format!(
            "row \"{row}\" of table \"{table}\" has no cell{at}"
        )),
        Some(column) => Failure::not_found(format!(
            "row \"{row}\" of table \"{table}\" has no cell in {column}{at}"
        )),
    }
}

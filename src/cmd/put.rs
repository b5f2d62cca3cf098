//! `tablemount put`: cells of one row, in one atomic change.

use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bytes::Bytes;
use tablemount_api::{
    Base64, FamilySchema, MutateRequest, Mutation, RowKey, RowMutation, TableName, Timestamp,
};

use crate::column::{Assignment, assignment, row_key};
use crate::connect::ClientArgs;
use crate::exit::Failure;
use crate::range::micros;

/// A longer value goes as a body of its own instead of base64 inside JSON.
pub(crate) const LARGE_VALUE_BYTES: usize = 1 << 20;

/// Write cells of a row: all of them or none
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tablemount put blogtable TT20080702120000 info:author=alice 'info:title=Three versions' 'text:=First draft'
  tablemount put map aaaaa A:foo=y --timestamp 15
  tablemount put images cat.png data:jpeg --value-file cat.jpeg
  date | tablemount put log host1 line: --value-file -

The family ends at the first ':', the qualifier at the first '=' after it. A '=' in a qualifier is %3D.")]
pub(crate) struct Args {
    /// The table.
    table: TableName,
    /// The row key, in the path encoding: %XX stands for a byte.
    #[arg(value_parser = row_key)]
    row: RowKey,
    /// The cells; with --value-file one FAMILY:QUALIFIER.
    #[arg(required = true, value_name = "FAMILY:QUALIFIER=VALUE")]
    cells: Vec<OsString>,
    /// Microseconds since 1970; absent: the server's time.
    #[arg(long, value_name = "MICROS", allow_negative_numbers = true, value_parser = micros)]
    timestamp: Option<Timestamp>,
    /// The value is this file's content; `-` is stdin.
    #[arg(long, value_name = "FILE")]
    value_file: Option<PathBuf>,
    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let cells = cells(&args).map_err(|error| Failure::usage(error.to_string()))?;
    let client = args.client.client()?;
    if let Some(file) = &args.value_file {
        let Assignment {
            family, qualifier, ..
        } = &cells[0];
        let value = read_value(file)?;
        if value.len() > LARGE_VALUE_BYTES {
            client
                .put_value(
                    &args.table,
                    &args.row,
                    family,
                    qualifier,
                    args.timestamp,
                    value,
                )
                .await?;
            return Ok(());
        }
        return put(
            &client,
            &args,
            vec![Assignment {
                value: Some(value),
                ..cells[0].clone()
            }],
        )
        .await;
    }
    put(&client, &args, cells).await
}

/// The assignments, each with a value or all waiting for the file's.
fn cells(args: &Args) -> anyhow::Result<Vec<Assignment>> {
    let cells: Vec<Assignment> = args
        .cells
        .iter()
        .map(assignment)
        .collect::<anyhow::Result<_>>()?;
    if args.value_file.is_some() {
        anyhow::ensure!(
            cells.len() == 1 && cells[0].value.is_none(),
            "with --value-file give one FAMILY:QUALIFIER, without a value"
        );
    } else if let Some((text, _)) = args
        .cells
        .iter()
        .zip(&cells)
        .find(|(_, cell)| cell.value.is_none())
    {
        anyhow::bail!(
            "{:?} has no value; write FAMILY:QUALIFIER=VALUE or give --value-file",
            text.to_string_lossy()
        );
    }
    Ok(cells)
}

async fn put(
    client: &tablemount_client::Client,
    args: &Args,
    cells: Vec<Assignment>,
) -> anyhow::Result<()> {
    let mutations = cells
        .into_iter()
        .map(|cell| Mutation::Put {
            family: cell.family,
            qualifier: cell.qualifier,
            timestamp: args.timestamp,
            value: Base64(cell.value.unwrap_or_default()),
        })
        .collect();
    let row = RowMutation {
        row: args.row.clone(),
        check: None,
        mutations,
    };
    client
        .mutate(&args.table, &MutateRequest { rows: vec![row] })
        .await?;
    Ok(())
}

/// The file's content, up to the longest value there can be.
fn read_value(file: &Path) -> anyhow::Result<Bytes> {
    let limit = FamilySchema::MAX_VALUE_BYTES as usize;
    let mut value = Vec::new();
    let read = |reader: &mut dyn std::io::Read, value: &mut Vec<u8>| {
        reader.take(limit as u64 + 1).read_to_end(value)
    };
    let done = match file == Path::new("-") {
        true => read(&mut std::io::stdin().lock(), &mut value),
        false => fs::File::open(file).and_then(|mut opened| read(&mut opened, &mut value)),
    };
    done.with_context(|| format!("read value from {}", file.display()))?;
    anyhow::ensure!(
        value.len() <= limit,
        "value in {} is over {limit} bytes, the limit of a value",
        file.display()
    );
    Ok(value.into())
}

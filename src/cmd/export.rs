//! `tablemount export`: all cells of a range of rows, in a form that `import` reads back.

use std::io::{BufWriter, StdoutLock, Write};

use futures::StreamExt as _;
use tablemount_api::TableName;
use tablemount_client::RowChunk;

use crate::column::Column;
use crate::connect::ClientArgs;
use crate::import::LONG_HEADER;
use crate::output;
use crate::range::{RangeArgs, VersionArgs, Versions, narrow};
use crate::record::Record;

/// Write rows to stdout in a form that `import` reads: all versions, unless told otherwise
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tablemount export blogtable > blogtable.ndjson
  tablemount export stocks --prefix AAPL --format csv
  tablemount export a --server http://old:8080 | tablemount import a - --format ndjson --server http://new:8080

ndjson: one line a row (a long row in several), {\"row\", \"cells\": [{\"family\", \"qualifier\", \"timestamp\", \"value\"}]}; bytes
that are not UTF-8 stand as base64 under rowBase64, qualifierBase64 and valueBase64. Any bytes come back exactly.
csv: one line a cell, row,family,qualifier,timestamp,value, each the bytes as they are, quoted where needed.")]
pub(crate) struct Args {
    /// The table.
    table: TableName,
    #[command(flatten)]
    range: RangeArgs,
    /// Only this column, or all columns of this family.
    #[arg(long, value_name = "FAMILY[:QUALIFIER]")]
    column: Option<Column>,
    #[command(flatten)]
    versions: VersionArgs,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = Format::Ndjson)]
    format: Format,
    #[command(flatten)]
    client: ClientArgs,
}

/// The forms that `export` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// One row a line, as JSON.
    Ndjson,
    /// One cell a line.
    Csv,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let client = args.client.client()?;
    let mut request = args.range.request();
    narrow(&mut request, args.column.as_ref());
    args.versions.narrow(&mut request, Versions::All);
    let mut writer = Writer::new(args.format)?;
    let mut chunks = client.read_all(&args.table, request);
    while let Some(chunk) = chunks.next().await {
        writer.write(&chunk?)?;
    }
    writer.finish()
}

type Out = BufWriter<StdoutLock<'static>>;

enum Writer {
    Ndjson(Out),
    Csv(Box<csv::Writer<Out>>),
}

impl Writer {
    fn new(format: Format) -> anyhow::Result<Self> {
        Ok(match format {
            Format::Ndjson => Self::Ndjson(output::stdout()),
            Format::Csv => {
                let mut writer = csv::Writer::from_writer(output::stdout());
                writer.write_record(LONG_HEADER).map_err(io_error)?;
                Self::Csv(Box::new(writer))
            }
        })
    }

    fn write(&mut self, chunk: &RowChunk) -> anyhow::Result<()> {
        match self {
            Self::Ndjson(out) => {
                serde_json::to_writer(&mut *out, &Record(chunk)).map_err(std::io::Error::from)?;
                out.write_all(b"\n")?;
            }
            Self::Csv(writer) => cells(writer, chunk)?,
        }
        Ok(())
    }

    fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Ndjson(mut out) => out.flush()?,
            Self::Csv(mut writer) => writer.flush()?,
        }
        Ok(())
    }
}

/// The I/O error that it is about: a reader that went away is found out by its kind.
fn io_error(error: csv::Error) -> std::io::Error {
    let shown = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        _ => std::io::Error::other(shown),
    }
}

fn cells(writer: &mut csv::Writer<Out>, chunk: &RowChunk) -> std::io::Result<()> {
    for cell in &chunk.cells {
        let timestamp = cell.timestamp.to_string();
        let value = cell.value.as_ref().map(AsRef::as_ref).unwrap_or_default();
        let family = cell.family.as_str().as_bytes();
        writer
            .write_record([
                chunk.row.as_ref(),
                family,
                cell.qualifier.as_ref(),
                timestamp.as_bytes(),
                value,
            ])
            .map_err(io_error)?;
    }
    Ok(())
}

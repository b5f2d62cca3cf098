//! `tablemount scan`: rows in key order, printed as they come.

use std::io::{BufWriter, IsTerminal as _, StdoutLock, Write as _};

use futures::StreamExt as _;
use tablemount_api::name::encode_whole;
use tablemount_api::{Cell, CellContent, RowKey, TableName};
use tablemount_client::RowChunk;

use crate::column::Column;
use crate::connect::ClientArgs;
use crate::output::{self, Output};
use crate::range::{RangeArgs, VersionArgs, Versions, narrow};
use crate::record::Record;

/// Print rows in key order: the newest version of each column, unless told otherwise
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tablemount scan blogtable --keys-only
  tablemount scan blogtable --prefix TT2008 --column info
  tablemount scan map --start aaaab --stop zzzzz --reverse
  tablemount scan stocks --versions 12 --output json")]
pub(crate) struct Args {
    /// The table.
    table: TableName,
    #[command(flatten)]
    range: RangeArgs,
    /// Row keys only.
    #[arg(long, conflicts_with_all = ["versions", "at", "column"])]
    keys_only: bool,
    /// Only this column, or all columns of this family.
    #[arg(long, value_name = "FAMILY[:QUALIFIER]")]
    column: Option<Column>,
    #[command(flatten)]
    versions: VersionArgs,
    /// The form of the output.
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let client = args.client.client()?;
    let mut request = args.range.request();
    narrow(&mut request, args.column.as_ref());
    match args.keys_only {
        true => request.cells = CellContent::None,
        false => args.versions.narrow(&mut request, Versions::Newest(1)),
    }
    let mut printer = RowPrinter::new(args.output);
    let mut chunks = client.read_all(&args.table, request);
    while let Some(chunk) = chunks.next().await {
        printer.print(&chunk?)?;
    }
    printer.finish()
}

/// Prints rows in the form asked for, holding one chunk at a time.
pub(crate) struct RowPrinter {
    out: BufWriter<StdoutLock<'static>>,
    output: Output,
    terminal: bool,
    last: Option<RowKey>,
}

impl RowPrinter {
    pub(crate) fn new(output: Output) -> Self {
        Self {
            out: output::stdout(),
            output,
            terminal: std::io::stdout().is_terminal(),
            last: None,
        }
    }

    /// Prints a row, or goes on with the one printed last.
    pub(crate) fn print(&mut self, chunk: &RowChunk) -> anyhow::Result<()> {
        match self.output {
            Output::Table => self.text(chunk)?,
            Output::Json => {
                serde_json::to_writer(&mut self.out, &Record(chunk))
                    .map_err(std::io::Error::from)?;
                self.out.write_all(b"\n")?;
            }
            Output::Yaml => {
                write!(self.out, "---\n{}", serde_yaml::to_string(&Record(chunk))?)?;
            }
        }
        if self.terminal {
            self.out.flush()?;
        }
        Ok(())
    }

    /// Sends out what is still in the buffer.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        Ok(self.out.flush()?)
    }

    fn text(&mut self, chunk: &RowChunk) -> anyhow::Result<()> {
        if self.last.as_ref() != Some(&chunk.row) {
            writeln!(self.out, "{}", encode_whole(chunk.row.bytes()))?;
            self.last = Some(chunk.row.clone());
        }
        let columns: Vec<String> = chunk.cells.iter().map(output::column).collect();
        let width = columns
            .iter()
            .map(|column| column.chars().count())
            .filter(|n| *n <= 40)
            .max()
            .unwrap_or(0);
        for (column, cell) in columns.iter().zip(&chunk.cells) {
            writeln!(
                self.out,
                "  {column:width$}  {}  {}",
                cell.timestamp,
                content(cell)
            )?;
        }
        Ok(())
    }
}

fn content(cell: &Cell) -> std::borrow::Cow<'_, str> {
    match (&cell.value, cell.length) {
        (Some(value), _) => output::value(&value.0),
        (None, Some(length)) => format!("({length} bytes)").into(),
        (None, None) => "".into(),
    }
}

//! `tablemount import`: loads CSV or NDJSON into a table.

use std::fs::File;
use std::io::{BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use tablemount_api::{TableName, Timestamp};

use crate::column::Column;
use crate::connect::ClientArgs;
use crate::exit::Failure;
use crate::import::{
    self, CsvOptions, CsvSource, Families, NdjsonSource, Report, Source, TimeFormat,
};
use crate::output;
use crate::range::micros;

/// Load a file into a table
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tablemount import stocks stocks.csv --row symbol --column price=price:close --timestamp date --timestamp-format '%b %d %Y'
  tablemount import users users.csv --family info
  tablemount import blogtable blog.ndjson
  zcat cells.ndjson.gz | tablemount import cells - --format ndjson

csv: the first line names the columns, FAMILY:QUALIFIER or, with --family, QUALIFIER. The row key is the first column or --row.
An empty field is no cell. Fields are taken as they are: nothing is escaped. What `export --format csv` wrote is known by its
header. ndjson: what `export` writes; `tablemount export --help` describes it.

Bad lines are reported with their number and left out; the rest is written and the exit code is 4. An import can be repeated:
cells with the same timestamp are the same cells. Cells that bring none get one timestamp for the whole import, its start; when
an import breaks off, its last line says with which --default-timestamp to repeat it.")]
pub(crate) struct Args {
    /// The table.
    table: TableName,
    /// The file; `-` is stdin.
    file: PathBuf,
    /// The form of the file; absent: by its name.
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Cells without a timestamp get this, in microseconds; absent: the time at the start.
    #[arg(long, value_name = "MICROS", allow_negative_numbers = true, value_parser = micros)]
    default_timestamp: Option<Timestamp>,
    #[command(flatten)]
    csv: CsvArgs,
    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "CSV")]
struct CsvArgs {
    /// The column that holds the row key; absent: the first.
    #[arg(long, value_name = "COL")]
    row: Option<String>,
    /// The family of columns that are not named FAMILY:QUALIFIER.
    #[arg(long, value_name = "F")]
    family: Option<String>,
    /// Where a column goes, if not by its name.
    #[arg(long = "column", value_name = "COL=FAMILY:QUALIFIER", value_parser = column)]
    columns: Vec<(String, Column)>,
    /// A column to leave out.
    #[arg(long, value_name = "COL")]
    skip: Vec<String>,
    /// The column that holds the timestamp of the row's cells.
    #[arg(long, value_name = "COL")]
    timestamp: Option<String>,
    /// Its form, as for `date` and strftime; absent: microseconds, RFC 3339 or a date.
    #[arg(long, value_name = "FMT")]
    timestamp_format: Option<String>,
}

/// The forms that `import` reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// With a header.
    Csv,
    /// One row a line, as JSON.
    Ndjson,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let format = format(&args)?;
    let client = args.client.client()?;
    let (input, length) = open(&args.file)?;
    let table = client.table(&args.table).await?;
    let default_timestamp = args.default_timestamp.unwrap_or_else(now);
    let name = match args.file == Path::new("-") {
        true => "stdin".to_owned(),
        false => args.file.display().to_string(),
    };
    let report = Arc::new(Report::new(name.clone(), length));
    let families = Families::new(&table, default_timestamp);
    let (source, brings_timestamps) =
        source(format, report.track(input), families, args.csv).with_context(|| name.clone())?;
    let loading = import::load(client, args.table, source, Arc::clone(&report));
    let done = tokio::select! {
        done = loading => done.with_context(|| name.clone()),
        _ = tokio::signal::ctrl_c() => Err(anyhow!("interrupted")),
    };
    report.finish();
    let repeat = match brings_timestamps {
        true => "repeat it to write the rest; cells that are there stay the same".to_owned(),
        false => format!(
            "repeat it with --default-timestamp {default_timestamp} to write the same cells and the rest"
        ),
    };
    conclude(done, &report, &repeat)
}

fn conclude(done: anyhow::Result<()>, report: &Report, repeat: &str) -> anyhow::Result<()> {
    if let Err(error) = done {
        return Err(anyhow!(
            "{error:#}; the import stopped after {}; {repeat}",
            report.counts()
        ));
    }
    let mut out = output::stdout();
    let told = writeln!(out, "{}", report.summary()).and_then(|()| out.flush());
    match report.bad_lines() {
        0 => Ok(told?),
        _ => Err(Failure::partial(format!(
            "{}; the bad lines were left out",
            report.counts()
        ))),
    }
}

fn format(args: &Args) -> anyhow::Result<Format> {
    let by_name = || match args.file.extension()?.to_str()? {
        "csv" => Some(Format::Csv),
        "ndjson" | "jsonl" | "json" => Some(Format::Ndjson),
        _ => None,
    };
    let format = args.format.or_else(by_name).ok_or_else(|| {
        Failure::usage(format!(
            "the name of {} does not tell its form; give --format csv or ndjson",
            args.file.display()
        ))
    })?;
    let CsvArgs {
        row,
        family,
        columns,
        skip,
        timestamp,
        timestamp_format,
    } = &args.csv;
    let for_csv = row.is_some()
        || family.is_some()
        || timestamp.is_some()
        || !columns.is_empty()
        || !skip.is_empty();
    if format == Format::Ndjson && (for_csv || timestamp_format.is_some()) {
        return Err(Failure::usage(
            "--row, --family, --column, --skip, --timestamp and --timestamp-format are for csv",
        ));
    }
    if timestamp_format.is_some() && timestamp.is_none() {
        return Err(Failure::usage("--timestamp-format needs --timestamp COL"));
    }
    Ok(format)
}

type Input = Box<dyn Read + Send>;

/// The file and its length, if it has one.
fn open(file: &Path) -> anyhow::Result<(Input, Option<u64>)> {
    if file == Path::new("-") {
        return Ok((Box::new(std::io::stdin()), None));
    }
    let opened = File::open(file).with_context(|| file.display().to_string())?;
    let metadata = opened
        .metadata()
        .with_context(|| file.display().to_string())?;
    if metadata.is_dir() {
        bail!("{} is a directory; give a file", file.display());
    }
    Ok((
        Box::new(opened),
        metadata.is_file().then_some(metadata.len()),
    ))
}

/// The lines, and whether every cell brings its timestamp.
fn source(
    format: Format,
    input: impl Read + Send + 'static,
    families: Families,
    csv: CsvArgs,
) -> anyhow::Result<(Box<dyn Source>, bool)> {
    match format {
        Format::Ndjson => Ok((
            Box::new(NdjsonSource::new(
                BufReader::with_capacity(1 << 16, input),
                families,
            )),
            false,
        )),
        Format::Csv => {
            let source = CsvSource::new(input, families, options(csv))?;
            let brings_timestamps = source.brings_timestamps();
            Ok((Box::new(source), brings_timestamps))
        }
    }
}

fn options(args: CsvArgs) -> CsvOptions {
    CsvOptions {
        row: args.row,
        family: args.family,
        timestamp: args.timestamp,
        time_format: args
            .timestamp_format
            .map_or(TimeFormat::Any, TimeFormat::Pattern),
        columns: args.columns,
        skip: args.skip,
    }
}

/// Server timestamps are whole milliseconds, and so is this.
fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond() * 1000)
}

fn column(text: &str) -> anyhow::Result<(String, Column)> {
    let shape = || anyhow!("it is not COL=FAMILY:QUALIFIER");
    let (name, column) = text.rsplit_once('=').ok_or_else(shape)?;
    let column: Column = column.parse()?;
    column
        .qualifier
        .is_some()
        .then_some((name.to_owned(), column))
        .ok_or_else(shape)
}

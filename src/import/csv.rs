//! CSV with a header: one row a line, its columns named by the header; or, as `export` writes it, one cell a line.
//!
//! Fields are bytes as they are; nothing is escaped but by CSV's quotes. An empty field of a row is no cell.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use anyhow::{Context as _, anyhow, bail, ensure};
use bytes::Bytes;
use csv::ByteRecord;
use tablemount_api::{Mutation, Qualifier, RowKey, RowMutation};

use super::{Families, LONG_HEADER, Line, MAX_RECORD_BYTES, Source, TimeFormat};
use crate::column::Column;

/// What the command line says of the columns.
#[derive(Debug, Clone)]
pub(crate) struct CsvOptions {
    /// The column that holds the row key; absent: the first.
    pub(crate) row: Option<String>,
    /// The family of columns that name none.
    pub(crate) family: Option<String>,
    /// The column that holds the timestamp.
    pub(crate) timestamp: Option<String>,
    /// How it is written.
    pub(crate) time_format: TimeFormat,
    /// Where columns go that are not to go by their name.
    pub(crate) columns: Vec<(String, Column)>,
    /// Columns to leave out.
    pub(crate) skip: Vec<String>,
}

/// Reads CSV.
pub(crate) struct CsvSource<R> {
    reader: csv::Reader<Bounded<R>>,
    left: Arc<AtomicUsize>,
    record: ByteRecord,
    layout: Layout,
    columns: usize,
    time_format: TimeFormat,
    families: Families,
}

/// What the header says.
enum Layout {
    /// One row a line.
    Wide {
        row: usize,
        timestamp: Option<usize>,
        cells: Vec<WideCell>,
    },
    /// One cell a line.
    Long,
}

struct WideCell {
    index: usize,
    family: String,
    qualifier: Qualifier,
}

impl<R: Read> CsvSource<R> {
    /// Reads the header and refuses what it cannot place.
    pub(crate) fn new(input: R, families: Families, options: CsvOptions) -> anyhow::Result<Self> {
        let left = Arc::new(AtomicUsize::new(MAX_RECORD_BYTES));
        let bounded = Bounded {
            input,
            left: Arc::clone(&left),
        };
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .buffer_capacity(1 << 16)
            .from_reader(bounded);
        let header = reader.byte_headers().context("read header")?.clone();
        let layout = layout(&header, &families, &options)?;
        let time_format = options.time_format;
        Ok(Self {
            reader,
            left,
            record: ByteRecord::new(),
            layout,
            columns: header.len(),
            time_format,
            families,
        })
    }

    /// Whether cells get the default timestamp.
    pub(crate) fn brings_timestamps(&self) -> bool {
        !matches!(
            self.layout,
            Layout::Wide {
                timestamp: None,
                ..
            }
        )
    }

    fn row(&self) -> anyhow::Result<RowMutation> {
        let record = &self.record;
        ensure!(
            record.len() == self.columns,
            "{} fields; the header has {}",
            record.len(),
            self.columns
        );
        // One copy for the line; its fields share it.
        let bytes = Bytes::copy_from_slice(record.as_slice());
        let field = |index: usize| {
            record
                .range(index)
                .map_or_else(Bytes::new, |range| bytes.slice(range))
        };
        match &self.layout {
            Layout::Wide {
                row,
                timestamp,
                cells,
            } => {
                let key = RowKey::new(field(*row))?;
                let timestamp = timestamp
                    .map(|index| self.time_format.micros(&field(index)))
                    .transpose()?;
                let full = cells
                    .iter()
                    .filter(|cell| !record.get(cell.index).unwrap_or_default().is_empty());
                let put = |cell: &WideCell| {
                    self.families.put(
                        &cell.family,
                        cell.qualifier.clone(),
                        timestamp,
                        field(cell.index),
                    )
                };
                let mutations = full.map(put).collect::<anyhow::Result<Vec<_>>>()?;
                ensure!(
                    !mutations.is_empty(),
                    "the row has no cells: all its fields are empty"
                );
                Ok(RowMutation {
                    row: key,
                    check: None,
                    mutations,
                })
            }
            Layout::Long => {
                let key = RowKey::new(field(0))?;
                Ok(RowMutation {
                    row: key,
                    check: None,
                    mutations: vec![self.long_cell(field)?],
                })
            }
        }
    }

    fn long_cell(&self, field: impl Fn(usize) -> Bytes) -> anyhow::Result<Mutation> {
        let family = field(1);
        let timestamp = self.time_format.micros(&field(3))?;
        self.families.put(
            &String::from_utf8_lossy(&family),
            Qualifier::new(field(2))?,
            Some(timestamp),
            field(4),
        )
    }
}

impl<R: Read + Send> Source for CsvSource<R> {
    fn next(&mut self) -> anyhow::Result<Option<Line>> {
        self.left.store(MAX_RECORD_BYTES, Relaxed);
        let number = self.reader.position().line();
        let read = self.reader.read_byte_record(&mut self.record);
        if !read.with_context(|| format!("record from line {number} on"))? {
            return Ok(None);
        }
        let number = self.record.position().map_or(number, csv::Position::line);
        Ok(Some(match self.row() {
            Ok(row) => Line::Row { number, row },
            Err(error) => Line::Bad {
                number,
                reason: format!("{error:#}"),
            },
        }))
    }
}

fn layout(
    header: &ByteRecord,
    families: &Families,
    options: &CsvOptions,
) -> anyhow::Result<Layout> {
    let names: Vec<&str> = header
        .iter()
        .map(|name| str::from_utf8(name).map_err(|_| anyhow!("column name {name:?} is not UTF-8")))
        .collect::<anyhow::Result<_>>()?;
    ensure!(
        !names.is_empty(),
        "the file is empty; its first line must name the columns"
    );
    if let Some((index, twice)) = names
        .iter()
        .enumerate()
        .find(|(index, name)| names[..*index].contains(name))
    {
        bail!(
            "column {twice:?} stands twice, the second time as column {}",
            index + 1
        );
    }
    if names == LONG_HEADER
        && options.row.is_none()
        && options.family.is_none()
        && options.timestamp.is_none()
    {
        return Ok(Layout::Long);
    }
    let find = |name: &String| {
        let position = names.iter().position(|known| known == name);
        position.ok_or_else(|| anyhow!("column {name:?} not found (columns: {})", quoted(&names)))
    };
    for name in options
        .columns
        .iter()
        .map(|(name, _)| name)
        .chain(&options.skip)
    {
        find(name)?;
    }
    let row = options.row.as_ref().map_or(Ok(0), find)?;
    let timestamp = options.timestamp.as_ref().map(find).transpose()?;
    let mut cells = Vec::new();
    for (index, name) in names.iter().enumerate() {
        if index != row && Some(index) != timestamp && !options.skip.iter().any(|skip| skip == name)
        {
            let (family, qualifier) = place(name, options)?;
            cells.push(WideCell {
                index,
                family: families.find(&family)?.to_string(),
                qualifier,
            });
        }
    }
    ensure!(
        !cells.is_empty(),
        "no column is left for cells (columns: {})",
        quoted(&names)
    );
    Ok(Layout::Wide {
        row,
        timestamp,
        cells,
    })
}

/// Where a column's values go.
fn place(name: &str, options: &CsvOptions) -> anyhow::Result<(String, Qualifier)> {
    if let Some((_, column)) = options.columns.iter().find(|(known, _)| known == name) {
        return Ok((
            column.family.to_string(),
            column.qualifier.clone().unwrap_or_default(),
        ));
    }
    if let Some(family) = &options.family {
        return Ok((family.clone(), Qualifier::new(name.as_bytes().to_vec())?));
    }
    match name.split_once(':') {
        Some((family, qualifier)) => Ok((
            family.to_owned(),
            Qualifier::new(qualifier.as_bytes().to_vec())?,
        )),
        None => bail!(
            "column {name:?} is not FAMILY:QUALIFIER; give --family for such columns, --column {name}=FAMILY:QUALIFIER \
             or --skip {name}"
        ),
    }
}

fn quoted(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("{name:?}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// A reader that ends in an error when one record takes more than it may: a quote that is never closed would otherwise take
/// the whole file into memory.
struct Bounded<R> {
    input: R,
    left: Arc<AtomicUsize>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.load(Relaxed);
        if left == 0 {
            return Err(io::Error::other(format!(
                "over {MAX_RECORD_BYTES} bytes; is a quote not closed?"
            )));
        }
        let room = buffer.len().min(left);
        let read = self.input.read(&mut buffer[..room])?;
        self.left.store(left - read, Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;

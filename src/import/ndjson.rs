//! NDJSON: one JSON object a line, in the form of [`crate::record`].

use std::io::{BufRead, Read as _};

use anyhow::{Context as _, bail, ensure};
use tablemount_api::RowMutation;

use super::{Families, Line, MAX_RECORD_BYTES, Source};
use crate::record::{CellLine, RowLine};

/// Reads NDJSON; blank lines are passed over.
pub(crate) struct NdjsonSource<R> {
    reader: R,
    families: Families,
    number: u64,
    buffer: Vec<u8>,
}

impl<R: BufRead> NdjsonSource<R> {
    pub(crate) fn new(reader: R, families: Families) -> Self {
        Self {
            reader,
            families,
            number: 0,
            buffer: Vec::new(),
        }
    }

    fn row(&self) -> anyhow::Result<RowMutation> {
        let mut line: RowLine = serde_json::from_slice(&self.buffer).map_err(without_line)?;
        let row = line.row()?;
        ensure!(!line.cells.is_empty(), "the row has no cells");
        let mutations = line
            .cells
            .into_iter()
            .map(|cell| self.cell(cell))
            .collect::<anyhow::Result<_>>()?;
        Ok(RowMutation {
            row,
            check: None,
            mutations,
        })
    }

    fn cell(&self, mut cell: CellLine) -> anyhow::Result<tablemount_api::Mutation> {
        let (qualifier, value) = (cell.qualifier()?, cell.value()?);
        self.families
            .put(&cell.family, qualifier, cell.timestamp, value)
    }
}

impl<R: BufRead + Send> Source for NdjsonSource<R> {
    fn next(&mut self) -> anyhow::Result<Option<Line>> {
        loop {
            self.buffer.clear();
            self.number += 1;
            let limit = MAX_RECORD_BYTES as u64 + 1;
            let read = (&mut self.reader)
                .take(limit)
                .read_until(b'\n', &mut self.buffer)
                .context("read")?;
            match read {
                0 => return Ok(None),
                n if n > MAX_RECORD_BYTES => {
                    bail!("line {} is over {MAX_RECORD_BYTES} bytes", self.number)
                }
                _ if self.buffer.trim_ascii().is_empty() => continue,
                _ => {}
            }
            let number = self.number;
            return Ok(Some(match self.row() {
                Ok(row) => Line::Row { number, row },
                Err(error) => Line::Bad {
                    number,
                    reason: format!("{error:#}"),
                },
            }));
        }
    }
}

/// Serde counts lines within what it was given, which is always one: only the column tells something.
fn without_line(error: serde_json::Error) -> anyhow::Error {
    anyhow::Error::msg(error.to_string().replace("at line 1 column", "at column"))
}

#[cfg(test)]
mod tests {
    use super::super::families::tests::families;
    use super::*;

    fn lines(text: &str) -> Vec<Line> {
        let mut source = NdjsonSource::new(text.as_bytes(), families());
        std::iter::from_fn(|| source.next().expect("readable")).collect()
    }

    #[test]
    fn good_and_bad_lines_have_their_numbers() {
        let text = "\n{\"row\":\"a\",\"cells\":[{\"family\":\"info\",\"value\":\"v\"}]}\n{\"row\":\"b\"}\nnonsense\n\
                    {\"row\":\"c\",\"cells\":[{\"family\":\"nope\",\"value\":\"\"}]}\n\
                    {\"row\":\"d\",\"cells\":[{\"family\":\"info\",\"valueBase64\":\"*\"}]}";
        let lines = lines(text);
        assert!(matches!(&lines[0], Line::Row { number: 2, row } if row.mutations.len() == 1));
        let bad: Vec<(u64, &str)> = lines[1..]
            .iter()
            .map(|line| match line {
                Line::Bad { number, reason } => (*number, reason.as_str()),
                Line::Row { .. } => panic!("{line:?}"),
            })
            .collect();
        assert_eq!(bad[0], (3, "the row has no cells"));
        assert_eq!(bad[1], (4, "expected ident at column 2"));
        assert_eq!(
            bad[2],
            (
                5,
                "column family \"nope\" not found in table \"t\" (families: \"info\", \"text\")"
            )
        );
        assert!(
            bad[3].0 == 6 && bad[3].1.starts_with("\"*\" is not standard base64"),
            "{:?}",
            bad[3]
        );
    }
}

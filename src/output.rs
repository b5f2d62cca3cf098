//! What goes to stdout: the forms to choose from, cells for people to read, and a buffered writer.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};

use serde::Serialize;
use tablemount_api::Cell;
use tablemount_api::name::encode_whole;

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    /// For people.
    Table,
    /// JSON; rows one a line, in the form that `import` reads.
    Json,
    /// YAML; rows one a document.
    Yaml,
}

/// The most of a value that the form for people shows.
const SHOWN_VALUE_BYTES: usize = 1024;

/// Stdout with a buffer. Whoever writes flushes, so that no error is lost.
pub(crate) fn stdout() -> BufWriter<io::StdoutLock<'static>> {
    BufWriter::with_capacity(64 << 10, io::stdout().lock())
}

/// One line on stdout, at once; for what runs on. That nobody reads it any more is no reason to stop.
pub(crate) fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Runs what writes a dump to stdout.
pub(crate) fn dump(
    write: impl FnOnce(&mut dyn Write) -> Result<(), tablemount_engine::Error>,
) -> anyhow::Result<()> {
    let mut out = Pipe {
        out: stdout(),
        failed: None,
    };
    let dumped = write(&mut out);
    // That the reader went away is not the file's fault.
    match out.failed.take() {
        Some(error) => Err(error.into()),
        None => {
            out.out.flush()?;
            Ok(dumped?)
        }
    }
}

/// Keeps the error of a write as it was.
struct Pipe<W> {
    out: W,
    failed: Option<io::Error>,
}

impl<W: Write> Write for Pipe<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes).map_err(|error| {
            let kind = error.kind();
            self.failed = Some(error);
            kind.into()
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// One object as JSON or YAML.
pub(crate) fn print<T: Serialize>(value: &T, json: bool) -> anyhow::Result<()> {
    let mut out = stdout();
    match json {
        true => writeln!(out, "{}", serde_json::to_string_pretty(value)?)?,
        false => write!(out, "{}", serde_yaml::to_string(value)?)?,
    }
    Ok(out.flush()?)
}

/// Rows of text in columns as wide as their widest field, the first row being the heading.
pub(crate) fn print_columns(rows: &[Vec<String>]) -> anyhow::Result<()> {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| Some(row.get(column)?.chars().count()))
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = stdout();
    for row in rows {
        let mut line = String::new();
        for (field, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{field:width$}   ");
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(out.flush()?)
}

/// A column as it is typed: `FAMILY:QUALIFIER`, the empty qualifier as nothing.
pub(crate) fn column(cell: &Cell) -> String {
    let qualifier = cell.qualifier.bytes();
    match qualifier.is_empty() {
        true => format!("{}:", cell.family),
        false => format!("{}:{}", cell.family, encode_whole(qualifier)),
    }
}

/// A value in one line: text as it is, other bytes as `\xNN`; a long one is cut, and says so.
pub(crate) fn value(bytes: &[u8]) -> Cow<'_, str> {
    let shown = &bytes[..bytes.len().min(SHOWN_VALUE_BYTES)];
    if let Ok(text) = str::from_utf8(shown)
        && shown.len() == bytes.len()
        && !text.contains(|c: char| c == '\\' || is_hidden(c))
    {
        return text.into();
    }
    let mut text = escape(shown, shown.len() < bytes.len());
    if shown.len() < bytes.len() {
        let _ = write!(text, "… ({} bytes)", bytes.len());
    }
    text.into()
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn escape(bytes: &[u8], cut: bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                c if is_hidden(c) => text.extend(c.escape_default()),
                c => text.push(c),
            }
        }
        // A character that the cut went through is left out.
        let halved = cut
            && chunks.peek().is_none()
            && chunk.invalid().len() < 4
            && !chunk.invalid().is_empty();
        for byte in chunk.invalid().iter().filter(|_| !halved) {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_one_line_and_never_touch_the_terminal() {
        let check = |bytes: &[u8], expected: &str| assert_eq!(value(bytes), expected);
        check(b"", "");
        check("Zürich".as_bytes(), "Zürich");
        check(b"a\nb\tc", "a\\nb\\tc");
        check(b"C:\\x", "C:\\\\x");
        check(b"\x1b[31m", "\\u{1b}[31m");
        check(b"a\xff\x00", "a\\xff\\u{0}");
        let long = "é".repeat(1000);
        assert_eq!(
            value(long.as_bytes()),
            format!("{}… (2000 bytes)", "é".repeat(512))
        );
        let odd = format!("x{long}");
        assert_eq!(
            value(odd.as_bytes()),
            format!("x{}… (2001 bytes)", "é".repeat(511))
        );
    }
}

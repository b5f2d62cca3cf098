//! A row as one line of JSON: what `export`, `scan` and `get` write and `import` reads.
//!
//! ```json
//! {"row":"AA20080702120000","cells":[{"family":"info","qualifier":"author","timestamp":1215000000000000,"value":"alice"}]}
//! ```
//! `row`, `qualifier` and `value` are text; bytes that are not UTF-8 stand as base64 under `rowBase64`, `qualifierBase64` and
//! `valueBase64` instead. A line may hold a part of a row; the next one goes on.
//!
//! **Invariant**: what [`RowLine`] reads from what [`Record`] wrote are the same bytes; proved by the property test below.

use anyhow::{Context as _, anyhow, bail};
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Serialize, Serializer};
use tablemount_api::{Base64, Cell, Qualifier, RowKey};
use tablemount_client::RowChunk;

/// A row, or a part of it, to be written.
pub(crate) struct Record<'a>(pub(crate) &'a RowChunk);

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        entry(&mut map, "row", "rowBase64", self.0.row.bytes())?;
        if !self.0.cells.is_empty() {
            map.serialize_entry("cells", &Cells(&self.0.cells))?;
        }
        map.end()
    }
}

struct Cells<'a>(&'a [Cell]);

impl Serialize for Cells<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for cell in self.0 {
            list.serialize_element(&OneCell(cell))?;
        }
        list.end()
    }
}

struct OneCell<'a>(&'a Cell);

impl Serialize for OneCell<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let cell = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("family", cell.family.as_str())?;
        entry(
            &mut map,
            "qualifier",
            "qualifierBase64",
            cell.qualifier.bytes(),
        )?;
        map.serialize_entry("timestamp", &cell.timestamp)?;
        if let Some(value) = &cell.value {
            entry(&mut map, "value", "valueBase64", &value.0)?;
        }
        map.end()
    }
}

fn entry<M: SerializeMap>(
    map: &mut M,
    text: &'static str,
    base64: &'static str,
    bytes: &[u8],
) -> Result<(), M::Error> {
    // Most control characters take six bytes as JSON text: where many are, base64 is shorter, and fits a line of any import.
    let six = |byte: &&u8| **byte < b' ' && !b"\n\r\t".contains(byte);
    let binary = bytes.len() > 1024 && bytes.iter().filter(six).count() > bytes.len() / 16;
    match str::from_utf8(bytes) {
        Ok(value) if !binary => map.serialize_entry(text, value),
        _ => map.serialize_entry(base64, &AsBase64(bytes)),
    }
}

struct AsBase64<'a>(&'a [u8]);

impl Serialize for AsBase64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(self.0, &STANDARD))
    }
}

/// A line as it is read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RowLine {
    row: Option<String>,
    row_base64: Option<Base64>,
    #[serde(default)]
    pub(crate) cells: Vec<CellLine>,
}

/// A cell of a line.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CellLine {
    pub(crate) family: String,
    qualifier: Option<String>,
    qualifier_base64: Option<Base64>,
    pub(crate) timestamp: Option<i64>,
    value: Option<String>,
    value_base64: Option<Base64>,
}

impl RowLine {
    /// The row key.
    pub(crate) fn row(&mut self) -> anyhow::Result<RowKey> {
        let bytes =
            either("row", self.row.take(), self.row_base64.take())?.context("row is missing")?;
        Ok(RowKey::new(bytes)?)
    }
}

impl CellLine {
    /// The qualifier; absent is empty.
    pub(crate) fn qualifier(&mut self) -> anyhow::Result<Qualifier> {
        let bytes = either(
            "qualifier",
            self.qualifier.take(),
            self.qualifier_base64.take(),
        )?;
        Ok(Qualifier::new(bytes.unwrap_or_default())?)
    }

    /// The value.
    pub(crate) fn value(&mut self) -> anyhow::Result<Bytes> {
        either("value", self.value.take(), self.value_base64.take())?
            .ok_or_else(|| anyhow!("a cell in column family \"{}\" has no value", self.family))
    }
}

fn either(
    name: &str,
    text: Option<String>,
    base64: Option<Base64>,
) -> anyhow::Result<Option<Bytes>> {
    match (text, base64) {
        (Some(_), Some(_)) => bail!("both {name} and {name}Base64 are given"),
        (Some(text), None) => Ok(Some(text.into())),
        (None, base64) => Ok(base64.map(|bytes| bytes.0)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tablemount_api::{FamilyName, Timestamp};

    use super::*;

    fn chunk(row: &[u8], qualifier: &[u8], timestamp: i64, value: &[u8]) -> RowChunk {
        let cell = Cell {
            family: FamilyName::new("f").expect("name"),
            qualifier: Qualifier::new(qualifier.to_vec()).expect("qualifier"),
            timestamp: Timestamp(timestamp),
            value: Some(Base64(value.to_vec().into())),
            length: None,
        };
        RowChunk {
            row: RowKey::new(row.to_vec()).expect("row key"),
            cells: vec![cell],
        }
    }

    #[test]
    fn text_is_text_and_other_bytes_are_base64() {
        let line = |row: &[u8]| {
            serde_json::to_string(&Record(&chunk(row, b"", 15, b"a\n"))).expect("json")
        };
        assert_eq!(
            line(b"r%"),
            r#"{"row":"r%","cells":[{"family":"f","qualifier":"","timestamp":15,"value":"a\n"}]}"#
        );
        assert!(line(b"\xff").starts_with(r#"{"rowBase64":"/w==","cells""#));
    }

    #[test]
    fn what_is_no_row_is_named() {
        let check = |line: &str, expected: &str| {
            let read = serde_json::from_str::<RowLine>(line).map_err(anyhow::Error::from);
            let error = read
                .and_then(|mut line| line.row().map(|_| ()))
                .expect_err("no row");
            assert_eq!(error.to_string(), expected);
        };
        check(r#"{"cells":[]}"#, "row is missing");
        check(
            r#"{"row":"a","rowBase64":"YQ=="}"#,
            "both row and rowBase64 are given",
        );
        check(
            r#"{"row":""}"#,
            "row key is empty; a row key has 1 to 65536 bytes",
        );
        check(
            r#"{"row":"a","cell":[]}"#,
            "unknown field `cell`, expected one of `row`, `rowBase64`, `cells` at line 1 column 17",
        );
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(
            row in proptest::collection::vec(any::<u8>(), 1..50),
            qualifier in proptest::collection::vec(any::<u8>(), 0..50),
            value in proptest::collection::vec(any::<u8>(), 0..50),
            timestamp in 0..i64::MAX,
        ) {
            let written = serde_json::to_vec(&Record(&chunk(&row, &qualifier, timestamp, &value))).expect("json");
            let mut read: RowLine = serde_json::from_slice(&written).expect("what was written");
            let key = read.row().expect("row");
            prop_assert_eq!(key.bytes(), &row);
            let cell = &mut read.cells[0];
            let read_qualifier = cell.qualifier().expect("qualifier");
            prop_assert_eq!(read_qualifier.bytes(), &qualifier);
            prop_assert_eq!(cell.value().expect("value"), value);
            prop_assert_eq!(cell.timestamp, Some(timestamp));
        }
    }
}

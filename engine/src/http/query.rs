//! Query strings: the same fields as in the JSON bodies, brought into the same JSON and decoded by the same types.
//!
//! Byte fields hold the bytes themselves, percent-encoded (a plus sign is a plus sign), lists are separated by commas,
//! positions are JSON.
//!
//! **Invariants**: a field that the type does not know, or that stands twice, is refused.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::app::App;
use super::refusal::Refusal;

/// How a field is written in a query string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bytes,
    Json,
    List,
    Text,
}

/// The kinds of all fields; what is not named here is text.
const KINDS: &[(Kind, &[&str])] = &[
    (
        Kind::Bytes,
        &[
            "row",
            "start",
            "stop",
            "prefix",
            "qualifier",
            "qualifierStart",
            "qualifierStop",
            "qualifierPrefix",
        ],
    ),
    (
        Kind::Json,
        &[
            "reverse",
            "after",
            "at",
            "since",
            "timestamp",
            "versions",
            "columnsPerFamily",
            "rowLimit",
            "cellLimit",
        ],
    ),
    (Kind::List, &["families"]),
];

/// The query string as a `T`.
pub(crate) struct Query<T>(pub(crate) T);

/// A query string without fields.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoFields {}

impl<T: DeserializeOwned> FromRequestParts<Arc<App>> for Query<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, Refusal> {
        decode(fields(parts.uri.query().unwrap_or_default())?).map(Self)
    }
}

/// The query string as JSON.
pub(crate) fn fields(query: &str) -> Result<Map<String, Value>, Refusal> {
    let mut fields = Map::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, text) = pair.split_once('=').unwrap_or((pair, ""));
        let name = percent_decode_str(name).decode_utf8_lossy().into_owned();
        let value = value(&name, text)?;
        if fields.contains_key(&name) {
            return Err(Refusal::invalid(format!(
                "query field {name:?} stands twice"
            )));
        }
        fields.insert(name, value);
    }
    Ok(fields)
}

/// Decodes fields as JSON bodies are.
pub(crate) fn decode<T: DeserializeOwned>(fields: Map<String, Value>) -> Result<T, Refusal> {
    T::deserialize(Value::Object(fields))
        .map_err(|error| Refusal::invalid(format!("query: {error}")))
}

fn kind(name: &str) -> Kind {
    KINDS
        .iter()
        .find(|(_, names)| names.contains(&name))
        .map_or(Kind::Text, |(kind, _)| *kind)
}

fn value(name: &str, text: &str) -> Result<Value, Refusal> {
    let bytes: Vec<u8> = percent_decode_str(text).collect();
    let kind = kind(name);
    if kind == Kind::Bytes {
        return Ok(Value::String(STANDARD.encode(bytes)));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Refusal::invalid(format!("query field {name:?} is not UTF-8")))?;
    match kind {
        Kind::List => Ok(text
            .split(',')
            .map(str::to_owned)
            .map(Value::String)
            .collect()),
        Kind::Json => serde_json::from_str(&text).map_err(|_| {
            let shown: String = text.chars().take(40).collect();
            Refusal::invalid(format!(
                "query field {name:?}: {shown:?} is neither a number, true, false nor JSON"
            ))
        }),
        Kind::Bytes | Kind::Text => Ok(Value::String(text)),
    }
}

/// Whether the field's text stands for bytes.
pub(crate) fn is_bytes(name: &str) -> bool {
    kind(name) == Kind::Bytes
}

#[cfg(test)]
mod tests {
    use tablemount_api::{
        CellContent, DropTable, FamilyName, Position, ReadRequest, RowKey, Timestamp,
    };

    use super::*;

    #[test]
    fn a_query_is_the_same_request_as_the_json() {
        let query = "row=a%2F%00%ff+b&families=f,g&at=5&versions=2&reverse=true&cells=lengths\
                     &after=%7B%22row%22%3A%22YQ%3D%3D%22%7D";
        let request: ReadRequest = fields(query).and_then(decode).expect("valid");
        let family = |name| FamilyName::new(name).expect("valid");
        let expected = ReadRequest {
            row: Some(RowKey::new(&b"a/\0\xff+b"[..]).expect("valid")),
            families: vec![family("f"), family("g")],
            at: Some(Timestamp(5)),
            versions: Some(2),
            reverse: true,
            cells: CellContent::Lengths,
            after: Some(Position {
                row: RowKey::new("a").expect("valid"),
                cell: None,
            }),
            ..ReadRequest::default()
        };
        assert_eq!(request, expected);
        let drop: DropTable = fields("ifUid=12").and_then(decode).expect("valid");
        assert_eq!(
            drop.if_uid.as_deref(),
            Some("12"),
            "a uid of digits stays text"
        );
    }

    #[test]
    fn every_field_of_a_read_has_its_kind() {
        let all = ReadRequest {
            row: RowKey::new("a").ok(),
            start: RowKey::new("a").ok(),
            stop: RowKey::new("a").ok(),
            prefix: Some(Default::default()),
            qualifier: Some(Default::default()),
            qualifier_start: Some(Default::default()),
            qualifier_stop: Some(Default::default()),
            qualifier_prefix: Some(Default::default()),
            reverse: true,
            after: Some(Position {
                row: RowKey::new("a").expect("valid"),
                cell: None,
            }),
            families: vec![FamilyName::new("f").expect("valid")],
            at: Some(Timestamp(1)),
            since: Some(Timestamp(1)),
            versions: Some(1),
            columns_per_family: Some(1),
            cells: CellContent::None,
            row_limit: Some(1),
            cell_limit: Some(1),
        };
        let Ok(Value::Object(fields)) = serde_json::to_value(&all) else {
            panic!("not an object")
        };
        for (name, value) in fields {
            let right = match kind(&name) {
                Kind::Bytes => value
                    .as_str()
                    .is_some_and(|text| STANDARD.decode(text).is_ok()),
                Kind::Json => !value.is_string() && !value.is_array(),
                Kind::List => value.is_array(),
                Kind::Text => name == "cells",
            };
            assert!(right, "{name}");
        }
    }

    #[test]
    fn bad_fields_are_named() {
        let check = |query: &str, expected: &str| {
            let error = fields(query)
                .and_then(decode::<ReadRequest>)
                .expect_err("refused");
            assert!(error.0.message.starts_with(expected), "{}", error.0.message);
        };
        check(
            "rows=a",
            "query: unknown field `rows`, expected one of `row`, `start`",
        );
        check("row=a&row=b", "query field \"row\" stands twice");
        check(
            "at=noon",
            "query field \"at\": \"noon\" is neither a number, true, false nor JSON",
        );
        check(
            "row=",
            "query: row key is empty; a row key has 1 to 65536 bytes",
        );
        check("families=a%ff", "query field \"families\" is not UTF-8");
        check(
            "families=a:b",
            "query: column family name \"a:b\" is not 1 to 64 of",
        );
        check(
            "versions=-1",
            "query: invalid value: integer `-1`, expected u32",
        );
        check(
            "cells=all",
            "query: unknown variant `all`, expected one of `values`, `lengths`, `none`",
        );
    }
}

use std::sync::Arc;

use prost::Message as _;

use super::*;

/// The message as any client sees it.
#[derive(Clone, PartialEq, prost::Message)]
struct Response {
    #[prost(message, repeated, tag = "1")]
    chunks: Vec<Chunk>,
    #[prost(bytes = "vec", tag = "2")]
    last_scanned_row_key: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Chunk {
    #[prost(bytes = "vec", tag = "1")]
    row_key: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    family_name: Option<String>,
    #[prost(message, optional, tag = "3")]
    qualifier: Option<Vec<u8>>,
    #[prost(int64, tag = "4")]
    timestamp_micros: i64,
    #[prost(string, repeated, tag = "5")]
    labels: Vec<String>,
    #[prost(bytes = "vec", tag = "6")]
    value: Vec<u8>,
    #[prost(int32, tag = "7")]
    value_size: i32,
    #[prost(bool, tag = "9")]
    commit_row: bool,
}

fn chunks() -> Chunks {
    Chunks::new(vec!["f".into(), "g".into()])
}

fn cell<'a>(family: usize, qualifier: &'a [u8], timestamp: i64, value: &'a [u8]) -> Cell<'a> {
    Cell {
        family,
        qualifier,
        timestamp,
        value,
        label: None,
    }
}

fn decoded(messages: Vec<ReadRowsMessage>) -> Vec<Response> {
    let decode = |message: ReadRowsMessage| {
        assert!(message.0.len() <= ROW_MESSAGE_BYTES, "{}", message.0.len());
        Response::decode(message.0).expect("a message")
    };
    messages.into_iter().map(decode).collect()
}

/// The rows of messages, as a client puts them together: `row f:q@1000=v`, and labels behind the value.
pub(in crate::bigtable) fn rows_of(messages: Vec<ReadRowsMessage>) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (mut rows, mut row) = (Vec::new(), None::<String>);
    let (mut family, mut qualifier, mut in_value) = (String::new(), String::new(), false);
    for chunk in decoded(messages)
        .into_iter()
        .flat_map(|response| response.chunks)
    {
        if !chunk.row_key.is_empty() {
            assert_eq!(row, None, "the row before is committed");
            row = Some(text(&chunk.row_key));
        }
        let row_text = row.as_mut().expect("a row has begun");
        if let Some(name) = chunk.family_name {
            assert!(chunk.qualifier.is_some(), "a family begins with its column");
            family = name;
        }
        if let Some(bytes) = &chunk.qualifier {
            qualifier = text(bytes);
        }
        if !in_value {
            row_text.push_str(&format!(
                " {family}:{qualifier}@{}=",
                chunk.timestamp_micros
            ));
        }
        row_text.push_str(&text(&chunk.value));
        in_value = chunk.value_size > 0;
        chunk
            .labels
            .iter()
            .for_each(|label| row_text.push_str(&format!("[{label}]")));
        if chunk.commit_row {
            assert!(!in_value, "a row ends after its last value");
            rows.extend(row.take());
        }
    }
    assert_eq!(row, None, "the last row is committed");
    rows
}

#[test]
fn only_what_changes_is_sent_and_a_row_is_committed_on_its_last_chunk() {
    let mut chunks = chunks();
    chunks.begin_row(b"empty");
    assert!(!chunks.end_row());
    chunks.begin_row(b"r");
    chunks.emit(cell(0, b"", 2000, b"v"));
    chunks.emit(cell(0, b"", 1000, b""));
    chunks.emit(cell(0, b"q", 0, b"w"));
    let label: Arc<str> = "x".into();
    chunks.emit(Cell {
        label: Some(&label),
        ..cell(1, b"q", -1000, b"z")
    });
    assert!(chunks.end_row());
    chunks.last_scanned(b"s");
    let sent = decoded(chunks.take());
    let chunk = |value: &[u8], timestamp_micros| Chunk {
        value: value.to_vec(),
        timestamp_micros,
        ..Chunk::default()
    };
    let expected = [
        Chunk {
            row_key: b"r".to_vec(),
            family_name: Some("f".to_owned()),
            qualifier: Some(Vec::new()),
            ..chunk(b"v", 2000)
        },
        chunk(b"", 1000),
        Chunk {
            qualifier: Some(b"q".to_vec()),
            ..chunk(b"w", 0)
        },
        Chunk {
            family_name: Some("g".to_owned()),
            qualifier: Some(b"q".to_vec()),
            labels: vec!["x".to_owned()],
            commit_row: true,
            ..chunk(b"z", -1000)
        },
    ];
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].chunks, expected);
    assert_eq!(sent[0].last_scanned_row_key, b"s");
}

#[test]
fn large_values_and_rows_go_in_messages_within_the_limit() {
    let mut chunks = chunks();
    let value: Vec<u8> = (0..5_000_000).map(|i| (i % 251) as u8).collect();
    chunks.begin_row(b"r");
    chunks.emit(cell(0, b"q", 1000, &value));
    let mut sent = decoded(chunks.take());
    for i in 0..100_000_u32 {
        chunks.emit(cell(1, &i.to_be_bytes(), 1000, b"0123456789"));
    }
    assert!(chunks.end_row());
    sent.extend(decoded(chunks.take()));
    assert!(sent.len() >= 5, "{}", sent.len());
    let all: Vec<Chunk> = sent
        .into_iter()
        .flat_map(|response| response.chunks)
        .collect();
    let pieces = value.len().div_ceil(PIECE_BYTES);
    let joined: Vec<u8> = all[..pieces]
        .iter()
        .flat_map(|chunk| chunk.value.clone())
        .collect();
    assert!(joined == value);
    for (i, chunk) in all[..pieces].iter().enumerate() {
        let more = i + 1 < pieces;
        assert_eq!(chunk.value_size, if more { 5_000_000 } else { 0 });
        assert_eq!(chunk.timestamp_micros, if i == 0 { 1000 } else { 0 });
        assert_eq!(chunk.qualifier.is_some(), i == 0);
    }
    assert_eq!(all.len(), pieces + 100_000);
    assert_eq!(all.iter().filter(|chunk| chunk.commit_row).count(), 1);
    assert!(all[all.len() - 1].commit_row);
}

#[test]
fn a_message_holds_whole_rows() {
    let mut chunks = chunks();
    let value = vec![b'v'; 700_000];
    let rows: Vec<String> = (0..5).map(|i| format!("r{i}")).collect();
    for row in &rows {
        chunks.begin_row(row.as_bytes());
        for qualifier in [b"a", b"b", b"c"] {
            chunks.emit(cell(0, qualifier, 1000, &value));
        }
        assert!(chunks.end_row());
    }
    let sent = decoded(chunks.take());
    assert_eq!(sent.len(), rows.len());
    for (response, row) in sent.iter().zip(&rows) {
        assert_eq!(response.chunks[0].row_key, row.as_bytes());
        assert!(response.chunks.last().is_some_and(|chunk| chunk.commit_row));
    }
}

use proptest::prelude::*;

use super::*;

const SEGMENT: SegmentHeader = SegmentHeader {
    log: Uuid::from_u128(7),
    first_group: 3,
};
const LENGTH: usize = 1024;

fn record(row: &'static [u8], ops: Vec<Op>) -> Record {
    Record {
        tablet: 2,
        first_sequence: 41,
        server_timestamp: Timestamp(99),
        row: Bytes::from_static(row),
        entries: ops.into_iter().map(|op| Entry { family: 7, op }).collect(),
    }
}

fn everything() -> Record {
    let qualifier = Bytes::from_static(b"q");
    record(
        b"row/1",
        vec![
            Op::Put {
                qualifier: qualifier.clone(),
                timestamp: Timestamp(5),
                value: Bytes::from_static(b"value"),
            },
            Op::DeleteCell {
                qualifier: Bytes::new(),
                timestamp: Timestamp(6),
            },
            Op::DeleteColumn {
                qualifier,
                min: Timestamp::MIN,
                max: Timestamp(9),
            },
            Op::DeleteFamily,
            Op::DeleteRows {
                stop: Some(Bytes::from_static(b"s t")),
            },
            Op::DeleteRows { stop: None },
        ],
    )
}

fn frame(number: u64, synced: u64, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; GROUP_HEADER];
    frame.extend_from_slice(payload);
    frame::seal(&mut frame, &SEGMENT, number, synced);
    frame
}

fn group(number: u64, synced: u64, record: &Record) -> Vec<u8> {
    let mut payload = Vec::new();
    record.encode(&mut payload);
    frame(number, synced, &payload)
}

/// Group 3 with all kinds of entries, and 4 and 5 with one each; where 4 and 5 start.
fn segment() -> (Vec<u8>, usize, usize) {
    let mut bytes = SEGMENT.encode().to_vec();
    bytes.extend(group(3, 2, &everything()));
    let fourth = bytes.len();
    bytes.extend(group(4, 3, &record(b"x", vec![Op::DeleteFamily])));
    let fifth = bytes.len();
    bytes.extend(group(5, 4, &record(b"y", vec![Op::DeleteFamily])));
    bytes.resize(LENGTH, 0);
    (bytes, fourth, fifth)
}

/// The text, and the places that are damaged.
fn dumped(bytes: Vec<u8>) -> (String, u64) {
    let mut out = Vec::new();
    let damaged = write("1", Some(SEGMENT.log), &bytes.into(), &mut out).expect("written");
    (String::from_utf8(out).expect("text"), damaged)
}

#[track_caller]
fn check(bytes: Vec<u8>, damaged: u64, lines: &[&str]) {
    let (text, found) = dumped(bytes);
    for line in lines {
        assert!(text.lines().any(|found| found == *line), "{line}\n{text}");
    }
    assert_eq!(found, damaged, "{text}");
    let told = text.lines().filter(|line| line.starts_with("damaged "));
    assert_eq!(told.count() as u64, damaged, "{text}");
}

#[test]
fn all_that_a_segment_holds_is_shown() {
    let (bytes, fourth, fifth) = segment();
    let third = fourth - SEGMENT_HEADER;
    let end = fifth + (fifth - fourth);
    let length = everything().bytes();
    assert_eq!(third, Group::framed_bytes(length));
    let expected = format!(
        "segment 1: 1024 bytes, format 1
log 00000000-0000-0000-0000-000000000007, first group 3
group 3 at 64: synced 2, {length} bytes
  tablet 2 row%2F1 sequence 41 time 99
    41 family 7 put q 5 5
    42 family 7 delete cell %empty 6
    43 family 7 delete column q ..9
    44 family 7 delete family
    45 family 7 delete rows below s%20t
    46 family 7 delete rows to the end
group 4 at {fourth}: synced 3, 66 bytes
  tablet 2 x sequence 41 time 99
    41 family 7 delete family
group 5 at {fifth}: synced 4, 66 bytes
  tablet 2 y sequence 41 time 99
    41 family 7 delete family
end at {end}: {} bytes of zeros
",
        LENGTH - end
    );
    assert_eq!(dumped(bytes), (expected, 0));
}

#[test]
fn damage_to_what_was_durable_is_told_and_the_rest_shown() {
    let (mut bytes, fourth, fifth) = segment();
    bytes[fourth + GROUP_HEADER] ^= 1;
    let length = fifth - fourth;
    let told = format!(
        "damaged at offset {fourth}: no group in {length} bytes; group 5 tells that group 4 was durable"
    );
    check(bytes, 1, &[&told, "  tablet 2 y sequence 41 time 99"]);
}

#[test]
fn what_was_being_written_is_torn_and_not_damaged() {
    let (mut bytes, _, fifth) = segment();
    bytes[fifth + GROUP_HEADER] ^= 1;
    let length = LENGTH - fifth;
    let told = format!(
        "torn at offset {fifth}: group 5 is not whole, and none follows in {length} bytes: it was being written, unless a later \
         segment starts above it"
    );
    check(bytes, 0, &[&told, "  tablet 2 x sequence 41 time 99"]);
    // A group that was written after it, and not synced either.
    let (mut bytes, fourth, fifth) = segment();
    bytes[fourth + GROUP_HEADER] ^= 1;
    let unsynced = group(5, 3, &record(b"y", vec![Op::DeleteFamily]));
    bytes[fifth..fifth + unsynced.len()].copy_from_slice(&unsynced);
    let told = format!(
        "torn at offset {fourth}: no group in {} bytes; group 5 does not tell that group 4 was durable",
        fifth - fourth
    );
    check(bytes, 0, &[&told, "  tablet 2 y sequence 41 time 99"]);
}

#[test]
fn groups_are_shown_without_a_header() {
    let (mut bytes, ..) = segment();
    bytes[..36].fill(0xff);
    let told = "damaged at offset 0: the header is damaged; what follows goes by the groups";
    check(
        bytes.clone(),
        1,
        &[told, "  tablet 2 y sequence 41 time 99"],
    );
    bytes[SEGMENT_HEADER] ^= 1;
    let told = "damaged at offset 0: the header is damaged, and without it no group can be checked";
    check(bytes, 1, &[told]);
    let mut other = SEGMENT.encode().to_vec();
    other[4] = 9;
    let checksum = crc32c::crc32c(&other[..32]);
    other[32..36].copy_from_slice(&checksum.to_le_bytes());
    check(
        other,
        1,
        &["damaged at offset 0: has format 9; this version reads format 1"],
    );
    check(vec![0; LENGTH], 0, &["never written to"]);
}

#[test]
fn groups_that_hold_no_records_or_come_out_of_order_are_told() {
    let (mut bytes, fourth, _) = segment();
    bytes.truncate(fourth);
    bytes.extend(frame(4, 3, b"no record"));
    let at = bytes.len();
    bytes.extend(group(9, 3, &record(b"y", vec![])));
    let inside = format!(
        "damaged at offset {}: no record, in group 4",
        fourth + GROUP_HEADER
    );
    let order = format!("damaged at offset {at}: group 9 in the place of 5");
    check(
        bytes,
        2,
        &[&inside, &order, "  tablet 2 y sequence 41 time 99"],
    );
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000), header: bool) {
        let mut segment = if header { SEGMENT.encode().to_vec() } else { Vec::new() };
        segment.extend(bytes);
        dumped(segment);
    }

    #[test]
    fn no_payload_panics(payload in proptest::collection::vec(any::<u8>(), 0..200), number: u64, synced: u64, first: u64) {
        let mut bytes = SEGMENT.encode().to_vec();
        bytes.extend(frame(number, synced, &payload));
        let record = Record { first_sequence: first, ..everything() };
        bytes.extend(group(number.wrapping_add(1), synced, &record));
        dumped(bytes);
    }

    #[test]
    fn changed_bytes_are_told(changes in proptest::collection::vec((0..LENGTH, 1u8..), 1..6), cut in 0..=LENGTH) {
        let (mut bytes, ..) = segment();
        let whole = dumped(bytes.clone()).0;
        for (at, change) in changes {
            bytes[at] ^= change;
        }
        bytes.truncate(cut);
        let (text, damaged) = dumped(bytes);
        let told = text.lines().any(|line| line.starts_with("torn "));
        // Bytes that no checksum covers pad headers and groups.
        let shown = |text: &str| text.lines().filter(|line| line.starts_with("  ")).count();
        prop_assert!(damaged > 0 || told || shown(&text) == shown(&whole) || cut < LENGTH, "{}", text);
    }
}

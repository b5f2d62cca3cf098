//! Blocks beside a sorted map.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::storage::cache::Block;
use crate::storage::entry::Stored;

type Entries = BTreeMap<Vec<u8>, (Kind, Vec<u8>)>;

fn entries() -> impl Strategy<Value = Entries> {
    let stored = prop_oneof![
        Just((Kind::Tombstone, Vec::new())),
        proptest::collection::vec(any::<u8>(), 0..200).prop_map(|v| (Kind::Plain, v))
    ];
    proptest::collection::btree_map(proptest::collection::vec(0_u8..4, 1..8), stored, 1..80)
}

fn build(entries: &Entries, interval: usize) -> BlockCursor {
    let mut builder = BlockBuilder::new(interval);
    entries
        .iter()
        .for_each(|(key, (kind, value))| builder.push(key, *kind, value));
    let mut out = Vec::new();
    builder.finish(&mut out);
    BlockCursor::new(Block::new(out.into())).expect("frame")
}

#[test]
fn a_run_without_entries_is_damaged_also_for_searches_after_it() {
    // One entry, "a", and two restarts at it.
    let mut bytes = vec![0, 1, 0, 0, b'a'];
    bytes.extend([0_u32, 0, 2].iter().flat_map(|word| word.to_le_bytes()));
    let mut cursor = BlockCursor::new(Block::new(bytes.into())).expect("a frame");
    assert_eq!(cursor.last_below(b"a"), None);
    cursor.seek(b"a").expect("the entry can be read");
    assert_eq!(cursor.key(), Some(b"a".as_slice()));
}

#[test]
fn a_run_longer_than_any_is_damaged() {
    let mut builder = BlockBuilder::new(DATA_RESTARTS + 1);
    for i in 0..=DATA_RESTARTS as u8 {
        builder.push(&[i], Kind::Plain, b"");
    }
    let mut out = Vec::new();
    builder.finish(&mut out);
    let mut cursor = BlockCursor::new(Block::new(out.into())).expect("a frame");
    assert_eq!(cursor.last_below(&[9]), None);
}

proptest! {
    #[test]
    fn a_block_is_a_sorted_map(entries in entries(), probes in proptest::collection::vec(proptest::collection::vec(0_u8..4, 0..8), 1..6)) {
        let mut cursor = build(&entries, DATA_RESTARTS);
        for probe in probes {
            cursor.seek(&probe).expect("sound");
            for (key, (kind, value)) in entries.range(probe.clone()..) {
                prop_assert_eq!(cursor.key(), Some(&key[..]));
                prop_assert_eq!(cursor.stored(), Some(Stored::new(*kind, value)));
                prop_assert_eq!(&cursor.value_bytes()[..], &value[..]);
                cursor.advance().expect("sound");
            }
            prop_assert_eq!(cursor.key(), None);
            let below = entries.range(..probe.clone()).next_back().map(|(key, _)| key.clone());
            prop_assert_eq!(cursor.last_below(&probe).expect("sound").map(<[u8]>::to_vec), below.clone());
            if let Some(below) = below {
                // As a walk downwards does: to the start of what was found.
                cursor.seek(&below[..1]).expect("sound");
                let first = entries.range(below[..1].to_vec()..).next().map(|(key, _)| key.clone());
                prop_assert_eq!(cursor.key().map(<[u8]>::to_vec), first);
            }
        }
    }

    #[test]
    fn an_index_block_is_searched_by_what_is_above(entries in entries(), probe in proptest::collection::vec(0_u8..4, 0..8)) {
        let mut cursor = build(&entries, INDEX_RESTARTS);
        cursor.seek_above(&probe).expect("sound");
        let above = entries.keys().find(|key| **key > probe);
        prop_assert_eq!(cursor.key(), above.map(Vec::as_slice));
        let mut backwards = entries.keys().rev();
        cursor.seek_last().expect("sound");
        while cursor.key().is_some() {
            prop_assert_eq!(cursor.key(), backwards.next().map(Vec::as_slice));
            cursor.step_back().expect("sound");
        }
        prop_assert_eq!(backwards.next(), None);
    }

    #[test]
    fn skipping_a_prefix_ends_behind_it(entries in entries(), length in 1_usize..4) {
        let mut cursor = build(&entries, DATA_RESTARTS);
        cursor.advance().expect("sound");
        let first = entries.keys().next().expect("one").clone();
        if let Some(prefix) = first.get(..length) {
            let after = entries.keys().find(|key| !key.starts_with(prefix));
            match cursor.skip_prefix(length).expect("sound") {
                Skipped::Prefix => prop_assert_eq!(cursor.key(), after.map(Vec::as_slice)),
                Skipped::Block => prop_assert_eq!((cursor.key(), after), (None, None)),
                Skipped::TooFar => prop_assert_eq!(cursor.key(), Some(&first[..])),
            }
        }
    }

    #[test]
    fn a_walk_downwards_finds_rows_and_their_starts(entries in entries(), length in 1_usize..4, start in 0_u8..5) {
        let mut cursor = build(&entries, DATA_RESTARTS);
        let mut bound = vec![start];
        loop {
            let below = entries.range(..bound.clone()).next_back().map(|(key, _)| key.clone());
            prop_assert_eq!(cursor.last_below(&bound).expect("sound").map(<[u8]>::to_vec), below.clone());
            let Some(below) = below else { break };
            // The row that the key is of, by its first bytes.
            bound = below[..length.min(below.len())].to_vec();
            let first = entries.range(bound.clone()..).next().map(|(key, _)| key.clone());
            let here = cursor.seek_here(&bound).expect("sound");
            let before = entries.range(..bound.clone()).next_back().is_some();
            prop_assert!(here || !before || entries.len() > DATA_RESTARTS);
            if !here {
                cursor.seek(&bound).expect("sound");
            }
            prop_assert_eq!(cursor.key().map(<[u8]>::to_vec), first);
        }
    }

    #[test]
    fn damaged_blocks_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), n in 0_u32..4) {
        bytes.extend_from_slice(&n.to_le_bytes());
        if let Some(mut cursor) = BlockCursor::new(Block::new(bytes.into())) {
            let _ = cursor.seek(b"abc");
            let _ = cursor.last_below(b"abc");
            let _ = cursor.seek_above(b"abc");
            let _ = cursor.seek_last();
            let _ = cursor.step_back();
            let _ = cursor.skip_prefix(2);
            let _ = cursor.seek_here(b"aaa");
            let _ = cursor.key_before();
            for _ in 0..300 { if cursor.advance().is_none() { break; } }
        }
    }
}

//! Top indexes and partitions of SSTs.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tablemount_engine::fuzzing::index(bytes));

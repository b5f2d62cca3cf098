//! Segments of the commit log, one after the other.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tablemount_engine::fuzzing::log(bytes));

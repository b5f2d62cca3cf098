//! Whole SSTs, and the stores that name them.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tablemount_engine::fuzzing::footer(bytes));

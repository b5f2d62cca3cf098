//! The small objects of a store, and opening it with them.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tablemount_engine::fuzzing::manifest(bytes));

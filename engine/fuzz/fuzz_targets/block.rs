//! Data blocks of SSTs, as they are and in their stored form.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tablemount_engine::fuzzing::block(bytes));

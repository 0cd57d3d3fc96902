#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ftlab_trace::fuzz::fuzz_format("block_references", bytes));

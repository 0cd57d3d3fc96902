#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ftlab_record::fuzz::fuzz_spool(bytes));

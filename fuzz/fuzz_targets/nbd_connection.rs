#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    ftlab_nbd::fuzz::fuzz_connection(bytes);
});

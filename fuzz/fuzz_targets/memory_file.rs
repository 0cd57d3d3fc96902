#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ftlab_nvm::fuzz::fuzz_memory(bytes));

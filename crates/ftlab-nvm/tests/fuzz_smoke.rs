//! Drives the fuzz targets with bytes that no honest file has; the same ones on every run.

use ftlab_core::Stream;
use ftlab_nvm::fuzz::{fuzz_memory, fuzz_trace};
use ftlab_nvm::presets::PRESETS;

const WORDS: [&str; 26] = [
    "0x40",
    "0x",
    "0xFFFFFFFFFFFFFFFF",
    "18446744073709551615",
    "64",
    "-1",
    "READ",
    "WRITE",
    "R",
    "W",
    "LD",
    "ST",
    "NVMV1",
    "#",
    "r,",
    "w,",
    "64,",
    "0,",
    "1048577,",
    "5",
    "\n",
    "\n",
    "\n",
    " ",
    "\r\n",
    "\u{e9}",
];

#[test]
fn traces_of_any_words_are_read_or_refused() {
    let mut random = Stream::new(1, "nvm fuzz");
    for _ in 0..20_000 {
        let mut bytes = vec![random.below(7) as u8];
        for _ in 0..random.below(24) {
            bytes.extend(WORDS[random.below(WORDS.len() as u64) as usize].as_bytes());
            if random.below(2) == 0 {
                bytes.push(b' ');
            }
        }
        if random.below(4) == 0 {
            bytes.push(random.below(256) as u8);
        }
        fuzz_trace(&bytes);
    }
}

#[test]
fn spoilt_memory_files_are_read_or_refused() {
    let mut random = Stream::new(2, "nvm fuzz");
    for _ in 0..4_000 {
        let mut bytes = PRESETS[random.below(PRESETS.len() as u64) as usize]
            .1
            .as_bytes()
            .to_vec();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(3) {
                0 => bytes[at] = random.below(128) as u8,
                1 => bytes[at] = b'0' + random.below(10) as u8,
                _ => {
                    bytes.remove(at);
                }
            }
        }
        fuzz_memory(&bytes);
    }
}

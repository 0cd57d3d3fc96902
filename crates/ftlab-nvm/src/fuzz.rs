//! Readers of traces and of memory files, as functions that take any bytes: they must not panic, nor make more than was said.
//!
//! `fuzz/` at the top of the repository has a libFuzzer target for each; the test `fuzz_smoke` drives them on every run.

use std::path::Path;

use crate::Memory;
use crate::trace::{self, FORMATS, Format};

/// Bytes as a trace: of the format that the first byte names, or as recognised. What is read is written and read again alike.
pub fn fuzz_trace(bytes: &[u8]) {
    let Some((first, text)) = bytes.split_first() else {
        return;
    };
    let asked = FORMATS.get(usize::from(*first)).map(|name| Format::parse(name));
    let Ok(asked) = asked.transpose() else {
        return;
    };
    let path = Path::new("fuzz");
    let Ok(found) = trace::read_from(text, path, asked, 1000, 64) else {
        return;
    };
    let again: String = found
        .steps
        .iter()
        .map(|step| found.format.line(step, 1000) + "\n")
        .collect();
    let Ok(back) = trace::read_from(again.as_bytes(), path, Some(found.format), 1000, 64) else {
        panic!("what was written of {:?} is refused", found.format);
    };
    let untimed = |steps: &[crate::feed::Step]| steps.iter().map(|s| (s.address, s.write)).collect::<Vec<_>>();
    assert_eq!(untimed(&back.steps), untimed(&found.steps));
}

/// Bytes as a memory file.
pub fn fuzz_memory(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(memory) = Memory::parse(text, "fuzz", &[])
    {
        let place = memory.map.place(memory.map.capacity - memory.line_bytes);
        assert_eq!(memory.map.address(place), memory.map.capacity - memory.line_bytes);
    }
}

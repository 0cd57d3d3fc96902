//! One function per parser that takes any bytes: it must neither panic nor allocate absurdly, and its errors are sentences.
//!
//! The test `fuzz_smoke` drives them on every run with mutated samples; `fuzz/` at the top of the repository has a
//! libFuzzer target for each.

use ftlab_core::request::CHUNKS_EACH;
use ftlab_core::{Batch, Error, OpKind, Result, Source};

use crate::{Fit, FitRule, Opened, ReadOptions, Volumes, open_bytes, scan_bytes, synth};

/// Requests and bytes beyond which a fuzzed trace is not scanned, so that one input cannot cost seconds.
const FEW_REQUESTS: u64 = 10_000;
const FEW_BYTES: u64 = 1 << 32;

/// Any file, detected by its content.
pub fn fuzz_detect(bytes: &[u8]) {
    trace(bytes, None);
}

/// The reader of the named format. In ftlab's own form checksums are set right as well, so that what is behind them is reached.
pub fn fuzz_format(name: &str, bytes: &[u8]) {
    trace(bytes, Some(name));
    if name == "recording" {
        ftlab_record::fuzz::fuzz_recording(bytes);
    }
    if name == "ftlab" {
        trace(&with_checksums(bytes), Some(name));
    }
}

/// `synth::parse`: a spec in one line or in TOML.
pub fn fuzz_spec(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match synth::parse(&text, 64 << 20, 4096, 1) {
        Err(error) => check_sentence(&error),
        Ok(mut generator) => {
            let mut batch = Batch::default();
            for _ in 0..2 {
                if let Err(error) = generator.next_batch(&mut batch) {
                    check_sentence(&error);
                }
                check_batch(&batch, &text);
                assert!(
                    (0..batch.len()).all(|i| batch.offset[i] + u64::from(batch.length[i]) <= 64 << 20),
                    "{text}: a request beyond the drive"
                );
            }
        }
    }
}

fn trace(bytes: &[u8], format: Option<&str>) {
    let options = ReadOptions {
        as_format: format.map(str::to_owned),
        volumes: Volumes::Merge,
        ..ReadOptions::default()
    };
    let requested = match open_bytes("fuzzed", bytes.to_vec(), &options).and_then(read_all) {
        Ok(requested) => requested,
        Err(error) => return check_sentence(&error),
    };
    if requested > FEW_BYTES {
        return;
    }
    let result = scan_bytes("fuzzed", bytes.to_vec(), &options).and_then(|scan| {
        let opened = open_bytes("fuzzed", bytes.to_vec(), &options)?;
        let size = (scan.touched.units() * scan.touched.unit_bytes()).max(4096);
        let mut fit = Fit::trace(opened, FitRule::Compact, size, Some(&scan))?;
        let mut batch = Batch::default();
        loop {
            fit.next_batch(&mut batch)?;
            if batch.is_empty() {
                return Ok(());
            }
            for i in (0..batch.len()).filter(|&i| batch.op[i] != OpKind::Flush) {
                assert!(
                    batch.offset[i] + u64::from(batch.length[i]) <= size,
                    "a request beyond the compact drive"
                );
            }
        }
    });
    if let Err(error) = result {
        check_sentence(&error);
    }
}

/// Reads a trace to its end and returns the bytes its requests cover; more than any scan should bear for a long one.
fn read_all(mut opened: Opened) -> Result<u64> {
    let (mut batch, mut clock, mut requested, mut records) = (Batch::default(), 0, 0u64, 0);
    loop {
        opened.next_batch(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        check_batch(&batch, "a trace");
        assert!(batch.time_ns[0] >= clock && batch.time_ns.is_sorted(), "time goes back");
        clock = batch.time_ns.last().copied().unwrap_or(clock);
        requested += batch.length.iter().map(|&l| u64::from(l)).sum::<u64>();
        records += batch.len() as u64;
    }
    let report = opened.report();
    assert!(
        report.complete && report.records == records,
        "the report counts {} of {records}",
        report.records
    );
    Ok(if records > FEW_REQUESTS { u64::MAX } else { requested })
}

/// Every column has one value a request, and content ends where the last request's ends.
pub(crate) fn check_batch(batch: &Batch, what: &str) {
    let n = batch.len();
    let fixed = [
        batch.time_ns.len(),
        batch.offset.len(),
        batch.length.len(),
        batch.volume.len(),
        batch.flags.len(),
    ];
    assert!(
        fixed.iter().all(|&len| len == n),
        "{what}: columns of {fixed:?} for {n} requests"
    );
    let optional = [
        batch.stream.len(),
        batch.pc.len(),
        batch.pid.len(),
        batch.label.len(),
        batch.content_end.len(),
    ];
    assert!(
        optional.iter().all(|&len| len == 0 || len == n),
        "{what}: optional columns of {optional:?} for {n} requests"
    );
    assert_eq!(
        batch.content_end.last().map_or(0, |&end| end as usize),
        batch.content.len(),
        "{what}"
    );
    assert!(
        batch.chunk.is_empty()
            || CHUNKS_EACH
                .map(|each| each * batch.content.len())
                .contains(&batch.chunk.len()),
        "{what}: {} ids of chunks for {} of contents",
        batch.chunk.len(),
        batch.content.len()
    );
}

fn check_sentence(error: &Error) {
    let text = error.to_string();
    assert!(
        !text.is_empty() && text.len() < 2000,
        "an error of {} bytes",
        text.len()
    );
    assert!(!text.contains('\n'), "an error over several lines: {text}");
}

/// The bytes with the checksums of the header and of each block set to what they should be.
fn with_checksums(bytes: &[u8]) -> Vec<u8> {
    use crate::formats::ftlab::{BLOCK_HEADER, HEADER, checksum};
    let mut bytes = bytes.to_vec();
    let word = |bytes: &[u8], at: usize| {
        bytes
            .get(at..at + 4)
            .map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])) as usize
    };
    let mut at = 0;
    let (mut head, mut length, mut crc_at) = (HEADER - 4, word(&bytes, 16), HEADER - 4);
    loop {
        let body = at + crc_at + 4;
        let Some(end) = body.checked_add(length).filter(|&end| end <= bytes.len()) else {
            return bytes;
        };
        let crc = checksum(&bytes[at..at + head], &bytes[body..end]);
        bytes[at + crc_at..body].copy_from_slice(&crc.to_le_bytes());
        at = end;
        length = word(&bytes, at + 4);
        (head, crc_at) = (BLOCK_HEADER - 4, BLOCK_HEADER - 4);
    }
}

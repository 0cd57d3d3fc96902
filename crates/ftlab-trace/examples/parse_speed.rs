//! Records per second of each reader and generator, on generated data held in memory.
//!
//! `cargo run --release -p ftlab-trace --example parse_speed [RECORDS]`; one line per case, with a hash of what was
//! read, which is the same on every machine and for every format that carries the same columns.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use ftlab_core::{Batch, Result, Source};
use ftlab_trace::write::{self, Names};
use ftlab_trace::{ReadOptions, Volumes, open_bytes, scan_bytes, synth};

fn main() -> Result<()> {
    let records: u64 = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(2_000_000);
    let spec = format!("uniform:read=0.5,size=4KiB*0.7/64KiB*0.3,align=4KiB,rate=20k,requests={records},seed=1");
    println!("{:<24} {:>9} {:>8}  hash", "case", "M/s", "MB/s");
    let options = ReadOptions {
        volumes: Volumes::Merge,
        ..ReadOptions::default()
    };
    for format in write::FORMATS {
        let bytes = written(format, &spec)?;
        let size = bytes.len();
        measure(&format!("read {format}"), size, || {
            open_bytes(format, bytes.clone(), &options)
        })?;
        let start = Instant::now();
        let scan = scan_bytes(format, bytes, &options)?;
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{:<24} {:>9.2}",
            format!("scan {format}"),
            scan.report.records as f64 / seconds / 1e6
        );
    }
    for kind in [
        "uniform",
        "uniform:read=0.5",
        "sequential",
        "zipf",
        "zipf:scramble=false",
        "hotcold",
        "hotcold:spread=false",
        "mixed",
    ] {
        let separator = if kind.contains(':') { ',' } else { ':' };
        let spec = format!("{kind}{separator}requests={}", records * 5);
        measure(kind, 0, || synth::parse(&spec, 64 << 30, 4096, 1))?;
    }
    Ok(())
}

fn measure<S: Source>(name: &str, bytes: usize, open: impl Fn() -> Result<S>) -> Result<()> {
    let mut source = open()?;
    let mut batch = Batch::default();
    let (mut records, mut seconds, mut hash) = (0, 0.0, 0u64);
    loop {
        let start = Instant::now();
        source.next_batch(&mut batch)?;
        seconds += start.elapsed().as_secs_f64();
        if batch.is_empty() {
            break;
        }
        records += batch.len();
        for (offset, &length) in batch.offset.iter().zip(&batch.length) {
            hash = (hash ^ offset ^ u64::from(length))
                .wrapping_mul(0x0000_0100_0000_01b3)
                .rotate_left(7);
        }
    }
    let (rate, megabytes) = (records as f64 / seconds / 1e6, bytes as f64 / seconds / 1e6);
    println!("{name:<24} {rate:>9.2} {megabytes:>8.0}  {hash:016x}");
    Ok(())
}

fn written(format: &str, spec: &str) -> Result<Vec<u8>> {
    let mut generator = synth::parse(spec, 64 << 30, 4096, 1)?;
    let sink = Memory::default();
    let mut writer = write::to(format, Box::new(sink.clone()), &Names::default())?;
    let mut batch = Batch::default();
    loop {
        generator.next_batch(&mut batch)?;
        if batch.is_empty() {
            writer.finish()?;
            let bytes = std::mem::take(&mut *sink.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
            return Ok(bytes);
        }
        writer.write(&batch)?;
    }
}

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

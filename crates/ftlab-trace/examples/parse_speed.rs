//! Records per second of each reader, writer and generator, on generated data held in memory, on one core.
//!
//! `cargo run --release -p ftlab-trace --example parse_speed [RECORDS [FORMAT]]`; one line per case, with a hash of what
//! was read, which is the same on every machine and for every format that carries the same columns. A format that cannot
//! be written is read from its sample, repeated.

use std::time::Instant;

use ftlab_core::{Batch, Result, Source};
use ftlab_trace::write::{self, Content, Options, Writer};
use ftlab_trace::{Order, ReadOptions, Settings, Volumes, formats, open_bytes, scan_bytes, synth};

/// A pass that also keeps figures and marks what is touched is measured on these.
const SCANNED: [&str; 4] = ["ftlab", "csv", "msr", "mqsim"];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let records: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(2_000_000);
    measure_all(records, arguments.next())
}

/// Every case; a test calls it with few records.
pub fn measure_all(records: u64, only: Option<String>) -> Result<()> {
    let batches = generated(records)?;
    println!("{:<24} {:>9} {:>8}  hash", "case", "M/s", "MB/s");
    for format in formats::catalogue() {
        // A recording has an end, so its sample cannot be repeated; and its requests are made by the replay, not parsed.
        if format.name == "recording" {
            continue;
        }
        if only.as_deref().is_none_or(|only| only == format.name) {
            format_lines(format, &batches)?;
        }
    }
    if only.is_some() {
        return Ok(());
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

/// Half reads, two sizes, 20 000 requests a second.
fn generated(records: u64) -> Result<Vec<Batch>> {
    let spec = format!("uniform:read=0.5,size=4KiB*0.7/64KiB*0.3,align=4KiB,rate=20k,requests={records},seed=1");
    let mut generator = synth::parse(&spec, 64 << 30, 4096, 1)?;
    let mut batches = Vec::new();
    loop {
        let mut batch = Batch::default();
        generator.next_batch(&mut batch)?;
        if batch.is_empty() {
            return Ok(batches);
        }
        batches.push(batch);
    }
}

/// The same with content ids, for the forms that need them.
fn with_content(batch: &Batch) -> Batch {
    let mut batch = batch.clone();
    for i in 0..batch.len() {
        let first = batch.offset[i] / 4096;
        let units = u64::from(batch.length[i]).div_ceil(4096);
        let ids = first..first + units;
        batch
            .content
            .extend(ids.map(|unit| unit.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        batch.content_end.push(batch.content.len() as u32);
    }
    batch
}

fn format_lines(format: &formats::Format, batches: &[Batch]) -> Result<()> {
    let name = format.name;
    let is_written = write::names().contains(&name);
    let options = ReadOptions {
        as_format: Some(name.to_owned()),
        volumes: Volumes::Merge,
        // The stamps of a repeated sample go back at every repetition.
        settings: Settings {
            order: (!is_written).then_some(Order::File),
            ..Settings::default()
        },
        ..ReadOptions::default()
    };
    let bytes = match is_written {
        true => written(name, batches)?,
        false => {
            let sample = format.sample();
            sample.repeat(batches.len() * 100_000 / sample.len().max(1))
        }
    };
    let size = bytes.len();
    measure(&format!("read {name}"), size, || {
        open_bytes(name, bytes.clone(), &options)
    })?;
    if SCANNED.contains(&name) {
        let start = Instant::now();
        let scan = scan_bytes(name, bytes, &options)?;
        let rate = scan.report.records as f64 / start.elapsed().as_secs_f64() / 1e6;
        println!("{:<24} {rate:>9.2}", format!("scan {name}"));
    }
    Ok(())
}

/// The batches in this form; prints how fast that was.
fn written(name: &str, batches: &[Batch]) -> Result<Vec<u8>> {
    let content = write::named(name)?.holds(&Options::default())?.content == Content::Needed;
    let mut writer = Writer::new(name, &Options::default(), Vec::new())?;
    let (mut seconds, mut requests) = (0.0, 0);
    for batch in batches {
        let rich = content.then(|| with_content(batch));
        let start = Instant::now();
        writer.write(rich.as_ref().unwrap_or(batch))?;
        seconds += start.elapsed().as_secs_f64();
        requests += batch.len();
    }
    let start = Instant::now();
    let written = writer.finish()?;
    seconds += start.elapsed().as_secs_f64();
    let (rate, megabytes) = (requests as f64 / seconds / 1e6, written.bytes as f64 / seconds / 1e6);
    println!("{:<24} {rate:>9.2} {megabytes:>8.0}", format!("write {name}"));
    Ok(written.sink)
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

//! One pass over a trace: what it reaches and which units it touches.

use std::path::PathBuf;

use ftlab_core::{Batch, Error, Result, Source};

use super::{Opened, VolumeChoice, stream_name};
use crate::files::Files;
use crate::input::is_stream;
use crate::options::{ReadOptions, Volumes};
use crate::report::TraceReport;
use crate::stats::Stats;
use crate::touched::{CHUNK_UNITS, Marks, Touched};

/// What one pass over a trace found: its complete report, and the units it touches with volumes laid out as asked.
#[derive(Clone, Debug)]
pub struct Scan {
    pub report: TraceReport,
    /// Units of `ReadOptions::unit_bytes` touched by reads and writes.
    pub touched: Touched,
}

/// Reads the whole trace once, in constant memory but for one bit per touched unit.
pub fn scan(paths: &[PathBuf], options: &ReadOptions) -> Result<Scan> {
    if let Some(stream) = paths.iter().find(|path| is_stream(path)) {
        return Err(Error::input(format!(
            "{} cannot be read twice: expected a file where the addresses must be known first",
            stream_name(stream)
        )));
    }
    let (options, sidecar) = options.with_sidecar(paths)?;
    scan_files(Files::open(paths, &options, sidecar.as_deref())?, paths, &options)
}

/// Scans a trace held in memory.
pub fn scan_bytes(name: &str, bytes: Vec<u8>, options: &ReadOptions) -> Result<Scan> {
    scan_files(Files::from_bytes(name, bytes, options)?, &[], options)
}

fn scan_files(files: Files, paths: &[PathBuf], options: &ReadOptions) -> Result<Scan> {
    let mut reach = Reach::new(options.unit_bytes)?;
    let side_by_side = options.volumes == Volumes::SideBySide && !files.one_address_space();
    let mut pass = Opened::new(files, paths, options)?;
    if side_by_side {
        // Bases are what this pass is to find out.
        pass.volumes = VolumeChoice::Untouched;
    }
    let mut batch = Batch::default();
    loop {
        pass.next_batch(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        reach.add(&batch, side_by_side);
    }
    let bases = match side_by_side {
        true => bases(&pass.stats.ends(), u64::from(options.unit_bytes))?,
        false => vec![0; pass.stats.ends().len()],
    };
    let report = pass.report_with(&bases);
    Ok(reach.finish(report, if side_by_side { &bases } else { &[0] }))
}

/// Reads `source` to its end, in constant memory but for one bit per touched unit of `unit_bytes` (a power of two from 256
/// bytes to 16 MiB). Unlike [`scan`] it takes addresses as they come, with volumes already laid out, and its report has no
/// facts about files.
pub fn survey(source: &mut dyn Source, unit_bytes: u32) -> Result<Scan> {
    let mut reach = Reach::new(unit_bytes)?;
    let (mut stats, mut batch) = (Stats::default(), Batch::default());
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        stats.add(&batch);
        reach.add(&batch, false);
    }
    let mut report = TraceReport::default();
    stats.enter(&mut report, &[]);
    report.complete = true;
    Ok(reach.finish(report, &[0]))
}

/// The units that reads and writes touch.
struct Reach {
    marks: Marks,
    /// Those of 4 KiB, where `marks` has others.
    small: Option<Marks>,
}

impl Reach {
    fn new(unit: u32) -> Result<Self> {
        if !unit.is_power_of_two() || !(256..=16 << 20).contains(&unit) {
            return Err(Error::input(format!(
                "unit of {unit} bytes: expected a power of two from 256 bytes to 16 MiB"
            )));
        }
        Ok(Reach {
            marks: Marks::new(unit),
            small: (unit != 4096).then(|| Marks::new(4096)),
        })
    }

    fn add(&mut self, batch: &Batch, volumes_apart: bool) {
        for i in (0..batch.len()).filter(|&i| Stats::touches(batch.op[i])) {
            let volume = if volumes_apart { batch.volume[i] } else { 0 };
            self.marks.mark(volume, batch.offset[i], batch.length[i]);
            if let Some(small) = &mut self.small {
                small.mark(volume, batch.offset[i], batch.length[i]);
            }
        }
    }

    fn finish(&self, mut report: TraceReport, bases: &[u64]) -> Scan {
        report.footprint_4k = Some(self.small.as_ref().unwrap_or(&self.marks).count());
        let touched = self.marks.lay_out(bases);
        Scan { report, touched }
    }
}

/// Places for volumes of these ends, one behind the other; each starts at a whole number of 512 units.
fn bases(ends: &[u64], unit_bytes: u64) -> Result<Vec<u64>> {
    let mut next = 0u64;
    let mut bases = Vec::with_capacity(ends.len());
    for &end in ends {
        bases.push(next);
        next = next
            .checked_add(end.next_multiple_of(CHUNK_UNITS * unit_bytes))
            .filter(|&n| n <= 1 << 62)
            .ok_or_else(|| {
                Error::input(
                    "the volumes together span more than 2^62 bytes, so they cannot be laid side by side: \
                     expected `merge` or `only:NAME`",
                )
            })?;
    }
    Ok(bases)
}

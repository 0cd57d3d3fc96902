//! One pass over any stream: what it reaches and which units it touches.

use ftlab_core::{Batch, Error, Result, Source};

use crate::stats::Stats;
use crate::touched::Marks;
use crate::{Scan, TraceReport};

/// Reads `source` to its end, in constant memory but for one bit per touched unit of `unit_bytes` (a power of two from 512
/// bytes to 16 MiB). Unlike [`scan`](crate::scan) it takes addresses as they come, with volumes already laid out, and its
/// report has no facts about files.
pub fn survey(source: &mut dyn Source, unit_bytes: u32) -> Result<Scan> {
    if !unit_bytes.is_power_of_two() || !(512..=16 << 20).contains(&unit_bytes) {
        return Err(Error::input(format!(
            "unit of {unit_bytes} bytes: expected a power of two from 512 bytes to 16 MiB"
        )));
    }
    let (mut stats, mut batch) = (Stats::default(), Batch::default());
    let mut marks = Marks::new(unit_bytes);
    let mut small = (unit_bytes != 4096).then(|| Marks::new(4096));
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        stats.add(&batch);
        for i in (0..batch.len()).filter(|&i| Stats::touches(batch.op[i])) {
            marks.mark(0, batch.offset[i], batch.length[i]);
            if let Some(small) = &mut small {
                small.mark(0, batch.offset[i], batch.length[i]);
            }
        }
    }
    let mut report = TraceReport::default();
    stats.enter(&mut report, &[]);
    report.complete = true;
    report.footprint_4k = Some(small.as_ref().unwrap_or(&marks).count());
    Ok(Scan {
        report,
        touched: marks.lay_out(&[0]),
    })
}

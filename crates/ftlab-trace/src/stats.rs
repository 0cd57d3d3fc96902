//! Counters over the requests that pass by.

use ftlab_core::{Batch, OpKind};

use crate::report::TraceReport;

/// Counts per operation, and what each volume's reads and writes reach.
#[derive(Default)]
pub struct Stats {
    counts: [u64; 4],
    bytes: [u64; 4],
    duration_ns: u64,
    volumes: Vec<VolumeStats>,
}

/// What the requests of one volume reach, in its own addresses.
#[derive(Clone, Copy)]
pub struct VolumeStats {
    pub first: u64,
    /// Exclusive; 0 when nothing was read or written.
    pub end: u64,
    pub records: u64,
}

const UNTOUCHED: VolumeStats = VolumeStats {
    first: u64::MAX,
    end: 0,
    records: 0,
};

impl Stats {
    /// Operations that touch units: reads and writes.
    #[inline]
    pub fn touches(op: OpKind) -> bool {
        matches!(op, OpKind::Read | OpKind::Write)
    }

    pub fn records(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Counts a batch whose addresses are still those of its volumes.
    pub fn add(&mut self, batch: &Batch) {
        for (op, &length) in batch.op.iter().zip(&batch.length) {
            self.counts[*op as usize] += 1;
            self.bytes[*op as usize] += u64::from(length);
        }
        if let Some(&last) = batch.time_ns.last() {
            self.duration_ns = last;
        }
        let highest = usize::from(batch.volume.iter().fold(0, |a, &b| a.max(b)));
        if self.volumes.len() <= highest {
            self.volumes.resize(highest + 1, UNTOUCHED);
        }
        if let [only] = self.volumes.as_mut_slice() {
            let mut here = *only;
            for i in 0..batch.len() {
                here.add(batch, i);
            }
            *only = here;
        } else {
            for i in 0..batch.len() {
                self.volumes[usize::from(batch.volume[i])].add(batch, i);
            }
        }
    }

    /// End of each volume, by number.
    pub fn ends(&self) -> Vec<u64> {
        self.volumes.iter().map(|v| v.end).collect()
    }

    /// Volumes with requests, by number.
    pub fn volumes(&self) -> impl Iterator<Item = (usize, &VolumeStats)> {
        self.volumes.iter().enumerate().filter(|(_, v)| v.records > 0)
    }

    /// Fills in the figures that come from requests.
    pub fn enter(&self, report: &mut TraceReport, bases: &[u64]) {
        let [reads, writes, trims, flushes] = self.counts;
        (report.reads, report.writes, report.trims, report.flushes) = (reads, writes, trims, flushes);
        report.records = self.records();
        if reads + writes > 0 {
            report.read_share = Some(reads as f64 / (reads + writes) as f64);
        }
        [report.bytes_read, report.bytes_written, report.bytes_trimmed, _] = self.bytes;
        report.duration_ns = self.duration_ns;
        let base = |number: usize| bases.get(number).copied().unwrap_or(0);
        let touched = || self.volumes().filter(|(_, v)| v.end > 0);
        report.first_byte = touched()
            .map(|(n, v)| base(n).saturating_add(v.first))
            .min()
            .unwrap_or(0);
        report.end_byte = touched().map(|(n, v)| base(n).saturating_add(v.end)).max().unwrap_or(0);
        report.span_bytes = report.end_byte - report.first_byte;
    }
}

impl VolumeStats {
    #[inline]
    fn add(&mut self, batch: &Batch, i: usize) {
        self.records += 1;
        if Stats::touches(batch.op[i]) {
            let offset = batch.offset[i];
            self.first = self.first.min(offset);
            self.end = self.end.max(offset + u64::from(batch.length[i]));
        }
    }
}

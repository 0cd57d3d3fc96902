//! Requests, bytes, volumes, flags and alignment. Memory: 56 bytes for each volume number up to the highest, so 3.5 MiB.

use ftlab_core::{Batch, OpKind, flags};

use super::inspection::share;
use super::pages::Pages;
use super::{Curve, VolumeFigures};

/// Powers of two whose alignment is judged: 512 bytes to 1 MiB.
const ALIGN_FROM: u32 = 9;
const ALIGN_TO: u32 = 20;
const MOST_ROWS: usize = 4096;

#[derive(Default)]
pub struct Counts {
    requests: [u64; 4],
    bytes: [u64; 4],
    page_reads: u64,
    page_writes: u64,
    flagged: [u64; 3],
    streamed: u64,
    /// Requests by the trailing zeros of start | length, and of the start, from `ALIGN_TO` on together.
    aligned: [u64; ALIGN_TO as usize + 1],
    aligned_start: [u64; ALIGN_TO as usize + 1],
    odd: u64,
    volumes: Vec<Volume>,
    time_ns: Option<(u64, u64)>,
}

#[derive(Clone, Copy, Default)]
struct Volume {
    requests: u64,
    reads: u64,
    writes: u64,
    bytes_read: u64,
    bytes_written: u64,
    /// Lowest byte that reads and writes reach, and highest (exclusive): 0 and 0 until something is touched.
    first: u64,
    end: u64,
}

impl Counts {
    pub fn add(&mut self, batch: &Batch, pages: &Pages) {
        let highest = usize::from(batch.volume.iter().fold(0, |a, &b| a.max(b)));
        if self.volumes.len() <= highest {
            self.volumes.resize(highest + 1, Volume::default());
        }
        if let (Some(&first), Some(&last)) = (batch.time_ns.first(), batch.time_ns.last()) {
            let start = self.time_ns.map_or(first, |(start, _)| start);
            self.time_ns = Some((start, last.max(self.time_ns.map_or(0, |(_, last)| last))));
        }
        for i in 0..batch.len() {
            let (op, offset, length) = (batch.op[i], batch.offset[i], u64::from(batch.length[i]));
            self.requests[op as usize] += 1;
            self.bytes[op as usize] += length;
            let volume = &mut self.volumes[usize::from(batch.volume[i])];
            volume.requests += 1;
            if op == OpKind::Flush {
                continue;
            }
            if length == 0 || offset.checked_add(length).is_none() {
                self.odd += 1;
            }
            self.aligned[(offset | length).trailing_zeros().min(ALIGN_TO) as usize] += 1;
            self.aligned_start[offset.trailing_zeros().min(ALIGN_TO) as usize] += 1;
            match op {
                OpKind::Read => {
                    volume.reads += 1;
                    volume.bytes_read += length;
                    self.page_reads += u64::from(pages.count[i]);
                }
                OpKind::Write => {
                    volume.writes += 1;
                    volume.bytes_written += length;
                    self.page_writes += u64::from(pages.count[i]);
                }
                _ => continue,
            }
            if length > 0 {
                volume.first = if volume.end == 0 {
                    offset
                } else {
                    volume.first.min(offset)
                };
                volume.end = volume.end.max(offset.saturating_add(length));
            }
        }
        for (bit, count) in [flags::FUA, flags::SYNC, flags::METADATA].iter().zip(&mut self.flagged) {
            *count += batch.flags.iter().filter(|flags| **flags & bit != 0).count() as u64;
        }
        self.streamed += batch.stream.iter().filter(|stream| **stream != 0).count() as u64;
    }

    pub fn page_reads(&self) -> u64 {
        self.page_reads
    }

    pub fn page_writes(&self) -> u64 {
        self.page_writes
    }

    /// Bytes between the ends of what reads and writes touch, volumes apart or together.
    pub fn span_bytes(&self, merge_volumes: bool) -> u64 {
        let touched = || self.volumes.iter().filter(|v| v.end > 0);
        if merge_volumes {
            let first = touched().map(|v| v.first).min().unwrap_or(0);
            return touched().map(|v| v.end).max().unwrap_or(0) - first;
        }
        touched().fold(0, |sum: u64, v| sum.saturating_add(v.end - v.first))
    }

    pub fn finish(&self) -> super::Counts {
        let [reads, writes, trims, flushes] = self.requests;
        let [bytes_read, bytes_written, bytes_trimmed, _] = self.bytes;
        let requests = reads + writes + trims + flushes;
        let of_all = |part| share(part, requests).unwrap_or(0.0);
        let duration_ns = self.time_ns.map_or(0, |(start, last)| last.saturating_sub(start));
        super::Counts {
            requests,
            reads,
            writes,
            trims,
            flushes,
            bytes_read,
            bytes_written,
            bytes_trimmed,
            read_share: share(reads, reads + writes),
            read_share_bytes: share(bytes_read, bytes_read.saturating_add(bytes_written)),
            page_reads: self.page_reads,
            page_writes: self.page_writes,
            duration_s: (duration_ns > 0).then_some(duration_ns as f64 / 1e9),
            volumes: self.volume_rows(),
            volume_count: self.volumes.iter().filter(|v| v.requests > 0).count() as u64,
            fua_share: of_all(self.flagged[0]),
            sync_share: of_all(self.flagged[1]),
            metadata_share: of_all(self.flagged[2]),
            stream_share: of_all(self.streamed),
            alignment: alignment(&self.aligned),
            alignment_start: alignment(&self.aligned_start),
            odd_requests: self.odd,
        }
    }

    fn volume_rows(&self) -> Vec<VolumeFigures> {
        let seen = self.volumes.iter().enumerate().filter(|(_, v)| v.requests > 0);
        seen.take(MOST_ROWS)
            .map(|(number, v)| VolumeFigures {
                number: number as u32,
                name: number.to_string(),
                requests: v.requests,
                reads: v.reads,
                writes: v.writes,
                bytes_read: v.bytes_read,
                bytes_written: v.bytes_written,
                read_share: share(v.reads, v.reads + v.writes),
                first_byte: v.first,
                end_byte: v.end,
            })
            .collect()
    }
}

fn alignment(zeros: &[u64; ALIGN_TO as usize + 1]) -> Curve {
    let mut curve = Curve::new("alignment_bytes", "request_share");
    let all: u64 = zeros.iter().sum();
    if all > 0 {
        for shift in ALIGN_FROM..=ALIGN_TO {
            let aligned: u64 = zeros[shift as usize..].iter().sum();
            curve.push((1u64 << shift) as f64, aligned as f64 / all as f64);
        }
    }
    curve
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_requests_on_two_volumes() {
        let mut batch = Batch::default();
        batch.push(5, OpKind::Read, 512, 1024, 0, flags::SYNC);
        batch.push(5, OpKind::Write, 4096, 8192, 2, flags::SYNC | flags::FUA);
        batch.push(6, OpKind::Trim, 0, 4096, 0, 0);
        batch.push(7, OpKind::Flush, 0, 0, 0, 0);
        batch.push(1_000_000_005, OpKind::Read, 8192, 512, 0, 0);
        let (mut pages, mut counts) = (Pages::default(), Counts::default());
        pages.set(&batch, false);
        counts.add(&batch, &pages);
        // Volume 0 spans 512..8704, volume 2 spans 4096..12288.
        assert_eq!(counts.span_bytes(false), 8192 + 8192);
        assert_eq!(counts.span_bytes(true), 12288 - 512);
        let figures = counts.finish();
        assert_eq!((figures.requests, figures.reads, figures.writes), (5, 2, 1));
        assert_eq!(figures.read_share, Some(2.0 / 3.0));
        assert_eq!((figures.page_reads, figures.page_writes), (2, 2));
        assert_eq!(figures.duration_s, Some(1.0));
        assert_eq!((figures.sync_share, figures.fua_share), (0.4, 0.2));
        assert_eq!((figures.volume_count, figures.volumes.len()), (2, 2));
        assert_eq!((figures.volumes[1].number, figures.volumes[1].end_byte), (2, 12288));
        // Start | length: 512|1024 → 512, 4096|8192 → 4096, 0|4096 → 4096, 8192|512 → 512.
        let at = |curve: &Curve, bytes: f64| curve.y[curve.x.iter().position(|x| *x == bytes).unwrap()];
        assert_eq!(
            (at(&figures.alignment, 512.0), at(&figures.alignment, 4096.0)),
            (1.0, 0.5)
        );
        // Starts: 512, 4096, 0, 8192.
        assert_eq!(
            (
                at(&figures.alignment_start, 4096.0),
                at(&figures.alignment_start, 8192.0)
            ),
            (0.75, 0.5)
        );
        assert_eq!(figures.odd_requests, 0);
    }

    #[test]
    fn nothing_and_edges() {
        let figures = Counts::default().finish();
        assert_eq!(
            (figures.requests, figures.read_share, figures.alignment.x.len()),
            (0, None, 0)
        );
        let mut batch = Batch::default();
        batch.push(0, OpKind::Write, u64::MAX, u32::MAX, u16::MAX, 0);
        batch.push(0, OpKind::Read, 9, 0, 0, 0);
        let (mut pages, mut counts) = (Pages::default(), Counts::default());
        pages.set(&batch, false);
        counts.add(&batch, &pages);
        assert_eq!(counts.finish().odd_requests, 2);
        assert_eq!(counts.span_bytes(true), 0);
    }
}

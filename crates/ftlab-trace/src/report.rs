//! What reading a trace found out about it.

use serde::Serialize;

/// The facts of a trace; complete once its stream has been read to the end ([`TraceReport::complete`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TraceReport {
    /// Name of the format, as in the catalogue.
    pub format: String,
    /// Why this format was chosen, and which choice was made where the content leaves one open.
    pub reason: String,
    pub files: Vec<String>,
    /// True when everything below covers the whole trace.
    pub complete: bool,
    /// Lines of text read; 0 for a binary format.
    pub lines: u64,
    /// Requests delivered.
    pub records: u64,
    /// Lines left out, by reason.
    pub skipped: Vec<Skipped>,
    pub first_bad: Option<BadLine>,
    pub reads: u64,
    pub writes: u64,
    pub trims: u64,
    pub flushes: u64,
    /// reads / (reads + writes); 0 without either.
    pub read_share: f64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub bytes_trimmed: u64,
    /// Lowest and highest (exclusive) byte touched by reads and writes, after volumes were laid out.
    pub first_byte: u64,
    pub end_byte: u64,
    /// `end_byte − first_byte`.
    pub span_bytes: u64,
    /// Distinct 4 KiB units touched by reads and writes, volumes apart unless merged; known after a scan.
    pub footprint_4k: Option<u64>,
    /// Last arrival minus first, after clamping.
    pub duration_ns: u64,
    pub volumes: Vec<VolumeReport>,
    /// Requests whose time stamp lay before their predecessor's; they arrive together with it.
    pub out_of_order: u64,
    /// BLAKE3 of the files' bytes as stored, one after the other; known at the end.
    pub checksum: Option<String>,
}

/// Lines left out for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Skipped {
    pub reason: String,
    pub count: u64,
}

/// The first line that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BadLine {
    pub file: String,
    pub line: u64,
    /// Its first characters.
    pub text: String,
    pub reason: String,
}

/// One device of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VolumeReport {
    /// As the trace names it: ASU or device number, `host.disk`.
    pub name: String,
    /// Where its byte 0 lies in the addresses delivered.
    pub base: u64,
    /// Highest byte (exclusive) that its reads and writes touch, from its own byte 0.
    pub end_byte: u64,
    pub records: u64,
}

impl TraceReport {
    pub fn skipped_total(&self) -> u64 {
        self.skipped.iter().map(|s| s.count).sum()
    }
}

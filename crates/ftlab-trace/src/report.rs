//! What reading a trace found out about it.

use serde::Serialize;

/// The facts of a trace; complete once its stream has been read to the end ([`TraceReport::complete`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TraceReport {
    /// Name of the format, as in the catalogue.
    pub format: String,
    /// Why this format was chosen.
    pub reason: String,
    /// What the content leaves open, with the values taken.
    pub choices: Vec<Choice>,
    pub files: Vec<String>,
    /// True when everything below covers the whole trace.
    pub complete: bool,
    /// Lines of text read; 0 for a binary format.
    pub lines: u64,
    /// Requests delivered.
    pub records: u64,
    /// Lines left out, by reason.
    pub skipped: Vec<Skipped>,
    /// Lines and records that parse and are no requests of this trace, by reason.
    pub left_out: Vec<Skipped>,
    pub first_bad: Option<BadLine>,
    pub reads: u64,
    pub writes: u64,
    pub trims: u64,
    pub flushes: u64,
    /// reads / (reads + writes); `None` without either, or where the trace does not tell them apart.
    pub read_share: Option<f64>,
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
    /// False when the trace carries no times, or one and the same everywhere.
    pub timed: bool,
    /// False when the trace does not tell reads from writes.
    pub has_operations: bool,
    /// Requests whose time stamp lay before the latest one ahead of them in the file.
    pub out_of_order: u64,
    /// Of these and of stray stamps, those that arrive later than they say, together with the request before: all where the
    /// order is that of the file, else those beyond the window within which requests are sorted.
    pub late: u64,
    /// Times the clock was set: from there on time goes on from the request before.
    pub clock_jumps: u64,
    /// Requests with a stray time stamp far from those around them; they arrive together with the one before.
    pub stray_times: u64,
    /// BLAKE3 of the one file's bytes as stored, or of the files' digests one after the other; known at the end.
    pub checksum: Option<String>,
}

/// A value taken for something that the content leaves open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// Name of the setting, such as `time_unit`.
    pub setting: String,
    pub value: String,
    /// True when an option or a sidecar gave it; false when it was guessed.
    pub given: bool,
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

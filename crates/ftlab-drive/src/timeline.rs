//! A timeline of dies and channels in Chrome's trace format, which Perfetto (ui.perfetto.dev) opens.
//!
//! One track per channel and one per die; a slice per transfer and per hold of a die, named by what it does, with cause,
//! class and page as arguments. Times are simulated. Slices beyond a limit are counted and left out, so that a long run
//! does not fill the disk; the file says how many.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use ftlab_core::{Error, Geometry, Result};
use ftlab_ftl::FlashOpKind;

use crate::new_file::NewFile;
use crate::schedule::Phase;
use crate::timed::{Observer, Span, Subject};

/// Process numbers of the two groups of tracks.
const CHANNELS: u32 = 1;
const DIES: u32 = 2;

/// Writes what it observes.
pub struct Timeline {
    out: BufWriter<Box<dyn Write + Send>>,
    path: PathBuf,
    slices_left: u64,
    left_out: u64,
    failed: Option<std::io::Error>,
    /// The place that the file takes when it is whole.
    new: Option<NewFile>,
}

/// How every timeline begins.
const MARK: &str = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";

impl Timeline {
    /// A timeline in a new file or in the place of an older timeline, of at most `limit` slices.
    ///
    /// # Errors
    /// Something else lies there, or the file cannot be made.
    pub fn create(path: &Path, geometry: &Geometry, limit: u64) -> Result<Self> {
        let (new, file) = NewFile::begin(path, MARK.as_bytes())?;
        let mut timeline = Self::to(Box::new(file), path, geometry, limit);
        timeline.new = Some(new);
        Ok(timeline)
    }

    /// A timeline into any writer; `path` is what errors name.
    pub fn to(out: Box<dyn Write + Send>, path: &Path, geometry: &Geometry, limit: u64) -> Self {
        let mut timeline = Timeline {
            out: BufWriter::with_capacity(1 << 16, out),
            path: path.to_owned(),
            slices_left: limit,
            left_out: 0,
            failed: None,
            new: None,
        };
        let head = timeline.head(geometry);
        timeline.keep(head);
        timeline
    }

    /// Names the tracks.
    fn head(&mut self, geometry: &Geometry) -> std::io::Result<()> {
        let out = &mut self.out;
        writeln!(out, "{MARK}")?;
        for (process, name) in [(CHANNELS, "channels"), (DIES, "dies")] {
            let comma = if process == CHANNELS { "" } else { "," };
            writeln!(
                out,
                "{comma}{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{process},\"args\":{{\"name\":\"{name}\"}}}}"
            )?;
        }
        let tracks = (0..geometry.channels)
            .map(|n| (CHANNELS, n, format!("channel {n}")))
            .chain((0..geometry.total_dies()).map(|n| {
                let (channel, chip) = (n % geometry.channels, n / geometry.channels);
                let (way, die) = (chip % geometry.ways, chip / geometry.ways);
                (DIES, n, format!("channel {channel} way {way} die {die}"))
            }));
        for (process, track, name) in tracks {
            writeln!(
                out,
                ",{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{process},\"tid\":{track},\"args\":{{\"name\":\"{name}\"}}}}"
            )?;
        }
        Ok(())
    }

    fn slice(&mut self, process: u32, track: u32, name: &str, subject: &Subject, planes: u32, span: Span) {
        if self.slices_left == 0 {
            self.left_out += 1;
            return;
        }
        self.slices_left -= 1;
        let Span { start_ns, end_ns } = span;
        let length = end_ns - start_ns;
        // Microseconds, as the format wants, with three decimals: exact nanoseconds.
        let written = writeln!(
            self.out,
            ",{{\"ph\":\"X\",\"pid\":{process},\"tid\":{track},\"name\":\"{name}\",\"cat\":\"{}\",\
             \"ts\":{}.{:03},\"dur\":{}.{:03},\
             \"args\":{{\"cause\":\"{0}\",\"class\":\"{}\",\"page\":{},\"planes\":{planes}}}}}",
            subject.cause.name(),
            start_ns / 1000,
            start_ns % 1000,
            length / 1000,
            length % 1000,
            subject.class.name(),
            subject.page,
        );
        self.keep(written);
    }

    /// Keeps the first failure for `finish` and writes nothing after it.
    fn keep(&mut self, result: std::io::Result<()>) {
        if let Err(error) = result {
            self.failed.get_or_insert(error);
            self.slices_left = 0;
        }
    }
}

impl Observer for Timeline {
    fn channel(&mut self, channel: u32, phase: Phase, subject: &Subject, span: Span) {
        self.slice(CHANNELS, channel, phase.name(), subject, 1, span);
    }

    fn die(&mut self, die: u32, subject: &Subject, planes: u32, span: Span) {
        let name = match subject.kind {
            FlashOpKind::Read => "read",
            FlashOpKind::Program => "program",
            FlashOpKind::Erase => "erase",
        };
        self.slice(DIES, die, name, subject, planes, span);
    }

    fn finish(&mut self) -> Result<()> {
        let end = writeln!(self.out, "],\"otherData\":{{\"slices_left_out\":{}}}}}", self.left_out);
        let end = end.and_then(|()| self.out.flush());
        self.keep(end);
        match self.failed.take() {
            Some(error) => Err(Error::io(&self.path, &error)),
            None => self.new.take().map_or(Ok(()), NewFile::finish),
        }
    }
}

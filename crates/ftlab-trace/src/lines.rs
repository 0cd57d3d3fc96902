//! Formats of lines of text: splitting lines, passing over what carries nothing.
//!
//! Empty lines and lines that begin with `#` are neither good nor bad; for bad ones see [`Health`].

use ftlab_core::{Batch, Error, OpKind, Result};
use memchr::memchr;

use crate::carried;
use crate::formats::{Progress, Reader, is_header};
use crate::health::{Defect, Health, Parsed, Piece, left_out, show_line};
use crate::input::{Input, LONGEST};
use crate::numbered::Numbered;
use crate::report::Skipped;

/// Why a line of no bytes is left out.
pub const EMPTY: &str = "a request of no bytes";

/// Turns one line into a request.
pub trait LineParser: Send {
    /// Appends the request of `line` (without its end), with an absolute time in nanoseconds.
    fn parse(&mut self, line: &[u8], to: &mut Requests<'_>) -> Parsed;

    /// Appends what was held back, at the end of the file.
    fn finish(&mut self, _batch: &mut Batch) {}

    /// Good lines that gave no request, by reason; those of no bytes are counted by [`Requests::push`].
    fn left_out(&self) -> Vec<Skipped> {
        Vec::new()
    }

    /// Names of the label column's values.
    fn labels(&self) -> &[String] {
        &[]
    }

    /// False when the format carries no times.
    fn timed(&self) -> bool {
        true
    }

    /// False when the format does not tell reads from writes.
    fn has_operations(&self) -> bool {
        true
    }
}

/// Where the requests of lines go.
pub struct Requests<'a> {
    pub batch: &'a mut Batch,
    pub volumes: &'a mut VolumeTable,
    /// Requests of no bytes.
    pub empty: &'a mut u64,
}

impl Requests<'_> {
    /// Appends a request of the device `volume`, but counts one of no bytes.
    #[inline]
    pub fn push(&mut self, time_ns: u64, op: OpKind, offset: u64, length: u32, volume: &[u8]) -> Parsed {
        if length == 0 {
            *self.empty += 1;
            return Ok(());
        }
        let volume = self.volumes.id(volume)?;
        self.batch.push(time_ns, op, offset, length, volume, 0);
        Ok(())
    }

    /// Appends a flush of the device `volume`.
    #[inline]
    pub fn flush(&mut self, time_ns: u64, volume: &[u8]) -> Parsed {
        let volume = self.volumes.id(volume)?;
        self.batch.push(time_ns, OpKind::Flush, 0, 0, volume, 0);
        Ok(())
    }
}

/// A reader of any text format: splits lines, counts, applies the rule about bad ones.
pub struct TextReader<P> {
    parser: P,
    input: Input,
    volumes: VolumeTable,
    health: Health,
    empty: u64,
    /// Lines of the last batch: its first, and its last.
    batch_lines: (u64, u64),
    batch_requests: usize,
}

impl<P: LineParser> TextReader<P> {
    /// A reader of an input of which `lines` lines, the header, have been consumed.
    pub fn after_lines(parser: P, input: Input, lines: u64) -> Self {
        let mut health = Health::of(Piece::Line);
        health.silent = lines;
        TextReader {
            parser,
            input,
            volumes: VolumeTable::default(),
            health,
            empty: 0,
            batch_lines: (0, 0),
            batch_requests: 0,
        }
    }

    /// A reader that passes over a first line which holds one of `words` (in lower case).
    pub fn with_header(parser: P, input: Input, words: &[&str]) -> Result<Self> {
        let mut reader = Self::after_lines(parser, input, 0);
        if !words.is_empty()
            && let Some((length, end)) = reader.next_line()?
            && is_header(&reader.input.bytes()[..length], words)
        {
            reader.input.consume(length + end);
            reader.health.silent = 1;
        }
        Ok(reader)
    }

    /// Length of the next line in the input's buffer and of its line end; `None` at the end of the file.
    #[inline]
    fn next_line(&mut self) -> Result<Option<(usize, usize)>> {
        let mut searched = 0;
        loop {
            let bytes = self.input.bytes();
            if let Some(at) = memchr(b'\n', &bytes[searched..]) {
                return Ok(Some((searched + at, 1)));
            }
            searched = bytes.len();
            if self.input.ended() {
                return Ok((searched > 0).then_some((searched, 0)));
            }
            if searched > LONGEST {
                return Err(Error::input(format!(
                    "{}: line {} is longer than {} MiB, expected lines of text",
                    self.input.name(),
                    self.health.seen() + 1,
                    LONGEST >> 20
                )));
            }
            self.input.fill()?;
        }
    }
}

impl<P: LineParser> Reader for TextReader<P> {
    fn read(&mut self, batch: &mut Batch) -> Result<()> {
        self.batch_lines.0 = self.health.seen() + 1;
        while batch.len() < Batch::TARGET {
            let Some((length, end)) = self.next_line()? else {
                self.health.end()?;
                self.parser.finish(batch);
                break;
            };
            let mut line = &self.input.bytes()[..length];
            if let [rest @ .., b'\r'] = line {
                line = rest;
            }
            let mut to = Requests {
                batch,
                volumes: &mut self.volumes,
                empty: &mut self.empty,
            };
            match self.parser.parse(line, &mut to) {
                Ok(()) => self.health.good += 1,
                Err(_) if line.first().is_none_or(|&b| b == b'#') || line.iter().all(u8::is_ascii_whitespace) => {
                    self.health.silent += 1;
                }
                Err(defect) => self.health.note(&self.input, 0, line, defect)?,
            }
            self.input.consume(length + end);
        }
        self.batch_lines.1 = self.health.seen();
        self.batch_requests = batch.len();
        Ok(())
    }

    fn progress(&self) -> Progress {
        let mut all = left_out(&[(EMPTY, self.empty)]);
        all.extend(self.parser.left_out());
        Progress {
            lines: self.health.seen(),
            batch_lines: Some(self.batch_lines),
            batch_exact: self.batch_lines.1 + 1 == self.batch_lines.0 + self.batch_requests as u64,
            skipped: self.health.skipped(),
            left_out: all,
            first_bad: self.health.first_bad.clone(),
        }
    }

    fn labels(&self) -> &[String] {
        self.parser.labels()
    }

    fn timed(&self) -> bool {
        self.parser.timed()
    }

    fn has_operations(&self) -> bool {
        self.parser.has_operations()
    }

    fn volumes(&self) -> &[String] {
        self.volumes.names()
    }

    fn input(&self) -> &Input {
        &self.input
    }
}

/// The trace's devices, numbered as they appear.
#[derive(Debug, Default)]
pub struct VolumeTable(Numbered);

impl VolumeTable {
    /// The names, by number.
    pub fn names(&self) -> &[String] {
        self.0.names()
    }

    /// The number of the device called `key`; a comma in it shows as a dot (`host,disk` is `host.disk`).
    #[inline]
    pub fn id(&mut self, key: &[u8]) -> Parsed<u16> {
        self.0.find(key).map_or_else(|| self.enter(key), Ok)
    }

    #[cold]
    fn enter(&mut self, key: &[u8]) -> Parsed<u16> {
        // Half of the name of a table may be carried, that of the host or that of its device.
        // A quote is nothing that a name must hide.
        let shown = |part: &[u8]| show_line(part).replace("\\\"", "\"");
        let part = |part: &[u8]| carried::name(part).unwrap_or_else(|| shown(part));
        let parts = || key.split(|&b| b == b',').map(part).collect::<Vec<_>>().join(".");
        let fits = key.len() <= 255 || key.split(|&b| b == b',').any(carried::is_marked);
        let id = if fits { self.0.enter(key, parts()) } else { None };
        id.ok_or(Defect::whole(
            "one of at most 65536 devices with names of at most 255 bytes",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: String) -> Result<crate::TraceReport> {
        use ftlab_core::Source;
        let mut opened = crate::open_bytes("t.csv", text.into_bytes(), &crate::ReadOptions::default())?;
        let mut batch = Batch::default();
        loop {
            opened.next_batch(&mut batch)?;
            if batch.is_empty() {
                return Ok(opened.report());
            }
        }
    }

    const GOOD: &str = "1,hm,0,Read,0,512,9\n";

    #[test]
    fn a_few_bad_lines_are_left_out_and_counted() {
        let report = read(format!(
            "{}\n# note\n1,hm,0,Raed,0,512,9\n{}1,hm\n",
            GOOD.repeat(20),
            GOOD.repeat(3)
        ))
        .unwrap();
        assert_eq!((report.lines, report.records, report.skipped_total()), (27, 23, 2));
        let first = report.first_bad.unwrap();
        assert_eq!((first.line, first.text.as_str()), (23, "1,hm,0,Raed,0,512,9"));
        assert_eq!(first.reason, "column 4: expected Read or Write");
        assert_eq!(report.skipped[0].count, 2);
    }

    #[test]
    fn many_bad_lines_are_an_error_that_names_the_first() {
        let bad = "1,hm,0,Read,x,512,9\n";
        assert!(read(GOOD.repeat(100) + &bad.repeat(10)).is_ok());
        let error = read(GOOD.repeat(100) + &bad.repeat(11)).unwrap_err().to_string();
        let expected = "t.csv, line 101: `1,hm,0,Read,x,512,9`: column 5: expected a whole number (11 of the first 111 \
                        lines are bad), after 100 requests";
        assert_eq!(error, expected);
        // One in two hundred is fewer than 1 %, however many there are.
        assert!(read((GOOD.repeat(199) + bad).repeat(30)).is_ok());
    }

    #[test]
    fn a_file_of_bad_lines_is_refused_at_line_one() {
        let options = crate::ReadOptions {
            as_format: Some("spc".into()),
            ..crate::ReadOptions::default()
        };
        use ftlab_core::Source;
        for text in [GOOD.repeat(3), GOOD.repeat(3000)] {
            let mut opened = crate::open_bytes("t", text.into_bytes(), &options).unwrap();
            let error = opened.next_batch(&mut Batch::default()).unwrap_err().to_string();
            assert!(
                error.starts_with("t, line 1: `1,hm,0,Read,0,512,9`: column 2: expected a whole number"),
                "{error}"
            );
        }
    }
}

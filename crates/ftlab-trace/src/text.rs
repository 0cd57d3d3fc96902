//! What the text formats share: lines, numbers, the rule about bad lines.
//!
//! # Bad lines
//! A line that does not parse is left out and counted by reason, with the first one kept for the report. It becomes an
//! error, which names the first bad line, as soon as
//! - the first [`FEW`] lines of the file are all bad (the file is something else), or
//! - more than [`FEW`] lines and more than 1 % of the lines so far are bad, or
//! - the file ends with more bad lines than good ones.
//!
//! Empty lines and lines that begin with `#` are neither good nor bad.

use ftlab_core::{Batch, Error, OpKind, Result};
use memchr::memchr;
use rustc_hash::FxHashMap;

use crate::formats::{Progress, Reader, is_header};
use crate::input::{Input, LONGEST};
use crate::report::{BadLine, Skipped};
use crate::settings::TimeUnit;

/// Bad lines that are forgiven whatever their share.
pub const FEW: u64 = 10;
/// Addresses and lengths beyond this (an exbibyte) are taken for damage; it keeps all later sums within 64 bits.
pub const LARGEST: u64 = 1 << 60;

/// Why a line does not parse: the column (from 1; 0 = the line as a whole) and what was expected there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defect {
    pub column: u8,
    pub expected: &'static str,
}

/// What parsing a line or a column gives.
pub type Parsed<T = ()> = std::result::Result<T, Defect>;

impl Defect {
    fn sentence(self) -> String {
        match self.column {
            0 => format!("expected {}", self.expected),
            column => format!("column {column}: expected {}", self.expected),
        }
    }
}

/// Turns one line into a request.
pub trait LineParser: Send {
    /// Appends the request of `line` (without its end), with an absolute time in nanoseconds.
    fn parse(&mut self, line: &[u8], batch: &mut Batch, volumes: &mut VolumeTable) -> Parsed;

    /// Appends what was held back, at the end of the file.
    fn finish(&mut self, _batch: &mut Batch) {}

    /// Good lines that gave no request, by reason.
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

/// Reasons for leaving good lines out, with how many lines each concerned; those that concerned none are not listed.
pub fn left_out(counts: &[(&str, u64)]) -> Vec<Skipped> {
    let met = counts.iter().filter(|(_, count)| *count > 0);
    met.map(|&(reason, count)| Skipped {
        reason: reason.to_owned(),
        count,
    })
    .collect()
}

/// Why a line of no bytes is left out.
pub const EMPTY: &str = "a request of no bytes";

/// A reader of any text format: splits lines, counts, applies the rule about bad ones.
pub struct TextReader<P> {
    parser: P,
    input: Input,
    volumes: VolumeTable,
    lines: u64,
    good: u64,
    /// Lines that carry nothing: empty, comments, the header.
    silent: u64,
    skipped: Vec<(Defect, u64)>,
    bad: u64,
    first_bad: Option<BadLine>,
    /// Lines of the last batch: its first, and its last.
    batch_lines: (u64, u64),
    batch_requests: usize,
}

impl<P: LineParser> TextReader<P> {
    pub fn new(parser: P, input: Input) -> Self {
        Self::after_lines(parser, input, 0)
    }

    /// A reader of an input of which `lines` lines, the header, have been consumed.
    pub fn after_lines(parser: P, input: Input, lines: u64) -> Self {
        TextReader {
            parser,
            input,
            volumes: VolumeTable::default(),
            lines,
            good: 0,
            silent: lines,
            skipped: Vec::new(),
            bad: 0,
            first_bad: None,
            batch_lines: (0, 0),
            batch_requests: 0,
        }
    }

    /// A reader that passes over a first line which holds one of `words` (in lower case).
    pub fn with_header(parser: P, input: Input, words: &[&str]) -> Result<Self> {
        let mut reader = Self::new(parser, input);
        if let Some((length, end)) = reader.next_line()?
            && is_header(&reader.input.bytes()[..length], words)
        {
            reader.input.consume(length + end);
            reader.lines = 1;
            reader.silent = 1;
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
                    self.lines + 1,
                    LONGEST >> 20
                )));
            }
            self.input.fill()?;
        }
    }

    #[cold]
    fn note_defect(&mut self, line: &[u8], defect: Defect) -> Result<()> {
        self.bad += 1;
        match self.skipped.iter_mut().find(|(d, _)| *d == defect) {
            Some((_, count)) => *count += 1,
            None => self.skipped.push((defect, 1)),
        }
        if self.first_bad.is_none() {
            self.first_bad = Some(BadLine {
                file: self.input.name().to_owned(),
                line: self.lines,
                text: show_line(line),
                reason: defect.sentence(),
            });
        }
        let counted = self.lines - self.silent.min(self.lines);
        if (self.bad >= FEW && self.good == 0) || (self.bad > FEW && self.bad * 100 > counted) {
            return self.too_many_bad();
        }
        Ok(())
    }

    #[cold]
    fn too_many_bad(&self) -> Result<()> {
        let first = self.first_bad.clone().unwrap_or_default();
        Err(Error::input(format!(
            "{}, line {}: `{}`: {} ({} of the first {} lines are bad)",
            first.file, first.line, first.text, first.reason, self.bad, self.lines
        )))
    }
}

impl<P: LineParser> Reader for TextReader<P> {
    fn read(&mut self, batch: &mut Batch) -> Result<()> {
        self.batch_lines.0 = self.lines + 1;
        while batch.len() < Batch::TARGET {
            let Some((length, end)) = self.next_line()? else {
                if self.bad > self.good {
                    self.too_many_bad()?;
                }
                self.parser.finish(batch);
                break;
            };
            self.lines += 1;
            let mut line = &self.input.bytes()[..length];
            if let [rest @ .., b'\r'] = line {
                line = rest;
            }
            match self.parser.parse(line, batch, &mut self.volumes) {
                Ok(()) => self.good += 1,
                Err(_) if line.first().is_none_or(|&b| b == b'#') || line.iter().all(u8::is_ascii_whitespace) => {
                    self.silent += 1;
                }
                Err(defect) => {
                    let line = line.to_vec();
                    self.note_defect(&line, defect)?;
                }
            }
            self.input.consume(length + end);
        }
        self.batch_lines.1 = self.lines;
        self.batch_requests = batch.len();
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress {
            lines: self.lines,
            batch_lines: Some(self.batch_lines),
            batch_exact: self.batch_lines.1 + 1 == self.batch_lines.0 + self.batch_requests as u64,
            skipped: self
                .skipped
                .iter()
                .map(|(defect, count)| Skipped {
                    reason: defect.sentence(),
                    count: *count,
                })
                .collect(),
            left_out: self.parser.left_out(),
            first_bad: self.first_bad.clone(),
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
        &self.volumes.names
    }

    fn input(&self) -> &Input {
        &self.input
    }
}

/// A line as errors show it: its first 80 bytes, those that are not printable ASCII escaped.
pub fn show_line(line: &[u8]) -> String {
    let shown: String = line
        .iter()
        .take(80)
        .map(|&b| std::ascii::escape_default(b).to_string())
        .collect();
    if line.len() > 80 { shown + "…" } else { shown }
}

/// The trace's devices, numbered as they appear.
#[derive(Debug, Default)]
pub struct VolumeTable {
    names: Vec<String>,
    index: FxHashMap<Box<[u8]>, u16>,
    last: (Vec<u8>, u16),
}

impl VolumeTable {
    /// The names, by number.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of the device called `key`; a comma in it shows as a dot (`host,disk` is `host.disk`).
    #[inline]
    pub fn id(&mut self, key: &[u8]) -> Parsed<u16> {
        if self.last.0 == key && !key.is_empty() {
            return Ok(self.last.1);
        }
        self.look_up(key)
    }

    fn look_up(&mut self, key: &[u8]) -> Parsed<u16> {
        let id = match self.index.get(key) {
            Some(&id) => id,
            None => {
                let expected = "one of at most 65536 devices with names of at most 255 bytes";
                let id = u16::try_from(self.names.len()).ok().filter(|_| key.len() <= 255);
                let id = id.ok_or(Defect { column: 0, expected })?;
                self.names.push(show_line(key).replace(',', "."));
                self.index.insert(key.into(), id);
                id
            }
        };
        self.last.0.clear();
        self.last.0.extend_from_slice(key);
        self.last.1 = id;
        Ok(id)
    }
}

/// The columns of one line, read from left to right. `SEPARATOR` is a comma, or a space for any run of blanks.
pub struct Columns<'a, const SEPARATOR: u8> {
    line: &'a [u8],
    at: usize,
    column: u8,
}

impl<'a, const SEPARATOR: u8> Columns<'a, SEPARATOR> {
    #[inline]
    pub fn new(line: &'a [u8]) -> Self {
        let mut columns = Columns { line, at: 0, column: 1 };
        columns.skip_blanks();
        columns
    }

    /// A defect of the column read last.
    #[cold]
    pub fn defect(&self, expected: &'static str) -> Defect {
        Defect {
            column: self.column.saturating_sub(1),
            expected,
        }
    }

    /// Byte position in the line.
    #[inline]
    pub fn position(&self) -> usize {
        self.at
    }

    /// An unsigned whole number.
    #[inline]
    pub fn number(&mut self) -> Parsed<u64> {
        let from = self.at;
        let mut value = 0u64;
        while let Some(&byte) = self.line.get(self.at) {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            self.at += 1;
        }
        let digits = self.at - from;
        // Nineteen digits always fit 64 bits; more are damage (or times of the year 2554 in picoseconds).
        if digits == 0 || digits > 19 || !self.end_column() {
            return Err(self.wrong("a whole number"));
        }
        Ok(value)
    }

    /// A decimal number times 10^`exponent`, rounded down; every digit that matters is exact.
    #[inline]
    pub fn decimal(&mut self, exponent: i32) -> Parsed<u64> {
        let from = self.at;
        let mut value = 0u64;
        let mut point = None;
        while let Some(&byte) = self.line.get(self.at) {
            let digit = byte.wrapping_sub(b'0');
            if digit <= 9 {
                // Digits behind the last one that counts are passed over.
                if point.is_none_or(|p| (self.at - p) as i32 <= exponent) {
                    value = match value.checked_mul(10).and_then(|v| v.checked_add(u64::from(digit))) {
                        Some(value) => value,
                        None => return Err(self.wrong("a smaller number")),
                    };
                }
            } else if byte == b'.' && point.is_none() {
                point = Some(self.at);
            } else {
                break;
            }
            self.at += 1;
        }
        if self.at - from == usize::from(point.is_some()) {
            return Err(self.wrong("a number"));
        }
        if matches!(self.line.get(self.at), Some(b'e' | b'E')) {
            self.at = from;
            return self.scientific(exponent);
        }
        let fraction = point.map_or(0, |p| (self.at - p - 1) as i32).min(exponent.max(0));
        if !self.end_column() {
            return Err(self.wrong("a number"));
        }
        scale(value, exponent - fraction).ok_or_else(|| self.defect("a smaller number"))
    }

    /// "1.5e-05" and the like, through floating point.
    #[cold]
    fn scientific(&mut self, exponent: i32) -> Parsed<u64> {
        let text = std::str::from_utf8(self.text()?).unwrap_or("");
        let value = text.parse::<f64>().unwrap_or(f64::NAN) * libm::pow(10.0, f64::from(exponent));
        if (0.0..1.8e19).contains(&value) {
            Ok(value as u64)
        } else {
            Err(self.defect("a number that is not negative"))
        }
    }

    /// The column as it stands, possibly empty.
    #[inline]
    pub fn text(&mut self) -> Parsed<&'a [u8]> {
        let rest = &self.line[self.at..];
        let length = rest
            .iter()
            .position(|&b| b == SEPARATOR || b == b'\t' || b == b' ')
            .unwrap_or(rest.len());
        self.at += length;
        if !self.end_column() {
            return Err(self.wrong("no blank inside"));
        }
        Ok(&rest[..length])
    }

    /// A column that must not be empty.
    #[inline]
    pub fn key(&mut self) -> Parsed<&'a [u8]> {
        let key = self.text()?;
        if key.is_empty() {
            return Err(self.defect("a name or number"));
        }
        Ok(key)
    }

    /// Passes a column whatever is in it.
    #[inline]
    pub fn skip(&mut self) {
        let rest = &self.line[self.at..];
        self.at += rest.iter().position(|&b| b == SEPARATOR).unwrap_or(rest.len());
        self.end_column();
    }

    /// The first byte of the next column; its separator where it is empty.
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    /// True when the line has no further column.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.at >= self.line.len()
    }

    /// Passes blanks and one separator; false if something else follows the value.
    #[inline]
    fn end_column(&mut self) -> bool {
        self.column = self.column.saturating_add(1);
        match self.line.get(self.at) {
            None => true,
            Some(&byte) if byte == SEPARATOR => {
                self.at += 1;
                self.skip_blanks();
                true
            }
            Some(b' ' | b'\t') => {
                self.skip_blanks();
                if SEPARATOR == b' ' || self.is_done() {
                    return true;
                }
                let found = self.line[self.at] == SEPARATOR;
                if found {
                    self.at += 1;
                    self.skip_blanks();
                }
                found
            }
            Some(_) => false,
        }
    }

    #[inline]
    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t') = self.line.get(self.at) {
            self.at += 1;
        }
    }

    /// A defect of the column being read, whether or not its end was passed.
    #[cold]
    fn wrong(&self, expected: &'static str) -> Defect {
        let from = self.line[..self.at.min(self.line.len())].iter();
        let column = if SEPARATOR == b' ' {
            let mut inside = false;
            let mut count = 0u8;
            for blank in from.chain(self.line.get(self.at)).map(|&b| b == b' ' || b == b'\t') {
                if !blank && !inside {
                    count = count.saturating_add(1);
                }
                inside = !blank;
            }
            count.max(1)
        } else {
            (from.filter(|&&b| b == SEPARATOR).count().min(250) as u8) + 1
        };
        Defect { column, expected }
    }
}

/// `value × 10^power`, rounded down.
fn scale(value: u64, power: i32) -> Option<u64> {
    let factor = 10u64.checked_pow(power.unsigned_abs())?;
    if power >= 0 {
        value.checked_mul(factor)
    } else {
        Some(value / factor)
    }
}

/// A time column in `unit`, as nanoseconds.
#[inline]
pub fn time<const SEPARATOR: u8>(columns: &mut Columns<'_, SEPARATOR>, unit: TimeUnit) -> Parsed<u64> {
    columns.decimal(unit.exponent())
}

/// `count` units of `unit_bytes` as bytes, refused beyond [`LARGEST`].
#[inline]
pub fn to_bytes(count: u64, unit_bytes: u64) -> Option<u64> {
    count.checked_mul(unit_bytes).filter(|&bytes| bytes <= LARGEST)
}

/// A request's length as the record holds it; a request of no bytes is no request.
#[inline]
pub fn to_length(bytes: u64) -> Option<u32> {
    u32::try_from(bytes).ok().filter(|&length| length > 0)
}

/// A number of at most `most` hexadecimal digits (16 at the most), with or without `0x`.
#[inline]
pub fn hexadecimal(text: &[u8], most: usize) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    if digits.is_empty() || digits.len() > most {
        return None;
    }
    digits.iter().try_fold(0, |number, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        Some(number << 4 | u64::from(digit))
    })
}

/// Reads the letters and words that mean read and write.
#[inline]
pub fn read_or_write(text: &[u8]) -> Option<OpKind> {
    match text {
        [b'R' | b'r', ..] if text.len() == 1 || text.eq_ignore_ascii_case(b"read") => Some(OpKind::Read),
        [b'W' | b'w', ..] if text.len() == 1 || text.eq_ignore_ascii_case(b"write") => Some(OpKind::Write),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_in_nanoseconds() {
        let ns = |text: &str, unit: TimeUnit| Columns::<b','>::new(text.as_bytes()).decimal(unit.exponent());
        assert_eq!(ns("0.011413", TimeUnit::Seconds), Ok(11_413_000));
        assert_eq!(
            ns("1398405332.080820638", TimeUnit::Seconds),
            Ok(1_398_405_332_080_820_638)
        );
        assert_eq!(ns("26.2140009", TimeUnit::Milliseconds), Ok(26_214_000));
        assert_eq!(ns("7", TimeUnit::Seconds), Ok(7_000_000_000));
        assert_eq!(ns("7.", TimeUnit::Microseconds), Ok(7_000));
        assert_eq!(ns(".5", TimeUnit::Microseconds), Ok(500));
        assert_eq!(ns("123456.9", TimeUnit::Picoseconds), Ok(123));
        assert_eq!(ns("1.5e-05", TimeUnit::Seconds), Ok(15_000));
        assert_eq!(ns("12.75", TimeUnit::Nanoseconds), Ok(12));
        for bad in ["", ".", "-1", "1.2.3", "x", "99999999999999999999", "18446744074"] {
            assert!(ns(bad, TimeUnit::Seconds).is_err(), "{bad}");
        }
    }

    #[test]
    fn columns_are_told_apart_with_blanks_around_them() {
        let mut c = Columns::<b','>::new(b" 1 , 22,r ,");
        assert_eq!((c.number(), c.number()), (Ok(1), Ok(22)));
        assert_eq!(c.text(), Ok(&b"r"[..]));
        assert!(c.is_done());
        let mut c = Columns::<b' '>::new(b"1\t22  333");
        assert_eq!((c.number(), c.number(), c.number()), (Ok(1), Ok(22), Ok(333)));
    }

    #[test]
    fn a_defect_names_its_column() {
        let mut c = Columns::<b','>::new(b"1,2x,3");
        c.number().unwrap();
        assert_eq!(c.number().unwrap_err().column, 2);
        let mut c = Columns::<b' '>::new(b"1  2x 3");
        c.number().unwrap();
        assert_eq!(c.number().unwrap_err().column, 2);
        let mut c = Columns::<b','>::new(b"1");
        c.number().unwrap();
        assert!(c.number().is_err());
    }

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

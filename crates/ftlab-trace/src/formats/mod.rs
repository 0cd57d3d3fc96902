//! The trace formats: one file each, one line each in the catalogue, told by content.

pub mod csv;
pub mod disksim;
pub mod ftlab;
pub mod mqsim;
pub mod msr;
pub mod spc;

use ftlab_core::catalogue as core_catalogue;
use ftlab_core::{Batch, Error, Result, error};

use crate::input::Input;
use crate::options::ReadOptions;
use crate::report::{BadLine, Skipped};
use crate::text::{LineParser, VolumeTable, show_line};

/// One trace format.
pub struct Format {
    /// Its name in `--as`, which is also its file's name.
    pub name: &'static str,
    source: &'static str,
    detect: fn(&Sample<'_>) -> Option<Claim>,
    open: fn(Input, &ReadOptions) -> Result<Box<dyn Reader>>,
}

/// `format!(a, b)`: the formats of these modules, each under its module's name.
macro_rules! formats {
    ($($module:ident),+ $(,)?) => {
        &[$(Format {
            name: stringify!($module),
            source: include_str!(concat!(stringify!($module), ".rs")),
            detect: $module::detect,
            open: $module::open,
        }),+]
    };
}

/// All formats. Where several recognise a file equally surely, the first one here is taken.
pub fn catalogue() -> &'static [Format] {
    formats!(ftlab, csv, msr, spc, mqsim, disksim)
}

impl Format {
    /// The head of its file, as Markdown.
    pub fn documentation(&self) -> String {
        core_catalogue::documentation(self.source)
    }

    /// The first sentence of the documentation.
    pub fn summary(&self) -> String {
        core_catalogue::summary(self.source)
    }

    /// A reader of `input`, which is taken to be in this format.
    pub fn open(&self, input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>> {
        (self.open)(input, options)
    }
}

/// Reads one file of a trace: batches with absolute times, addresses as in the file, volumes numbered as they appear.
/// Every request but a flush covers at least one byte.
pub trait Reader: Send {
    /// Appends the next requests to an empty batch; leaves it empty at the end.
    fn read(&mut self, batch: &mut Batch) -> Result<()>;
    fn progress(&self) -> Progress;
    /// Names of the volumes seen so far, by number.
    fn volumes(&self) -> &[String];
    /// Names of the label column's values.
    fn labels(&self) -> &[String] {
        &[]
    }
    fn input(&self) -> &Input;
    /// True when volumes already lie in one address space and must not be laid out again.
    fn one_address_space(&self) -> bool {
        false
    }
}

/// What a reader has met so far.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    pub lines: u64,
    /// First and last line of the last batch, in a text format.
    pub batch_lines: Option<(u64, u64)>,
    /// True when each line of the last batch gave one request.
    pub batch_exact: bool,
    pub skipped: Vec<Skipped>,
    pub first_bad: Option<BadLine>,
}

/// A format's answer that a file is its own.
pub struct Claim {
    /// Sure: a magic number or a header says so. Otherwise the columns merely fit.
    pub sure: bool,
    pub reason: String,
}

/// The first bytes of a file, as detection sees them.
pub struct Sample<'a> {
    pub bytes: &'a [u8],
    /// Complete lines without their ends; no comments, no empty ones.
    pub lines: Vec<&'a [u8]>,
}

impl<'a> Sample<'a> {
    const LINES: usize = 50;

    pub fn new(bytes: &'a [u8], whole: bool) -> Self {
        let mut lines: Vec<&[u8]> = bytes.split(|&b| b == b'\n').take(4 * Self::LINES).collect();
        if lines.len() < 4 * Self::LINES && !whole && lines.len() > 1 {
            lines.pop();
        }
        let lines = lines
            .into_iter()
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
            .filter(|line| !line.trim_ascii().is_empty() && line[0] != b'#')
            .take(Self::LINES)
            .collect();
        Sample { bytes, lines }
    }

    /// The lines without a first one that holds one of these words (in lower case), and whether there was one.
    fn body(&self, header_words: &[&str]) -> (&[&'a [u8]], bool) {
        match self.lines.split_first() {
            Some((first, rest)) if is_header(first, header_words) => (rest, true),
            _ => (&self.lines, false),
        }
    }

    /// True when at least nine tenths of the lines, and at least one, parse.
    fn fits(lines: &[&[u8]], parser: &mut impl LineParser) -> bool {
        let (mut batch, mut volumes) = (Batch::default(), VolumeTable::default());
        let good = lines
            .iter()
            .filter(|line| parser.parse(line, &mut batch, &mut volumes).is_ok())
            .count();
        good > 0 && good * 10 >= lines.len() * 9
    }
}

/// Whether a line holds one of these words, which are in lower case.
pub(crate) fn is_header(line: &[u8], words: &[&str]) -> bool {
    let line = String::from_utf8_lossy(&line[..line.len().min(1000)]).to_lowercase();
    words.iter().any(|word| line.contains(word))
}

/// Chooses the format of `input` by its content, or takes the one that the options force; says why.
pub fn detect(input: &mut Input, options: &ReadOptions) -> Result<(&'static Format, String)> {
    if let Some(name) = &options.as_format {
        let format = catalogue().iter().find(|f| f.name == name);
        let format = format.ok_or_else(|| error::unknown("trace format", name, &names()))?;
        return Ok((format, format!("forced to {name}")));
    }
    input.fill()?;
    let name = input.name().to_owned();
    let bytes = input.bytes();
    if bytes.is_empty() {
        let known = names().join(", ");
        return Err(Error::input(format!(
            "{name}: the file is empty, expected a trace ({known})"
        )));
    }
    let sample = Sample::new(bytes, input.ended());
    let mut claims: Vec<(&Format, Claim)> = catalogue()
        .iter()
        .filter_map(|f| (f.detect)(&sample).map(|claim| (f, claim)))
        .collect();
    claims.sort_by_key(|(_, claim)| !claim.sure);
    let others: Vec<&str> = claims.iter().skip(1).map(|(f, _)| f.name).collect();
    match claims.first() {
        Some((format, claim)) if claim.sure || others.is_empty() => Ok((format, claim.reason.clone())),
        Some((format, claim)) => {
            let others = others.join(", ");
            let reason = format!("{}; it also reads as {others} (--as settles it)", claim.reason);
            Ok((format, reason))
        }
        None => {
            let first = show_line(bytes.split(|&b| b == b'\n').next().unwrap_or(bytes));
            let known = names().join(", ");
            Err(Error::input(format!(
                "{name}, line 1: `{first}` is in no known trace format (known: {known}; --as forces one)"
            )))
        }
    }
}

/// Refuses a time unit for a format that fixes its own.
fn refuse_time_unit(format: &str, options: &ReadOptions) -> Result<()> {
    match options.time_unit {
        None => Ok(()),
        Some(unit) => Err(Error::input(format!(
            "a time unit ({}) was given, but the format {format} fixes its own: expected none",
            unit.name()
        ))),
    }
}

/// Names of all formats.
pub fn names() -> Vec<&'static str> {
    catalogue().iter().map(|f| f.name).collect()
}

#[cfg(test)]
pub(crate) mod testing {
    //! Reading of samples in the formats' own tests.

    use super::*;

    /// Detects `text`, reads it with the detected format, and returns the format's name with all requests.
    pub fn read(text: &[u8]) -> (&'static str, Batch) {
        let options = ReadOptions::default();
        let mut input = Input::from_bytes("sample", text.to_vec()).unwrap();
        let (format, _) = detect(&mut input, &options).unwrap();
        let mut reader = format.open(input, &options).unwrap();
        (format.name, read_all(reader.as_mut()).unwrap())
    }

    pub fn read_all(reader: &mut dyn Reader) -> Result<Batch> {
        let (mut all, mut batch) = (Batch::default(), Batch::default());
        loop {
            batch.clear();
            reader.read(&mut batch)?;
            if batch.is_empty() {
                return Ok(all);
            }
            for i in 0..batch.len() {
                crate::rows::append(&mut all, &batch, i);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect_text(text: &[u8]) -> Result<(&'static Format, String)> {
        detect(
            &mut Input::from_bytes("t", text.to_vec()).unwrap(),
            &ReadOptions::default(),
        )
    }

    #[test]
    fn what_is_in_no_format_gets_one_sentence_with_its_first_line() {
        let error = |text: &[u8]| detect_text(text).err().unwrap().to_string();
        assert!(error(b"").starts_with("t: the file is empty"), "{}", error(b""));
        let rubbish = error(b"\x00\x01\xffhello\nworld");
        assert!(
            rubbish.starts_with("t, line 1: `\\x00\\x01\\xffhello` is in no known trace format (known: ftlab, csv")
        );
        assert!(error(b"once upon a time").contains("`once upon a time`"));
    }

    #[test]
    fn a_forced_format_must_exist() {
        let options = ReadOptions {
            as_format: Some("mqsin".into()),
            ..ReadOptions::default()
        };
        let mut input = Input::from_bytes("t", b"x".to_vec()).unwrap();
        let error = detect(&mut input, &options).err().unwrap().to_string();
        assert!(
            error.contains("unknown trace format `mqsin`; did you mean `mqsim`?"),
            "{error}"
        );
    }

    #[test]
    fn every_format_documents_itself() {
        for format in catalogue() {
            assert!(format.summary().len() > 20, "{}", format.name);
            for heading in ["Origin", "dropped"] {
                assert!(format.documentation().contains(heading), "{}: {heading}", format.name);
            }
        }
    }
}

//! The trace formats: one file each, one line each in the catalogue, told by content.

pub mod alibaba;
pub mod android;
pub mod arc;
pub mod blkparse;
pub mod blktrace;
mod block_events;
pub mod block_references;
pub mod cloudphysics;
mod continuity;
pub mod csv;
mod csv_header;
mod csv_layout;
mod csv_units;
mod dates;
mod digest;
pub mod disksim;
mod fields;
pub mod fio;
pub mod fiu;
mod five_columns;
pub mod ftlab;
pub mod lcs;
pub mod midas;
pub mod most;
pub mod mqsim;
pub mod msr;
mod names;
pub mod nexus5;
mod objects;
mod operations;
pub mod oracle_general;
pub mod pixel6a;
pub mod recording;
mod scsi;
pub mod spc;
pub mod ssdsim;
pub mod systor;
pub mod tencent;
mod text_format;
pub mod vscsi;
pub mod wiscsee;

use ftlab_core::catalogue as core_catalogue;
use ftlab_core::{Batch, Error, Result, error};

use self::text_format::TextFormat;
use crate::health::show_line;
use crate::input::Input;
use crate::lines::{LineParser, Requests, VolumeTable};
use crate::options::ReadOptions;
use crate::report::{BadLine, Choice, Skipped};
use crate::settings::{Order, Setting, Settings};

/// One trace format.
pub struct Format {
    /// Its name in `--as`, which is also its file's name.
    pub name: &'static str,
    source: &'static str,
    /// What its content may leave open; other settings are refused.
    pub settings: &'static [Setting],
    sample: fn() -> Vec<u8>,
    detect: fn(&Sample<'_>) -> Option<Claim>,
    open: fn(Input, &Settings) -> Result<Box<dyn Reader>>,
}

/// `formats!(a, b: B)`: the formats of these modules, each under its module's name. Behind a colon stands the parser of a
/// [`TextFormat`], which says everything; other modules have functions of the same names.
macro_rules! formats {
    ($($module:ident $(: $parser:ident)?),+ $(,)?) => {
        &[$(formats!(@ $module, $module $(::$parser)?)),+]
    };
    (@ $module:ident, $($of:ident)::+) => {
        Format {
            name: stringify!($module),
            source: include_str!(concat!(stringify!($module), ".rs")),
            settings: $($of)::+::SETTINGS,
            sample: $($of)::+::sample,
            detect: $($of)::+::detect,
            open: $($of)::+::open,
        }
    };
}

/// All formats. Where several recognise a file equally surely, the first one here is taken.
// Inlined into another crate it would compile every reader there again.
#[inline(never)]
#[rustfmt::skip]
pub fn catalogue() -> &'static [Format] {
    formats!(
        ftlab, recording, csv, pixel6a: Pixel6a, cloudphysics: CloudPhysics, blktrace, vscsi, lcs, oracle_general, fio,
        blkparse: Blkparse, fiu: Fiu, android: Android, most: Most, wiscsee: Wiscsee, nexus5: Nexus5, msr: Msr, spc: Spc,
        alibaba: Alibaba, tencent: Tencent, systor: Systor, mqsim, ssdsim, disksim, midas: Midas, arc: Arc,
        block_references
    )
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
    pub fn open(&self, input: Input, settings: &Settings) -> Result<Box<dyn Reader>> {
        (self.open)(input, settings)
    }

    /// A small file in this format, for tests and the documentation.
    pub fn sample(&self) -> Vec<u8> {
        (self.sample)()
    }

    /// The order in which its requests arrive, where that follows from how its files come about: by time where they are
    /// logs of several CPUs or are written when requests complete.
    pub fn order(&self) -> Option<Order> {
        let merged = matches!(
            self.name,
            "blkparse" | "blktrace" | "most" | "wiscsee" | "nexus5" | "android"
        );
        merged.then_some(Order::Time)
    }

    /// Whether nothing in its files tells what they are, so that it must be named.
    pub fn is_named_only(&self) -> bool {
        let sample = self.sample();
        (self.detect)(&Sample::new(&sample, true)).is_some_and(|claim| claim.strength == Strength::Named)
    }

    /// Refuses settings that this format does not leave open.
    fn check(&self, settings: &Settings) -> Result<()> {
        let open = |s: &Setting| *s == Setting::Order || self.settings.contains(s);
        let fixed = Setting::ALL.into_iter().filter(|s| !open(s));
        for setting in fixed {
            if let Some(value) = settings.get(setting) {
                return Err(Error::input(format!(
                    "{} {value} was given, but the format {} fixes its own: expected none",
                    setting.name(),
                    self.name
                )));
            }
        }
        Ok(())
    }
}

/// Reads one file of a trace: batches with absolute times, addresses as in the file, volumes numbered as they appear.
/// Every request but a flush covers at least one byte.
pub trait Reader: Send {
    /// Appends the next requests to an empty batch; leaves it empty at the end. On an error the batch holds the requests
    /// before the damage, and the reader is not called again.
    fn read(&mut self, batch: &mut Batch) -> Result<()>;
    fn progress(&self) -> Progress;
    /// Names of the volumes seen so far, by number.
    fn volumes(&self) -> &[String];
    /// Names of the label column's values.
    fn labels(&self) -> &[String] {
        &[]
    }
    /// Names of processes met since the last call, for requests that carry process ids; forgets them.
    fn take_process_names(&mut self) -> Vec<(u32, String)> {
        Vec::new()
    }
    fn input(&self) -> &Input;
    /// True when volumes already lie in one address space and must not be laid out again.
    fn one_address_space(&self) -> bool {
        false
    }
    /// False when the format carries no times; all are 0 then.
    fn timed(&self) -> bool {
        true
    }
    /// False when the format does not tell reads from writes.
    fn has_operations(&self) -> bool {
        true
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
    /// Lines and records that do not parse.
    pub skipped: Vec<Skipped>,
    /// Those that parse and are left out by the format's rule (other events, empty requests).
    pub left_out: Vec<Skipped>,
    pub first_bad: Option<BadLine>,
}

/// A format's answer that a file is its own.
pub struct Claim {
    pub strength: Strength,
    /// Why, and why the guesses.
    pub reason: String,
    /// A value for each of the format's settings, guessed from the content or the format's default.
    pub guess: Settings,
}

/// How surely a file is of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// Nothing in the file speaks against it or for it: taken only where an option names the format.
    Named,
    /// The columns fit.
    Fits,
    /// They fit, and their values look like this format's and not another's.
    Likely,
    /// A magic number or a header says so.
    Sure,
}

impl Claim {
    /// A claim of a format that leaves nothing open.
    pub fn new(strength: Strength, reason: impl Into<String>) -> Self {
        Claim {
            strength,
            reason: reason.into(),
            guess: Settings::default(),
        }
    }
}

/// What [`detect`] found: the format, and the settings to open it with.
pub struct Detected {
    pub format: &'static Format,
    pub reason: String,
    pub settings: Settings,
    /// Each setting that the format leaves open, with its value and where that comes from.
    pub choices: Vec<Choice>,
}

/// The first bytes of a file, as detection sees them.
pub struct Sample<'a> {
    pub bytes: &'a [u8],
    /// Complete lines without their ends; no comments, no empty ones.
    pub lines: Vec<&'a [u8]>,
    /// Names of the columns, where an option gives them.
    pub columns: Option<&'a str>,
    /// What options have settled, so that nothing of it is guessed.
    pub settled: Option<&'a Settings>,
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
        Sample {
            bytes,
            lines,
            columns: None,
            settled: None,
        }
    }

    /// Whether a setting is left to the content: then a claim's reason says what it was guessed to be, and why.
    fn leaves_open(&self, setting: Setting) -> bool {
        self.settled.is_none_or(|settled| settled.get(setting).is_none())
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
        let (mut batch, mut volumes, mut empty) = (Batch::default(), VolumeTable::default(), 0);
        let mut to = Requests {
            batch: &mut batch,
            volumes: &mut volumes,
            empty: &mut empty,
        };
        let good = lines.iter().filter(|line| parser.parse(line, &mut to).is_ok()).count();
        good > 0 && good * 10 >= lines.len() * 9
    }

    /// As [`fits`](Self::fits), for lines so unlike any others that two of them tell a short text in which one is bad.
    fn fits_but_one(lines: &[&[u8]], parser: &mut impl LineParser) -> bool {
        let one = |at: usize| {
            let others = [&lines[..at], &lines[at + 1..]].concat();
            others.len() >= 2 && Self::fits(&others, parser)
        };
        lines.len() < 10 && (0..lines.len()).any(one)
    }
}

/// Whether a line holds one of these words, which are in lower case.
pub(crate) fn is_header(line: &[u8], words: &[&str]) -> bool {
    let line = String::from_utf8_lossy(&line[..line.len().min(1000)]).to_lowercase();
    words.iter().any(|word| line.contains(word))
}

/// Chooses the format of `input` by its content, or takes the one that the options force; says why.
pub fn detect(input: &mut Input, options: &ReadOptions) -> Result<Detected> {
    input.fill()?;
    let name = input.name().to_owned();
    if let (None | Some("csv"), Some(columns)) = (options.as_format.as_deref(), &options.settings.columns) {
        csv::check_columns(columns)?;
    }
    let bytes = input.bytes();
    let sample = Sample {
        columns: options.settings.columns.as_deref(),
        settled: Some(&options.settings),
        ..Sample::new(bytes, input.ended())
    };
    if let Some(forced) = &options.as_format {
        let format = catalogue().iter().find(|f| f.name == forced);
        let format = format.ok_or_else(|| error::unknown("trace format", forced, &names()))?;
        let claim = (format.detect)(&sample);
        let guess = claim.as_ref().map(|claim| &claim.guess);
        let reason = match &claim {
            Some(claim) => format!("forced to {forced}: {}", claim.reason),
            None => format!("forced to {forced}"),
        };
        return settle(format, reason, guess, options);
    }
    if bytes.is_empty() {
        let known = names().join(", ");
        return Err(Error::input(format!(
            "{name}: the file is empty, expected a trace ({known})"
        )));
    }
    let mut claims: Vec<(&Format, Claim)> = catalogue()
        .iter()
        .filter_map(|f| (f.detect)(&sample).map(|claim| (f, claim)))
        .filter(|(_, claim)| claim.strength > Strength::Named)
        .collect();
    // Stable: among equals the first of the catalogue stays first.
    claims.sort_by_key(|(_, claim)| std::cmp::Reverse(claim.strength));
    let Some((format, claim)) = claims.first() else {
        let first = show_line(bytes.split(|&b| b == b'\n').next().unwrap_or(bytes));
        let known = names().join(", ");
        return Err(Error::input(format!(
            "{name}, line 1: `{first}` is in no known trace format (known: {known}; --as forces one)"
        )));
    };
    let rivals: Vec<&str> = claims[1..]
        .iter()
        .filter(|(_, other)| other.strength == claim.strength && claim.strength != Strength::Sure)
        .map(|(f, _)| f.name)
        .collect();
    let mut reason = claim.reason.clone();
    if !rivals.is_empty() {
        reason += &format!("; it also reads as {} (--as settles it)", rivals.join(", "));
    }
    settle(format, reason, Some(&claim.guess), options)
}

/// The options' settings, completed by the guesses.
fn settle(
    format: &'static Format,
    reason: String,
    guess: Option<&Settings>,
    options: &ReadOptions,
) -> Result<Detected> {
    format.check(&options.settings)?;
    let settings = match guess {
        Some(guess) => options.settings.or(guess),
        None => options.settings.clone(),
    };
    let choices = format.settings.iter().chain(&[Setting::Order]).filter_map(|&setting| {
        let given = options.settings.get(setting).is_some();
        settings.get(setting).map(|value| Choice {
            setting: setting.name().to_owned(),
            value,
            given,
        })
    });
    Ok(Detected {
        format,
        reason,
        choices: choices.collect(),
        settings,
    })
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
        let found = detect(&mut input, &options).unwrap();
        let mut reader = found.format.open(input, &found.settings).unwrap();
        (found.format.name, read_all(reader.as_mut()).unwrap())
    }

    /// Reads `text` as one format, and returns the reader with all requests.
    pub fn read_as<P: TextFormat>(text: &[u8], settings: &Settings) -> Result<(Box<dyn Reader>, Batch)> {
        let mut reader = P::open(Input::from_bytes("t", text.to_vec())?, settings)?;
        let batch = read_all(reader.as_mut())?;
        Ok((reader, batch))
    }

    /// Each bad line between two good ones is left out, counted, and leaves nothing behind; the two good ones are returned.
    pub fn bad_lines<P: TextFormat>(good: &str, bad: &[&str]) -> Batch {
        let read = |text: String| read_as::<P>(text.as_bytes(), &Settings::NONE).unwrap();
        let (_, wanted) = read(format!("{good}\n{good}\n"));
        assert_eq!(wanted.len(), 2);
        for bad in bad {
            let (reader, batch) = read(format!("{good}\n{bad}\n{good}\n"));
            assert_eq!(batch, wanted, "{bad}");
            assert_eq!(reader.progress().skipped.len(), 1, "{bad}");
        }
        wanted
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
    use super::testing::read_all;
    use super::*;
    use crate::settings::{Codes, TimeUnit};

    fn detect_text(text: &[u8]) -> Result<Detected> {
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
        assert!(rubbish.starts_with(
            "t, line 1: `\\x00\\x01\\xffhello` is in no known trace format (known: ftlab, recording, csv"
        ));
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
    fn what_an_option_settles_is_not_guessed() {
        let reason = |text: &[u8], settings: Settings| {
            let options = ReadOptions {
                settings,
                ..ReadOptions::default()
            };
            detect(&mut Input::from_bytes("t", text.to_vec()).unwrap(), &options)
                .unwrap()
                .reason
        };
        let csv = b"time,op,address,size,action\n1000,0,8,8,Q\n2000,1,16,8,D\n";
        let five = b"0 0 8 8 1\n1000 0 16 8 0\n2000 0 24 8 1\n";
        let lines = b"8,0 0 1 0.1 7 Q WS 8 + 8 [a]\n8,0 0 2 0.2 7 D WS 8 + 8 [a]\n";
        let unit = || Settings::NONE.with_time_unit(TimeUnit::Nanoseconds);
        let units = || unit().with_units(TimeUnit::Nanoseconds, Codes::ReadIsOne, 512, 512);
        let event = || Settings::NONE.with_event('Q');
        for (text, guessed, settled) in [
            (&csv[..], "times in ", unit()),
            (csv, "read=1, as DiskSim", units()),
            (csv, "512", units()),
            (csv, "D events", event()),
            (five, "times in ", unit()),
            (five, "1 is taken as read", units()),
            (lines, "D events", event()),
        ] {
            let (open, given) = (reason(text, Settings::NONE), reason(text, settled));
            assert!(open.contains(guessed), "{guessed}: {open}");
            assert!(!given.contains(guessed), "{guessed}: {given}");
        }
    }

    #[test]
    fn every_sample_is_recognised_as_what_it_is() {
        for format in catalogue() {
            let mut input = Input::from_bytes("sample", format.sample()).unwrap();
            let mut options = ReadOptions::default();
            if format.is_named_only() {
                assert!(detect(&mut input, &options).is_err());
                options.as_format = Some(format.name.to_owned());
            }
            let found = detect(&mut input, &options).unwrap();
            assert_eq!(found.format.name, format.name, "{}", found.reason);
            let choices: Vec<&str> = found.choices.iter().map(|c| c.setting.as_str()).collect();
            // A table has events where a column says so.
            let settings = format
                .settings
                .iter()
                .filter(|s| format.name != "csv" || **s != Setting::Event);
            let open: Vec<&str> = settings.map(|s| s.name()).collect();
            assert_eq!(choices, open, "{}: every open setting is guessed", format.name);
            let batch = read_all(found.format.open(input, &found.settings).unwrap().as_mut()).unwrap();
            assert!(batch.len() >= 3, "{}: {} requests", format.name, batch.len());
        }
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

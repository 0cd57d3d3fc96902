//! A correlation set as a text file: a first line with the version, a line per property, then a line per pair.
//!
//! ```text
//! ftlab-correlations 1
//! source Financial1.spc.zst
//! miner clustered, regions of 4096 units
//! unit 4096
//! window 512
//! support 0.001
//! windows 98
//! pairs 2
//! 1024 88012 17
//! 3 51 4
//! ```
//!
//! A pair is its first LPN, its second LPN and the windows that contain both in this order. `unit`, `window` and `windows`
//! must be there; `source`, `miner`, `support` (0) and `pairs` need not, so that a set can be written by hand. Where `pairs` is
//! there it must be true: that is how a file that was cut short is noticed. Lines may come in any order of support;
//! empty lines and lines that begin with `#` are skipped. Written in the set's order, so that equal sets are equal files.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::str::FromStr;

use ftlab_core::{Error, Lpn, Result};

use crate::set::check;
use crate::{About, CorrelationSet, Pair};

const FIRST_LINE: &str = "ftlab-correlations 1";
/// Longest line that is read; a longer one is not a set.
const LONGEST: u64 = 64 << 10;

impl CorrelationSet {
    /// Reads a set's file.
    pub fn read(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|cause| Error::io(path, &cause))?;
        Self::parse(BufReader::new(file), &path.display().to_string())
    }

    /// Reads a set from any text; `name` is what errors call it.
    pub fn parse(text: impl BufRead, name: &str) -> Result<Self> {
        let mut file = SetFile {
            text,
            name,
            number: 0,
            line: Vec::new(),
        };
        file.expect_first_line()?;
        let mut head = Head::default();
        let mut pairs: Vec<Pair> = Vec::new();
        while let Some(line) = file.next_line()? {
            if line.starts_with(|c: char| c.is_ascii_digit()) {
                let pair = pair(line).and_then(|pair| {
                    let windows = head
                        .windows
                        .ok_or("a pair before the line `windows`; expected the properties first")?;
                    check(&pair, windows).map(|()| pair)
                });
                pairs.push(pair.map_err(|problem| file.refuse(&problem))?);
            } else {
                head.take(line).map_err(|problem| file.refuse(&problem))?;
            }
        }
        if let Some(expected) = head.pairs.filter(|&expected| expected != pairs.len() as u64) {
            return Err(Error::input(format!(
                "{name} ends after {} pairs; expected {expected}, as its line `pairs` says",
                pairs.len()
            )));
        }
        let about = head
            .about()
            .map_err(|problem| Error::input(format!("{name}: {problem}")))?;
        CorrelationSet::new(about, pairs).map_err(|cause| Error::input(format!("{name}: {cause}")))
    }

    /// Writes the set to `path`, over what is there.
    pub fn save(&self, path: &Path) -> Result<()> {
        let write = || -> io::Result<()> {
            let mut out = BufWriter::new(File::create(path)?);
            self.write(&mut out)?;
            out.flush()
        };
        write().map_err(|cause| Error::unwritable(path, &cause))
    }

    /// Writes the set as text.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let about = self.about();
        writeln!(out, "{FIRST_LINE}")?;
        writeln!(out, "source {}", one_line(&about.source))?;
        writeln!(out, "miner {}", one_line(&about.miner))?;
        writeln!(out, "unit {}\nwindow {}", about.unit, about.window)?;
        writeln!(out, "support {}\nwindows {}", about.support, about.windows)?;
        writeln!(out, "pairs {}", self.pairs().len())?;
        for pair in self.pairs() {
            writeln!(out, "{} {} {}", pair.first.0, pair.second.0, pair.windows)?;
        }
        Ok(())
    }
}

/// A name may hold anything; a line of the file may not hold a line break.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ").trim().to_owned()
}

/// The lines of a file, and where we are in it.
struct SetFile<'a, R> {
    text: R,
    name: &'a str,
    number: u64,
    line: Vec<u8>,
}

impl<R: BufRead> SetFile<'_, R> {
    fn expect_first_line(&mut self) -> Result<()> {
        let line = self.next_line()?.unwrap_or("").to_owned();
        if line == FIRST_LINE {
            return Ok(());
        }
        match line.strip_prefix("ftlab-correlations ") {
            Some(version) => Err(self.refuse(&format!("version `{version}` of a correlation set; expected 1"))),
            None => Err(self.refuse(&format!("`{}`; expected `{FIRST_LINE}`", shortened(&line)))),
        }
    }

    /// The next line that is neither empty nor a comment, without blanks around it.
    fn next_line(&mut self) -> Result<Option<&str>> {
        loop {
            self.line.clear();
            let mut limited = io::Read::take(&mut self.text, LONGEST);
            let read = limited.read_until(b'\n', &mut self.line);
            let read = read.map_err(|cause| Error::Io(format!("{}: {cause}", self.name)))?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if read as u64 == LONGEST {
                return Err(self.refuse("a line of more than 64 KiB; expected a line of a correlation set"));
            }
            let blank = self.line.trim_ascii();
            if !blank.is_empty() && !blank.starts_with(b"#") {
                break;
            }
        }
        let Ok(text) = std::str::from_utf8(self.line.trim_ascii()) else {
            return Err(self.refuse("bytes that are no text; expected a line of a correlation set"));
        };
        Ok(Some(text))
    }

    fn refuse(&self, problem: &str) -> Error {
        Error::input(format!("{}, line {}: {problem}", self.name, self.number.max(1)))
    }
}

/// The properties as they come.
#[derive(Default)]
struct Head {
    source: Option<String>,
    miner: Option<String>,
    unit: Option<u32>,
    window: Option<u32>,
    support: Option<f64>,
    windows: Option<u64>,
    pairs: Option<u64>,
}

impl Head {
    fn take(&mut self, line: &str) -> std::result::Result<(), String> {
        let (key, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let value = value.trim();
        match key {
            "source" => once(&mut self.source, key, value.to_owned()),
            "miner" => once(&mut self.miner, key, value.to_owned()),
            "unit" => once(&mut self.unit, key, positive(key, value)?),
            "window" => once(&mut self.window, key, positive(key, value)?),
            "windows" => once(&mut self.windows, key, number(key, value)?),
            "pairs" => once(&mut self.pairs, key, number(key, value)?),
            "support" => {
                let share: f64 = number(key, value)?;
                if !(0.0..=1.0).contains(&share) {
                    return Err(format!("`support {value}`; expected a share from 0 to 1"));
                }
                once(&mut self.support, key, share)
            }
            _ => Err(format!(
                "`{}`; expected a pair (two LPNs and a number of windows) or one of source, miner, unit, window, support, \
                 windows, pairs",
                shortened(line)
            )),
        }
    }

    fn about(self) -> std::result::Result<About, String> {
        let missing = |key: &str| format!("no line `{key}`; expected unit, window and windows");
        Ok(About {
            source: self.source.unwrap_or_default(),
            miner: self.miner.unwrap_or_default(),
            unit: self.unit.ok_or_else(|| missing("unit"))?,
            window: self.window.ok_or_else(|| missing("window"))?,
            support: self.support.unwrap_or(0.0),
            windows: self.windows.ok_or_else(|| missing("windows"))?,
        })
    }
}

fn once<T>(place: &mut Option<T>, key: &str, value: T) -> std::result::Result<(), String> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("a second line `{key}`; expected one")),
    }
}

fn number<T: FromStr>(key: &str, value: &str) -> std::result::Result<T, String> {
    value
        .parse()
        .map_err(|_| format!("`{key} {}`; expected a number that fits", shortened(value)))
}

fn positive(key: &str, value: &str) -> std::result::Result<u32, String> {
    match number(key, value)? {
        0 => Err(format!("`{key} 0`; expected at least 1")),
        count => Ok(count),
    }
}

fn pair(line: &str) -> std::result::Result<Pair, String> {
    let mut numbers = line.split_ascii_whitespace().map(u32::from_str);
    match (numbers.next(), numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(first)), Some(Ok(second)), Some(Ok(windows)), None) => Ok(Pair {
            first: Lpn(first),
            second: Lpn(second),
            windows,
        }),
        _ => Err(format!(
            "`{}`; expected three numbers of 32 bits: first LPN, second LPN, windows",
            shortened(line)
        )),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAD: &str = "ftlab-correlations 1\nunit 4096\nwindow 512\nwindows 10\n";

    fn parsed(text: &str) -> Result<CorrelationSet> {
        CorrelationSet::parse(text.as_bytes(), "s.txt")
    }

    fn refused(text: &str) -> String {
        parsed(text).unwrap_err().to_string()
    }

    #[test]
    fn a_set_by_hand_needs_few_lines() {
        let set = parsed(&format!("{HEAD}# two pairs\n\n1 2 3\r\n 5 4 9 \n")).unwrap();
        assert_eq!(
            set.pairs()[0],
            Pair {
                first: Lpn(5),
                second: Lpn(4),
                windows: 9
            }
        );
        assert_eq!(
            (set.about().unit, set.about().source.as_str(), set.pairs().len()),
            (4096, "", 2)
        );
    }

    #[test]
    fn a_bad_line_is_named_with_what_was_expected() {
        for (text, expected) in [
            ("", "s.txt, line 1: ``; expected `ftlab-correlations 1`"),
            (
                "time,lba\n",
                "s.txt, line 1: `time,lba`; expected `ftlab-correlations 1`",
            ),
            (
                "ftlab-correlations 2\n",
                "s.txt, line 1: version `2` of a correlation set; expected 1",
            ),
            (
                "ftlab-correlations 1\n1 2 3\n",
                "s.txt, line 2: a pair before the line `windows`; expected the properties first",
            ),
            (
                "ftlab-correlations 1\nunit x\n",
                "s.txt, line 2: `unit x`; expected a number that fits",
            ),
            (
                "ftlab-correlations 1\nunit 0\n",
                "s.txt, line 2: `unit 0`; expected at least 1",
            ),
            (
                "ftlab-correlations 1\nunit 1\nunit 1\n",
                "s.txt, line 3: a second line `unit`; expected one",
            ),
            (
                "ftlab-correlations 1\nsupport 2\n",
                "s.txt, line 2: `support 2`; expected a share from 0 to 1",
            ),
            (
                "ftlab-correlations 1\nsupport nan\n",
                "s.txt, line 2: `support nan`; expected a share from 0 to 1",
            ),
            (
                "ftlab-correlations 1\nunit 1\nwindow 1\n",
                "s.txt: no line `windows`; expected unit, window and windows",
            ),
        ] {
            assert_eq!(refused(text), expected);
        }
        for (line, expected) in [
            (
                "1 2",
                "line 5: `1 2`; expected three numbers of 32 bits: first LPN, second LPN, windows",
            ),
            ("1 2 3 4", "line 5: `1 2 3 4`; expected three numbers"),
            (
                "1 4294967296 1",
                "line 5: `1 4294967296 1`; expected three numbers of 32 bits",
            ),
            ("7 7 1", "line 5: the pair 7 7 is a page with itself"),
            ("7 8 11", "line 5: the pair 7 8 is in 11 windows; expected 1 to 10"),
            ("1 2 3\n1 2 4", "s.txt: the pair 1 2 appears twice"),
            ("colour red", "line 5: `colour red`; expected a pair"),
            (
                "pairs 2\n1 2 3",
                "s.txt ends after 1 pairs; expected 2, as its line `pairs` says",
            ),
        ] {
            let text = format!("{HEAD}{line}\n");
            assert!(refused(&text).contains(expected), "{}", refused(&text));
        }
        assert!(
            CorrelationSet::parse(&b"\xff\xfe\n"[..], "s")
                .unwrap_err()
                .to_string()
                .contains("no text")
        );
        assert!(refused(&"x".repeat(1 << 20)).contains("more than 64 KiB"));
        assert!(
            CorrelationSet::read(Path::new("/nowhere/set"))
                .unwrap_err()
                .to_string()
                .contains("/nowhere/set")
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            keys in proptest::collection::btree_map((any::<u32>(), any::<u32>()), 1u32..1000, 0..50),
            support in 0.0f64..1.0,
            source in "\\PC{0,20}",
        ) {
            let pairs = keys.into_iter().filter(|((a, b), _)| a != b);
            let pairs = pairs.map(|((a, b), windows)| Pair { first: Lpn(a), second: Lpn(b), windows }).collect();
            let source = source.trim().to_owned();
            let about = About { source, miner: "m".into(), unit: 512, window: 7, support, windows: 1000 };
            let set = CorrelationSet::new(about, pairs).unwrap();
            let mut text = Vec::new();
            set.write(&mut text).unwrap();
            prop_assert_eq!(&CorrelationSet::parse(&text[..], "s").unwrap(), &set);
        }

        #[test]
        fn any_bytes_are_a_set_or_a_sentence(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let text = [HEAD.as_bytes(), &bytes].concat();
            let _ = CorrelationSet::parse(&text[..], "s");
            let _ = CorrelationSet::parse(&bytes[..], "s");
        }
    }
}

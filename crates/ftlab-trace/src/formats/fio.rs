//! fio I/O logs, versions 2 and 3.
//!
//! # Origin
//! axboe/fio: `write_iolog` writes them, `read_iolog` replays them; `HOWTO.rst`, "Trace file format", and `iolog.c`. Since fio 3.31
//! version 3 is written.
//!
//! # Columns
//! The first line is `fio version 2 iolog` or `fio version 3 iolog`. Then, between blanks:
//!
//! | version | columns | |
//! | --- | --- | --- |
//! | 3 | time, file, action | action is add, open or close |
//! | 3 | time, file, action, offset, length | action is read, write, trim, sync or datasync; bytes |
//! | 2 | file, action | as above |
//! | 2 | file, action, offset, length | as above, and wait: the offset is a time |
//!
//! Times of version 3 count from the start of the run, in `time_unit`: µs, as fio 3.31 and later write and read them (`iolog.c`,
//! `log_io_u` and `delay_since_ttime`; the HOWTO names no unit).
//!
//! Version 2 has no times but those of `wait`, whose documentation and code differ. The HOWTO says that it is a time in
//! µs "relative to the previous wait". The code (`iolog.c`, `read_iolog_get`) waits until so many ms have passed since
//! the start of the run, whatever was waited before (issues 247, 756 and 1568 of axboe/fio). So waits that increase
//! throughout the first part of the file are taken as moments since the start, in ms; otherwise each is taken as a
//! pause in µs. `time_unit` changes the unit, not this choice.
//!
//! Files are volumes. sync and datasync are flushes. fio appends to an existing log: a first line in the middle of a
//! file begins another run, which follows the one before.
//!
//! # What is dropped
//! add, open and close; waits in version 3, which fio ignores as well; sync_file_range; requests of no bytes; all counted. Names
//! with blanks in them cannot be read, nor can fio read them.

use ftlab_core::{OpKind, Result};

use super::{Claim, Reader, Sample, Strength};
use crate::columns::{Columns, to_length};
use crate::health::{Defect, Parsed, left_out};
use crate::input::Input;
use crate::lines::{LineParser, Requests, TextReader};
use crate::report::Skipped;
use crate::settings::{Setting, Settings, TimeUnit};

const FIRST_LINE: &[u8] = b"fio version ";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Two,
    Three,
}

/// What the number behind `wait` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Pause,
    /// Since the start of the run.
    Moment,
}

struct Iolog {
    version: Version,
    wait: Wait,
    unit: TimeUnit,
    /// When the run began, and the time of the last line.
    start: u64,
    now: u64,
    file_actions: u64,
    waits: u64,
    ranges: u64,
    empty: u64,
    runs: u64,
}

impl Iolog {
    /// A wait of version 2.
    fn wait(&mut self, columns: &mut Columns<'_, b' '>) -> Parsed {
        let time = columns.time(self.unit)?;
        self.now = match self.wait {
            Wait::Pause => self.now.saturating_add(time),
            Wait::Moment => self.now.max(self.start.saturating_add(time)),
        };
        self.waits += 1;
        Ok(())
    }

    /// Actions that are no reads, writes or trims.
    fn other(&mut self, action: &[u8], columns: &mut Columns<'_, b' '>) -> Parsed {
        match action {
            b"add" | b"open" | b"close" | b"unlink" => self.file_actions += 1,
            b"wait" if self.version == Version::Two => self.wait(columns)?,
            b"wait" => self.waits += 1,
            b"sync_file_range" => self.ranges += 1,
            _ => return Err(columns.defect("an action such as read, write, trim, sync or open")),
        }
        Ok(())
    }

    #[cold]
    fn first_line(&mut self, line: &[u8]) -> Parsed {
        self.version = version(line).ok_or(Defect {
            at: 3,
            expected: "version 2 or 3 of an iolog",
        })?;
        self.start = self.now;
        self.runs += 1;
        Ok(())
    }
}

fn version(line: &[u8]) -> Option<Version> {
    match line.strip_prefix(FIRST_LINE)? {
        [b'2', b' ', ..] => Some(Version::Two),
        [b'3', b' ', ..] => Some(Version::Three),
        _ => None,
    }
}

impl LineParser for Iolog {
    #[inline]
    fn parse(&mut self, line: &[u8], to: &mut Requests<'_>) -> Parsed {
        if line.starts_with(FIRST_LINE) {
            return self.first_line(line);
        }
        let mut columns = Columns::<b' '>::new(line);
        let at = match self.version {
            Version::Two => None,
            Version::Three => Some(columns.time(self.unit)?),
        };
        let file = columns.key()?;
        let action = columns.key()?;
        let op = match action {
            b"read" => OpKind::Read,
            b"write" => OpKind::Write,
            b"trim" => OpKind::Trim,
            b"sync" | b"datasync" => OpKind::Flush,
            _ => return self.other(action, &mut columns),
        };
        let (mut offset, mut length) = (0, 0);
        if op != OpKind::Flush {
            offset = columns.address(1, "an offset of at most 2^60")?;
            let bytes = columns.number()?;
            if bytes == 0 {
                self.empty += 1;
                return Ok(());
            }
            length = to_length(bytes).ok_or_else(|| columns.defect("a length below 4 GiB"))?;
        }
        let volume = to.volumes.id(file)?;
        if let Some(at) = at {
            self.now = self.start.saturating_add(at);
        }
        to.batch.push(self.now, op, offset, length, volume, 0);
        Ok(())
    }

    fn left_out(&self) -> Vec<Skipped> {
        let waits = match self.version {
            Version::Two => "waits, whose time counts",
            Version::Three => "waits in version 3, where they mean nothing",
        };
        left_out(&[
            ("files added, opened or closed", self.file_actions),
            (waits, self.waits),
            ("sync_file_range", self.ranges),
            ("requests of no bytes", self.empty),
            ("further runs in the same log", self.runs.saturating_sub(1)),
        ])
    }
}

/// What the waits at the start of a log are, and whether there are any.
fn waits(bytes: &[u8]) -> (Wait, bool) {
    let numbers = bytes.split(|&b| b == b'\n').filter_map(|line| {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let wait = words.nth(1)? == b"wait";
        let number = words.next().filter(|_| wait)?;
        std::str::from_utf8(number).ok()?.parse::<u64>().ok()
    });
    let (mut count, mut last, mut increasing) = (0, None, true);
    for number in numbers {
        increasing &= last.is_none_or(|last| number > last);
        (count, last) = (count + 1, Some(number));
    }
    match increasing && count > 0 {
        true => (Wait::Moment, true),
        false => (Wait::Pause, count > 0),
    }
}

pub const SETTINGS: &[Setting] = &[Setting::TimeUnit];

pub fn sample() -> Vec<u8> {
    b"fio version 3 iolog\n\
      2 /dev/nvme0n1 add\n\
      872 /dev/nvme0n1 open\n\
      878 /dev/nvme0n1 write 0 16384\n\
      888 /dev/nvme0n1 read 1048576 4096\n\
      889 /dev/nvme0n1 sync 0 0\n\
      891 /dev/nvme0n1 trim 0 16384\n\
      1677 /dev/nvme0n1 close\n"
        .to_vec()
}

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    let version = version(sample.lines.first()?)?;
    let (unit, why) = match (version, waits(sample.bytes)) {
        (Version::Three, _) => (TimeUnit::Microseconds, "version 3; times in us, as fio writes them"),
        (Version::Two, (Wait::Pause, true)) => (
            TimeUnit::Microseconds,
            "version 2; waits are taken as pauses in us, as they do not increase",
        ),
        (Version::Two, (Wait::Moment, _)) => (
            TimeUnit::Milliseconds,
            "version 2; waits increase, so they are taken as ms since the start, as fio's code reads them",
        ),
        (Version::Two, _) => (TimeUnit::Microseconds, "version 2, without times"),
    };
    Some(Claim {
        strength: Strength::Sure,
        reason: format!("the first line of a fio iolog, {why}"),
        guess: Settings::NONE.with_time_unit(unit),
    })
}

pub fn open(mut input: Input, settings: &Settings) -> Result<Box<dyn Reader>> {
    if input.bytes().is_empty() {
        input.fill()?;
    }
    let (wait, _) = waits(input.bytes());
    let parser = Iolog {
        version: Version::Three,
        wait,
        unit: settings.time_unit.unwrap_or(TimeUnit::Microseconds),
        start: 0,
        now: 0,
        file_actions: 0,
        waits: 0,
        ranges: 0,
        empty: 0,
        runs: 0,
    };
    Ok(Box::new(TextReader::after_lines(parser, input, 0)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;
    use crate::{ReadOptions, Volumes};
    use ftlab_core::{Batch, Source};

    #[test]
    fn version_3() {
        let (format, batch) = read(&sample());
        assert_eq!(format, "fio");
        use OpKind::{Flush, Read, Trim, Write};
        assert_eq!(batch.op, [Write, Read, Flush, Trim]);
        assert_eq!(batch.time_ns, [878_000, 888_000, 889_000, 891_000]);
        assert_eq!(batch.offset, [0, 1 << 20, 0, 0]);
        assert_eq!(batch.length, [16384, 4096, 0, 16384]);
    }

    #[test]
    fn files_are_volumes_and_runs_follow_each_other() {
        let text = b"fio version 3 iolog\n5 a write 0 512\n9 b read 0 512\n\n\
                     fio version 3 iolog\n0 b add\n1 b datasync 0 0\n2 a read 512 512\r\n3 a read 0 0\n";
        let (_, batch) = read(text);
        assert_eq!(batch.volume, [0, 1, 1, 0]);
        assert_eq!(batch.time_ns, [5_000, 9_000, 10_000, 11_000]);
    }

    fn version_2(waits: [u64; 3]) -> Vec<u8> {
        let [a, b, c] = waits;
        format!(
            "fio version 2 iolog\nf add\nf open\nf wait {a} 0\nf read 0 512\nf wait {b} 0\nf write 512 512\nf wait {c} 0\n\
             f trim 0 1024\nf close\n"
        )
        .into_bytes()
    }

    #[test]
    fn waits_that_increase_are_moments_others_pauses() {
        // As fio's code has it: 4000 ms, 6000 ms, 6001 ms after the start.
        let (_, batch) = read(&version_2([4000, 6000, 6001]));
        assert_eq!(batch.time_ns, [4_000_000_000, 6_000_000_000, 6_001_000_000]);
        // As the HOWTO has it: 1000, 2000, 3000 us after the start.
        let (_, batch) = read(&version_2([1000, 1000, 1000]));
        assert_eq!(batch.time_ns, [1_000_000, 2_000_000, 3_000_000]);
    }

    #[test]
    fn the_unit_can_be_set() {
        let mut options = ReadOptions {
            volumes: Volumes::Merge,
            ..ReadOptions::default()
        };
        options.settings.time_unit = Some(TimeUnit::Milliseconds);
        let mut opened = crate::open_bytes("t", version_2([7, 7, 7]), &options).unwrap();
        let mut batch = Batch::default();
        opened.next_batch(&mut batch).unwrap();
        assert_eq!(batch.time_ns, [0, 7_000_000, 14_000_000]);
        let left: Vec<(String, u64)> = opened
            .report()
            .left_out
            .into_iter()
            .map(|s| (s.reason, s.count))
            .collect();
        let expected = [("files added, opened or closed", 3), ("waits, whose time counts", 3)];
        assert_eq!(left, expected.map(|(reason, count)| (reason.to_owned(), count)));
    }

    #[test]
    fn bad_lines_are_named() {
        let text = [
            &sample()[..],
            b"900 /dev/nvme0n1 erase 0 512\n901 /dev/nvme0n1 read 0 99999999999\n",
        ]
        .concat();
        let mut opened = crate::open_bytes("t", text, &ReadOptions::default()).unwrap();
        opened.next_batch(&mut Batch::default()).unwrap();
        let report = opened.report();
        assert_eq!((report.records, report.skipped_total()), (4, 2));
        let first = report.first_bad.unwrap();
        assert_eq!(first.line, 9);
        assert_eq!(
            first.reason,
            "column 3: expected an action such as read, write, trim, sync or open"
        );
    }
}

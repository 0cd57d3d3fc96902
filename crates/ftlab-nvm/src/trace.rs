//! Traces of memory accesses in the text forms of public simulators.
//!
//! | format | line | time |
//! | --- | --- | --- |
//! | `dramsim3` | `0xADDRESS READ|WRITE CYCLE` | cycles |
//! | `nvmain` | `CYCLE R|W 0xADDRESS DATA [DATA] THREAD`, after a first line `NVMV1` | cycles |
//! | `ramulator` | `0xADDRESS R|W` | none: the next when there is room |
//! | `ramulator2` | `LD|ST ADDRESS` (decimal or 0x) | none |
//! | `gem5` | `[ID,]r|w|u,ADDRESS,SIZE,[FLAGS,]TICK[,PC]`, as gem5's `decode_packet_trace.py` prints packets | picoseconds |
//!
//! What is dropped: data, flags, threads, and lines of gem5 with `u`, which are neither `ReadReq` nor `WriteReq` and are counted. Of two fields after
//! gem5's size `packet` says what they are. An access is to the line that its address lies in; one of gem5 that is longer is an access to each of
//! its lines. Empty lines and lines that start with `#` are skipped, a byte order mark at the start as well.
//!
//! # Errors
//! Another form, packets of gem5 that can be read in two ways, a time that goes back, a time from 2^63 ps on, an address beyond 2^63.

mod packet;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use ftlab_core::{Error, Result};

use crate::feed::Step;
use crate::{LATEST, Ps, TOO_LATE};
use packet::{After, Reading, TwoFields};

pub const FORMATS: [&str; 5] = ["dramsim3", "nvmain", "ramulator", "ramulator2", "gem5"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Dramsim3,
    Nvmain,
    Ramulator,
    Ramulator2,
    Gem5,
}

/// The accesses of a trace.
#[derive(Debug)]
pub struct Trace {
    pub format: Format,
    pub steps: Vec<Step>,
    /// Lines with commands that neither read nor write.
    pub skipped: u64,
}

/// What a line says.
#[derive(Clone, Copy, Debug)]
struct Line {
    address: u64,
    /// None: a command that neither reads nor writes.
    write: Option<bool>,
    bytes: u64,
    /// In cycles, or in picoseconds.
    time: u64,
    /// Of gem5.
    after: Option<After>,
}

impl Format {
    pub fn parse(name: &str) -> Result<Format> {
        match FORMATS.iter().position(|known| *known == name) {
            Some(0) => Ok(Format::Dramsim3),
            Some(1) => Ok(Format::Nvmain),
            Some(2) => Ok(Format::Ramulator),
            Some(3) => Ok(Format::Ramulator2),
            Some(_) => Ok(Format::Gem5),
            None => Err(ftlab_core::error::unknown("trace format", name, &FORMATS)),
        }
    }

    pub fn name(self) -> &'static str {
        FORMATS[self as usize]
    }

    pub fn is_timed(self) -> bool {
        !matches!(self, Format::Ramulator | Format::Ramulator2)
    }

    pub fn counts_cycles(self) -> bool {
        matches!(self, Format::Dramsim3 | Format::Nvmain)
    }

    fn detect(line: &str) -> Option<Format> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let of = |format: Format| read_line(format, line).is_some().then_some(format);
        match words.as_slice() {
            ["NVMV1"] => Some(Format::Nvmain),
            [_, "READ" | "WRITE", _] => of(Format::Dramsim3),
            [_, "R" | "W", _, _, ..] => of(Format::Nvmain),
            [_, "R" | "W"] => of(Format::Ramulator),
            ["LD" | "ST", _] => of(Format::Ramulator2),
            [_] => of(Format::Gem5),
            _ => None,
        }
    }

    /// What its times are counted in.
    fn unit(self) -> &'static str {
        if self.counts_cycles() { "cycles" } else { "ps" }
    }

    fn shape(self) -> &'static str {
        match self {
            Format::Dramsim3 => "0xADDRESS READ|WRITE CYCLE",
            Format::Nvmain => "CYCLE R|W 0xADDRESS DATA THREAD",
            Format::Ramulator => "0xADDRESS R|W",
            Format::Ramulator2 => "LD|ST ADDRESS",
            Format::Gem5 => "[ID,]r|w|u,ADDRESS,SIZE,[FLAGS,]TICK[,PC]",
        }
    }

    /// One access as a line of this format.
    pub fn line(self, step: &Step, cycle: Ps) -> String {
        let (address, write) = (step.address, step.write);
        let cycles = step.time / cycle.max(1);
        match self {
            Format::Dramsim3 => format!("{address:#x} {} {cycles}", if write { "WRITE" } else { "READ" }),
            Format::Nvmain => format!("{cycles} {} {address:#x} 0 0 0", if write { "W" } else { "R" }),
            Format::Ramulator => format!("{address:#x} {}", if write { "W" } else { "R" }),
            Format::Ramulator2 => format!("{} {address}", if write { "ST" } else { "LD" }),
            Format::Gem5 => format!("{},{address},64,0,{}", if write { "w" } else { "r" }, step.time),
        }
    }
}

fn read_line(format: Format, line: &str) -> Option<Line> {
    let write = |word: &str, read_as: &str, write_as: &str| match word {
        w if w == read_as => Some(Some(false)),
        w if w == write_as => Some(Some(true)),
        _ => None,
    };
    let of = |address: u64, write: Option<bool>, time: u64| Line {
        address,
        write,
        bytes: 1,
        time,
        after: None,
    };
    if format == Format::Gem5 {
        return packet::read(line);
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    match (format, words.as_slice()) {
        (Format::Dramsim3, [address, op, at]) => {
            Some(of(number(address)?, write(op, "READ", "WRITE")?, at.parse().ok()?))
        }
        (Format::Nvmain, [at, op, address, _, ..]) if words.len() <= 6 => {
            Some(of(hexadecimal(address)?, write(op, "R", "W")?, at.parse().ok()?))
        }
        (Format::Ramulator, [address, op]) => Some(of(number(address)?, write(op, "R", "W")?, 0)),
        (Format::Ramulator2, [op, address]) => Some(of(number(address)?, write(op, "LD", "ST")?, 0)),
        _ => None,
    }
}

/// Whether a line is of Ramulator 2's traces of commands to banks: `R 0,0,1,2,34,5`.
fn is_address_vector(line: &str) -> bool {
    let Some((op, vector)) = line.split_once(char::is_whitespace) else {
        return false;
    };
    matches!(op, "R" | "W") && vector.contains(',') && vector.split(',').all(|n| n.trim().parse::<i64>().is_ok())
}

fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
}

/// Reads a trace; `cycle` is the length of a cycle where the format counts cycles, `line` the bytes of a line.
pub fn read(path: &Path, format: Option<Format>, cycle: Ps, line_bytes: u64) -> Result<Trace> {
    let file = File::open(path).map_err(|e| Error::io(path, &e))?;
    read_from(BufReader::new(file), path, format, cycle, line_bytes)
}

/// The same of any reader; `path` is what errors call it.
pub fn read_from(text: impl BufRead, path: &Path, format: Option<Format>, cycle: Ps, line_bytes: u64) -> Result<Trace> {
    let is_given = format.is_some();
    let mut format = format;
    let mut two = TwoFields::default();
    let mut steps: Vec<Step> = Vec::new();
    let (mut last, mut skipped) = (0, 0);
    for (index, line) in text.lines().enumerate() {
        let place = || format!("{}, line {}", path.display(), index + 1);
        let line = line.map_err(|e| match e.kind() {
            std::io::ErrorKind::InvalidData => Error::input(format!("{}: expected text of a memory trace", place())),
            _ => Error::io(path, &e),
        })?;
        let line = if index == 0 {
            line.trim_start_matches('\u{feff}')
        } else {
            &line
        }
        .trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if is_address_vector(line) {
            return Err(Error::input(format!(
                "{}: `{line}` has an address as channel, rank, bank and so on, which Ramulator 2 reads as ReadWriteTrace, expected `{}`, its LoadStoreTrace",
                place(),
                Format::Ramulator2.shape()
            )));
        }
        let of = match format {
            Some(of) => of,
            None => Format::detect(line).ok_or_else(|| {
                Error::input(format!(
                    "{}: `{line}` is of no known format (known: {})",
                    place(),
                    FORMATS.join(", ")
                ))
            })?,
        };
        format = Some(of);
        if line == "NVMV1" && of == Format::Nvmain && steps.is_empty() {
            continue;
        }
        let Some(found) = read_line(of, line) else {
            return Err(Error::input(format!(
                "{}: `{line}`, expected `{}` ({})",
                place(),
                of.shape(),
                of.name()
            )));
        };
        if let Some(after) = found.after {
            two.note_form(after);
        }
        let Some(write) = found.write else {
            skipped += 1;
            continue;
        };
        let mut first = 0;
        let time = match found.after {
            // Which of two fields is the time is known at the end.
            Some(after) => {
                first = two.note_time(index + 1, after, found.time);
                found.time
            }
            None => {
                let time = in_order(of, cycle, last, found.time);
                time.map_err(|said| Error::input(format!("{}: {said}", place())))?
            }
        };
        last = found.time;
        let (address, bytes) = (found.address, found.bytes);
        if address >= 1 << 63 {
            return Err(Error::input(format!(
                "{}: address {address:#x}, expected less than 2^63",
                place()
            )));
        }
        let end = address + bytes;
        let mut at = address / line_bytes * line_bytes;
        while at < end {
            steps.push(Step {
                address: at,
                write,
                time,
            });
            if found.after.is_some() {
                two.firsts.push(first);
            }
            at += line_bytes;
        }
    }
    if format == Some(Format::Gem5) {
        settle(&two, is_given, &mut steps).map_err(|said| Error::input(format!("{}{said}", path.display())))?;
    }
    match format {
        Some(format) if !steps.is_empty() => Ok(Trace { format, steps, skipped }),
        _ => Err(Error::input(format!(
            "{}: no requests in it, expected a memory trace",
            path.display()
        ))),
    }
}

/// The time in picoseconds, or what is wrong with it.
fn in_order(of: Format, cycle: Ps, last: u64, time: u64) -> std::result::Result<Ps, String> {
    if time < last {
        return Err(format!(
            "the time goes back, from {last} to {time} {}, expected arrivals in order",
            of.unit()
        ));
    }
    let one = if of.counts_cycles() { cycle } else { 1 };
    let ps = time.checked_mul(one).filter(|&time| time < LATEST);
    ps.ok_or_else(|| {
        let each = if one > 1 {
            format!(" of {one} ps")
        } else {
            String::new()
        };
        format!("{time} {}{each} are too late, expected {TOO_LATE}", of.unit())
    })
}

/// Gives packets of gem5 the times that they have when the trace is read as a whole.
fn settle(two: &TwoFields, is_given: bool, steps: &mut [Step]) -> std::result::Result<(), String> {
    let reading = match two.reading() {
        Reading::Either if !is_given => {
            return Err(
                ": two fields after the size, of which neither goes back, can be flags and tick or tick and program counter, expected --format gem5 where they are flags and tick, or packets with all three"
                    .into(),
            );
        }
        Reading::Either => Reading::Flags,
        reading => reading,
    };
    if let Some((line, from, to)) = two.wrong(&reading) {
        let said = in_order(Format::Gem5, 1, from, to).err().unwrap_or_default();
        return Err(format!(", line {line}: {said}"));
    }
    if reading == Reading::ProgramCounter {
        for (step, &first) in steps.iter_mut().zip(&two.firsts) {
            step.time = first;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Trace> {
        let name = format!(
            "ftlab-nvm-{:x}-{}",
            std::process::id(),
            text.len() * 31 + text.bytes().map(usize::from).sum::<usize>()
        );
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        let trace = read(&path, None, 2_000, 64);
        std::fs::remove_file(&path).unwrap();
        trace
    }

    #[test]
    fn each_form_is_recognised_and_read() {
        let read = Step {
            address: 64,
            write: false,
            time: 10_000,
        };
        let write = Step {
            address: 4096,
            write: true,
            time: 20_000,
        };
        for (text, format) in [
            ("0x41 READ 5\n0x1000 WRITE 10\n", Format::Dramsim3),
            ("NVMV1\n5 R 0x41 00 0\n10 W 0x1000 00 00 0\n", Format::Nvmain),
            ("r,65,8,256,10000\nw,4096,64,0,20000,77\n", Format::Gem5),
        ] {
            let trace = of(text).unwrap();
            assert_eq!((trace.format, trace.steps), (format, vec![read, write]), "{text}");
        }
        let untimed = [Step { time: 0, ..read }, Step { time: 0, ..write }];
        for (text, format) in [
            ("0x41 R\n0x1000 W\n", Format::Ramulator),
            ("LD 65\nST 0x1000\n", Format::Ramulator2),
        ] {
            let trace = of(text).unwrap();
            assert_eq!((trace.format, trace.steps), (format, untimed.to_vec()), "{text}");
        }
    }

    /// What is written is read back, in every format.
    #[test]
    fn what_is_written_is_read_back() {
        let steps = [
            Step {
                address: 128,
                write: false,
                time: 4_000,
            },
            Step {
                address: 1 << 33,
                write: true,
                time: 6_000,
            },
        ];
        for name in FORMATS {
            let format = Format::parse(name).unwrap();
            let text: String = steps.iter().map(|step| format.line(step, 2_000) + "\n").collect();
            let back = of(&text).unwrap();
            let wanted = steps.map(|step| Step {
                time: if format.is_timed() { step.time } else { 0 },
                ..step
            });
            assert_eq!((back.format, back.steps), (format, wanted.to_vec()));
        }
    }

    /// The number, flags and program counter are there or not; commands that are neither are counted; a byte order mark is none of it.
    #[test]
    fn packets_of_gem5_in_every_form() {
        for line in [
            "w,4096,64,20000",
            "w,4096,64,0,20000",
            "w,4096,64,0,20000,77",
            "3,w,4096,64,20000",
            "3,w,4096,64,0,20000",
            "3,w,4096,64,0,20000,77",
        ] {
            let trace = of(&format!("\u{feff}u,64,64,0,9000\n{line}\nu,64,0,0,1\n")).unwrap();
            let wanted = Step {
                address: 4096,
                write: true,
                time: 20_000,
            };
            assert_eq!(
                (trace.format, trace.steps, trace.skipped),
                (Format::Gem5, vec![wanted], 2),
                "{line}"
            );
        }
    }

    /// Flags and tick, or tick and program counter: ticks do not go back, and packets of one form have no flags or all have them.
    #[test]
    fn two_fields_are_what_the_trace_says() {
        let times = |text: &str| -> Vec<Ps> { of(text).unwrap().steps.iter().map(|step| step.time).collect() };
        assert_eq!(times("r,0,64,256,5\nr,0,64,0,6\nr,0,64,0,9\n"), [5, 6, 9]);
        assert_eq!(
            times("r,0,64,5,4198400\nr,0,64,6,4198800\nr,0,64,9,4198404\n"),
            [5, 6, 9]
        );
        assert_eq!(times("r,0,64,5,0x401000\nr,0,128,6,0x400ffc\n"), [5, 6, 6]);
        // A program counter of the kernel is later than all times.
        assert_eq!(
            times("r,0,64,5,18446744071579205632\nr,0,64,6,18446744071579205636\n"),
            [5, 6]
        );
        // Some packets have no program counter, so that others have one and no flags.
        assert_eq!(times("r,0,64,5\nr,0,64,6,4198400\nr,0,64,7,4198404\n"), [5, 6, 7]);
        // Some have all three, so that others have flags.
        assert_eq!(times("r,0,64,0,5\nr,0,64,2,6,4198400\nr,0,64,4,7\n"), [5, 6, 7]);
        assert_eq!(times("r,0,64,0,5\nr,0,64,0,8\n"), [5, 8]);
        let either = "r,0,64,1,5\nr,0,64,2,6\n";
        let said = of(either).unwrap_err().to_string();
        assert!(
            said.contains("can be flags and tick or tick and program counter"),
            "{said}"
        );
        let given = read_from(either.as_bytes(), Path::new("x"), Some(Format::Gem5), 1, 64).unwrap();
        assert_eq!(given.steps[1].time, 6);
        let said = of("r,0,64,5\nr,0,64,9,77\nr,0,64,8,78\n").unwrap_err().to_string();
        assert!(said.contains("line 3: the time goes back, from 9 to 8 ps"), "{said}");
    }

    #[test]
    fn a_long_access_is_one_to_each_line_and_rubbish_is_named_by_its_line() {
        assert_eq!(of("r,100,100,0,5\n").unwrap().steps.len(), 3);
        for (text, part) in [
            ("", "no requests in it"),
            ("hello world\n", "line 1: `hello world` is of no known format"),
            (
                "0x40 READ 5\n0x40 REED 6\n",
                "line 2: `0x40 REED 6`, expected `0xADDRESS READ|WRITE CYCLE`",
            ),
            ("0x40 READ 5\n0x40 READ 4\n", "the time goes back, from 5 to 4 cycles"),
            ("r,64,64,0,5\nr,64,64,0,4\n", "the time goes back, from 5 to 4 ps"),
            (
                "0x40 READ 4611686018427388\n",
                "line 1: 4611686018427388 cycles of 2000 ps are too late, expected times before 2^63 ps",
            ),
            ("0x40 READ 18446744073709551615\n", "are too late"),
            ("r,18446744073709551600,200,0,5\n", "expected less than 2^63"),
            (
                "R 0,0,1,2,34,5\n",
                "Ramulator 2 reads as ReadWriteTrace, expected `LD|ST ADDRESS`",
            ),
        ] {
            let said = of(text).unwrap_err().to_string();
            assert!(said.contains(part), "{said}");
        }
    }
}

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
//! gem5's size the first is read as flags. An access is to the line that its address lies in; one of gem5 that is longer is an access to each of
//! its lines. Empty lines and lines that start with `#` are skipped, a byte order mark at the start as well.
//!
//! # Errors
//! Another form, a time that goes back, a time from 2^63 ps on, an address beyond 2^63.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use ftlab_core::{Error, Result};

use crate::feed::Step;
use crate::{LATEST, Ps, TOO_LATE};

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
    };
    if format == Format::Gem5 {
        return read_packet(line);
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

/// A packet of gem5. Its script prints the packet's number, flags and program counter only where the trace has them.
fn read_packet(line: &str) -> Option<Line> {
    let words: Vec<&str> = line.split(',').map(str::trim).collect();
    let words = match words.as_slice() {
        [id, rest @ ..] if id.parse::<u64>().is_ok() => rest,
        all => all,
    };
    let [op, address, bytes, rest @ ..] = words else {
        return None;
    };
    let write = match *op {
        "r" => Some(false),
        "w" => Some(true),
        "u" => None,
        _ => return None,
    };
    let time = match rest {
        [tick] | [_, tick] | [_, tick, _] => tick.parse().ok()?,
        _ => return None,
    };
    let bytes = bytes.parse().ok()?;
    let is_sound = write.is_none() || (1..=1 << 20).contains(&bytes);
    is_sound.then_some(Line {
        address: number(address)?,
        write,
        bytes,
        time,
    })
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
    let mut format = format;
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
        let Some(write) = found.write else {
            skipped += 1;
            continue;
        };
        if found.time < last {
            return Err(Error::input(format!(
                "{}: the time goes back, from {last} to {} {}, expected arrivals in order",
                place(),
                found.time,
                of.unit()
            )));
        }
        last = found.time;
        let one = if of.counts_cycles() { cycle } else { 1 };
        let time = found.time.checked_mul(one).filter(|&time| time < LATEST);
        let time = time.ok_or_else(|| {
            let each = if one > 1 {
                format!(" of {one} ps")
            } else {
                String::new()
            };
            Error::input(format!(
                "{}: {} {}{each} are too late, expected {TOO_LATE}",
                place(),
                found.time,
                of.unit()
            ))
        })?;
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
            at += line_bytes;
        }
    }
    match format {
        Some(format) if !steps.is_empty() => Ok(Trace { format, steps, skipped }),
        _ => Err(Error::input(format!(
            "{}: no requests in it, expected a memory trace",
            path.display()
        ))),
    }
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

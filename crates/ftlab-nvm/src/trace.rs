//! Traces of memory accesses in the text forms of public simulators.
//!
//! | format | line | time |
//! | --- | --- | --- |
//! | `dramsim3` | `0xADDRESS READ|WRITE CYCLE` | cycles |
//! | `nvmain` | `CYCLE R|W 0xADDRESS DATA [DATA] THREAD`, after a first line `NVMV1` | cycles |
//! | `ramulator` | `0xADDRESS R|W` | none: the next when there is room |
//! | `ramulator2` | `LD|ST ADDRESS` (decimal or 0x) | none |
//! | `gem5` | `r|w,ADDRESS,SIZE,FLAGS,TICK`, as gem5's `decode_packet_trace.py` prints packets | picoseconds |
//!
//! What is dropped: data, flags, threads. An access is to the line that its address lies in; one of gem5 that is longer is an access to each of
//! its lines. Empty lines and lines that start with `#` are skipped.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use ftlab_core::{Error, Result};

use crate::Ps;
use crate::feed::Step;

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

    fn detect(line: &str) -> Option<Format> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let of = |format: Format| read_line(format, line, 1).is_some().then_some(format);
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

    fn shape(self) -> &'static str {
        match self {
            Format::Dramsim3 => "0xADDRESS READ|WRITE CYCLE",
            Format::Nvmain => "CYCLE R|W 0xADDRESS DATA THREAD",
            Format::Ramulator => "0xADDRESS R|W",
            Format::Ramulator2 => "LD|ST ADDRESS",
            Format::Gem5 => "r|w,ADDRESS,SIZE,FLAGS,TICK",
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

/// Address, whether it writes, bytes, time of a line.
fn read_line(format: Format, line: &str, cycle: Ps) -> Option<(u64, bool, u64, Ps)> {
    let words: Vec<&str> = match format {
        Format::Gem5 => line.split(',').map(str::trim).collect(),
        _ => line.split_whitespace().collect(),
    };
    let write = |word: &str, read_as: &str, write_as: &str| match word {
        w if w == read_as => Some(false),
        w if w == write_as => Some(true),
        _ => None,
    };
    let cycles = |word: &str| word.parse::<u64>().ok().and_then(|n| n.checked_mul(cycle));
    match (format, words.as_slice()) {
        (Format::Dramsim3, [address, op, at]) => Some((number(address)?, write(op, "READ", "WRITE")?, 1, cycles(at)?)),
        (Format::Nvmain, [at, op, address, _, ..]) if words.len() <= 6 => {
            Some((hexadecimal(address)?, write(op, "R", "W")?, 1, cycles(at)?))
        }
        (Format::Ramulator, [address, op]) => Some((number(address)?, write(op, "R", "W")?, 1, 0)),
        (Format::Ramulator2, [op, address]) => Some((number(address)?, write(op, "LD", "ST")?, 1, 0)),
        (Format::Gem5, [op, address, bytes, _, tick, ..]) => Some((
            number(address)?,
            write(op, "r", "w")?,
            bytes.parse().ok().filter(|bytes| (1..=1 << 20).contains(bytes))?,
            tick.parse().ok()?,
        )),
        _ => None,
    }
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
    let mut last = 0;
    for (index, line) in text.lines().enumerate() {
        let place = || format!("{}, line {}", path.display(), index + 1);
        let line = line.map_err(|e| match e.kind() {
            std::io::ErrorKind::InvalidData => Error::input(format!("{}: expected text of a memory trace", place())),
            _ => Error::io(path, &e),
        })?;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
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
        let Some((address, write, bytes, time)) = read_line(of, line, cycle) else {
            return Err(Error::input(format!(
                "{}: `{line}`, expected `{}` ({})",
                place(),
                of.shape(),
                of.name()
            )));
        };
        if time < last {
            return Err(Error::input(format!(
                "{}: the time goes back, from {last} to {time} ps, expected arrivals in order",
                place()
            )));
        }
        last = time;
        let end = address.checked_add(bytes).ok_or_else(|| {
            Error::input(format!(
                "{}: address {address:#x} with {bytes} bytes is too large",
                place()
            ))
        })?;
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
        Some(format) if !steps.is_empty() => Ok(Trace { format, steps }),
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
            ("0x40 READ 5\n0x40 READ 4\n", "the time goes back"),
        ] {
            let said = of(text).unwrap_err().to_string();
            assert!(said.contains(part), "{said}");
        }
    }
}

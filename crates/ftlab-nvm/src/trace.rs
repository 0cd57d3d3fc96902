//! Traces of memory accesses in the text forms of public simulators.
//!
//! | format | line | time |
//! | --- | --- | --- |
//! | `dramsim3` | `0xADDRESS READ|WRITE CYCLE`; hexadecimal without `0x` as well | cycles |
//! | `nvmain` | `CYCLE R|W 0xADDRESS DATA [DATA] THREAD`, after a first line `NVMV1` | cycles |
//! | `ramulator` | `0xADDRESS R|W`; decimal without `0x`, octal after a `0` | none: the next when there is room |
//! | `ramulator2` | `LD|ST ADDRESS` (decimal or 0x) | none |
//! | `gem5` | `[ID,]r|w|u,ADDRESS,SIZE,[FLAGS,]TICK[,PC]`, as gem5's `decode_packet_trace.py` prints packets | picoseconds |
//!
//! Addresses are read as each simulator reads them: DRAMsim3 by `is >> std::hex`, Ramulator 1 by `std::stoul(line, &pos, 0)`, Ramulator 2 by `std::stoll`.
//! DRAMsim3's writes are `WRITE`, `write`, `P_MEM_WR` and `BOFF`; all else is a read to it, of which `READ`, `read`, `P_MEM_RD` and `P_FETCH` are
//! taken here, so that a misspelt write is refused.
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
            [_, op, _] if dramsim3_write(op).is_some() => of(Format::Dramsim3),
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
            Some(of(hexadecimal(address)?, Some(dramsim3_write(op)?), at.parse().ok()?))
        }
        (Format::Nvmain, [at, op, address, _, ..]) if words.len() <= 6 => {
            Some(of(hexadecimal(address)?, write(op, "R", "W")?, at.parse().ok()?))
        }
        (Format::Ramulator, [address, op]) => Some(of(by_prefix(address)?, write(op, "R", "W")?, 0)),
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

/// Whether a command of DRAMsim3 writes.
fn dramsim3_write(op: &str) -> Option<bool> {
    match op {
        "READ" | "read" | "P_MEM_RD" | "P_FETCH" => Some(false),
        "WRITE" | "write" | "P_MEM_WR" | "BOFF" => Some(true),
        _ => None,
    }
}

fn without_prefix(word: &str) -> Option<&str> {
    word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"))
}

fn number(word: &str) -> Option<u64> {
    match without_prefix(word) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(without_prefix(word).unwrap_or(word), 16).ok()
}

/// As C reads a number in base 0: octal after a `0`.
fn by_prefix(word: &str) -> Option<u64> {
    match word.strip_prefix('0') {
        Some(digits) if !digits.is_empty() && without_prefix(word).is_none() => u64::from_str_radix(digits, 8).ok(),
        _ => number(word),
    }
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
        let other = if two.could_be_a_tick() {
            "; the first of two fields after the size is always the same and is read as flags: a tick that never changes needs flags or no program counter"
        } else {
            ""
        };
        return Err(format!(", line {line}: {said}{other}"));
    }
    if reading == Reading::ProgramCounter {
        for (step, &first) in steps.iter_mut().zip(&two.firsts) {
            step.time = first;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

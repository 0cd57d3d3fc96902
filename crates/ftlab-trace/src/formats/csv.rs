//! Plain CSV with a header line: the easy form to write a trace in.
//!
//! # Origin
//! ftlab's own; the bundled recordings are in it.
//!
//! # Columns
//! Named by the header, in any order:
//!
//! | column | meaning | unit |
//! | --- | --- | --- |
//! | `time_ns`, `time_us`, `time_ms` or `time_s` | arrival, fractions allowed | as named |
//! | `op` | `read`, `write`, `trim`, `flush` or their first letters; `discard` and `d` mean trim | |
//! | `offset` | first byte; may be empty for a flush | bytes |
//! | `length` | may be empty for a flush | bytes |
//! | `flags` (optional) | letters: `F` force unit access, `S` synchronous, `M` metadata; empty or `-` is none | |
//! | `volume` (optional) | any word | |
//! | `stream` (optional) | host stream or placement id | |
//! | `pc` (optional) | program context, decimal or `0x` hexadecimal | |
//! | `pid` (optional) | process id | |
//!
//! A word may stand in double quotes; a comma inside quotes is not supported.
//!
//! # What is dropped
//! Columns of other names.

use ftlab_core::{Batch, Error, OpKind, Result, flags};

use super::{Claim, Reader, Sample, refuse_time_unit};
use crate::input::Input;
use crate::options::{ReadOptions, TimeUnit};
use crate::text::{
    Columns, Defect, LARGEST, LineParser, Parsed, TextReader, VolumeTable, read_or_write, time, to_length,
};

/// Trims longer than the record's length column are split; beyond this many bytes they are taken for damage.
const LONGEST_TRIM: u64 = 1 << 44;
const TRIM_PART: u64 = 1 << 31;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Column {
    Time(TimeUnit),
    Op,
    Offset,
    Length,
    Flags,
    Volume,
    Stream,
    Pc,
    Pid,
    Other,
}

fn column_named(name: &[u8]) -> Column {
    match unquoted(name) {
        b"time_ns" => Column::Time(TimeUnit::Nanoseconds),
        b"time_us" => Column::Time(TimeUnit::Microseconds),
        b"time_ms" => Column::Time(TimeUnit::Milliseconds),
        b"time_s" => Column::Time(TimeUnit::Seconds),
        b"op" => Column::Op,
        b"offset" => Column::Offset,
        b"length" => Column::Length,
        b"flags" => Column::Flags,
        b"volume" => Column::Volume,
        b"stream" => Column::Stream,
        b"pc" => Column::Pc,
        b"pid" => Column::Pid,
        _ => Column::Other,
    }
}

fn unquoted(word: &[u8]) -> &[u8] {
    let word = word.trim_ascii();
    word.strip_prefix(b"\"")
        .and_then(|w| w.strip_suffix(b"\""))
        .unwrap_or(word)
}

/// The columns that a header names, or which needed one it lacks.
fn header(line: &[u8]) -> std::result::Result<Vec<Column>, &'static str> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let columns: Vec<Column> = line.split(|&b| b == b',').map(column_named).collect();
    let has = |wanted: fn(&Column) -> bool| columns.iter().filter(|c| wanted(c)).count() == 1;
    let needed: [(&str, bool); 4] = [
        (
            "time_ns (or time_us, time_ms, time_s)",
            has(|c| matches!(c, Column::Time(_))),
        ),
        ("op", has(|c| *c == Column::Op)),
        ("offset", has(|c| *c == Column::Offset)),
        ("length", has(|c| *c == Column::Length)),
    ];
    match needed.iter().find(|(_, present)| !present) {
        Some((missing, _)) => Err(missing),
        None => Ok(columns),
    }
}

struct Csv {
    columns: Vec<Column>,
    has: Optional,
}

/// Which optional columns the header names.
#[derive(Clone, Copy, Default)]
struct Optional {
    stream: bool,
    pc: bool,
    pid: bool,
}

impl Csv {
    fn new(columns: Vec<Column>) -> Self {
        let has = Optional {
            stream: columns.contains(&Column::Stream),
            pc: columns.contains(&Column::Pc),
            pid: columns.contains(&Column::Pid),
        };
        Csv { columns, has }
    }
}

impl LineParser for Csv {
    fn parse(&mut self, line: &[u8], batch: &mut Batch, volumes: &mut VolumeTable) -> Parsed {
        let mut row = Columns::<b','>::new(line);
        let (mut time_ns, mut op, mut offset, mut length) = (0, OpKind::Read, None, None);
        let (mut flag_bits, mut volume, mut stream, mut pc, mut pid) = (0, &b"0"[..], 0u16, 0u64, 0u32);
        for column in &self.columns {
            match column {
                Column::Time(unit) => time_ns = time(&mut row, *unit)?,
                Column::Op => {
                    op = operation(row.text()?).ok_or_else(|| row.defect("read, write, trim or flush"))?;
                }
                Column::Offset => offset = row.optional_number()?,
                Column::Length => length = row.optional_number()?,
                Column::Flags => {
                    flag_bits = flag_letters(row.text()?).ok_or_else(|| row.defect("flags among F, S and M"))?;
                }
                Column::Volume => volume = unquoted(row.text()?),
                Column::Stream => {
                    stream = u16::try_from(row.optional_number()?.unwrap_or(0))
                        .map_err(|_| row.defect("a stream number below 65536"))?;
                }
                Column::Pc => pc = context(row.text()?).ok_or_else(|| row.defect("a number or 0x…"))?,
                Column::Pid => {
                    pid = u32::try_from(row.optional_number()?.unwrap_or(0)).map_err(|_| row.defect("a process id"))?;
                }
                Column::Other => row.skip(),
            }
        }
        let whole = |expected| Defect { column: 0, expected };
        let (offset, length) = match (op, offset, length) {
            (OpKind::Flush, ..) => (0, 0),
            (_, Some(offset), Some(length)) if offset <= LARGEST => (offset, length),
            _ => return Err(whole("an offset below 2^60 and a length in bytes")),
        };
        let volume = volumes.id(if volume.is_empty() { b"0" } else { volume })?;
        let mut push = |offset, length| {
            batch.push(time_ns, op, offset, length, volume, flag_bits);
            if self.has.stream {
                batch.stream.push(stream);
            }
            if self.has.pc {
                batch.pc.push(pc);
            }
            if self.has.pid {
                batch.pid.push(pid);
            }
        };
        match to_length(length) {
            _ if op == OpKind::Flush => push(0, 0),
            Some(length) => push(offset, length),
            None if op == OpKind::Trim && (1..=LONGEST_TRIM).contains(&length) => {
                for from in (0..length).step_by(TRIM_PART as usize) {
                    push(offset + from, TRIM_PART.min(length - from) as u32);
                }
            }
            None => return Err(whole("a length above 0 and below 4 GiB (16 TiB for a trim)")),
        }
        Ok(())
    }
}

fn operation(text: &[u8]) -> Option<OpKind> {
    let text = unquoted(text);
    read_or_write(text).or_else(|| {
        let is = |word: &[u8]| text.eq_ignore_ascii_case(word) || text.eq_ignore_ascii_case(&word[..1]);
        if is(b"trim") || is(b"discard") {
            Some(OpKind::Trim)
        } else {
            is(b"flush").then_some(OpKind::Flush)
        }
    })
}

fn flag_letters(text: &[u8]) -> Option<u8> {
    unquoted(text).iter().try_fold(0, |bits, letter| match letter {
        b'F' => Some(bits | flags::FUA),
        b'S' => Some(bits | flags::SYNC),
        b'M' => Some(bits | flags::METADATA),
        b'-' => Some(bits),
        _ => None,
    })
}

fn context(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(unquoted(text)).ok()?;
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).ok(),
        None if text.is_empty() => Some(0),
        None => text.parse().ok(),
    }
}

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    let columns = header(sample.lines.first()?).ok()?;
    let ignored = columns.iter().filter(|c| **c == Column::Other).count();
    let mut reason = "a header line that names time, op, offset and length: CSV".to_owned();
    if ignored > 0 {
        reason += &format!(", {ignored} other columns ignored");
    }
    Some(Claim { sure: true, reason })
}

pub fn open(mut input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>> {
    refuse_time_unit("csv", options)?;
    let mut lines = 0;
    loop {
        input.fill()?;
        let end = input
            .bytes()
            .iter()
            .position(|&b| b == b'\n')
            .unwrap_or(input.bytes().len());
        let line = input.bytes()[..end].trim_ascii().to_vec();
        let rest = input.bytes().len() - end;
        lines += 1;
        if (line.is_empty() || line[0] == b'#') && rest > 0 {
            input.consume(end + 1);
            continue;
        }
        let columns = header(&line).map_err(|missing| {
            let (name, shown) = (input.name(), crate::text::show_line(&line));
            Error::input(format!(
                "{name}, line {lines}: `{shown}`: expected a header line that names one column {missing}"
            ))
        })?;
        input.consume((end + 1).min(input.bytes().len()));
        return Ok(Box::new(TextReader::after_lines(Csv::new(columns), input, lines)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;

    #[test]
    fn three_lines_with_every_column() {
        let (format, batch) = read(
            b"op,\"time_us\",length,offset,flags,volume,stream,pc,pid,comment\n\
              write,1.5,4096,8192,SM,a,3,0xff,77,hello there\n\
              T,2,1048576,0,,b,,,,\n\
              flush,3,,,-,a,0,12,1,x\n",
        );
        assert_eq!(format, "csv");
        assert_eq!(batch.time_ns, [1500, 2000, 3000]);
        assert_eq!(batch.op, [OpKind::Write, OpKind::Trim, OpKind::Flush]);
        assert_eq!((batch.offset, batch.length), (vec![8192, 0, 0], vec![4096, 1 << 20, 0]));
        assert_eq!(batch.flags, [flags::SYNC | flags::METADATA, 0, 0]);
        assert_eq!((batch.volume, batch.stream), (vec![0, 1, 0], vec![3, 0, 0]));
        assert_eq!((batch.pc, batch.pid), (vec![255, 0, 12], vec![77, 0, 1]));
    }

    #[test]
    fn a_trim_of_a_whole_drive_is_split() {
        let (_, batch) = read(b"# made by hand\ntime_ns,op,offset,length\n0,trim,4096,5000000000\n");
        assert_eq!(batch.length.iter().map(|&l| u64::from(l)).sum::<u64>(), 5_000_000_000);
        assert_eq!(batch.offset, [4096, 4096 + (1 << 31), 4096 + (1 << 32)]);
    }

    #[test]
    fn a_header_without_a_needed_column_is_named() {
        let input = Input::from_bytes("t.csv", b"time_ns,op,offset\n1,read,0\n".to_vec()).unwrap();
        let error = open(input, &ReadOptions::default()).err().unwrap().to_string();
        assert!(
            error.contains("t.csv, line 1") && error.contains("names one column length"),
            "{error}"
        );
    }
}

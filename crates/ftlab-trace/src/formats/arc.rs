//! Reference strings of the ARC paper: which blocks were asked for, in order; neither times nor operations.
//!
//! # Origin
//! Megiddo and Modha, "ARC: A Self-Tuning, Low Overhead Replacement Cache", FAST 2003; `*.lis` files, as in
//! moka-rs/cache-trace. P1 to P14 are disk accesses of Windows NT workstations, OLTP, DS1, S1 to S3 of databases and search.
//!
//! # Columns
//! | column | meaning | unit |
//! | --- | --- | --- |
//! | 1 start | first block | 512 B, or `address_unit` (the paper's cache pages have 512 B in P1 to P14, 4 KiB in S1 to S3) |
//! | 2 number | length | blocks |
//! | 3 | ignored by the paper | |
//! | 4 request | number of the request, counted by one | |
//!
//! Every reference is taken as a read unless `op` says otherwise. All times are 0.
//!
//! # What is dropped
//! The third and fourth column. Requests of no blocks, counted.

use ftlab_core::{Batch, OpKind, Result};

use super::{Claim, Reader, Sample, Strength};
use crate::input::Input;
use crate::report::Skipped;
use crate::settings::{Setting, Settings};
use crate::text::{Columns, EMPTY, LineParser, Parsed, TextReader, VolumeTable, left_out, to_bytes};

struct Arc {
    op: OpKind,
    block: u64,
    empty: u64,
}

impl Arc {
    fn new(settings: &Settings) -> Self {
        Arc {
            op: settings.op.unwrap_or(OpKind::Read),
            block: settings.address_unit.map_or(512, u64::from),
            empty: 0,
        }
    }
}

impl LineParser for Arc {
    #[inline]
    fn parse(&mut self, line: &[u8], batch: &mut Batch, volumes: &mut VolumeTable) -> Parsed {
        let mut columns = Columns::<b' '>::new(line);
        let start = to_bytes(columns.number()?, self.block);
        let offset = start.ok_or_else(|| columns.defect("a block below 2^60 bytes"))?;
        let bytes = to_bytes(columns.number()?, self.block).and_then(|bytes| u32::try_from(bytes).ok());
        let length = bytes.ok_or_else(|| columns.defect("a number of blocks below 4 GiB"))?;
        columns.number()?;
        columns.number()?;
        if !columns.is_done() {
            return Err(columns.defect("four columns"));
        }
        if length == 0 {
            self.empty += 1;
            return Ok(());
        }
        match self.op {
            OpKind::Flush => batch.push(0, OpKind::Flush, 0, 0, volumes.id(b"0")?, 0),
            op => batch.push(0, op, offset, length, volumes.id(b"0")?, 0),
        }
        Ok(())
    }

    fn left_out(&self) -> Vec<Skipped> {
        left_out(&[(EMPTY, self.empty)])
    }

    fn timed(&self) -> bool {
        false
    }

    fn has_operations(&self) -> bool {
        false
    }
}

/// Whether the fourth column counts by one from line to line.
fn counts_up(lines: &[&[u8]]) -> bool {
    let numbers = lines.iter().map(|line| {
        let last = line.split(|b| b.is_ascii_whitespace()).rfind(|word| !word.is_empty());
        last.and_then(|word| std::str::from_utf8(word).ok()?.parse::<u64>().ok())
    });
    let numbers: Vec<Option<u64>> = numbers.collect();
    numbers
        .windows(2)
        .all(|pair| matches!(pair, [Some(a), Some(b)] if a.checked_add(1) == Some(*b)))
}

pub const SETTINGS: &[Setting] = &[Setting::AddressUnit, Setting::Op];

pub fn sample() -> Vec<u8> {
    b"110765 64 0 0\n110888 1 0 1\n110829 59 0 2\n".to_vec()
}

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    let mut parser = Arc::new(&Settings::default());
    if !Sample::fits(&sample.lines, &mut parser) {
        return None;
    }
    let counted = counts_up(&sample.lines);
    let why = if counted { ", the last counting up by one" } else { "" };
    Some(Claim {
        strength: if counted { Strength::Likely } else { Strength::Fits },
        reason: format!(
            "four columns of whole numbers between blanks{why}: a reference string of the ARC paper, which has neither times \
             nor operations; references are taken as reads of blocks of 512 bytes"
        ),
        guess: Settings {
            address_unit: Some(512),
            op: Some(OpKind::Read),
            ..Settings::default()
        },
    })
}

pub fn open(input: Input, settings: &Settings) -> Result<Box<dyn Reader>> {
    Ok(Box::new(TextReader::new(Arc::new(settings), input)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{read, read_all};
    use super::*;

    #[test]
    fn three_lines() {
        let (format, batch) = read(b"110765 64 0 0\n110888 1 0 1\n110829 59 252 2\n");
        assert_eq!(format, "arc");
        assert_eq!(batch.time_ns, [0, 0, 0]);
        assert_eq!(batch.op, [OpKind::Read; 3]);
        assert_eq!(batch.offset, [110_765 * 512, 110_888 * 512, 110_829 * 512]);
        assert_eq!(batch.length, [64 * 512, 512, 59 * 512]);
    }

    #[test]
    fn what_is_not_there_is_not_claimed() {
        let settings = Settings {
            op: Some(OpKind::Write),
            address_unit: Some(4096),
            ..Settings::default()
        };
        let mut reader = open(Input::from_bytes("t", sample()).unwrap(), &settings).unwrap();
        assert!(!reader.timed() && !reader.has_operations());
        let batch = read_all(reader.as_mut()).unwrap();
        assert_eq!(
            (batch.op[0], batch.offset[1], batch.length[1]),
            (OpKind::Write, 110_888 * 4096, 4096)
        );
    }

    #[test]
    fn the_last_column_has_to_count() {
        assert!(counts_up(&[b"5 1 0 7 ", b"6 1 0 8"]) && !counts_up(&[b"5 1 0 7", b"6 1 0 7"]));
        assert!(!counts_up(&[b"5 1 0 18446744073709551615", b"6 1 0 0"]));
    }
}

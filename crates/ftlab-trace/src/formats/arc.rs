//! Reference strings of the ARC paper: the blocks that were requested, in order, without times and operations.
//!
//! # Origin
//! Megiddo and Modha, "ARC: A Self-Tuning, Low Overhead Replacement Cache", FAST 2003; `*.lis` files, as in
//! moka-rs/cache-trace. P1 to P14 are disk accesses of Windows NT workstations; OLTP, DS1 and S1 to S3 are of databases
//! and search.
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
//! The third and fourth columns. Requests of no blocks, counted.

use ftlab_core::{OpKind, Result};

use super::text_format::{self, TextFormat};
use super::{Claim, Sample, Strength};
use crate::columns::Columns;
use crate::health::Parsed;
use crate::lines::{LineParser, Requests};
use crate::settings::{Setting, Settings};

pub struct Arc {
    op: OpKind,
    block: u64,
}

impl TextFormat for Arc {
    const SETTINGS: &[Setting] = &[Setting::AddressUnit, Setting::Op];
    const DEFAULTS: Settings = Settings::NONE.with_references(512, OpKind::Read);
    const REASON: &str = "a reference string of the ARC paper, which has neither times nor operations; references are taken as \
                          reads of blocks of 512 bytes";
    const SAMPLE: &[u8] = b"110765 64 0 0\n110888 1 0 1\n110829 59 0 2\n";

    fn new(settings: &Settings) -> Result<Self> {
        Ok(Arc {
            op: settings.op.unwrap_or(OpKind::Read),
            block: settings.units().address,
        })
    }

    fn detect(sample: &Sample<'_>) -> Option<Claim> {
        let mut claim = text_format::claim::<Self>(sample)?;
        let mut columns = "four columns of whole numbers between blanks".to_owned();
        if counts_up(&sample.lines) {
            claim.strength = Strength::Likely;
            columns += ", the last counting up by one";
        }
        claim.reason = format!("{columns}: {}", claim.reason);
        Some(claim)
    }
}

impl LineParser for Arc {
    #[inline]
    fn parse(&mut self, line: &[u8], to: &mut Requests<'_>) -> Parsed {
        let mut columns = Columns::<b' '>::new(line);
        let offset = columns.address(self.block, "a block below 2^60 bytes")?;
        let length = columns.length(self.block, "a number of blocks below 4 GiB")?;
        columns.number()?;
        columns.number()?;
        if !columns.is_done() {
            return Err(columns.defect("four columns"));
        }
        match self.op {
            OpKind::Flush if length > 0 => to.flush(0, b"0"),
            op => to.push(0, op, offset, length, b"0"),
        }
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

#[cfg(test)]
mod tests {
    use super::super::testing::{read, read_as};
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
        let settings = Settings::NONE.with_references(4096, OpKind::Write);
        let (reader, batch) = read_as::<Arc>(Arc::SAMPLE, &settings).unwrap();
        assert!(!reader.timed() && !reader.has_operations());
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

//! MiDAS traces: time, type, page and size between blanks, with a stream in some.
//!
//! # Origin
//! Oh et al., "MIDAS: Minimizing Write Amplification in Log-Structured Systems through Adaptive Group Number and Size
//! Configuration", FAST 2024; README of dgist-datalab/MiDAS; Zenodo 10409599.
//!
//! # Columns
//! | column | meaning | unit |
//! | --- | --- | --- |
//! | 1 time | arrival | s, or `time_unit` |
//! | 2 type | 0 = read, 1 = write (or `codes`), 3 = trim | |
//! | 3 LBA | first page | 4 KiB, or `address_unit` |
//! | 4 size | length | bytes, or `size_unit` |
//! | 5 stream | number of the host's stream; may be absent | |
//!
//! With a stream the form has five columns like a DiskSim trace. It is recognised by times with a decimal point, sizes
//! of at least 512, and a second column of 0, 1 and 3 that has more than one of these values, or that has a stream
//! above 1 beside it.
//!
//! # What is dropped
//! Columns behind the fifth. Type 2, which MiDAS does not use, and requests of no bytes are left out and counted.

use ftlab_core::{OpKind, Result};

use super::text_format::{self, TextFormat};
use super::{Claim, Sample, Strength};
use crate::columns::Columns;
use crate::health::{Parsed, left_out};
use crate::lines::{LineParser, Requests};
use crate::report::Skipped;
use crate::settings::{Codes, Setting, Settings, TimeUnit, Units};

pub struct Midas {
    units: Units,
    unused: u64,
}

impl TextFormat for Midas {
    const SETTINGS: &[Setting] = Setting::UNITS;
    const DEFAULTS: Settings = Settings::NONE.with_units(TimeUnit::Seconds, Codes::ReadIsZero, 4096, 1);
    const REASON: &str =
        "MiDAS, whose times are in s, pages of 4 KiB, sizes in bytes, and 0 = read, 1 = write, 3 = trim";
    const SAMPLE: &[u8] = b"0.146559796 1 0 4096 \n0.146637836 0 5 8192\n0.146643556 3 6 1048576 2\n";

    fn new(settings: &Settings) -> Result<Self> {
        let units = settings.units();
        Ok(Midas { units, unused: 0 })
    }

    fn detect(sample: &Sample<'_>) -> Option<Claim> {
        let mut claim = text_format::claim::<Self>(sample)?;
        let mut columns = "between blanks a time, a type, a page and a size".to_owned();
        if let Some(why) = trait_of(sample) {
            claim.strength = Strength::Likely;
            columns += &format!(" ({why})");
        }
        claim.reason = format!("{columns}: {}", claim.reason);
        Some(claim)
    }
}

impl LineParser for Midas {
    #[inline]
    fn parse(&mut self, line: &[u8], to: &mut Requests<'_>) -> Parsed {
        let mut columns = Columns::<b' '>::new(line);
        let time_ns = columns.time(self.units.time)?;
        let op = match columns.number()? {
            2 => None,
            3 => Some(OpKind::Trim),
            code => match self.units.codes.operation(code) {
                None => return Err(columns.defect("0 (read), 1 (write) or 3 (trim)")),
                op => op,
            },
        };
        let offset = columns.address(self.units.address, "a page below 2^60 bytes")?;
        let length = columns.length(self.units.size, "a size below 4 GiB")?;
        let stream = match columns.is_done() {
            true => 0,
            false => u16::try_from(columns.number()?).map_err(|_| columns.defect("a stream below 65536"))?,
        };
        let Some(op) = op else {
            self.unused += 1;
            return Ok(());
        };
        let before = to.batch.len();
        to.push(time_ns, op, offset, length, b"0")?;
        // The column comes with the first stream; rows before it had none.
        if to.batch.len() > before && (stream != 0 || !to.batch.stream.is_empty()) {
            to.batch.stream.resize(before, 0);
            to.batch.stream.push(stream);
        }
        Ok(())
    }

    fn left_out(&self) -> Vec<Skipped> {
        left_out(&[("a request of the unused type 2", self.unused)])
    }
}

/// What makes these lines MiDAS's and not a simulator's.
pub(super) fn trait_of(sample: &Sample<'_>) -> Option<&'static str> {
    let mut types = [false; 4];
    let mut streams = false;
    for line in &sample.lines {
        let mut columns = Columns::<b' '>::new(line);
        let stamp = columns.key().ok()?;
        let kind = columns.number().ok().filter(|&kind| kind < 4)?;
        columns.number().ok()?;
        let size = columns.number().ok()?;
        if !stamp.contains(&b'.') || (size > 0 && size < 512) {
            return None;
        }
        types[kind as usize] = true;
        streams |= !columns.is_done() && columns.number().ok()? > 1;
    }
    let kinds = types.iter().filter(|&&met| met).count();
    (streams || kinds > 2 || kinds == 2 && !types[2]).then_some("types of 0, 1 and 3, sizes in bytes")
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use ftlab_core::OpKind;

    #[test]
    fn three_lines_without_streams() {
        let (format, batch) = read(b"0.146559796 1 0 4096 \n0.146637836 0 5 8192 \n0.146643556 3 6 8192\n");
        assert_eq!(format, "midas");
        assert_eq!(batch.time_ns, [146_559_796, 146_637_836, 146_643_556]);
        assert_eq!(batch.op, [OpKind::Write, OpKind::Read, OpKind::Trim]);
        assert_eq!(batch.offset, [0, 20_480, 24_576]);
        assert_eq!(batch.length, [4096, 8192, 8192]);
        assert!(batch.stream.is_empty());
    }

    #[test]
    fn streams_begin_where_the_column_does() {
        let (format, batch) =
            read(b"0.1 1 0 4096 0\n0.2 1 1 4096\n0.3 0 6 4096 7\n0.4 2 0 512 1\n0.5 1 9 0 1\n0.6 1 3 512 0\n");
        assert_eq!(format, "midas");
        assert_eq!((batch.stream, batch.op.len()), (vec![0, 0, 7, 0], 4));
    }

    #[test]
    fn writes_alone_are_told_by_their_streams() {
        assert_eq!(read(b"0.1 1 0 4096 0\n0.2 1 1 4096 3\n").0, "midas");
        // Device 1, sizes in sectors, flags.
        assert_eq!(read(b"0.1 1 0 8 0\n0.2 1 1 8 3\n").0, "disksim");
    }

    #[test]
    fn four_columns_alone_are_enough() {
        assert_eq!(read(b"0.5 1 0 8\n0.6 1 1 8\n").0, "midas");
    }
}

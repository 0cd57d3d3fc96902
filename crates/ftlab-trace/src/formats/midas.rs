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
//! With its stream it has five columns like a DiskSim trace; it is told by times with a decimal point, sizes of at least 512,
//! and a second column of 0, 1 and 3 with more than one of them, or with a stream above 1 beside it.
//!
//! # What is dropped
//! Columns behind the fifth. Type 2, which MiDAS does not use, and requests of no bytes are left out and counted.

use ftlab_core::{Batch, OpKind, Result};

use super::{Claim, Reader, Sample, Strength};
use crate::input::Input;
use crate::report::Skipped;
use crate::settings::{Codes, Setting, Settings, TimeUnit};
use crate::text::{Columns, EMPTY, LineParser, Parsed, TextReader, VolumeTable, left_out, time, to_bytes};

struct Midas {
    unit: TimeUnit,
    codes: Codes,
    address_unit: u64,
    size_unit: u64,
    empty: u64,
    unused: u64,
}

impl Midas {
    fn new(settings: &Settings) -> Self {
        Midas {
            unit: settings.time_unit.unwrap_or(TimeUnit::Seconds),
            codes: settings.codes.unwrap_or(Codes::ReadIsZero),
            address_unit: settings.address_unit.map_or(4096, u64::from),
            size_unit: settings.size_unit.map_or(1, u64::from),
            empty: 0,
            unused: 0,
        }
    }
}

impl LineParser for Midas {
    #[inline]
    fn parse(&mut self, line: &[u8], batch: &mut Batch, volumes: &mut VolumeTable) -> Parsed {
        let mut columns = Columns::<b' '>::new(line);
        let time_ns = time(&mut columns, self.unit)?;
        let op = match columns.number()? {
            2 => None,
            3 => Some(OpKind::Trim),
            code => match self.codes.operation(code) {
                None => return Err(columns.defect("0 (read), 1 (write) or 3 (trim)")),
                op => op,
            },
        };
        let offset = to_bytes(columns.number()?, self.address_unit);
        let offset = offset.ok_or_else(|| columns.defect("a page below 2^60 bytes"))?;
        let bytes = to_bytes(columns.number()?, self.size_unit).and_then(|bytes| u32::try_from(bytes).ok());
        let length = bytes.ok_or_else(|| columns.defect("a size below 4 GiB"))?;
        let stream = match columns.is_done() {
            true => 0,
            false => u16::try_from(columns.number()?).map_err(|_| columns.defect("a stream below 65536"))?,
        };
        let Some(op) = op else {
            self.unused += 1;
            return Ok(());
        };
        if length == 0 {
            self.empty += 1;
            return Ok(());
        }
        // The column comes with the first stream; rows before it had none.
        if stream != 0 && batch.stream.is_empty() {
            batch.stream.resize(batch.len(), 0);
        }
        if stream != 0 || !batch.stream.is_empty() {
            batch.stream.push(stream);
        }
        batch.push(time_ns, op, offset, length, volumes.id(b"0")?, 0);
        Ok(())
    }

    fn left_out(&self) -> Vec<Skipped> {
        left_out(&[(EMPTY, self.empty), ("a request of the unused type 2", self.unused)])
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

pub const SETTINGS: &[Setting] = &[
    Setting::TimeUnit,
    Setting::Codes,
    Setting::AddressUnit,
    Setting::SizeUnit,
];

pub fn sample() -> Vec<u8> {
    b"0.146559796 1 0 4096 \n0.146637836 0 5 8192\n0.146643556 3 6 1048576 2\n".to_vec()
}

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    let parser = Midas::new(&Settings::default());
    let guess = Settings {
        time_unit: Some(parser.unit),
        codes: Some(parser.codes),
        address_unit: Some(4096),
        size_unit: Some(1),
        ..Settings::default()
    };
    let columns = "between blanks a time, a type, a page and a size";
    let meaning = "MiDAS, whose times are in s, pages of 4 KiB, sizes in bytes, and 0 = read, 1 = write, 3 = trim";
    Sample::fits(&sample.lines, &mut { parser }).then(|| match trait_of(sample) {
        Some(why) => Claim {
            strength: Strength::Likely,
            reason: format!("{columns} ({why}): {meaning}"),
            guess: guess.clone(),
        },
        None => Claim {
            strength: Strength::Fits,
            reason: format!("{columns}: {meaning}"),
            guess: guess.clone(),
        },
    })
}

pub fn open(input: Input, settings: &Settings) -> Result<Box<dyn Reader>> {
    Ok(Box::new(TextReader::new(Midas::new(settings), input)))
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

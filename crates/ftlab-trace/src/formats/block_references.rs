//! Block references as 32-bit numbers without a header, little-endian: the blocks that were requested, in order.
//!
//! # Origin
//! Reference streams as cache simulators dump them, one `uint32_t` after the other (numpy's
//! `array.astype('<u4').tofile`, C's `fwrite`). Such a file cannot be detected, so the format must be named: `--as
//! block_references`.
//!
//! # Columns
//! | field | byte | unit |
//! | --- | --- | --- |
//! | number of the block, u32 | 0 | 4 KiB, or `address_unit`; each reference is one block long |
//! | record | 4 bytes | |
//!
//! Every reference is taken as a read unless `op` says otherwise. All times are 0.
//!
//! # What is dropped
//! Nothing. A file that ends inside a number ends with a bad record.

use ftlab_core::{Batch, OpKind, Result};

use super::{Claim, Reader, Sample, Strength};
use crate::health::Parsed;
use crate::input::Input;
use crate::lines::VolumeTable;
use crate::records::{RecordParser, RecordReader, bytes_at};
use crate::report::Skipped;
use crate::settings::{Setting, Settings};

const DEFAULTS: Settings = Settings::NONE.with_references(4096, OpKind::Read);

struct References {
    op: OpKind,
    block: u32,
    volume: Option<u16>,
}

impl RecordParser for References {
    fn size(&self) -> usize {
        4
    }

    #[inline]
    fn parse(&mut self, record: &[u8], batch: &mut Batch, volumes: &mut VolumeTable) -> Parsed {
        let volume = match self.volume {
            Some(volume) => volume,
            None => *self.volume.insert(volumes.id(b"0").unwrap_or(0)),
        };
        let number = u64::from(u32::from_le_bytes(bytes_at(record, 0)));
        match self.op {
            OpKind::Flush => batch.push(0, OpKind::Flush, 0, 0, volume, 0),
            op => batch.push(0, op, number * u64::from(self.block), self.block, volume, 0),
        }
        Ok(())
    }

    fn left_out(&self) -> Vec<Skipped> {
        Vec::new()
    }

    fn timed(&self) -> bool {
        false
    }

    fn has_operations(&self) -> bool {
        false
    }
}

pub const SETTINGS: &[Setting] = &[Setting::AddressUnit, Setting::Op];

/// Five references to four blocks.
pub fn sample() -> Vec<u8> {
    [7u32, 8, 1_000_000, 7, u32::MAX]
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .collect()
}

pub fn detect(_: &Sample<'_>) -> Option<Claim> {
    Some(Claim {
        strength: Strength::Named,
        reason: "numbers of 32 bits, little-endian, without a header, each of a block of 4096 bytes that is read"
            .to_owned(),
        guess: DEFAULTS,
    })
}

pub fn open(input: Input, settings: &Settings) -> Result<Box<dyn Reader>> {
    let settings = settings.or(&DEFAULTS);
    let parser = References {
        op: settings.op.unwrap_or(OpKind::Read),
        block: settings.address_unit.unwrap_or(4096),
        volume: None,
    };
    Ok(Box::new(RecordReader::new(parser, input)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::read_all;
    use super::*;

    fn read(bytes: Vec<u8>, settings: &Settings) -> (Box<dyn Reader>, Batch) {
        let mut reader = open(Input::from_bytes("t", bytes).unwrap(), settings).unwrap();
        let batch = read_all(reader.as_mut()).unwrap();
        (reader, batch)
    }

    #[test]
    fn each_number_is_a_block() {
        let (reader, batch) = read(sample(), &Settings::NONE);
        assert_eq!(batch.offset[..3], [7 * 4096, 8 * 4096, 4_096_000_000]);
        assert_eq!(batch.offset[4], u64::from(u32::MAX) * 4096);
        assert_eq!(
            (batch.length.clone(), batch.op.clone()),
            (vec![4096; 5], vec![OpKind::Read; 5])
        );
        assert!(!reader.timed() && !reader.has_operations());
        let (_, batch) = read(sample(), &Settings::NONE.with_references(512, OpKind::Write));
        assert_eq!(
            (batch.offset[1], batch.length[1], batch.op[1]),
            (8 * 512, 512, OpKind::Write)
        );
    }

    #[test]
    fn a_cut_off_number_is_a_bad_record() {
        let mut bytes = sample();
        bytes.extend([1, 2, 3]);
        let (reader, batch) = read(bytes, &Settings::NONE);
        assert_eq!((batch.len(), reader.progress().skipped.len()), (5, 1));
    }
}

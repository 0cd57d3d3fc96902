//! What the binary formats share: records of one size, and fields.
//!
//! For bad records see [`Health`]. A file that ends inside a record ends with a bad one.

use ftlab_core::{Batch, Error, Result};

use crate::formats::{Progress, Reader};
use crate::health::{Defect, Health, Parsed, Piece};
use crate::input::Input;
use crate::lines::VolumeTable;
use crate::report::Skipped;

/// The record that the end of the file cuts off.
const CUT_OFF: Defect = Defect {
    at: 0,
    expected: "a whole record, the file ends inside it",
};

/// Turns one record into a request, or into none where the format's rule leaves it out.
pub trait RecordParser: Send {
    /// Bytes of a record.
    fn size(&self) -> usize;
    /// Appends the request of `record`, which has that size.
    fn parse(&mut self, record: &[u8], batch: &mut Batch, volumes: &mut VolumeTable) -> Parsed;
    /// Records that gave no request though nothing is wrong with them, by reason.
    fn left_out(&self) -> Vec<Skipped>;
    fn has_operations(&self) -> bool {
        true
    }
    fn timed(&self) -> bool {
        true
    }
    /// Requests that the file's header promises.
    fn promised(&self) -> Option<u64> {
        None
    }
}

/// A reader of any format of records of one size.
pub struct RecordReader<P> {
    parser: P,
    input: Input,
    volumes: VolumeTable,
    health: Health,
    /// False until the end has been judged.
    ended: bool,
}

impl<P: RecordParser> RecordReader<P> {
    /// A reader of an input whose header has been consumed.
    pub fn new(parser: P, input: Input) -> Self {
        RecordReader {
            parser,
            input,
            volumes: VolumeTable::default(),
            health: Health::of(Piece::Record),
            ended: false,
        }
    }

    fn end(&mut self) -> Result<()> {
        self.ended = true;
        let rest = self.input.bytes().len();
        if rest > 0 {
            self.health.note(&self.input, 0, self.input.bytes(), CUT_OFF)?;
            self.input.consume(rest);
        }
        self.health.end()?;
        let seen = self.health.seen();
        match self.parser.promised() {
            Some(promised) if seen < promised => Err(Error::input(format!(
                "{}, byte {}: the file ends after {seen} records, expected the {promised} of its header",
                self.input.name(),
                self.input.offset()
            ))),
            _ => Ok(()),
        }
    }
}

impl<P: RecordParser> Reader for RecordReader<P> {
    fn read(&mut self, batch: &mut Batch) -> Result<()> {
        let size = self.parser.size();
        while batch.len() < Batch::TARGET && !self.ended {
            if self.input.bytes().len() < size {
                if self.input.ended() {
                    return self.end();
                }
                self.input.fill()?;
                continue;
            }
            let mut used = 0;
            for record in self.input.bytes().chunks_exact(size) {
                match self.parser.parse(record, batch, &mut self.volumes) {
                    Ok(()) => self.health.good += 1,
                    Err(defect) => self.health.note(&self.input, used, record, defect)?,
                }
                used += size;
                if batch.len() >= Batch::TARGET {
                    break;
                }
            }
            self.input.consume(used);
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress {
            skipped: self.health.skipped(),
            left_out: self.parser.left_out(),
            first_bad: self.health.first_bad.clone(),
            ..Progress::default()
        }
    }

    fn volumes(&self) -> &[String] {
        self.volumes.names()
    }

    fn input(&self) -> &Input {
        &self.input
    }

    fn has_operations(&self) -> bool {
        self.parser.has_operations()
    }

    fn timed(&self) -> bool {
        self.parser.timed()
    }
}

/// `N` bytes from `at` on; zeros where a record is too short, which no caller asks for.
#[inline]
pub fn bytes_at<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    record
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .copied()
        .unwrap_or([0; N])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReadOptions, open_bytes};
    use ftlab_core::Source;

    /// Reads a vscsi trace of version 1 with record `i` turned by `damage`.
    fn read(records: usize, damage: impl Fn(usize, &mut [u8]), cut: usize) -> Result<(usize, crate::TraceReport)> {
        let mut bytes = Vec::new();
        for i in 0..records {
            let mut record = [0u8; 32];
            record[4..8].copy_from_slice(&4096u32.to_le_bytes());
            record[12..16].copy_from_slice(&[0x28, 0, 0, 1]);
            record[24] = i as u8;
            damage(i, &mut record);
            bytes.extend(record);
        }
        bytes.truncate(bytes.len() - cut);
        let mut opened = open_bytes("t.vscsi", bytes, &ReadOptions::default())?;
        let (mut batch, mut requests) = (Batch::default(), 0);
        loop {
            opened.next_batch(&mut batch)?;
            if batch.is_empty() {
                return Ok((requests, opened.report()));
            }
            requests += batch.len();
        }
    }

    #[test]
    fn a_bad_record_is_left_out_and_counted_with_its_byte() {
        let (requests, report) = read(100, |i, r| r[15] ^= u8::from(i == 7), 0).unwrap();
        assert_eq!((requests, report.skipped_total()), (99, 1));
        let first = report.first_bad.unwrap();
        assert_eq!(first.line, 8);
        assert_eq!(first.text, "000000000010000000000000280000000000000000000000…");
        assert_eq!(
            first.reason,
            "the record at byte 224: byte 15 of it: expected the version, as in the records before"
        );
    }

    #[test]
    fn a_record_cut_off_is_a_bad_one() {
        let (requests, report) = read(100, |_, _| (), 1).unwrap();
        assert_eq!(requests, 99);
        assert_eq!(
            report.first_bad.unwrap().reason,
            "the record at byte 3168: expected a whole record, the file ends inside it"
        );
    }

    #[test]
    fn many_bad_records_are_an_error_that_names_the_first() {
        // A byte is lost in record 20: nothing behind it can be read.
        let error = read(
            3000,
            |i, r| {
                if i >= 20 {
                    r.rotate_left(1)
                }
            },
            0,
        )
        .unwrap_err()
        .to_string();
        let expected = "t.vscsi, record 21: `000000001000000000000028000001000000000000000014…`: the record at byte 640: \
                        byte 15 of it: expected the version, as in the records before (11 of the first 31 records are \
                        bad), after 20 requests";
        assert_eq!(error, expected);
    }
}

//! WiscSee's event lists.
//!
//! # Origin
//! junhe/wiscsee (He et al., "The Unwritten Contract of Solid State Drives", EuroSys 2017): the file that its parser of
//! blkparse's output writes for its simulator, `blkparse-events-for-ftlsim.txt`.
//!
//! # Columns
//! Between blanks:
//!
//! | column | meaning | unit |
//! | --- | --- | --- |
//! | 1 pid | process id; 0 in C lines | |
//! | 2 action | `D` issued to the driver, `C` completed | |
//! | 3 operation | `read`, `write`, `discard` or `flush` | |
//! | 4 offset | first byte | bytes |
//! | 5 size | length | bytes |
//! | 6 time | since the start of the trace | s |
//! | 7 gap | since the line before | s |
//! | 8 sync | `True` or `False`: the SYNC flag | |
//!
//! D lines are taken as requests unless `event` is C.
//!
//! # What is dropped
//! Lines of the other action; the gap, which follows from the times.

use ftlab_core::{Error, OpKind, Result, flags};

use super::Strength;
use super::text_format::TextFormat;
use crate::columns::{Columns, read_or_write};
use crate::health::{Parsed, left_out};
use crate::lines::{EMPTY, LineParser, Requests};
use crate::report::Skipped;
use crate::settings::{Setting, Settings, TimeUnit};

pub struct Wiscsee {
    /// `D` or `C`.
    event: u8,
    others: u64,
    empty: u64,
}

impl TextFormat for Wiscsee {
    const SETTINGS: &[Setting] = &[Setting::Event];
    const DEFAULTS: Settings = Settings::NONE.with_event('D');
    const STRENGTH: Strength = Strength::Likely;
    const REASON: &str =
        "pid, D or C, the operation, bytes, times and True or False: WiscSee's events; D events, what the device saw";
    const SAMPLE: &[u8] = b"39949 D read 299008 4096 0.000000000 0 False\n\
                            0 C read 299008 4096 0.000122793 0.000122793 False\n\
                            39949 D write 331776 8192 0.000196695 7.3902e-05 True\n\
                            1 D discard 0 536870912 0.000321063 0.000124368 False\n";

    fn new(settings: &Settings) -> Result<Self> {
        let event = match settings.event {
            Some('C') => b'C',
            Some('D') | None => b'D',
            Some(other) => {
                return Err(Error::input(format!(
                    "event {other}: expected D (issued) or C (completed), WiscSee's lists have no other"
                )));
            }
        };
        Ok(Wiscsee {
            event,
            others: 0,
            empty: 0,
        })
    }
}

impl LineParser for Wiscsee {
    #[inline]
    fn parse(&mut self, line: &[u8], to: &mut Requests<'_>) -> Parsed {
        let mut columns = Columns::<b' '>::new(line);
        let pid = columns.process_id()?;
        let action = columns.key()?;
        if !matches!(action, b"D" | b"C") {
            return Err(columns.defect("the action D or C"));
        }
        let op = match columns.key()? {
            b"discard" => OpKind::Trim,
            b"flush" => OpKind::Flush,
            word => read_or_write(word).ok_or_else(|| columns.defect("read, write, discard or flush"))?,
        };
        let offset = columns.address(1, "an offset below 2^60 bytes")?;
        let length = columns.length(1, "a size below 4 GiB")?;
        let time_ns = columns.time(TimeUnit::Seconds)?;
        columns.key()?;
        let flag_bits = match columns.key()? {
            b"True" => flags::SYNC,
            b"False" => 0,
            _ => return Err(columns.defect("True or False")),
        };
        if action != [self.event] {
            self.others += 1;
        } else if length == 0 && op != OpKind::Flush {
            self.empty += 1;
        } else {
            let (offset, length) = if op == OpKind::Flush { (0, 0) } else { (offset, length) };
            let volume = to.volumes.id(b"0")?;
            to.batch.push(time_ns, op, offset, length, volume, flag_bits);
            to.batch.pid.push(pid);
        }
        Ok(())
    }

    fn left_out(&self) -> Vec<Skipped> {
        let other = match self.event {
            b'C' => "event D: issued to the driver",
            _ => "event C: completed",
        };
        left_out(&[(other, self.others), (EMPTY, self.empty)])
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{bad_lines, read, read_as};
    use super::*;

    #[test]
    fn four_lines_of_which_three_are_issued() {
        let (format, batch) = read(Wiscsee::SAMPLE);
        assert_eq!(format, "wiscsee");
        assert_eq!(batch.time_ns, [0, 196_695, 321_063]);
        assert_eq!(batch.op, [OpKind::Read, OpKind::Write, OpKind::Trim]);
        assert_eq!(batch.offset, [299_008, 331_776, 0]);
        assert_eq!(batch.length, [4096, 8192, 536_870_912]);
        assert_eq!(
            (batch.flags, batch.pid),
            (vec![0, flags::SYNC, 0], vec![39949, 39949, 1])
        );
    }

    #[test]
    fn completions_on_request_and_other_events_not_at_all() {
        let read_event = |event| read_as::<Wiscsee>(Wiscsee::SAMPLE, &Settings::NONE.with_event(event));
        let (reader, batch) = read_event('C').unwrap();
        assert_eq!(batch.time_ns, [122_793]);
        assert_eq!(reader.progress().left_out[0].count, 3);
        let error = read_event('Q').err().unwrap().to_string();
        assert!(error.contains("expected D (issued) or C"), "{error}");
    }

    #[test]
    fn odd_lines_are_bad_lines() {
        let good = "1 D read 0 4096 0.1 0 False";
        let bad = [
            "1 D read 0 4096 0.1 0",
            "1 D read 0 -1 0.1 0 False",
            "1 D raed 0 4096 0.1 0 False",
            "1 D read 0 99999999999 0.1 0 False",
            "1 X read 0 4096 0.1 0 False",
            "1 D read 0 4096 0.1 0 Maybe",
            "1 D read 0\0 4096 0.1 0 True",
        ];
        bad_lines::<Wiscsee>(good, &bad);
    }
}

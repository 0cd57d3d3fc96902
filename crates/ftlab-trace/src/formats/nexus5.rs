//! Block traces of a Nexus 5 phone (BIOtracer): eight columns between blanks, four times per request.
//!
//! # Origin
//! Zhou et al., "I/O Characteristics of Smartphone Applications and Their Implications for eMMC Design", IISWC 2015;
//! CASL-SDSU/SmartphoneIOTraces.
//!
//! # Columns
//! | column | meaning | unit |
//! | --- | --- | --- |
//! | 1 sector | first sector | 512 B |
//! | 2 sectors | length | 512 B |
//! | 3 size | length again, the one taken | bytes |
//! | 4 flags | bit 0: 0 = read, 1 = write; bit 2: the request did not wait | |
//! | 5 created | arrival in the block layer: the request's time, since 1970 | s |
//! | 6 to 8 | taken from the queue, issued to the eMMC, done | s |
//!
//! Requests are in the order in which they left the queue, so arrivals are often slightly out of order.
//!
//! While a phone boots, its clock shows 1970 until it is set. A request that was created before the clock was set, and
//! taken from the queue after that, arrives when it was taken. A step of more than an hour on the unset clock comes
//! from reading the real-time clock. It is no pause, and is ignored.
//!
//! # What is dropped
//! Column 2, the flags' other bits, and the times of issue and completion, which belong to the traced eMMC. Requests of no
//! bytes, counted.

use ftlab_core::{OpKind, Result};

use super::text_format::{self, TextFormat};
use super::{Claim, Sample, Strength};
use crate::columns::Columns;
use crate::health::Parsed;
use crate::lines::{LineParser, Requests};
use crate::settings::{Settings, TimeUnit};

/// Times before this (September 2001) are those of a clock that was not set.
const SET: u64 = 1_000_000_000 * SECOND;
/// No phone waits longer while it boots.
const PAUSE: u64 = 3600 * SECOND;
const SECOND: u64 = 1_000_000_000;

#[derive(Default)]
pub struct Nexus5 {
    unset: Unset,
}

/// The clock before it was set: its last stamp, and by how much its stamps are ahead of the time since the first.
#[derive(Default)]
struct Unset {
    last: Option<u64>,
    ahead: u64,
}

impl Unset {
    #[cold]
    fn time(&mut self, stamp: u64) -> u64 {
        let last = self.last.unwrap_or(stamp);
        if stamp > last.saturating_add(PAUSE) {
            self.ahead += stamp - last;
        }
        self.last = Some(last.max(stamp));
        stamp.saturating_sub(self.ahead)
    }
}

impl TextFormat for Nexus5 {
    const STRENGTH: Strength = Strength::Likely;
    const REASON: &str =
        "eight columns between blanks: sector, sectors, the same in bytes, flags, four times: the Nexus 5 traces";
    const SAMPLE: &[u8] = b"4572376\t\t24\t\t12288\t\t5\t\t1398405332.080820638\t\t1398405332.080861784\t\t\
                            1398405332.083687044\t\t1398405332.084604388\n\
                            4614472\t\t8\t\t4096\t\t4\t\t1398405332.843331887\t\t1398405332.843358137\t\t\
                            1398405332.843379699\t\t1398405332.843774908\n\
                            4614480 8 4096 0 1398405332.843331900 1398405332.843358138 1398405332.843379700 \
                            1398405332.843774909\n";

    fn new(_: &Settings) -> Result<Self> {
        Ok(Nexus5::default())
    }

    fn detect(sample: &Sample<'_>) -> Option<Claim> {
        let agree = sample.lines.iter().filter(|line| sizes_agree(line)).count();
        text_format::claim::<Self>(sample).filter(|_| agree * 10 >= sample.lines.len() * 9)
    }
}

impl LineParser for Nexus5 {
    #[inline]
    fn parse(&mut self, line: &[u8], to: &mut Requests<'_>) -> Parsed {
        let mut columns = Columns::<b' '>::new(line);
        let offset = columns.address(512, "a sector below 2^51")?;
        columns.number()?;
        let length = columns.length(1, "a size below 4 GiB")?;
        let op = match columns.number()? & 1 {
            0 => OpKind::Read,
            _ => OpKind::Write,
        };
        let created = columns.time(TimeUnit::Seconds)?;
        let taken = columns.time(TimeUnit::Seconds)?;
        // The last two are passed over, but must be there: the line may be cut.
        columns.key()?;
        columns.key()?;
        let time_ns = match (created >= SET, taken >= SET) {
            (true, _) => created,
            (false, true) => taken,
            (false, false) if length == 0 => 0,
            (false, false) => self.unset.time(created),
        };
        to.push(time_ns, op, offset, length, b"0")
    }
}

/// Whether the third column counts the bytes of the second one's sectors.
fn sizes_agree(line: &[u8]) -> bool {
    let mut columns = Columns::<b' '>::new(line);
    let mut number = || columns.number().ok();
    let (_, sectors, bytes) = (number(), number(), number());
    sectors.is_some_and(|sectors| sectors.checked_mul(512) == bytes)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{bad_lines, read};
    use super::*;

    #[test]
    fn three_lines() {
        let (format, batch) = read(Nexus5::SAMPLE);
        assert_eq!(format, "nexus5");
        let stamps = [80_820_638, 843_331_887, 843_331_900];
        assert_eq!(batch.time_ns, stamps.map(|ns| 1_398_405_332 * SECOND + ns));
        assert_eq!(batch.op, [OpKind::Write, OpKind::Read, OpKind::Read]);
        assert_eq!(
            (batch.offset[0], batch.length),
            (4_572_376 * 512, vec![12_288, 4096, 4096])
        );
    }

    #[test]
    fn a_clock_that_is_read_and_set_while_booting_makes_no_pause() {
        // Created and taken; then the real-time clock is read (plus 120 days), later the time is set.
        let rows = [
            ("1.5", "1.6"),
            ("2.5", "2.6"),
            ("10363866.5", "10363866.6"),
            ("10363865.5", "10363866.7"),
            ("10363867.5", "1398396748.1"),
            ("1398396748.2", "1398396748.3"),
        ];
        let text: String = rows.iter().map(|(c, t)| format!("0 8 4096 4 {c} {t} 0 0\n")).collect();
        let (format, batch) = read(text.as_bytes());
        assert_eq!(format, "nexus5");
        let tenths = batch.time_ns.iter().map(|ns| ns / (SECOND / 10)).collect::<Vec<_>>();
        assert_eq!(tenths, [15, 25, 25, 15, 13_983_967_481, 13_983_967_482]);
    }

    #[test]
    fn a_cut_line_is_no_request() {
        let bad = [
            "1 8 4096 4 5.0 5.1",
            "1 8 4096 x 5.0 5.1 5.2 5.3",
            "1 8 9999999999 4 5.0 5.1 5.2 5.3",
        ];
        bad_lines::<Nexus5>("1 8 4096 4 5.0 5.1 5.2 5.3", &bad);
    }
}

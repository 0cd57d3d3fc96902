//! Block traces of a Pixel 6a phone as CSV, with the process behind every request.
//!
//! # Origin
//! "Space-efficient FTL for Mobile Storage via Tiny Neural Nets", SYSTOR 2024; acsl-technion/MobileBlockIOTraces.
//!
//! # Columns
//! Named by a header line, in this order (the first name is misspelt there):
//!
//! | column | meaning | unit |
//! | --- | --- | --- |
//! | 1 proces | `name-pid`, in some rows without the pid: label and process id; `<...>` where the tracer knew no name | |
//! | 2 device | volume | |
//! | 3 rw_flag | `R` or `W` | |
//! | 4 sector | first sector | 512 B |
//! | 5 size | length | 512 B |
//! | 6 timestamp | arrival; the tracer's numbers went through floating point, and are rounded back to its µs | s |
//!
//! # What is dropped
//! Columns behind the sixth. Requests of no bytes, counted. A process whose name holds a comma makes a bad line.

use ftlab_core::Result;

use super::names::Names;
use super::text_format::TextFormat;
use crate::columns::Columns;
use crate::health::Parsed;
use crate::lines::{LineParser, Requests};
use crate::settings::{Settings, TimeUnit};

#[derive(Default)]
pub struct Pixel6a {
    processes: Names,
}

impl TextFormat for Pixel6a {
    const HEADER: &[&str] = &["proces,device,rw_flag", "process,device,rw_flag"];
    const ALWAYS_HAS_HEADER: bool = true;
    const REASON: &str = "a header line proces,device,rw_flag,sector,size,timestamp: the Pixel 6a traces";
    const SAMPLE: &[u8] = b"proces,device,rw_flag,sector,size,timestamp\n\
                            <...>-12228,8388608,R,29880920,16,159273.751646\n\
                            kworker/4:1H-225,8388608,W,30175712,8,159273.83748699998\n\
                            Async Task,8388608,R,30175712,8,159274\n";

    fn new(_: &Settings) -> Result<Self> {
        Ok(Pixel6a::default())
    }
}

impl LineParser for Pixel6a {
    #[inline]
    fn parse(&mut self, line: &[u8], to: &mut Requests<'_>) -> Parsed {
        let mut columns = Columns::<b','>::new(line);
        // Names hold blanks.
        let length = memchr::memchr(b',', line).unwrap_or(line.len());
        columns.skip();
        let device = columns.key()?;
        let op = columns.read_or_write("R or W")?;
        let offset = columns.address(512, "a sector below 2^51")?;
        let bytes = columns.length(512, "a size below 2^23 sectors")?;
        let time_ns = columns.time(TimeUnit::Seconds)?;
        to.push(time_ns.saturating_add(500) / 1000 * 1000, op, offset, bytes, device)?;
        if bytes > 0 {
            let (name, pid) = name_and_pid(&line[..length]);
            to.batch.pid.push(pid);
            to.batch.label.push(self.processes.id(name));
        }
        Ok(())
    }

    fn labels(&self) -> &[String] {
        self.processes.all()
    }
}

/// `kworker/4:1H-225` is process 225 of the name before the hyphen; pid 0 where there is none.
#[inline]
fn name_and_pid(text: &[u8]) -> (&[u8], u32) {
    let digits = text.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let (before, number) = text.split_at(text.len() - digits);
    match before.strip_suffix(b"-") {
        Some(name) if (1..=9).contains(&digits) => {
            let pid = number.iter().fold(0, |pid, digit| pid * 10 + u32::from(digit - b'0'));
            (name, pid)
        }
        _ => (text, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read_as;
    use super::*;
    use ftlab_core::OpKind;

    #[test]
    fn three_lines() {
        let (reader, batch) = read_as::<Pixel6a>(Pixel6a::SAMPLE, &Settings::NONE).unwrap();
        assert_eq!(
            batch.time_ns,
            [159_273_751_646_000, 159_273_837_487_000, 159_274_000_000_000]
        );
        assert_eq!(batch.op, [OpKind::Read, OpKind::Write, OpKind::Read]);
        assert_eq!(
            (batch.offset[0], batch.length),
            (29_880_920 * 512, vec![8192, 4096, 4096])
        );
        assert_eq!((batch.pid, batch.label), (vec![12_228, 225, 0], vec![0, 1, 2]));
        assert_eq!(reader.labels(), ["<...>", "kworker/4:1H", "Async Task"]);
        assert_eq!(reader.volumes(), ["8388608"]);
    }

    #[test]
    fn names_with_hyphens_and_without_numbers() {
        let cases: [(&str, &str, u32); 5] = [
            ("a-b-7", "a-b", 7),
            ("a-", "a-", 0),
            ("7", "7", 0),
            ("-7", "", 7),
            ("x-1234567890", "x-1234567890", 0),
        ];
        for (text, name, pid) in cases {
            assert_eq!(name_and_pid(text.as_bytes()), (name.as_bytes(), pid), "{text}");
        }
    }
}

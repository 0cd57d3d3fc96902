//! Alibaba block traces of 2020, comma separated.
//!
//! # Origin
//! Li et al., "An In-Depth Analysis of Cloud Block Storage Workloads in Large-Scale Production", IISWC 2020;
//! alibaba/block-traces, README: 1 000 volumes of a cloud, January 2020.
//!
//! # Columns
//! | column | meaning | unit |
//! | --- | --- | --- |
//! | 1 device_id | volume | |
//! | 2 opcode | `R` or `W` | |
//! | 3 offset | first byte | bytes |
//! | 4 length | length | bytes |
//! | 5 timestamp | arrival, since 1970 | µs, or `time_unit` |
//!
//! A header line is passed over.
//!
//! # What is dropped
//! Columns behind the fifth. Requests of no bytes, counted. The volumes' capacities are in a file of their own and not read.

use ftlab_core::{Batch, Result};

use super::{Claim, Reader, Sample, Strength};
use crate::input::Input;
use crate::report::Skipped;
use crate::settings::{Setting, Settings, TimeUnit};
use crate::text::{
    Columns, EMPTY, LineParser, Parsed, TextReader, VolumeTable, left_out, read_or_write, time, to_bytes,
};

const HEADER: [&str; 1] = ["device_id,opcode"];

struct Alibaba {
    unit: TimeUnit,
    empty: u64,
}

impl LineParser for Alibaba {
    #[inline]
    fn parse(&mut self, line: &[u8], batch: &mut Batch, volumes: &mut VolumeTable) -> Parsed {
        let mut columns = Columns::<b','>::new(line);
        let device = columns.key()?;
        let op = read_or_write(columns.text()?).ok_or_else(|| columns.defect("R or W"))?;
        let offset = to_bytes(columns.number()?, 1).ok_or_else(|| columns.defect("an offset below 2^60 bytes"))?;
        let length = u32::try_from(columns.number()?).map_err(|_| columns.defect("a length below 4 GiB"))?;
        let time_ns = time(&mut columns, self.unit)?;
        if length == 0 {
            self.empty += 1;
            return Ok(());
        }
        batch.push(time_ns, op, offset, length, volumes.id(device)?, 0);
        Ok(())
    }

    fn left_out(&self) -> Vec<Skipped> {
        left_out(&[(EMPTY, self.empty)])
    }
}

pub const SETTINGS: &[Setting] = &[Setting::TimeUnit];

pub fn sample() -> Vec<u8> {
    b"0,R,126703661056,4096,1577808000000046\n1,W,19496058880,77824,1577808000000426\n\
      2,W,9811763200,12288,1577808000000494\n"
        .to_vec()
}

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    let (lines, header) = sample.body(&HEADER);
    let unit = TimeUnit::Microseconds;
    Sample::fits(lines, &mut Alibaba { unit, empty: 0 }).then(|| Claim {
        strength: if header { Strength::Sure } else { Strength::Fits },
        reason: "comma separated, a number, `R` or `W`, offset, length, then a time, taken as us: Alibaba 2020"
            .to_owned(),
        guess: Settings {
            time_unit: Some(unit),
            ..Settings::default()
        },
    })
}

pub fn open(input: Input, settings: &Settings) -> Result<Box<dyn Reader>> {
    let unit = settings.time_unit.unwrap_or(TimeUnit::Microseconds);
    Ok(Box::new(TextReader::with_header(
        Alibaba { unit, empty: 0 },
        input,
        &HEADER,
    )?))
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use ftlab_core::OpKind;

    #[test]
    fn three_lines() {
        let (format, batch) = read(
            b"0,R,126703661056,4096,1577808000000046\n1,W,19496058880,77824,1577808000000426\n\
              0,W,9811763200,0,1577808000000490\n0,W,9811763200,12288,1577808000000494\n",
        );
        assert_eq!(format, "alibaba");
        assert_eq!(
            batch.time_ns,
            [46, 426, 494].map(|us| (1_577_808_000_000_000 + us) * 1000)
        );
        assert_eq!(batch.op, [OpKind::Read, OpKind::Write, OpKind::Write]);
        assert_eq!(batch.offset, [126_703_661_056, 19_496_058_880, 9_811_763_200]);
        assert_eq!(batch.length, [4096, 77_824, 12_288]);
        assert_eq!(batch.volume, [0, 1, 0]);
    }

    #[test]
    fn a_header_is_passed_over() {
        let (format, batch) = read(b"device_id,opcode,offset,length,timestamp\r\n7,R,1024,2048,1000000\r\n");
        assert_eq!((format, batch.time_ns), ("alibaba", vec![1_000_000_000]));
    }
}

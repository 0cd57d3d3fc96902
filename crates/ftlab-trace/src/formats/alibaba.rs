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
//! A header line is skipped.
//!
//! # What is dropped
//! Columns behind the fifth. Requests of no bytes, counted. The volumes' capacities, which are in a separate file, are
//! not read.

use ftlab_core::Result;

use super::text_format::TextFormat;
use crate::columns::Columns;
use crate::health::Parsed;
use crate::lines::{LineParser, Requests};
use crate::settings::{Setting, Settings, TimeUnit};

pub struct Alibaba {
    unit: TimeUnit,
}

impl TextFormat for Alibaba {
    const SETTINGS: &[Setting] = &[Setting::TimeUnit];
    const DEFAULTS: Settings = Settings::NONE.with_time_unit(TimeUnit::Microseconds);
    const HEADER: &[&str] = &["device_id,opcode"];
    const REASON: &str =
        "comma separated, a number, `R` or `W`, offset, length, then a time, taken as us: Alibaba 2020";
    const SAMPLE: &[u8] = b"0,R,126703661056,4096,1577808000000046\n\
                            1,W,19496058880,77824,1577808000000426\n\
                            2,W,9811763200,12288,1577808000000494\n";

    fn new(settings: &Settings) -> Result<Self> {
        let unit = settings.units().time;
        Ok(Alibaba { unit })
    }
}

impl LineParser for Alibaba {
    #[inline]
    fn parse(&mut self, line: &[u8], to: &mut Requests<'_>) -> Parsed {
        let mut columns = Columns::<b','>::new(line);
        let device = columns.key()?;
        let op = columns.read_or_write("R or W")?;
        let offset = columns.address(1, "an offset below 2^60 bytes")?;
        let length = columns.length(1, "a length below 4 GiB")?;
        let time_ns = columns.time(self.unit)?;
        to.push(time_ns, op, offset, length, device)
    }
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

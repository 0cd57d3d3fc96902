//! Tencent cloud block storage (CBS) traces of 2018, comma separated.
//!
//! # Origin
//! Zhang et al., "OSCA: An Online-Model Based Cache Allocation Scheme in Cloud Block Storage Systems", ATC 2020; SNIA IOTTA
//! trace set 27917/28064, README: 5 584 volumes, ten days of October 2018.
//!
//! # Columns
//! | column | meaning | unit |
//! | --- | --- | --- |
//! | 1 Timestamp | arrival, since 1970: whole seconds, so many requests share one | s, or `time_unit` |
//! | 2 Offset | first sector | 512 B, or `address_unit` |
//! | 3 Size | length | 512 B, or `size_unit` |
//! | 4 IOType | 0 = read, 1 = write, or `codes` | |
//! | 5 VolumeID | volume | |
//!
//! A header line is skipped. One published copy of the set (cacheMon/cache_dataset) has offsets in bytes. If all
//! offsets, or all sizes, of the first lines are multiples of 512, that column is taken as bytes.
//!
//! # What is dropped
//! Columns behind the fifth. Requests of no bytes, counted.

use ftlab_core::Result;

use super::text_format::{self, TextFormat};
use super::{Claim, Sample};
use crate::columns::Columns;
use crate::health::Parsed;
use crate::lines::{LineParser, Requests};
use crate::settings::{Codes, Setting, Settings, TimeUnit, Units};

/// So many lines are evidence of a unit.
const ENOUGH: usize = 20;

pub struct Tencent {
    units: Units,
}

impl TextFormat for Tencent {
    const SETTINGS: &[Setting] = Setting::UNITS;
    const DEFAULTS: Settings = Settings::NONE.with_units(TimeUnit::Seconds, Codes::ReadIsZero, 512, 512);
    const HEADER: &[&str] = &["timestamp,offset"];
    const REASON: &str =
        "comma separated, a time, offset, size, 0 or 1, a volume: Tencent CBS, with times in s and 0 = read";
    const SAMPLE: &[u8] =
        b"1538323200,12910952,128,0,1063\n1538323200,6338688,8,1,1627\n1538323201,1904106400,384,0,1360\n";

    fn new(settings: &Settings) -> Result<Self> {
        let units = settings.units();
        Ok(Tencent { units })
    }

    fn detect(sample: &Sample<'_>) -> Option<Claim> {
        let mut claim = text_format::claim::<Self>(sample)?;
        let (lines, _) = sample.body(Self::HEADER);
        let (address, address_why) = unit_of(lines, 1);
        let (size, size_why) = unit_of(lines, 2);
        if sample.leaves_open(Setting::AddressUnit) && sample.leaves_open(Setting::SizeUnit) {
            claim.reason += &format!("; offsets in {address_why}, sizes in {size_why}");
        }
        claim.guess = claim
            .guess
            .with_units(TimeUnit::Seconds, Codes::ReadIsZero, address, size);
        Some(claim)
    }
}

impl LineParser for Tencent {
    #[inline]
    fn parse(&mut self, line: &[u8], to: &mut Requests<'_>) -> Parsed {
        let mut columns = Columns::<b','>::new(line);
        let time_ns = columns.time(self.units.time)?;
        let offset = columns.address(self.units.address, "an offset below 2^60 bytes")?;
        let length = columns.length(self.units.size, "a size below 4 GiB")?;
        let op = columns.code(self.units.codes, "0 or 1")?;
        to.push(time_ns, op, offset, length, columns.key()?)
    }
}

/// The unit of a column, counted from 0.
fn unit_of(lines: &[&[u8]], column: usize) -> (u32, &'static str) {
    let whole = lines.iter().filter(|line| {
        let text = line
            .split(|&b| b == b',')
            .nth(column)
            .and_then(|text| std::str::from_utf8(text.trim_ascii()).ok());
        text.and_then(|text| text.parse::<u64>().ok())
            .is_some_and(|value| value.is_multiple_of(512))
    });
    match lines.len() >= ENOUGH && whole.count() == lines.len() {
        true => (1, "bytes, all being multiples of 512"),
        false => (512, "sectors"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use ftlab_core::OpKind;

    #[test]
    fn three_lines() {
        let (format, batch) = read(
            b"Timestamp,Offset,Size,IOType,VolumeID\n1538323200,12910952,128,0,1063\n1538323200,6338688,8,1,1627\n\
              1538323201,1904106400,384,0,1063\n",
        );
        assert_eq!(format, "tencent");
        assert_eq!(
            batch.time_ns,
            [1_538_323_200, 1_538_323_200, 1_538_323_201].map(|s: u64| s * 1_000_000_000)
        );
        assert_eq!(batch.op, [OpKind::Read, OpKind::Write, OpKind::Read]);
        assert_eq!(batch.offset, [12_910_952 * 512, 6_338_688 * 512, 1_904_106_400 * 512]);
        assert_eq!(batch.length, [65_536, 4096, 196_608]);
        assert_eq!(batch.volume, [0, 1, 0]);
    }

    #[test]
    fn a_copy_in_bytes_is_told_by_its_multiples() {
        let text: String = (0..30)
            .map(|i| format!("1538323200,{},{},1,3\n", i * 4096, 8 + i % 2))
            .collect();
        let (format, batch) = read(text.as_bytes());
        assert_eq!((format, batch.offset[2], batch.length[2]), ("tencent", 8192, 4096));
        let text: String = (0..30)
            .map(|i| format!("1538323200,{},{},1,3\n", i * 8, 4096 + i * 512))
            .collect();
        let (_, batch) = read(text.as_bytes());
        assert_eq!((batch.offset[2], batch.length[2]), (8192, 5120));
    }
}

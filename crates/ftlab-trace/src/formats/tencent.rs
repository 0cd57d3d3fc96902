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
//! A header line is passed over. A copy of the set in circulation (cacheMon/cache_dataset) holds offsets in bytes: where all
//! offsets, or all sizes, of the first lines are multiples of 512, that column is taken as bytes.
//!
//! # What is dropped
//! Columns behind the fifth. Requests of no bytes, counted.

use ftlab_core::{Batch, Result};

use super::{Claim, Reader, Sample, Strength};
use crate::input::Input;
use crate::report::Skipped;
use crate::settings::{Codes, Setting, Settings, TimeUnit};
use crate::text::{Columns, EMPTY, LineParser, Parsed, TextReader, VolumeTable, left_out, time, to_bytes};

const HEADER: [&str; 1] = ["timestamp,offset"];
/// So many lines are evidence of a unit.
const ENOUGH: usize = 20;

struct Tencent {
    unit: TimeUnit,
    codes: Codes,
    address_unit: u64,
    size_unit: u64,
    empty: u64,
}

impl Tencent {
    fn new(settings: &Settings) -> Self {
        Tencent {
            unit: settings.time_unit.unwrap_or(TimeUnit::Seconds),
            codes: settings.codes.unwrap_or(Codes::ReadIsZero),
            address_unit: settings.address_unit.map_or(512, u64::from),
            size_unit: settings.size_unit.map_or(512, u64::from),
            empty: 0,
        }
    }
}

impl LineParser for Tencent {
    #[inline]
    fn parse(&mut self, line: &[u8], batch: &mut Batch, volumes: &mut VolumeTable) -> Parsed {
        let mut columns = Columns::<b','>::new(line);
        let time_ns = time(&mut columns, self.unit)?;
        let offset = to_bytes(columns.number()?, self.address_unit);
        let offset = offset.ok_or_else(|| columns.defect("an offset below 2^60 bytes"))?;
        let bytes = to_bytes(columns.number()?, self.size_unit).and_then(|bytes| u32::try_from(bytes).ok());
        let length = bytes.ok_or_else(|| columns.defect("a size below 4 GiB"))?;
        let op = self
            .codes
            .operation(columns.number()?)
            .ok_or_else(|| columns.defect("0 or 1"))?;
        let volume = columns.key()?;
        if length == 0 {
            self.empty += 1;
            return Ok(());
        }
        batch.push(time_ns, op, offset, length, volumes.id(volume)?, 0);
        Ok(())
    }

    fn left_out(&self) -> Vec<Skipped> {
        left_out(&[(EMPTY, self.empty)])
    }
}

pub const SETTINGS: &[Setting] = &[
    Setting::TimeUnit,
    Setting::Codes,
    Setting::AddressUnit,
    Setting::SizeUnit,
];

pub fn sample() -> Vec<u8> {
    b"1538323200,12910952,128,0,1063\n1538323200,6338688,8,1,1627\n1538323201,1904106400,384,0,1360\n".to_vec()
}

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    let (lines, header) = sample.body(&HEADER);
    let parser = Tencent::new(&Settings::default());
    let (unit, codes) = (parser.unit, parser.codes);
    Sample::fits(lines, &mut { parser }).then(|| {
        let (address, address_why) = unit_of(lines, 1);
        let (size, size_why) = unit_of(lines, 2);
        Claim {
            strength: if header { Strength::Sure } else { Strength::Fits },
            reason: format!(
                "comma separated, a time, offset, size, 0 or 1, a volume: Tencent CBS, with times in s and 0 = read; offsets \
                 in {address_why}, sizes in {size_why}"
            ),
            guess: Settings {
                time_unit: Some(unit),
                codes: Some(codes),
                address_unit: Some(address),
                size_unit: Some(size),
                ..Settings::default()
            },
        }
    })
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

pub fn open(input: Input, settings: &Settings) -> Result<Box<dyn Reader>> {
    Ok(Box::new(TextReader::with_header(
        Tencent::new(settings),
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

//! Columns of a row group as values.
//!
//! # Model
//! | in the file | here |
//! | --- | --- |
//! | boolean | a truth |
//! | integers, floats of 16, 32 and 64 bits, decimals | a number; a whole number beyond 2^53 keeps its digits, so that none is taken for another |
//! | strings, enumerations, JSON, bytes | text |
//! | dates, times, timestamps (of 96 bits as well) | text as of ISO 8601, with the digits of their unit: `2026-11-27T20:35:00.000Z` |
//! | UUID | its text |
//! | nothing but nulls (`UNKNOWN`) | null; it goes with any kind in other files |
//! | lists, maps, intervals, places on Earth, variants | refused if they are asked for |
//!
//! Fields of structures are columns, by `a.b`.
//!
//! # Errors
//! Pages that are damaged or end early.

use std::borrow::Cow;

use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use parquet::column::page::PageReader;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};

use crate::expression::Value;

const SECONDS_OF_DAY: i64 = 86_400;

/// What the values of a column stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Truth,
    Whole,
    Unsigned,
    Float,
    Single,
    HalfFloat,
    Decimal {
        scale: i32,
    },
    Text,
    Uuid,
    Date,
    /// Digits of the fraction of a second.
    Time {
        digits: u32,
    },
    Timestamp {
        digits: u32,
        is_utc: bool,
    },
    /// Of a column that holds nothing but nulls.
    Nothing,
    Refused(&'static str),
}

impl Meaning {
    pub fn of(column: &ColumnDescriptor) -> Meaning {
        if column.max_rep_level() > 0 {
            return Meaning::Refused("a list or map");
        }
        let decimal = || Meaning::Decimal {
            scale: column.type_scale(),
        };
        match (column.logical_type_ref(), column.converted_type()) {
            (Some(LogicalType::Decimal(_)), _) | (None, ConvertedType::DECIMAL) => return decimal(),
            (Some(LogicalType::Date), _) | (None, ConvertedType::DATE) => return Meaning::Date,
            (Some(LogicalType::Time(time)), _) => {
                return Meaning::Time {
                    digits: digits(&time.unit),
                };
            }
            (Some(LogicalType::Timestamp(time)), _) => {
                return Meaning::Timestamp {
                    digits: digits(&time.unit),
                    is_utc: time.is_adjusted_to_u_t_c,
                };
            }
            (None, ConvertedType::TIME_MILLIS) => return Meaning::Time { digits: 3 },
            (None, ConvertedType::TIME_MICROS) => return Meaning::Time { digits: 6 },
            (None, ConvertedType::TIMESTAMP_MILLIS) => {
                return Meaning::Timestamp {
                    digits: 3,
                    is_utc: true,
                };
            }
            (None, ConvertedType::TIMESTAMP_MICROS) => {
                return Meaning::Timestamp {
                    digits: 6,
                    is_utc: true,
                };
            }
            (None, ConvertedType::INTERVAL) => return Meaning::Refused("an interval"),
            (Some(LogicalType::Unknown), _) => return Meaning::Nothing,
            (Some(LogicalType::Uuid), _) => return Meaning::Uuid,
            (Some(LogicalType::Float16), _) => return Meaning::HalfFloat,
            (Some(LogicalType::Integer(integer)), _) if !integer.is_signed => return Meaning::Unsigned,
            (
                None,
                ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64,
            ) => return Meaning::Unsigned,
            (Some(LogicalType::Geometry(_) | LogicalType::Geography(_)), _) => {
                return Meaning::Refused("a place on Earth");
            }
            _ => {}
        }
        match column.physical_type() {
            Type::BOOLEAN => Meaning::Truth,
            Type::INT32 | Type::INT64 => Meaning::Whole,
            Type::FLOAT => Meaning::Single,
            Type::DOUBLE => Meaning::Float,
            Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => Meaning::Text,
            // Of old writers, which knew no other timestamp.
            Type::INT96 => Meaning::Timestamp {
                digits: 9,
                is_utc: false,
            },
        }
    }

    /// In words; what is alike here may stand in several files of a question.
    pub fn name(self) -> String {
        match self {
            Meaning::Truth => "true or false".to_owned(),
            Meaning::Whole
            | Meaning::Unsigned
            | Meaning::Float
            | Meaning::Single
            | Meaning::HalfFloat
            | Meaning::Decimal { .. } => "a number".to_owned(),
            Meaning::Text | Meaning::Uuid => "text".to_owned(),
            Meaning::Date => "a date".to_owned(),
            Meaning::Time { digits } => format!("a time of {digits} digits"),
            Meaning::Timestamp { digits, is_utc } => {
                format!("a timestamp of {digits} digits{}", if is_utc { " in UTC" } else { "" })
            }
            Meaning::Nothing => "nothing but nulls".to_owned(),
            Meaning::Refused(what) => what.to_owned(),
        }
    }
}

fn digits(unit: &TimeUnit) -> u32 {
    match unit {
        TimeUnit::MILLIS => 3,
        TimeUnit::MICROS => 6,
        TimeUnit::NANOS => 9,
    }
}

/// Values of a column, some rows at a time.
pub trait Column {
    /// Reads the next rows.
    fn fill(&mut self, rows: usize) -> Result<(), String>;
    /// Of a row among those.
    fn value(&self, row: usize) -> Value<'_>;
}

type Convert<T> = for<'v> fn(&'v T, Meaning) -> Value<'v>;

struct Typed<T: DataType> {
    reader: ColumnReaderImpl<T>,
    meaning: Meaning,
    convert: Convert<T::T>,
    /// Definition level of what is there; below it is null.
    present: i16,
    values: Vec<T::T>,
    levels: Vec<i16>,
    /// Place of each row's value; none of null.
    places: Vec<Option<u32>>,
}

/// The values of a column that `pages` come from.
pub fn open(column: ColumnDescPtr, meaning: Meaning, pages: Box<dyn PageReader>) -> Box<dyn Column> {
    let present = column.max_def_level();
    fn typed<T: DataType>(
        reader: ColumnReaderImpl<T>,
        meaning: Meaning,
        present: i16,
        convert: Convert<T::T>,
    ) -> Box<dyn Column>
    where
        ColumnReaderImpl<T>: 'static,
    {
        Box::new(Typed {
            reader,
            meaning,
            convert,
            present,
            values: Vec::new(),
            levels: Vec::new(),
            places: Vec::new(),
        })
    }
    match get_column_reader(column, pages) {
        ColumnReader::BoolColumnReader(reader) => typed(reader, meaning, present, |&truth, _| Value::Bool(truth)),
        ColumnReader::Int32ColumnReader(reader) => typed(reader, meaning, present, |&number, meaning| match meaning {
            Meaning::Unsigned => Value::whole(number as u32 as i128),
            meaning => integer(i64::from(number), meaning),
        }),
        ColumnReader::Int64ColumnReader(reader) => typed(reader, meaning, present, |&number, meaning| match meaning {
            Meaning::Unsigned => Value::whole(number as u64 as i128),
            meaning => integer(number, meaning),
        }),
        ColumnReader::Int96ColumnReader(reader) => typed(reader, meaning, present, |time: &Int96, _| {
            let (day, nanos) = (
                time.data()[2],
                u64::from(time.data()[1]) << 32 | u64::from(time.data()[0]),
            );
            // Days are counted from noon of a Monday in 4713 BC; the epoch is day 2,440,588.
            let second = (i64::from(day) - 2_440_588) * SECONDS_OF_DAY + (nanos / 1_000_000_000) as i64;
            text(timestamp(second, (nanos % 1_000_000_000) as i64, 9, false))
        }),
        ColumnReader::FloatColumnReader(reader) => {
            typed(reader, meaning, present, |&number, _| Value::Number(f64::from(number)))
        }
        ColumnReader::DoubleColumnReader(reader) => typed(reader, meaning, present, |&number, _| Value::Number(number)),
        ColumnReader::ByteArrayColumnReader(reader) => typed(reader, meaning, present, |array: &ByteArray, meaning| {
            bytes(array.data(), meaning)
        }),
        ColumnReader::FixedLenByteArrayColumnReader(reader) => {
            typed(reader, meaning, present, |array: &FixedLenByteArray, meaning| {
                bytes(array.data(), meaning)
            })
        }
    }
}

impl<T: DataType> Column for Typed<T> {
    fn fill(&mut self, rows: usize) -> Result<(), String> {
        self.values.clear();
        self.levels.clear();
        self.places.clear();
        let mut read = 0;
        while read < rows {
            let levels = (self.present > 0).then_some(&mut self.levels);
            let found = self.reader.read_records(rows - read, levels, None, &mut self.values);
            match found.map_err(|e| e.to_string())? {
                (0, ..) => return Err(format!("{read} rows more, expected {rows}")),
                (records, ..) => read += records,
            }
        }
        if self.present > 0 {
            let mut next = 0;
            self.places.extend(self.levels.iter().map(|&level| {
                let place = (level == self.present).then_some(next);
                next += u32::from(level == self.present);
                place
            }));
        } else {
            self.places.extend((0..rows as u32).map(Some));
        }
        Ok(())
    }

    fn value(&self, row: usize) -> Value<'_> {
        let place = self.places.get(row).copied().flatten();
        let value = place.and_then(|place| self.values.get(place as usize));
        value.map_or(Value::Null, |value| (self.convert)(value, self.meaning))
    }
}

fn text(text: String) -> Value<'static> {
    Value::Text(Cow::Owned(text.into_bytes()))
}

fn integer(number: i64, meaning: Meaning) -> Value<'static> {
    let parts = |digits: u32| {
        let unit = 10i64.pow(digits);
        (number.div_euclid(unit), number.rem_euclid(unit))
    };
    match meaning {
        Meaning::Decimal { scale } => decimal(i128::from(number), scale),
        Meaning::Date => text(date(number)),
        Meaning::Time { digits } => {
            let (second, fraction) = parts(digits);
            text(time(second, fraction, digits))
        }
        Meaning::Timestamp { digits, is_utc } => {
            let (second, fraction) = parts(digits);
            text(timestamp(second, fraction, digits, is_utc))
        }
        _ => Value::whole(i128::from(number)),
    }
}

fn decimal(number: i128, scale: i32) -> Value<'static> {
    let unit = u32::try_from(scale).ok().and_then(|scale| 10i128.checked_pow(scale));
    match unit {
        // A whole number keeps its digits.
        Some(unit) if number % unit == 0 => Value::whole(number / unit),
        _ => Value::Number(number as f64 / 10f64.powi(scale)),
    }
}

fn bytes(bytes: &[u8], meaning: Meaning) -> Value<'_> {
    match meaning {
        Meaning::Decimal { scale } if bytes.len() <= 16 => {
            let sign = if bytes.first().is_some_and(|&byte| byte > 127) {
                -1
            } else {
                0
            };
            decimal(bytes.iter().fold(sign, |sum, &byte| sum << 8 | i128::from(byte)), scale)
        }
        // Of two's complement of any length; what is below 2^53 in size is exact.
        Meaning::Decimal { scale } => {
            let is_negative = bytes[0] > 127;
            let mask = if is_negative { 0xff } else { 0 };
            let size = bytes
                .iter()
                .fold(0.0, |sum, &byte| sum * 256.0 + f64::from(byte ^ mask));
            let number = if is_negative { -size - 1.0 } else { size };
            Value::Number(number / 10f64.powi(scale))
        }
        Meaning::HalfFloat => Value::Number(half(bytes)),
        Meaning::Uuid => {
            let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let cuts = [0, 4, 6, 8, 10, 16].map(|cut| cut.min(hex.len()));
            let parts: Vec<String> = cuts.windows(2).map(|cut| hex[cut[0]..cut[1]].concat()).collect();
            text(parts.join("-"))
        }
        _ => Value::Text(Cow::Borrowed(bytes)),
    }
}

/// IEEE 754 binary16.
fn half(bytes: &[u8]) -> f64 {
    let &[low, high] = bytes else { return f64::NAN };
    let bits = u16::from_le_bytes([low, high]);
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

/// Of days since 1970.
///
/// # Source
/// Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
fn date(days: i64) -> String {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    // Months from March on.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

fn time(second: i64, fraction: i64, digits: u32) -> String {
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!(
        "{hour:02}:{minute:02}:{:02}.{fraction:0width$}",
        second % 60,
        width = digits as usize
    )
}

fn timestamp(second: i64, fraction: i64, digits: u32, is_utc: bool) -> String {
    let day = second.div_euclid(SECONDS_OF_DAY);
    let time = time(second.rem_euclid(SECONDS_OF_DAY), fraction, digits);
    format!("{}T{time}{}", date(day), if is_utc { "Z" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times() {
        for (days, wanted) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11_016, "2000-02-29"),
            (20_784, "2026-11-27"),
        ] {
            assert_eq!(date(days), wanted);
        }
        assert_eq!(timestamp(-1, 5, 3, true), "1969-12-31T23:59:59.005Z");
        assert_eq!(time(3661, 7, 6), "01:01:01.000007");
    }

    #[test]
    fn numbers_keep_their_value() {
        assert_eq!(Value::whole(1 << 53), Value::Number(9_007_199_254_740_992.0));
        assert_eq!(Value::whole((1 << 53) + 1), Value::Whole(9_007_199_254_740_993));
        let scale = Meaning::Decimal { scale: 2 };
        assert_eq!(bytes(&[0xff, 0x85], scale), Value::Number(-1.23));
        assert_eq!(bytes(&[0x01, 0x00], scale), Value::Number(2.56));
        let mut wide = [0xff; 32];
        wide[31] = 0x85;
        assert_eq!(bytes(&wide, scale), Value::Number(-1.23));
        wide[..31].fill(0);
        assert_eq!(bytes(&wide, scale), Value::Number(1.33));
        for (bits, wanted) in [
            (0x3c00u16, 1.0),
            (0xc100, -2.5),
            (0x0001, 2f64.powi(-24)),
            (0x7bff, 65504.0),
        ] {
            assert_eq!(half(&bits.to_le_bytes()), wanted);
        }
        assert!(half(&0x7e00u16.to_le_bytes()).is_nan());
    }
}
